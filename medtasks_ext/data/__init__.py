"""From source rows to prompts: origins, schemas, rendering, few-shot pools."""

from medtasks_ext.data.load import load_documents

__all__ = ["load_documents"]
