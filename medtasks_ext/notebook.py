"""Results in a notebook, as Polars frames: what `medtasks report`, `compare` and `ls` say.

    from medtasks_ext import compare, datasets, load

The frames of `load` have the columns that docs/columns.md lists; those of `compare` the columns of its files.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry
from medtasks_ext.report.gather import gather
from medtasks_ext.results.compared import compare_results, read_named
from medtasks_ext.results.result_frame import condition_frame
from medtasks_ext.version import install_words

if TYPE_CHECKING:
    import os
    from types import ModuleType

    import polars as pl


@dataclass(frozen=True)
class Loaded:
    """Runs, and published models beside them."""

    scores: pl.DataFrame  #: a row for each metric of each task result, with its interval
    groups: pl.DataFrame  #: a row for each entry, strategy and group, with interval and rank
    #: a row for each task result: its conditions; null where nobody recorded one
    conditions: pl.DataFrame
    notes: tuple[str, ...]  #: what to know before two figures are compared, and what was left out


@dataclass(frozen=True)
class Changes:
    """What differs between runs, models, or the strategies of one, pair by pair."""

    asked: pl.DataFrame  #: a row for each name that was asked; without an interval beside a published model
    groups: pl.DataFrame  #: a row for each group: difference, 95 % interval, p-value and adjusted p-values
    tasks: pl.DataFrame  #: the same for each task
    documents: pl.DataFrame  #: a row for each document whose score changed. No text
    notes: tuple[str, ...]  #: what was left out


def load(*paths: str | os.PathLike[str], published: str = "none") -> Loaded:
    """Read runs, or what lm-eval wrote: folders, as `medtasks report` takes them.

    `published`: a suite whose published models stand beside them, `all`, or `none`. MedtasksError: a path
    holds no results.
    """
    pl = _polars()
    report = gather([Path(path) for path in paths], registry(), published=published)
    tables = report.results.table(), report.groups, condition_frame(report.entries)
    scores, groups, conditions = map(pl.from_arrow, tables)
    return Loaded(scores, groups, conditions, (*report.differences, *map(str, report.faults)))


def compare(*paths: str | os.PathLike[str]) -> Changes:
    """Compare runs, published models by their names, or the strategies of one run, document by document.

    MedtasksError: there are no two, or they have no scored task in common.
    """
    pl, tasks = _polars(), registry()
    compared = compare_results(read_named([*map(str, paths)], tasks), tasks)
    tables = compared.asked, compared.groups, compared.tasks, compared.flipped
    asked, groups, by_task, documents = map(pl.from_arrow, tables)
    return Changes(asked, groups, by_task, documents, tuple(map(str, compared.faults)))


def datasets() -> pl.DataFrame:
    """Every dataset with its facts: a row each, lists as lists, one column for each axis of a suite."""
    records = []
    for item in registry().datasets.values():
        record = item.metadata.model_dump()
        best = record.pop("oracle_max")
        record.pop("source_terms")
        records.append(
            {
                "dataset": item.id,
                **record.pop("axes"),
                **record,
                "citation": item.metadata.axis("citation"),
                "oracle_max": str(best),  # a number, or `unbounded` or `per_document`
                "scoreable": item.metadata.scoreable,
            }
        )
    frame: pl.DataFrame = _polars().DataFrame(records, infer_schema_length=None, strict=False)
    return frame


def _polars() -> ModuleType:
    """Polars, which only notebooks need: 180 MB that the commands do without."""
    try:
        return import_module("polars")
    except ImportError:
        raise MedtasksError("frames need Polars", remedy=install_words("notebook")) from None
