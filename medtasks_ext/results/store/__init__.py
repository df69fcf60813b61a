"""A store of many runs: Parquet tables that Polars and DuckDB read, and that results are read from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from medtasks_ext.results.store.layout import SCHEMA, is_store

if TYPE_CHECKING:
    from pathlib import Path

    from medtasks_ext.registry import Registry
    from medtasks_ext.results.experiments import Entry, Fault

__all__ = ["SCHEMA", "is_store", "read_store"]


def read_store(folder: Path, tasks: Registry, faults: list[Fault]) -> list[Entry]:
    """The runs of a store, an entry for each (`results.store.read`)."""
    from medtasks_ext.results.store import read

    return read.read_store(folder, tasks, faults)
