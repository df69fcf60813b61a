"""The tables of a report for other programs: one row per experiment and metric, one per group."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from itertools import groupby
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from medtasks_ext.csvfile import plain
from medtasks_ext.report.axes import suite_axes, title

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa

    from medtasks_ext.registry import Dataset, Registry
    from medtasks_ext.report.gather import Report
    from medtasks_ext.report.groups import GroupScore
    from medtasks_ext.report.standing import Standing
    from medtasks_ext.results.experiments import Entry, Experiment
    from medtasks_ext.results.labels import LabelScore
    from medtasks_ext.stats.statistic import Array

SCHEMA = 1

#: column -> (type, value); one table each for what is said of datasets, entries, experiments and groups
_Columns = dict[str, tuple[str, "Callable[[Any], Any]"]]


def _listed(axis: str, tasks: Registry) -> Callable[[Dataset], str | None]:
    return lambda dataset: ";".join(tasks.values(dataset, axis)) or None


#: Conditions that have a column of their own under their names.
_CONDITIONS = ("wording", "source", "documents_asked", "decoding", "template", "system", "turns", "examples")


def _condition(name: str) -> Callable[[Experiment], Any]:
    field = name.removesuffix("_asked")
    return lambda item: item.shown[field]


def _axes() -> list[str]:
    """The axes that have a column: those of all suites, then those of single ones."""
    return ["language", "task_type", "stage", "specialties", "documents", "access", *suite_axes()]


def _of_dataset(tasks: Registry) -> _Columns:
    return {
        "suite": ("string", lambda dataset: dataset.metadata.suite),
        "dataset": ("string", lambda dataset: dataset.id),
        "name": ("string", lambda dataset: dataset.metadata.name),
        **{axis: ("string", _listed(axis, tasks)) for axis in _axes()},
        "twin_of": ("string", lambda dataset: dataset.metadata.twin_of),
        "draft": ("string", lambda dataset: dataset.metadata.draft),
    }


_OF_ENTRY: _Columns = {
    "entry": ("string", lambda entry: entry.label),
    "model": ("string", lambda entry: entry.model),
    "kind": ("string", lambda entry: entry.kind),
    "settings": (
        "string",
        lambda entry: "; ".join(f"{key}: {value}" for key, value in entry.words.items()),
    ),
    "started": ("string", lambda entry: entry.manifest.get("started")),
    "medtasks_version": ("string", lambda entry: _version(entry, "medtasks")),
    "lm_eval_version": ("string", lambda entry: _version(entry, "lm_eval")),
}
_OF_EXPERIMENT: _Columns = {
    "task": ("string", lambda item: item.task),
    "strategy": ("string", lambda item: item.strategy),
    "n": ("int64", lambda item: item.n),
    "valid": ("float64", lambda item: item.metrics.get("valid")),
    "cut": ("float64", lambda item: item.share_cut("answers_cut")),
    "inputs_cut": ("float64", lambda item: item.share_cut("inputs_cut")),
    "unclosed": ("float64", lambda item: item.metrics.get("unclosed_reasoning")),
    "input_tokens": ("int64", lambda item: (item.tokens or {}).get("input")),
    "output_tokens": ("int64", lambda item: (item.tokens or {}).get("output")),
    "task_version": ("string", lambda item: item.version or item.words.get("version")),
    "prompt": ("string", lambda item: item.words.get("prompt")),
    "data": ("string", lambda item: item.words.get("data")),
    "rows": ("string", lambda item: item.rows_hash or None),
    "rebuilt": ("bool", lambda item: item.rebuilt),
    "jury": ("string", lambda item: item.words.get("jury")),
    "judged": ("float64", lambda item: item.covered),
    "rows_here": ("int64", lambda item: item.coverage.rows),
    "rows_of_suite": ("int64", lambda item: item.coverage.of_suite),
    **{name: ("string", _condition(name)) for name in _CONDITIONS},
    "budget": ("int64", lambda item: item.facts.budget),
    "context": ("int64", lambda item: item.facts.context),
    "seed": ("int64", lambda item: item.facts.seed),
    "grade": ("string", lambda item: getattr(item.beside_the_paper, "grade", None)),
    "otherwise": ("string", lambda item: item.otherwise or None),
    "sample": ("bool", lambda item: item.sample),
}
_OF_METRIC = {"metric": "string", "value": "float64", "interval_low": "float64", "interval_high": "float64"}
_OF_GROUP: _Columns = {
    "entry": ("string", lambda row: row.entry.label),
    "model": ("string", lambda row: row.entry.model),
    "kind": ("string", lambda row: row.entry.kind),
    "sample": ("bool", lambda row: row.sample),
    "strategy": ("string", lambda row: row.strategy),
    "suite": ("string", lambda row: row.group.suite),
    "axis": ("string", lambda row: row.group.axis),
    "value": ("string", lambda row: row.group.value),
    "title": ("string", lambda row: title(row.group.axis, row.group.value)),
    "score": ("float64", lambda row: row.score),
    "interval_low": ("float64", lambda row: row.low),
    "interval_high": ("float64", lambda row: row.high),
    "tasks_scored": ("int64", lambda row: row.scored),
    "tasks": ("int64", lambda row: row.group.n_tasks),
    "partial": ("bool", lambda row: row.partial),
    "limited": ("bool", lambda row: row.entry.limited),
    "documents": ("int64", lambda row: row.documents),
    "valid": ("float64", lambda row: row.valid),
    "readable_repaired": ("float64", lambda row: row.readable),
    "score_if_readable": ("float64", lambda row: row.if_readable),
    "cut": ("float64", lambda row: row.cut),
    "pending": ("int64", lambda row: len(row.pending)),
    "rows_in_part": ("int64", lambda row: len(row.short)),
    "asked_otherwise": ("int64", lambda row: len(row.unlike)),
    "rank": ("int64", lambda row: row.rank),
    "rank_of": ("int64", lambda row: row.of),
}


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
class Results:
    """One row per experiment and metric; what is said of datasets, entries and experiments stands once.

    Attributes:
        parts: of datasets, entries, experiments and metrics.
    """

    parts: tuple[Part, ...]

    def table(self) -> pa.Table:
        """The table whose columns docs/report.md lists."""
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
            name: (column, pa.array(part.row))
            for part in self.parts
            for name, column in _by_name(part.columns).items()
        }
        return _table({name: taken(*columns[name]) for name in _of_results()})

    def lines(self) -> Iterator[str]:
        """The same as lines of CSV, the header first."""
        names = _of_results()
        yield ",".join(names) + "\n"
        of_part = {
            name: number for number, part in enumerate(self.parts) for name in part.columns.column_names
        }
        cells = []
        for number, some in groupby(names, key=of_part.__getitem__):
            part = self.parts[number]
            texts = [line[:-1] for line in csv_lines(part.columns.select([*some]))[1:]]
            cells.append(map(texts.__getitem__, part.row.tolist()))
        for row in zip(*cells, strict=True):
            yield ",".join(row) + "\n"


def results(report: Report) -> Results:
    """Every metric of every experiment of a report."""
    import pyarrow as pa

    datasets = list(report.tasks.datasets.values())
    number = {dataset.id: index for index, dataset in enumerate(datasets)}
    experiments, of_entry, usd = list[Any](), list[int](), list[float | None]()
    for index, (entry, cost) in enumerate(zip(report.entries, report.costs, strict=True)):
        experiments += entry.experiments.values()
        of_entry += [index] * len(entry.experiments)
        usd += [cost.of(item) for item in entry.experiments.values()]
    of_dataset = [number[item.dataset.id] for item in experiments]
    rows = [
        (place, metric, value, *_interval(item, metric))
        for place, item in enumerate(experiments)
        for metric, value in item.metrics.items()
    ]
    place, *columns = zip(*rows, strict=True) if rows else [()] * 5
    row = np.array(place, dtype=np.int64)
    metrics = {
        name: pa.array(column, kind) for (name, kind), column in zip(_OF_METRIC.items(), columns, strict=True)
    }
    return Results(
        (
            Part(
                _table(_columns(_of_dataset(report.tasks), datasets)),
                np.array(of_dataset, dtype=np.int64)[row],
            ),
            Part(_table(_columns(_OF_ENTRY, report.entries)), np.array(of_entry, dtype=np.int64)[row]),
            Part(_table({**_columns(_OF_EXPERIMENT, experiments), "usd": pa.array(usd, pa.float64())}), row),
            Part(_table(metrics), np.arange(len(row))),
        )
    )


def _interval(item: Experiment, metric: str) -> tuple[float | None, float | None]:
    interval = item.intervals.get(metric)
    return (interval.low, interval.high) if interval else (None, None)


#: the columns of `results` before and after those of the metric
_FIRST = ("suite", "dataset", "name", "task", "strategy", "entry", "model", "kind", "sample")


def _of_results() -> tuple[str, ...]:
    return (*_FIRST, *_OF_METRIC, *_last())


def _last() -> tuple[str, ...]:
    return (
        *(
            "n",
            "valid",
            "cut",
            "inputs_cut",
            "unclosed",
            *_axes(),
            "twin_of",
            "draft",
            "task_version",
            "prompt",
        ),
        *(
            "data",
            "rows",
            "rebuilt",
            "jury",
            "judged",
            "rows_here",
            "rows_of_suite",
            *_CONDITIONS,
            *("budget", "context", "seed", "grade", "otherwise"),
            "input_tokens",
            "output_tokens",
            "usd",
            "settings",
            "started",
        ),
        *("medtasks_version", "lm_eval_version"),
    )


def groups_table(report: Report) -> pa.Table:
    """One row per entry, strategy and group; docs/report.md lists the columns."""
    titles = {pair: title(*pair) for pair in {(row.group.axis, row.group.value) for row in report.groups}}
    of_row = {"title": ("string", lambda row: titles[row.group.axis, row.group.value])}
    return _table(_columns({**_OF_GROUP, **of_row}, report.groups))


_OF_LABEL: _Columns = {
    "entry": ("string", lambda row: row.entry.label),
    "model": ("string", lambda row: row.entry.model),
    "sample": ("bool", lambda row: row.sample),
    "strategy": ("string", lambda row: row.strategy),
    "suite": ("string", lambda row: row.suite),
    "axis": ("string", lambda row: row.axis),
    "value": ("string", lambda row: row.value),
    "score": ("float64", lambda row: row.score),
    "interval_low": ("float64", lambda row: row.interval and row.interval.low),
    "interval_high": ("float64", lambda row: row.interval and row.interval.high),
    "tasks": ("int64", lambda row: row.tasks),
    "documents": ("int64", lambda row: row.documents),
    "score_of_all": ("float64", lambda row: row.of_all),
    "of_all_low": ("float64", lambda row: row.interval_of_all and row.interval_of_all.low),
    "of_all_high": ("float64", lambda row: row.interval_of_all and row.interval_of_all.high),
    "documents_of_all": ("int64", lambda row: row.documents_of_all),
}


def labels_table(report: Report) -> pa.Table:
    """One row per entry, suite, strategy and label of documents; docs/report.md lists the columns."""
    return _table(_columns(_OF_LABEL, report.labels))


def label_record(row: LabelScore) -> dict[str, Any]:
    """A row of `labels` as a mapping, for JSON."""
    return {name: value(row) for name, (_, value) in _OF_LABEL.items()}


def _columns(columns: _Columns, items: Sequence[Any]) -> dict[str, pa.Array]:
    import pyarrow as pa

    return {name: pa.array([value(item) for item in items], kind) for name, (kind, value) in columns.items()}


def _table(columns: dict[str, pa.Array]) -> pa.Table:
    import pyarrow as pa

    return pa.table(columns, metadata={"medtasks_schema": str(SCHEMA)})


def _by_name(table: pa.Table) -> dict[str, pa.ChunkedArray]:
    return dict(zip(table.column_names, table.columns, strict=True))


def csv_lines(table: pa.Table) -> list[str]:
    """A table as CSV, a text for each row, the header first.

    Numbers are written as Python does, 1.0 and not 1, so that readers who guess types guess right.
    """
    import pyarrow as pa

    columns = [column.cast(pa.string()) if column.type == pa.bool_() else column for column in table.columns]
    lines: list[str] = []
    writer = csv.writer(SimpleNamespace(write=lines.append), lineterminator="\n")
    writer.writerow(table.column_names)
    writer.writerows(zip(*map(_cells, columns), strict=True))
    return lines


def _cells(column: pa.ChunkedArray) -> list[Any]:
    """The cells of a column; a text that stands in many rows is looked at once."""
    import pyarrow as pa

    if column.type != pa.string():
        return list(column.to_pylist())
    words = column.combine_chunks().dictionary_encode()
    cells = [plain(word) for word in words.dictionary.to_pylist()]
    return [None if place is None else cells[place] for place in words.indices.to_pylist()]


def standing_record(item: Standing) -> dict[str, Any]:
    """A standing as a mapping, for JSON and the page."""
    return {
        "entry": item.entry.label,
        "suite": item.suite.id,
        "strategy": item.strategy,
        "sentence": item.sentence,
        "among_peers": item.among_peers,
        "placed": item.placed,
        "place": item.place if item.placed else None,
        "of": len(item.rivals) + 1,
        "places": item.places,
        "score": item.score,
        "tasks": item.tasks,
        "of_suite": item.of_suite,
        "official": item.official,
        "alike": item.alike,
        "on_alike": item.on_alike,
        "low": item.low,
        "high": item.high,
        "reasons": item.reasons,
        "size": item.size,
        "rivals": [[rival.entry.label, rival.score] for rival in item.rivals],
        "peers": [rival.entry.label for rival in item.peers],
        "strips": [
            [strip.axis, strip.value, strip.tasks, strip.score, *strip.spread, strip.below]
            for strip in item.strips
        ],
        "strong": [[strip.axis, strip.value] for strip in item.strong],
        "weak": [[strip.axis, strip.value] for strip in item.weak],
    }


def shown(row: GroupScore) -> dict[str, Any]:
    """A row of `groups` as a mapping, for JSON."""
    return {name: value(row) for name, (_, value) in _OF_GROUP.items()}
