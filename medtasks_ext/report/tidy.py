"""The tables of a report for other programs: one row per experiment and metric, one per group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from medtasks_ext.report.axes import title

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from medtasks_ext.registry.tasks import Dataset
    from medtasks_ext.report.gather import Report
    from medtasks_ext.report.groups import GroupScore
    from medtasks_ext.results.experiments import Entry, Experiment

SCHEMA = 1

#: column -> (type, value); one table each for what is said of datasets, entries, experiments and groups
_Columns = dict[str, tuple[str, "Callable[[Any], Any]"]]


def _listed(axis: str) -> Callable[[Dataset], str | None]:
    return lambda dataset: ";".join(dataset.metadata.axis(axis)) or None


_AXES = (
    *("language", "task_type", "stage", "specialties", "documents", "access", "application", "category"),
    *("subcategory", "scenario", "clinical_task", "domain", "dimension", "tertiary"),
)
_OF_DATASET: _Columns = {
    "suite": ("string", lambda dataset: dataset.metadata.benchmark),
    "dataset": ("string", lambda dataset: dataset.id),
    "name": ("string", lambda dataset: dataset.metadata.name),
    **{axis: ("string", _listed(axis)) for axis in _AXES},
    "twin_of": ("string", lambda dataset: dataset.metadata.twin_of),
}
_OF_ENTRY: _Columns = {
    "entry": ("string", lambda entry: entry.label),
    "model": ("string", lambda entry: entry.model),
    "kind": ("string", lambda entry: entry.kind),
    "settings": ("string", lambda entry: "; ".join(f"{key}: {value}" for key, value in entry.settings.items())),
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
    "task_version": ("string", lambda item: item.version or item.settings.get("version")),
    "prompt": ("string", lambda item: item.settings.get("prompt")),
    "data": ("string", lambda item: item.settings.get("data")),
    "rows": ("string", lambda item: item.settings.get("rows") or None),
    "rebuilt": ("bool", lambda item: item.settings.get("rebuilt") == "yes"),
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
    "documents": ("int64", lambda row: row.documents),
    "valid": ("float64", lambda row: row.valid),
    "cut": ("float64", lambda row: row.cut),
    "rank": ("int64", lambda row: row.rank),
    "rank_of": ("int64", lambda row: row.of),
}


def _version(entry: Entry, package: str) -> str | None:
    return (entry.manifest.get("versions") or {}).get(package)


def results_table(report: Report) -> pa.Table:
    """One row per experiment and metric; docs/report.md lists the columns."""
    import pyarrow as pa

    datasets = list(report.tasks.datasets.values())
    place = {dataset.id: index for index, dataset in enumerate(datasets)}
    of_entry: list[int] = []
    of_dataset: list[int] = []
    of_experiment: list[int] = []
    experiments: list[Experiment] = []
    usd: list[float | None] = []
    rows: list[tuple[str, float, float | None, float | None]] = []
    for number, (entry, cost) in enumerate(zip(report.entries, report.costs, strict=True)):
        for item in entry.experiments.values():
            for metric, value in item.metrics.items():
                interval = item.intervals.get(metric)
                rows.append(
                    (metric, value, interval and interval.low, interval and interval.high)  # type: ignore[arg-type]
                )
                of_experiment.append(len(experiments))
                of_dataset.append(place[item.dataset.id])
                of_entry.append(number)
            experiments.append(item)
            usd.append(cost.of(item))
    columns = {
        **_taken(_columns(_OF_DATASET, datasets), of_dataset),
        **_taken(_columns(_OF_ENTRY, report.entries), of_entry),
        **_taken(_columns(_OF_EXPERIMENT, experiments), of_experiment),
        **_taken({"usd": pa.array(usd, pa.float64())}, of_experiment),
    }
    values = zip(*rows, strict=True) if rows else [()] * len(_OF_METRIC)
    for (name, kind), column in zip(_OF_METRIC.items(), values, strict=True):
        columns[name] = pa.array(column, kind)
    return _table({name: columns[name] for name in RESULTS_COLUMNS})


#: the columns of `results`, in order
RESULTS_COLUMNS = (
    *("suite", "dataset", "name", "task", "strategy", "entry", "model", "kind", "sample"),
    *("metric", "value", "interval_low", "interval_high", "n", "valid", "cut", "inputs_cut", "unclosed"),
    *_AXES,
    *("twin_of", "task_version", "prompt", "data", "rows", "rebuilt", "input_tokens", "output_tokens", "usd"),
    *("settings", "started", "medtasks_version", "lm_eval_version"),
)


def groups_table(report: Report) -> pa.Table:
    """One row per entry, strategy and group; docs/report.md lists the columns."""
    return _table(_columns(_OF_GROUP, report.groups))


def _columns(columns: _Columns, items: Sequence[Any]) -> dict[str, pa.Array]:
    import pyarrow as pa

    return {name: pa.array([value(item) for item in items], kind) for name, (kind, value) in columns.items()}


def _taken(columns: dict[str, pa.Array], rows: Sequence[int]) -> dict[str, pa.Array]:
    import pyarrow as pa

    places = pa.array(rows, pa.int64())
    return {name: column.take(places) for name, column in columns.items()}


def _table(columns: dict[str, pa.Array]) -> pa.Table:
    import pyarrow as pa

    return pa.table(columns, metadata={"medtasks_schema": str(SCHEMA)})


def shown(row: GroupScore) -> dict[str, Any]:
    """A row of `groups` as a mapping, for JSON."""
    return {name: value(row) for name, (_, value) in _OF_GROUP.items()}
