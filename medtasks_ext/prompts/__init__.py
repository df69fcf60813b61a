"""From a row to a prompt: wording, strategies, shots, turns; and the gold answer that belongs to it."""

from medtasks_ext.prompts.load import load_documents

__all__ = ["load_documents"]
