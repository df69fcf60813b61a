"""The frame `results`: every metric of every task result, as reports have it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from medtasks_ext.registry.columns import axis_values
from medtasks_ext.results.condition_words import unknown_words
from medtasks_ext.results.frames import CONDITIONS, axes, names, schema, table, table_of
from medtasks_ext.results.models import model_id, version_of
from medtasks_ext.results.prices import prices
from medtasks_ext.tables import csv_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Dataset, Registry
    from medtasks_ext.results.experiments import Entry, Experiment
    from medtasks_ext.stats.intervals import Interval
    from medtasks_ext.stats.statistic import Array

#: column -> its value, of what has the column
_Values = dict[str, "Callable[[Any], Any]"]


def _condition(name: str) -> Callable[[Experiment], Any]:
    field = name.removesuffix("_asked")
    return lambda item: item.shown[field]


class _Columns(Mapping[str, Sequence[Any]]):
    """Columns that are worked out when they are first asked for."""

    def __init__(self, items: Sequence[Any], values: _Values) -> None:
        self._items, self._values = items, values
        self._found: dict[str, list[Any]] = {}

    def __getitem__(self, name: str) -> Sequence[Any]:
        if name not in self._found:
            self._found[name] = [*map(self._values[name], self._items)]
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


@lru_cache(maxsize=8)
def _of_datasets(tasks: Registry) -> _Columns:
    known = axis_values(tasks, tuple(axes()))

    def listed(axis: str) -> Callable[[Dataset], str | None]:
        values = known[axis]
        return lambda dataset: ";".join(values[dataset.id]) or None

    values: _Values = {
        "suite": lambda dataset: dataset.metadata.suite,
        "dataset": lambda dataset: dataset.id,
        "name": lambda dataset: dataset.metadata.name,
        **{axis: listed(axis) for axis in known},
        "control_of": lambda dataset: dataset.metadata.control_of,
        "draft": lambda dataset: dataset.metadata.draft,
    }
    return _Columns(list(tasks.datasets.values()), values)


_OF_ENTRY: _Values = {
    "entry": lambda entry: entry.label,
    "model": lambda entry: entry.model,
    "model_id": model_id,
    "model_version": version_of,
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
    "rows_here": lambda item: item.rows,
    "rows_of_suite": lambda item: item.rows_of_suite,
    **{name: _condition(name) for name in (said.partition(":")[0] for said in CONDITIONS.split())},
    "rows_are": lambda item: item.confirmed.rows,
    "words_are": lambda item: item.confirmed.words,
    "shots_are": lambda item: item.confirmed.shots,
    "comparable": lambda item: None if item.beside_the_paper is None else not item.unlike_the_paper,
    "otherwise": lambda item: item.otherwise or None,
    "unknown": lambda item: unknown_words(item.beside_the_paper or ()) or None,
    "sample": lambda item: item.sample,
}
_OF_METRIC = (
    *("metric", "value", "interval_low", "interval_high", "interval_rough"),
    *("paper_interval_low", "paper_interval_high"),
)


def _version(entry: Entry, package: str) -> str | None:
    return (entry.manifest.get("versions") or {}).get(package)


@dataclass(frozen=True)
class Part:
    """Columns that are alike in many rows of a table; `row` says which of these each row has."""

    columns: Mapping[str, Sequence[Any]]
    row: Array

    @cached_property
    def table(self) -> pa.Table:
        import pyarrow as pa

        known = schema("results")
        return pa.table(
            {name: pa.array(values, known.field(name).type) for name, values in self.columns.items()}
        )


@dataclass(frozen=True)
class ResultParts:
    """The frame `results`; what is said of datasets, entries and experiments stands once."""

    parts: tuple[Part, ...]

    @property
    def entries(self) -> Array:
        """Row of the frame -> place of its entry."""
        return self.parts[1].row

    @property
    def experiments(self) -> pa.Table:
        """Without the columns that depend on the metric."""
        return self.parts[2].table

    def scores(self) -> Mapping[str, Sequence[Any]]:
        """The columns of the metric `score`, a value per experiment; None where it has no score."""
        of_score = {
            place: row
            for row, (place, metric) in enumerate(
                zip(self.parts[2].row.tolist(), self.parts[3].columns["metric"], strict=True)
            )
            if metric == "score"
        }
        rows = [of_score.get(place) for place in range(len(self.parts[2].columns["task"]))]
        return {
            name: [None if row is None else values[row] for row in rows]
            for name, values in self.parts[3].columns.items()
        }

    def rows(self, columns: Sequence[str]) -> list[Json]:
        """The rows with some of their columns, without Arrow, whose start takes longer than a few rows."""
        lists = [
            [part.columns[name][place] for place in part.row.tolist()]
            for name in columns
            for part in self.parts
            if name in part.columns
        ]
        return [dict(zip(columns, values, strict=True)) for values in zip(*lists, strict=True)]

    def table(self) -> pa.Table:
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
            name: taken(part.table[name], pa.array(part.row)) for part in self.parts for name in part.columns
        }
        return table("results", columns)

    def lines(self) -> Iterator[str]:
        """The same as lines of CSV, the header first."""
        columns = names("results")
        yield ",".join(columns) + "\n"
        of_part = {name: number for number, part in enumerate(self.parts) for name in part.columns}
        cells = []
        for number, some in groupby(columns, key=of_part.__getitem__):
            part = self.parts[number]
            texts = [line[:-1] for line in csv_lines(part.table.select([*some]))[1:]]
            cells.append(map(texts.__getitem__, part.row.tolist()))
        for row in zip(*cells, strict=True):
            yield ",".join(row) + "\n"


def usd_of(entry: Entry, item: Experiment) -> float | None:
    price = None if entry.kind == "published" else prices().get(entry.model)
    return price.of(item.tokens["input"], item.tokens["output"]) if price and item.tokens else None


def result_parts(
    entries: Sequence[Entry], tasks: Registry, metrics: Sequence[str] | None = None
) -> ResultParts:
    """One without any metric has a row without one."""
    datasets = list(tasks.datasets.values())
    number = {dataset.id: index for index, dataset in enumerate(datasets)}
    of_entry = [index for index, entry in enumerate(entries) for _ in entry.experiments]
    experiments = [item for entry in entries for item in entry.experiments.values()]
    of_dataset = [number[item.dataset.id] for item in experiments]
    rows = [
        (
            place,
            metric or None,
            item.metrics.get(metric),
            *_ends(item.intervals.get(metric)),
            getattr(item.intervals.get(metric), "rough", None),
            *_ends(item.paper_intervals.get(metric)),
        )
        for place, item in enumerate(experiments)
        for metric in metrics or dict.fromkeys([*item.metrics, *item.intervals]) or [""]
    ]
    place, *of_metric = zip(*rows, strict=True) if rows else [()] * (1 + len(_OF_METRIC))
    row = np.array(place, dtype=np.int64)
    owner = {id(item): entry for entry in entries for item in entry.experiments.values()}
    return ResultParts(
        (
            Part(_of_datasets(tasks), np.array(of_dataset, dtype=np.int64)[row]),
            Part(_Columns(entries, _OF_ENTRY), np.array(of_entry, dtype=np.int64)[row]),
            Part(
                _Columns(experiments, {**_OF_EXPERIMENT, "usd": lambda item: usd_of(owner[id(item)], item)}),
                row,
            ),
            Part(dict(zip(_OF_METRIC, of_metric, strict=True)), np.arange(len(row))),
        )
    )


def condition_frame(entries: Sequence[Entry]) -> pa.Table:
    rows = (
        {"entry": entry.label, "task": name, **item.shown}
        for entry in entries
        for name, item in entry.experiments.items()
    )
    return table_of("conditions", rows)


def _ends(interval: Interval | None) -> tuple[float | None, float | None]:
    return (interval.low, interval.high) if interval else (None, None)
