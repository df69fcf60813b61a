"""medtasks: medical LLM benchmarks as YAML tasks for lm-evaluation-harness."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from medtasks_ext.version import __version__

if TYPE_CHECKING:
    from medtasks_ext.notebook import Changes, Loaded, compare, datasets, load

__all__ = ["Changes", "Loaded", "__version__", "compare", "datasets", "load"]


def __getattr__(name: str) -> Any:
    """The functions for notebooks, loaded when they are asked for: every command imports this package."""
    if name in __all__:
        return getattr(import_module("medtasks_ext.notebook"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
