"""The leaderboard's tables for programs: the frames `results` and `groups`, and what a submission is."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtasks_ext.csvfile import csv_lines
from medtasks_ext.report.axes import titles_of
from medtasks_ext.report.groups import group_frame
from medtasks_ext.results.result_frame import result_parts

if TYPE_CHECKING:
    import pyarrow as pa

    from medtasks_ext.report.groups import Group
    from medtasks_lab.site.boards import Scores
    from medtasks_lab.site.gather import BoardLine

#: file -> what a row of it is
TABLES = {
    "results.parquet": "one row per model, task and strategy: score, interval, documents, conditions",
    "results.csv.gz": "the same as compressed CSV",
    "groups.parquet": "one row per model, group and strategy: score, coverage, rank and among how many",
    "groups.csv.gz": "the same as compressed CSV",
}


def write_tables(folder: Path, scores: Scores) -> list[str]:
    """Write the tables.

    Returns:
        Their names from the site's folder on.
    """
    from pyarrow import parquet

    folder.mkdir()
    for name, table in (("results", _results(scores)), ("groups", _groups(scores))):
        parquet.write_table(table, folder / f"{name}.parquet", compression="zstd")
        content = "".join(csv_lines(table)).encode()
        # a tenth of the size, and the same bytes of the same table
        (folder / f"{name}.csv.gz").write_bytes(gzip.compress(content, mtime=0))
    return [f"data/{name}" for name in TABLES]


def _results(scores: Scores) -> pa.Table:
    lines = scores.site.lines
    parts = result_parts([line.entry for line in lines], scores.site.tasks, metrics=("score",))
    found = parts.table()
    scored = found["value"].is_valid()
    whose = [lines[place] for place in parts.entries.tolist()]
    names = found["task"].to_pylist()
    levels = [
        None if line.published else line.verdict(line.entry.experiments[name]).words
        for line, name in zip(whose, names, strict=True)
    ]
    return _with_lines(found, whose, levels).filter(scored)


def _groups(scores: Scores) -> pa.Table:
    ranks = {
        (strategy, group): scores.ranks(strategy, group)
        for strategy in scores.strategies
        for group in scores.groups
    }
    rows, whose, levels = [], [], []
    for (place, strategy, group), row in scores.rows.items():
        rank, of = ranks[strategy, group].get(place, (None, None))
        rows.append(replace(row, rank=rank, of=of))
        whose.append(scores.site.lines[place])
        levels.append(_level(scores, place, strategy, group))
    titles = titles_of((group.axis, group.value) for group in scores.groups)
    return _with_lines(group_frame(rows, titles), whose, levels)


def _level(scores: Scores, place: int, strategy: str, group: Group) -> str | None:
    """The lowest level of trust behind a submitted score of a group."""
    line = scores.site.lines[place]
    if line.published:
        return None
    verdicts = [
        line.verdict(item)
        for item in line.entry.experiments.values()
        if item.strategy == strategy and item.dataset.id in group.counted and item.score is not None
    ]
    return min(verdicts, key=lambda item: (item.is_proven, item.trust.place)).words


def _with_lines(table: pa.Table, lines: list[BoardLine], levels: list[str | None]) -> pa.Table:
    """A frame with what is known of each row's submission.

    Whether its scores are invented, its date, how far it is trusted, and what a person should look at.
    """
    import pyarrow as pa

    more: dict[str, list[Any]] = {
        "invented": [bool(line.record and line.record.invented) for line in lines],
        "submitted": [line.record.date if line.record else None for line in lines],
        "trust": levels,
        "waits": [line.checked.waits or None for line in lines],
    }
    for name, values in more.items():
        kind = pa.bool_() if name == "invented" else pa.string()
        table = table.append_column(name, pa.array(values, kind))
    return table
