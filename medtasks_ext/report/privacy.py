"""Whose text a report may show."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from medtasks_ext.registry.tasks import Dataset


def is_open(dataset: Dataset, *, sample: bool) -> bool:
    """Whether anyone may see the rows: they are synthetic, or anyone can download them."""
    return sample or dataset.metadata.access == "open"
