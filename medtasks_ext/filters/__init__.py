"""Model response -> parsed answer."""

from medtasks_ext.filters.answer import ParseAnswer

__all__ = ["ParseAnswer"]
