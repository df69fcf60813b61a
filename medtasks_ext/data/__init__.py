"""From source rows to prompts: origins, schemas, rendering, few-shot pools."""

from medtasks_ext.data.load import cot, five_shot, load_documents, zero_shot

__all__ = ["cot", "five_shot", "load_documents", "zero_shot"]
