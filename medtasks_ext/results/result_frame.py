"""The frame `results`: every metric of every task result, as reports have it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from medtasks_ext.registry.columns import axis_values
from medtasks_ext.results.conditions import difference_words, unknown_words
from medtasks_ext.results.frames import axes, names, schema, table, table_of
from medtasks_ext.results.models import model_id, version_of
from medtasks_ext.results.prices import prices
from medtasks_ext.results.rollup import asked_rows, members_of
from medtasks_ext.tables import csv_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Registry
    from medtasks_ext.results.experiments import Entry, Experiment
    from medtasks_ext.stats.intervals import Interval
    from medtasks_ext.stats.statistic import Array


@lru_cache(maxsize=8)
def _of_datasets(tasks: Registry) -> dict[str, Json]:
    values = axis_values(tasks, tuple(axes()))
    return {
        name: {
            **{"suite": dataset.metadata.suite, "dataset": name, "name": dataset.metadata.name},
            **{axis: ";".join(of[name]) or None for axis, of in values.items()},
            **{"control_of": dataset.metadata.control_of, "draft": dataset.metadata.draft},
        }
        for name, dataset in tasks.datasets.items()
    }


def _of_entry(entry: Entry) -> Json:
    versions = entry.manifest.get("versions") or {}
    return {
        **{"entry": entry.label, "model": entry.model, "kind": entry.kind},
        **{"model_id": model_id(entry), "model_version": version_of(entry)},
        "settings": "; ".join(f"{key}: {value}" for key, value in entry.words.items()),
        "started": entry.manifest.get("started"),
        **{f"{package}_version": versions.get(package) for package in ("medtasks", "lm_eval")},
    }


def _of_experiment(item: Experiment, conditions: Mapping[str, str]) -> Json:
    """`conditions`: column -> the condition of that name."""
    tokens, words, shown = item.tokens or {}, item.words, item.shown
    return {
        **{name: shown[condition] for name, condition in conditions.items() if condition in shown},
        **{"task": item.task, "strategy": item.strategy, "sample": item.sample, "n": item.n},
        **{"chance": item.chance, "ceiling": item.ceiling, "valid": item.metrics.get("valid")},
        **{"cut": item.share_cut("answers_cut"), "inputs_cut": item.share_cut("inputs_cut")},
        "unclosed": item.metrics.get("unclosed_reasoning"),
        **{f"{side}_tokens": tokens.get(side) for side in ("input", "output")},
        "task_version": item.version or words.get("version"),
        **{name: words.get(name) for name in ("prompt", "data", "jury")},
        **{"rows": item.conditions.rows or None, "judged": item.covered},
        **{"rows_here": item.rows, "rows_of_suite": item.rows_of_suite},
        "rebuilt": item.conditions.source == "rebuilt",
        **{f"{name}_are": state for name, state in item.confirmed._asdict().items()},
        "comparable": None if item.beside_the_paper is None else not item.unlike_the_paper,
        "otherwise": "; ".join(map(difference_words, item.unlike_the_paper)) or None,
        "unknown": unknown_words(item.beside_the_paper or ()) or None,
    }


_OF_METRIC = (
    *("metric", "value", "interval_low", "interval_high", "interval_rough"),
    *("paper_interval_low", "paper_interval_high"),
)
#: Rows of a part.
_ROWS = 20_000


@dataclass(frozen=True)
class ResultParts:
    """The frame `results`; what does not depend on the metric stands once."""

    experiments: pa.Table  # a row per experiment
    metrics: pa.Table  # a row per experiment and metric: the columns `_OF_METRIC`
    places: Array  # for each of the latter its row of the former

    def scores(self) -> Mapping[str, Sequence[Any]]:
        """The columns of the metric `score`, a value per experiment; None where it has no score."""
        columns = self.metrics.to_pydict()
        metrics = zip(self.places.tolist(), columns["metric"], strict=True)
        of_score = {place: row for row, (place, metric) in enumerate(metrics) if metric == "score"}
        rows = [of_score.get(place) for place in range(self.experiments.num_rows)]
        return {
            name: [None if row is None else values[row] for row in rows] for name, values in columns.items()
        }

    def tables(self) -> Iterator[pa.Table]:
        """The frame in parts, one at least: the whole holds each text of an experiment once per metric."""
        import pyarrow as pa

        for begin in range(0, max(1, len(self.places)), _ROWS):
            rows = self.experiments.take(pa.array(self.places[begin : begin + _ROWS]))
            metrics = self.metrics.slice(begin, _ROWS)
            columns = {name: (metrics if name in _OF_METRIC else rows)[name] for name in names("results")}
            yield table("results", columns)

    def lines(self) -> Iterator[str]:
        """The same as lines of CSV, the header first."""
        columns, cells = names("results"), []
        yield ",".join(columns) + "\n"
        for of_metric, some in groupby(columns, key=_OF_METRIC.__contains__):
            part = self.metrics if of_metric else self.experiments
            texts = [line[:-1] for line in csv_lines(part.select([*some]))[1:]]
            cells.append(texts if of_metric else map(texts.__getitem__, self.places.tolist()))
        for row in zip(*cells, strict=True):
            yield ",".join(row) + "\n"


def result_parts(entries: Sequence[Entry], tasks: Registry) -> ResultParts:
    """One without any metric has a row without one."""
    import pyarrow as pa

    of_datasets, known, types = _of_datasets(tasks), prices(), schema("results")
    experiments: dict[str, list[Any]] = {name: [] for name in types.names if name not in _OF_METRIC}
    conditions, n = {name: name.removesuffix("_asked") for name in experiments}, 0
    metrics: list[tuple[Any, ...]] = []
    for entry in entries:
        price, of_entry = None if entry.kind == "published" else known.get(entry.model), _of_entry(entry)
        for item in entry.experiments.values():
            usd = price.of(item.tokens["input"], item.tokens["output"]) if price and item.tokens else None
            row = {
                **of_datasets[item.dataset.id],
                **of_entry,
                **_of_experiment(item, conditions),
                "usd": usd,
            }
            for metric in dict.fromkeys([*item.metrics, *item.intervals]) or [""]:
                around, paper = item.intervals.get(metric), item.paper_intervals.get(metric)
                figures = item.metrics.get(metric), *_ends(around), around.rough if around else None
                metrics.append((n, metric or None, *figures, *_ends(paper)))
            for name, values in experiments.items():
                values.append(row[name])
            n += 1
    places, *columns = list(zip(*metrics, strict=True)) or [()] * (1 + len(_OF_METRIC))
    of_metric = dict(zip(_OF_METRIC, columns, strict=True))
    return ResultParts(
        pa.table({name: pa.array(experiments.pop(name), types.field(name).type) for name in [*experiments]}),
        pa.table({name: pa.array(values, types.field(name).type) for name, values in of_metric.items()}),
        np.array(places, dtype=np.int64),
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
            ways = {done[leaf].strategy for leaf in members_of(tasks, row.name).datasets if leaf in done}
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


def _ends(interval: Interval | None) -> tuple[float | None, float | None]:
    return (interval.low, interval.high) if interval else (None, None)
