"""The frames of a report: tables of what it says, each made once of its records."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from medtasks_ext.report.axes import titles_of
from medtasks_ext.results.frames import names, table, table_of
from medtasks_ext.results.result_frame import ResultParts, result_parts

if TYPE_CHECKING:
    import pyarrow as pa

    from medtasks_ext.report.gather import Report
    from medtasks_ext.stats.intervals import Interval


def _ends(interval: Interval | None) -> tuple[float | None, float | None]:
    return (interval.low, interval.high) if interval else (None, None)


class Frames:
    """The frames of a report; `medtasks_ext.results.frames` has their columns.

    Attributes:
        report: what they are made of.
    """

    def __init__(self, report: Report) -> None:
        self.report = report

    @cached_property
    def results(self) -> ResultParts:
        """A row per experiment and metric."""
        return result_parts(self.report.entries, self.report.tasks)

    @cached_property
    def groups(self) -> pa.Table:
        """A row per entry, strategy and group, in the order of the report's groups."""
        rows = self.report.groups
        titles = titles_of((row.group.axis, row.group.value) for row in rows)
        return table_of(
            "groups",
            rows,
            {
                **_OF_OWNER,
                "kind": "entry.kind",
                "suite": "group.suite",
                "axis": "group.axis",
                "value": "group.value",
                "title": lambda row: titles[row.group.axis, row.group.value],
                "interval_low": "low",
                "interval_high": "high",
                "interval_rough": "rough",
                "paper_interval_low": lambda row: _ends(row.paper)[0],
                "paper_interval_high": lambda row: _ends(row.paper)[1],
                "tasks_scored": "scored",
                "tasks": "group.n_tasks",
                "limited": "entry.limited",
                "readable_repaired": "readable",
                "score_if_readable": "if_readable",
                "pending": lambda row: len(row.pending),
                "rows_in_part": lambda row: len(row.short),
                "asked_otherwise": lambda row: len(row.unlike),
                "rank_of": "of",
            },
        )

    @cached_property
    def pairs(self) -> pa.Table:
        """A row per suite, strategy and two entries with scores of documents."""
        report, found = self.report, list[dict[str, Any]]()
        for item in report.comparisons:
            if item.pairs is None or item.p_holm is None or item.p_bh is None:
                continue
            first, second = np.triu_indices(item.tested, 1)
            labels = [report.entries[place].label for place in item.entries]
            shared = {"suite": item.suite, "strategy": item.strategy, "sample": item.sample}
            matrices = {**vars(item.pairs), "p_holm": item.p_holm, "p_bh": item.p_bh, "wins": item.wins}
            columns = {name: matrix[first, second].tolist() for name, matrix in matrices.items()}
            for place, (row, column) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
                figures = {name: values[place] for name, values in columns.items()}
                pair = {"entry": labels[row], "minus": labels[column], "tasks": len(item.datasets)}
                found.append({**shared, **pair, **figures})
        return table("pairs", {name: [row[name] for row in found] for name in names("pairs")})

    @cached_property
    def within(self) -> pa.Table:
        """A row per suite and two ways to ask one model."""
        of_test = {name: f"comparison.{name}" for name in ("difference", "p_value", "method")}
        ends = {"low": "comparison.interval.low", "high": "comparison.interval.high"}
        return table_of("within", self.report.within, {**of_test, **ends})

    @cached_property
    def standings(self) -> pa.Table:
        """A row per entry, suite and strategy: where it stands among published models."""
        return table_of(
            "standings",
            self.report.standings,
            {
                "entry": "entry.label",
                "suite": "suite.id",
                "place": lambda item: item.place if item.placed else None,
                "of": lambda item: len(item.rivals) + 1,
                "equivalent": lambda item: item.equivalent and item.equivalent.score,
                "equivalent_error": lambda item: item.equivalent and item.equivalent.error,
                "reasons": lambda item: [*item.reasons.items()],
                "rivals": lambda item: [(rival.entry.label, rival.score) for rival in item.rivals],
                "peers": lambda item: [rival.entry.label for rival in item.peers],
                "strips": lambda item: [
                    (
                        strip.axis,
                        strip.value,
                        strip.tasks,
                        strip.score,
                        strip.low,
                        strip.high,
                        *strip.spread,
                        strip.below,
                    )
                    for strip in item.strips
                ],
                "strong": lambda item: [(strip.axis, strip.value) for strip in item.strong],
                "weak": lambda item: [(strip.axis, strip.value) for strip in item.weak],
            },
        )

    @cached_property
    def labels(self) -> pa.Table:
        """A row per entry, suite, strategy and label of documents, in the order of the report's labels."""
        return table_of(
            "labels",
            self.report.labels,
            {
                **_OF_OWNER,
                "interval_low": lambda row: _ends(row.interval)[0],
                "interval_high": lambda row: _ends(row.interval)[1],
                "score_of_all": "of_all",
                "of_all_low": lambda row: _ends(row.interval_of_all)[0],
                "of_all_high": lambda row: _ends(row.interval_of_all)[1],
            },
        )

    @cached_property
    def judgements(self) -> pa.Table:
        """A row per judged task, judges and measure."""
        return table_of(
            "judgements",
            self.report.agreements,
            {
                "entry": "entry.label",
                "suite": "experiment.dataset.metadata.suite",
                "dataset": "experiment.dataset.id",
                "task": "experiment.task",
                "strategy": "experiment.strategy",
            },
        )

    @cached_property
    def costs(self) -> pa.Table:
        """A row per entry."""
        report = self.report
        return table_of(
            "costs",
            list(zip(report.entries, report.costs, strict=True)),
            {
                "entry": lambda pair: pair[0].label,
                "model": lambda pair: pair[0].model,
                "kind": lambda pair: pair[0].kind,
                "tasks": lambda pair: len(pair[0].experiments),
                "counted": lambda pair: pair[1].counted,
                "input_tokens": lambda pair: (pair[1].tokens or {}).get("input"),
                "output_tokens": lambda pair: (pair[1].tokens or {}).get("output"),
                "usd": lambda pair: pair[1].usd,
                "usd_batch": lambda pair: pair[1].batch,
                "usd_bound": lambda pair: pair[1].bound,
                "price": lambda pair: pair[1].rule,
                "jury_usd": lambda pair: pair[1].jury and pair[1].jury.spent.usd,
                "jury_bound": lambda pair: getattr(pair[1].jury and pair[1].jury.bound, "usd", None),
            },
        )


#: whose a row is
_OF_OWNER = {"entry": "entry.label", "model": "entry.model"}
