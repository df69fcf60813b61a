"""The frame `results`: every metric of every task result, as reports have it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from medtasks_ext.registry.columns import axis_values
from medtasks_ext.results.condition_words import difference_words, unknown_words
from medtasks_ext.results.frames import CONDITIONS, axes, names, schema, table, table_of
from medtasks_ext.results.models import model_id, version_of
from medtasks_ext.results.prices import prices
from medtasks_ext.results.rollup import asked_rows
from medtasks_ext.tables import csv_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Dataset, Registry
    from medtasks_ext.results.experiments import Entry, Experiment
    from medtasks_ext.stats.intervals import Interval
    from medtasks_ext.stats.statistic import Array

#: column -> its value, of what has the column
_Values = dict[str, "Callable[[Any], Any]"]


def _condition(name: str) -> Callable[[Experiment], Any]:
    return lambda item: item.shown[name.removesuffix("_asked")]


def _table(items: Iterable[Any], values: _Values) -> pa.Table:
    import pyarrow as pa

    found, known = list(items), schema("results")
    return pa.table(
        {name: pa.array([*map(of, found)], known.field(name).type) for name, of in values.items()}
    )


@lru_cache(maxsize=8)
def _of_datasets(tasks: Registry) -> pa.Table:
    def listed(of: Mapping[str, Sequence[str]]) -> Callable[[Dataset], str | None]:
        return lambda dataset: ";".join(of[dataset.id]) or None

    values: _Values = {
        "suite": lambda dataset: dataset.metadata.suite,
        "dataset": lambda dataset: dataset.id,
        "name": lambda dataset: dataset.metadata.name,
        **{axis: listed(of) for axis, of in axis_values(tasks, tuple(axes())).items()},
        "control_of": lambda dataset: dataset.metadata.control_of,
        "draft": lambda dataset: dataset.metadata.draft,
    }
    return _table(tasks.datasets.values(), values)


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
    "chance": lambda item: item.chance,
    "ceiling": lambda item: item.ceiling,
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
    "otherwise": lambda item: "; ".join(map(difference_words, item.unlike_the_paper)) or None,
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
class ResultParts:
    """The frame `results`; what is said of datasets, entries and experiments stands once."""

    tables: tuple[pa.Table, ...]  # of datasets, entries, experiments and metrics: columns of the frame
    places: tuple[Array, ...]  # for each of them, which of its rows each row of the frame has

    @property
    def experiments(self) -> pa.Table:
        """Without the columns that depend on the metric."""
        return self.tables[2]

    def scores(self) -> Mapping[str, Sequence[Any]]:
        """The columns of the metric `score`, a value per experiment; None where it has no score."""
        columns = self.tables[3].to_pydict()
        metrics = zip(self.places[2].tolist(), columns["metric"], strict=True)
        of_score = {place: row for row, (place, metric) in enumerate(metrics) if metric == "score"}
        rows = [of_score.get(place) for place in range(self.experiments.num_rows)]
        return {
            name: [None if row is None else values[row] for row in rows] for name, values in columns.items()
        }

    def table(self) -> pa.Table:
        import pyarrow as pa

        parts = [*zip(self.tables, map(pa.array, self.places), strict=True)]
        return table(
            "results", {name: part[name].take(row) for part, row in parts for name in part.column_names}
        )

    def lines(self) -> Iterator[str]:
        """The same as lines of CSV, the header first."""
        columns = names("results")
        yield ",".join(columns) + "\n"
        of_part = {name: number for number, part in enumerate(self.tables) for name in part.column_names}
        cells = []
        for number, some in groupby(columns, key=of_part.__getitem__):
            texts = [line[:-1] for line in csv_lines(self.tables[number].select([*some]))[1:]]
            cells.append(map(texts.__getitem__, self.places[number].tolist()))
        for row in zip(*cells, strict=True):
            yield ",".join(row) + "\n"


def result_parts(entries: Sequence[Entry], tasks: Registry) -> ResultParts:
    """One without any metric has a row without one."""
    import pyarrow as pa

    known, number = prices(), {name: index for index, name in enumerate(tasks.datasets)}
    pairs = [(index, item) for index, entry in enumerate(entries) for item in entry.experiments.values()]
    experiments = [item for _, item in pairs]

    def usd(pair: tuple[int, Experiment]) -> float | None:
        entry, tokens = entries[pair[0]], pair[1].tokens
        price = None if entry.kind == "published" else known.get(entry.model)
        return price.of(tokens["input"], tokens["output"]) if price and tokens else None

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
        for metric in dict.fromkeys([*item.metrics, *item.intervals]) or [""]
    ]
    of_experiments = _table(experiments, _OF_EXPERIMENT)
    of_experiments = of_experiments.append_column("usd", pa.array([*map(usd, pairs)], pa.float64()))
    row = np.array([place for place, *_ in rows], dtype=np.int64)
    of_entry = np.array([index for index, _ in pairs], dtype=np.int64)
    of_dataset = np.array([number[item.dataset.id] for item in experiments], dtype=np.int64)
    metrics = _table(rows, {name: itemgetter(place) for place, name in enumerate(_OF_METRIC, 1)})
    return ResultParts(
        (_of_datasets(tasks), _table(entries, _OF_ENTRY), of_experiments, metrics),
        (of_dataset[row], of_entry[row], row, np.arange(len(row))),
    )


def asked_frame(entries: Sequence[Entry], tasks: Registry, names: Iterable[str] | None = None) -> pa.Table:
    """What was asked for, a row per name and entry that asked for it or has a result in it (frame `asked`).

    Name by name as `--tasks` said them, each entry in its order; published entries have rows of the names
    that runs beside them were asked. A group's figures are as those of other groups: its score a mean over
    its tasks that have one, chance and ceiling weighted alike, empty where one of these tasks has none.

    `names`: of tasks, tags and groups, in place of those that the entries were asked.
    """
    asked = list(names if names is not None else chain.from_iterable(entry.asked for entry in entries))
    found: dict[str, list[Json]] = {name: [] for name in asked}
    for entry in entries:
        done = {str(item.config.get("task", item.task)): item for item in entry.experiments.values()}
        of_entry = {"entry": entry.label, "model": entry.model, "kind": entry.kind, "sample": entry.sample}
        for row in asked_rows(tasks, asked, done):
            printed = entry.groups.get(row.name)
            if not row.n_documents and printed is None and row.name not in entry.asked:
                continue
            low, high = _ends(row.interval)
            ways = {done[leaf].strategy for leaf in tasks.leaves(row.name) if leaf in done}
            found[row.name].append(
                {
                    **of_entry,
                    **{"name": row.name, "strategy": ways.pop() if len(ways) == 1 else ""},
                    "score": row.score if printed is None else printed,
                    **{"interval_low": low, "interval_high": high},
                    "interval_rough": bool(row.interval and row.interval.rough),
                    **{"chance": row.chance, "ceiling": row.ceiling},
                    "tasks_scored": row.n_scored if printed is None else None,
                    **{"tasks": row.n_tasks, "partial": printed is None and row.partial},
                    "documents": row.n_documents if printed is None else None,
                    "valid": row.valid,
                }
            )
    return table_of("asked", chain.from_iterable(found.values()))


def condition_frame(entries: Sequence[Entry]) -> pa.Table:
    rows = (
        {"entry": entry.label, "task": name, **item.shown}
        for entry in entries
        for name, item in entry.experiments.items()
    )
    return table_of("conditions", rows)


def _ends(interval: Interval | None) -> tuple[float | None, float | None]:
    return (interval.low, interval.high) if interval else (None, None)
