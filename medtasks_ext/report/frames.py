"""The frames of a report: tables of what it says, each made once of its records."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from medtasks_ext.csvfile import csv_lines
from medtasks_ext.registry.columns import axis_values
from medtasks_ext.report.axes import titles_of
from medtasks_ext.results.frames import axes, names, schema, table, table_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from medtasks_ext.registry import Dataset, Registry
    from medtasks_ext.report.gather import Report
    from medtasks_ext.results.experiments import Entry, Experiment
    from medtasks_ext.stats.intervals import Interval
    from medtasks_ext.stats.statistic import Array

#: column -> its value, of what has the column
_Values = dict[str, "Callable[[Any], Any]"]

#: Conditions that have a column of their own under their names.
_CONDITIONS = ("wording", "source", "documents_asked", "decoding", "template", "system", "turns", "examples")


def _condition(name: str) -> Callable[[Experiment], Any]:
    field = name.removesuffix("_asked")
    return lambda item: item.shown[field]


def _of_dataset(tasks: Registry) -> _Values:
    known = axis_values(tasks, tuple(axes()))

    def listed(axis: str) -> Callable[[Dataset], str | None]:
        values = known[axis]
        return lambda dataset: ";".join(values[dataset.id]) or None

    return {
        "suite": lambda dataset: dataset.metadata.suite,
        "dataset": lambda dataset: dataset.id,
        "name": lambda dataset: dataset.metadata.name,
        **{axis: listed(axis) for axis in known},
        "twin_of": lambda dataset: dataset.metadata.twin_of,
        "draft": lambda dataset: dataset.metadata.draft,
    }


_OF_ENTRY: _Values = {
    "entry": lambda entry: entry.label,
    "model": lambda entry: entry.model,
    "kind": lambda entry: entry.kind,
    "settings": lambda entry: "; ".join(f"{key}: {value}" for key, value in entry.words.items()),
    "started": lambda entry: entry.manifest.get("started"),
    "medtasks_version": lambda entry: _version(entry, "medtasks"),
    "lm_eval_version": lambda entry: _version(entry, "lm_eval"),
}
_OF_EXPERIMENT: _Values = {
    "task": lambda item: item.task,
    "strategy": lambda item: item.strategy,
    "n": lambda item: item.n,
    "valid": lambda item: item.metrics.get("valid"),
    "cut": lambda item: item.share_cut("answers_cut"),
    "inputs_cut": lambda item: item.share_cut("inputs_cut"),
    "unclosed": lambda item: item.metrics.get("unclosed_reasoning"),
    "input_tokens": lambda item: (item.tokens or {}).get("input"),
    "output_tokens": lambda item: (item.tokens or {}).get("output"),
    "task_version": lambda item: item.version or item.words.get("version"),
    "prompt": lambda item: item.words.get("prompt"),
    "data": lambda item: item.words.get("data"),
    "rows": lambda item: item.rows_hash or None,
    "rebuilt": lambda item: item.rebuilt,
    "jury": lambda item: item.words.get("jury"),
    "judged": lambda item: item.covered,
    "rows_here": lambda item: item.coverage.rows,
    "rows_of_suite": lambda item: item.coverage.of_suite,
    **{name: _condition(name) for name in _CONDITIONS},
    "budget": lambda item: item.facts.budget,
    "context": lambda item: item.facts.context,
    "seed": lambda item: item.facts.seed,
    "grade": lambda item: getattr(item.beside_the_paper, "grade", None),
    "otherwise": lambda item: item.otherwise or None,
    "sample": lambda item: item.sample,
}
_OF_METRIC = (
    "metric",
    "value",
    *("interval_low", "interval_high", "interval_rough"),
    *("paper_interval_low", "paper_interval_high"),
)


def _version(entry: Entry, package: str) -> str | None:
    return (entry.manifest.get("versions") or {}).get(package)


@dataclass(frozen=True)
class Part:
    """Columns of a table that are alike in many of its rows.

    Attributes:
        columns: name -> its values.
        row: row of the whole table -> row of these columns.
    """

    columns: pa.Table
    row: Array


@dataclass(frozen=True)
class ResultParts:
    """The frame `results`; what is said of datasets, entries and experiments stands once.

    Attributes:
        parts: of datasets, entries, experiments and metrics.
    """

    parts: tuple[Part, ...]

    @property
    def experiments(self) -> pa.Table:
        """A row per experiment, with the columns that do not depend on the metric."""
        return self.parts[2].columns

    def table(self) -> pa.Table:
        """The frame."""
        return self._table(lambda column, row: column.take(row))

    def packed(self) -> pa.Table:
        """The same with each text once, which a Parquet file holds as the same table."""
        import pyarrow as pa

        def pack(column: pa.ChunkedArray, row: pa.Array) -> pa.Array:
            if column.type != pa.string():
                return column.take(row)
            words = column.combine_chunks().dictionary_encode()
            return pa.DictionaryArray.from_arrays(words.indices.take(row), words.dictionary)

        return self._table(pack)

    def _table(self, taken: Callable[[pa.ChunkedArray, pa.Array], pa.Array]) -> pa.Table:
        import pyarrow as pa

        columns = {
            name: taken(part.columns[name], pa.array(part.row))
            for part in self.parts
            for name in part.columns.column_names
        }
        return table("results", columns)

    def lines(self) -> Iterator[str]:
        """The same as lines of CSV, the header first."""
        columns = names("results")
        yield ",".join(columns) + "\n"
        of_part = {
            name: number for number, part in enumerate(self.parts) for name in part.columns.column_names
        }
        cells = []
        for number, some in groupby(columns, key=of_part.__getitem__):
            part = self.parts[number]
            texts = [line[:-1] for line in csv_lines(part.columns.select([*some]))[1:]]
            cells.append(map(texts.__getitem__, part.row.tolist()))
        for row in zip(*cells, strict=True):
            yield ",".join(row) + "\n"


def _part(items: Sequence[Any], values: _Values, row: Array) -> Part:
    return Part(_columns({name: [*map(value, items)] for name, value in values.items()}), row)


def _columns(values: Mapping[str, Sequence[Any]]) -> pa.Table:
    import pyarrow as pa

    known = schema("results")
    return pa.table({name: pa.array(column, known.field(name).type) for name, column in values.items()})


def _results(report: Report) -> ResultParts:
    """Every metric of every experiment of a report."""
    datasets = list(report.tasks.datasets.values())
    number = {dataset.id: index for index, dataset in enumerate(datasets)}
    experiments, of_entry, usd = list[Any](), list[int](), list[float | None]()
    for index, (entry, cost) in enumerate(zip(report.entries, report.costs, strict=True)):
        experiments += entry.experiments.values()
        of_entry += [index] * len(entry.experiments)
        usd += [cost.of(item) for item in entry.experiments.values()]
    of_dataset = [number[item.dataset.id] for item in experiments]
    rows = [
        (
            place,
            metric,
            value,
            *_ends(item.intervals.get(metric)),
            getattr(item.intervals.get(metric), "rough", None),
            *_ends(item.paper_intervals.get(metric)),
        )
        for place, item in enumerate(experiments)
        for metric, value in item.metrics.items()
    ]
    place, *metrics = zip(*rows, strict=True) if rows else [()] * (1 + len(_OF_METRIC))
    row = np.array(place, dtype=np.int64)
    costs = iter(usd)
    return ResultParts(
        (
            _part(datasets, _of_dataset(report.tasks), np.array(of_dataset, dtype=np.int64)[row]),
            _part(report.entries, _OF_ENTRY, np.array(of_entry, dtype=np.int64)[row]),
            _part(experiments, {**_OF_EXPERIMENT, "usd": lambda item: next(costs)}, row),
            Part(_columns(dict(zip(_OF_METRIC, metrics, strict=True))), np.arange(len(row))),
        )
    )


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
        return _results(self.report)

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
