"""The leaderboard's tables for programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtasks_ext.report.axes import title
from medtasks_ext.results.condition_words import difference_words
from medtasks_lab.site.boards import Scores, is_whole

if TYPE_CHECKING:
    import pyarrow as pa

    from medtasks_ext.results.experiments import Experiment
    from medtasks_lab.site.gather import BoardLine

#: file -> what a row of it is
TABLES = {
    "scores.parquet": "one row per model, task and strategy: score, interval, documents, conditions",
    "scores.csv": "the same as CSV",
    "groups.parquet": "one row per model, group and strategy: score, coverage, rank and among how many",
    "groups.csv": "the same as CSV",
}
#: condition -> its column of `scores`
_CONDITIONS = ("wording", "source", "documents", "decoding", "template", "jury", "protocol", "engine")


def write_tables(folder: Path, scores: Scores) -> list[str]:
    """Write the tables.

    Returns:
        Their names from the site's folder on.
    """
    from pyarrow import csv, parquet

    folder.mkdir()
    for name, table in (("scores", _scores(scores)), ("groups", _groups(scores))):
        parquet.write_table(table, folder / f"{name}.parquet", compression="zstd")
        csv.write_csv(table, folder / f"{name}.csv")
    return [f"data/{name}" for name in TABLES]


def _table(rows: dict[str, list[Any]]) -> pa.Table:
    import pyarrow as pa

    return pa.table(
        {name: pa.array(values) for name, values in rows.items()}, metadata={"medtasks_schema": "1"}
    )


def _scores(scores: Scores) -> pa.Table:
    pairs = [
        (line, item)
        for line in scores.site.lines
        for item in line.entry.experiments.values()
        if item.score is not None
    ]
    return _table(
        {
            **_of_lines([line for line, _ in pairs]),
            "suite": [item.dataset.metadata.suite for _, item in pairs],
            "dataset": [item.dataset.id for _, item in pairs],
            "task": [item.task for _, item in pairs],
            "strategy": [item.strategy for _, item in pairs],
            "score": [item.score for _, item in pairs],
            **{f"interval_{end}": [_end(item, end) for _, item in pairs] for end in ("low", "high")},
            "n": [item.n for _, item in pairs],
            "rows_of_suite": [item.coverage.of_suite for _, item in pairs],
            "valid": [item.metrics.get("valid") for _, item in pairs],
            "judged": [item.covered for _, item in pairs],
            "task_version": [item.version or None for _, item in pairs],
            "rows": [item.facts.rows for _, item in pairs],
            **{name: [item.shown[name] for _, item in pairs] for name in _CONDITIONS},
            "budget": [item.facts.budget for _, item in pairs],
            "grade": [getattr(line.beside.get(item.task), "grade", None) for line, item in pairs],
            "otherwise": [
                "; ".join(map(difference_words, line.unlike(item))) or None for line, item in pairs
            ],
        }
    )


def _end(item: Experiment, end: str) -> float | None:
    interval = item.intervals.get("score")
    return getattr(interval, end) if interval else None


def _of_lines(lines: list[BoardLine]) -> dict[str, list[Any]]:
    return {
        "model": [line.entry.model for line in lines],
        "entry": [line.entry.label for line in lines],
        "kind": ["published" if line.published else "submitted" for line in lines],
        "invented": [bool(line.record and line.record.invented) for line in lines],
        "submitted": [line.record.date if line.record else None for line in lines],
    }


def _groups(scores: Scores) -> pa.Table:
    ranks = {
        (strategy, group): scores.ranks(strategy, group)
        for strategy in scores.strategies
        for group in scores.groups
    }
    found = [(place, strategy, group, row) for (place, strategy, group), row in scores.rows.items()]
    lines = scores.site.lines
    titles = {group: title(group.axis, group.value) for group in scores.groups}
    places = [ranks[strategy, group].get(place, (None, None)) for place, strategy, group, _ in found]
    return _table(
        {
            **_of_lines([lines[place] for place, *_ in found]),
            "suite": [group.suite for _, _, group, _ in found],
            "axis": [group.axis for _, _, group, _ in found],
            "value": [group.value for _, _, group, _ in found],
            "title": [titles[group] for _, _, group, _ in found],
            "strategy": [strategy for _, strategy, _, _ in found],
            "score": [row.score for *_, row in found],
            "tasks_scored": [row.scored for *_, row in found],
            "tasks": [group.n_tasks for _, _, group, _ in found],
            "whole": [is_whole(row) for *_, row in found],
            "as_the_paper": [
                scores.classes[group.suite, strategy].of[place] == 0 for place, strategy, group, _ in found
            ],
            "rank": [rank for rank, _ in places],
            "rank_of": [of for _, of in places],
        }
    )
