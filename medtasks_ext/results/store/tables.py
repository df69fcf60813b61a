"""The tables of a store: experiments as rows, and rows as experiments."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from medtasks_ext.atomic import atomic_file
from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts.documents import document_key
from medtasks_ext.results.document_scores import DocumentScores, as_table, from_table
from medtasks_ext.results.experiments import Experiment
from medtasks_ext.results.frames import schema, table
from medtasks_ext.results.older_conditions import stored_conditions
from medtasks_ext.results.reading import choice_of
from medtasks_ext.results.store.layout import DOCUMENTS, RESPONSES, RESULTS, Rows, damaged, gone
from medtasks_ext.runs.conditions import run_conditions
from medtasks_ext.stats.intervals import Interval, of_earlier
from medtasks_ext.stats.statistic import Statistic, mean

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry
    from medtasks_ext.registry.yamlfile import Config
    from medtasks_ext.runs.conditions import RunConditions
    from medtasks_ext.runs.records import Sample

#: rows of a file that are compressed together
ROW_GROUP = 2**14
#: columns that differ from row to row, so that a dictionary would not help
_DISTINCT = ("document", "content", "unit", "response", "record")
#: texts of results that are long, or the same in many rows
_TEXTS = ["task", "run", "loaded", "cut", "config", "conditions", "settings"]
_RESPONSES = pa.schema(
    dict.fromkeys(
        ("suite", "model", "strategy", "task", "run", "document", "response", "record"), pa.string()
    )
)


def _columns(
    model: str, run: str, experiments: Sequence[Experiment], lengths: Sequence[int], **more: pa.Array
) -> dict[str, pa.Array]:
    """The columns that say whose rows these are, which all tables have.

    Args:
        model: as its user names it.
        run: its id.
        experiments: (m,) in the order of their rows.
        lengths: (m,) rows of each.
        more: further columns, a value per experiment, (m,) each.
    """
    columns = {
        "suite": [item.dataset.metadata.suite for item in experiments],
        "model": [model] * len(experiments),
        "strategy": [item.strategy for item in experiments],
        "task": [item.task for item in experiments],
        "run": [run] * len(experiments),
    }
    rows = pa.array(np.repeat(np.arange(len(experiments)), lengths))
    arrays = {name: pa.array(values, pa.string()) for name, values in columns.items()}
    # a text is written once, and by number afterwards
    return {
        name: (column.dictionary_encode() if pa.types.is_string(column.type) else column).take(rows)
        for name, column in {**arrays, **more}.items()
    }


def _write(path: Path, frame: pa.Table) -> None:
    """Write a frame; its texts are plain texts for every reader (`store_schema`)."""
    repeated = [name for name in frame.column_names if name not in _DISTINCT]
    with atomic_file(path) as file:
        parquet.write_table(
            frame,
            file,
            compression="zstd",
            row_group_size=ROW_GROUP,
            use_dictionary=repeated,
            store_schema=False,
        )


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Say of a table that cannot be read which one it is, and how the run comes back."""
    try:
        yield
    except FileNotFoundError:
        raise gone(path) from None
    except (pa.ArrowException, OSError) as error:
        raise damaged(path, f"damaged ({error})") from None


# ---------------------------------------------------------------------- documents


def write_documents(
    folder: Path, model: str, run: str, found: Sequence[tuple[Experiment, DocumentScores]]
) -> dict[str, Rows]:
    """Write a row per document, if there are any; what a document does not have is null: means leave it out.

    Returns:
        Task -> where its documents lie.
    """
    if not found:
        return {}
    # what follows from `score` lies together, so that `counts` need not be read with it
    found = sorted(found, key=lambda pair: pair[1].statistic is not mean)
    experiments, lengths = [item for item, _ in found], [len(scores.documents) for _, scores in found]
    sample = pa.array([item.sample for item in experiments])
    columns = _columns(model, run, experiments, lengths, sample=sample)
    own = pa.concat_tables([as_table(scores) for _, scores in found])
    columns |= {name: own[name] for name in own.column_names}
    for name in ("score", "valid", "unclosed"):
        columns[name] = pa.array(own[name].to_numpy(), from_pandas=True)
    _write(folder / DOCUMENTS, table("documents", columns))
    starts = np.cumsum([0, *lengths]).tolist()
    return {item.task: _rows(first, scores) for first, (item, scores) in zip(starts, found, strict=False)}


def _rows(first: int, scores: DocumentScores) -> Rows:
    n, k = scores.counts.shape
    numbered = int(scores.units.max(initial=-1)) == n - 1  # from 0
    return Rows(
        first=first,
        n=n,
        width=0 if scores.statistic is mean else k,
        statistic=scores.statistic.name,
        plain=bool(scores.scored.all()) and numbered,
    )


def read_rows(path: Path, first: int, n: int, columns: Sequence[str]) -> pa.Table:
    """Rows of a file of documents.

    Raises:
        MedtasksError: it is gone or damaged.
    """
    groups = range(first // ROW_GROUP, -(-(first + n) // ROW_GROUP))
    with _reading(path):
        table = parquet.ParquetFile(path).read_row_groups(groups, columns=list(columns), use_threads=False)
    return table.slice(first - groups.start * ROW_GROUP, n)


def read_document_scores(path: Path, rows: Rows, statistic: Statistic) -> DocumentScores:
    """The documents of one task.

    Raises:
        MedtasksError: the file cannot be read.
    """
    columns = ("document", "content", "unit", "scored", "score", "valid", "unclosed", "counts")
    return from_table(read_rows(path, rows.first, rows.n, columns), statistic)


# ---------------------------------------------------------------------- results


def write_results(
    folder: Path, model: str, run: str, settings: Mapping[str, str], experiments: Sequence[Experiment]
) -> None:
    """Write a row per task and metric; a task without any metric has one row."""
    metrics = [list(dict.fromkeys([*item.metrics, *item.intervals])) or [""] for item in experiments]
    pairs = [(item, metric) for item, names in zip(experiments, metrics, strict=True) for metric in names]
    intervals = [item.intervals.get(metric) for item, metric in pairs]

    each: dict[str, list[Any]] = {
        "dataset": [item.dataset.id for item in experiments],
        "version": [item.version for item in experiments],
        "sample": [item.sample for item in experiments],
        "n": [item.n for item in experiments],
        **{
            name: [item.words[name] for item in experiments] for name in ("prompt", "data", "rows", "rebuilt")
        },
        **{name: [item.words.get(name) for item in experiments] for name in ("examples", "jury")},
        "tokens_input": [(item.tokens or {}).get("input") for item in experiments],
        "tokens_output": [(item.tokens or {}).get("output") for item in experiments],
        "cut": [_json(item.cut) for item in experiments],
        "loaded": [_json(item.loaded) for item in experiments],
        "settings": [_json(settings)] * len(experiments),
        "conditions": [_json(item.conditions.record()) for item in experiments],
        "config": [_json(_without_loaded(item.config)) for item in experiments],
    }
    types = schema("stored")
    arrays = {name: pa.array(values, types.field(name).type) for name, values in each.items()}
    figures = {
        "metric": [metric or None for _, metric in pairs],
        "value": [item.metrics.get(metric) for item, metric in pairs],
        "interval_low": [interval and interval.low for interval in intervals],
        "interval_high": [interval and interval.high for interval in intervals],
    }
    columns = _columns(model, run, experiments, list(map(len, metrics)), **arrays)
    _write(folder / RESULTS, table("stored", {**columns, **figures}))


def read_experiments(
    path: Path, tasks: Registry, manifest: Mapping[str, Any]
) -> tuple[list[Experiment], list[str]]:
    """The experiments of one run, and its tasks that the registry does not know.

    Args:
        path: of its results.
        tasks: the registry.
        manifest: of the run.

    Raises:
        MedtasksError: the file cannot be read.
    """
    with _reading(path):
        table = parquet.ParquetFile(path, read_dictionary=_TEXTS).read(use_threads=False)
    column = {name: _values(table[name]) for name in table.column_names}
    first: dict[str, int] = {}
    metrics: dict[str, dict[str, float]] = {}
    intervals: dict[str, dict[str, Interval]] = {}
    unknown: dict[str, None] = {}
    for place, task in enumerate(column["task"]):
        if tasks.asked(task) is None:
            unknown[task] = None
            continue
        if task not in first:
            first[task], metrics[task], intervals[task] = place, {}, {}
        metric, value, low = (column[name][place] for name in ("metric", "value", "interval_low"))
        if value is not None:
            metrics[task][metric] = value
        if low is not None:
            interval = Interval(low, column["interval_high"][place])
            if value is not None and interval.low == interval.high:  # stored by an earlier version
                interval = of_earlier(value, interval, column["n"][place])
            intervals[task][metric] = interval
    run = run_conditions(manifest)
    found = []
    for task, place in first.items():
        row = {name: column[name][place] for name in column} | {"metrics": metrics[task]}
        documents = choice_of(manifest, task).words
        found.append(_experiment(path, task, row, intervals[task], run, documents, tasks))
    return found, list(unknown)


def _experiment(
    path: Path,
    task: str,
    row: Mapping[str, Any],
    intervals: dict[str, Interval],
    run: RunConditions,
    documents: str,
    tasks: Registry,
) -> Experiment:
    known = tasks.asked(task)
    assert known is not None  # the caller looked
    dataset, strategy = known
    loaded = json.loads(row["loaded"])
    counted = row["tokens_input"] is not None
    config = _config(row["config"])
    stored = {
        **{name: row[name] for name in ("version", "n", "metrics")},
        **{"loaded": loaded, "config": config, "jury": row.get("jury"), "cut": json.loads(row["cut"])},
        "conditions": json.loads(row.get("conditions") or "{}"),
    }
    return Experiment(
        task=task,
        dataset=dataset,
        conditions=stored_conditions(stored, run, dataset, strategy, documents, path),
        metrics=row["metrics"],
        intervals=intervals,
        n=row["n"],
        loaded=loaded,
        tokens={"input": row["tokens_input"], "output": row["tokens_output"]} if counted else None,
        config=config,
    )


def _values(column: pa.ChunkedArray) -> list[Any]:
    """As Python objects; a text that is repeated becomes one object."""
    if not pa.types.is_dictionary(column.type):
        values: list[Any] = column.to_pylist()
        return values
    found: list[Any] = []
    for chunk in column.chunks:
        words = chunk.dictionary.to_pylist()
        found += [words[place] for place in chunk.indices.to_pylist()]
    return found


@lru_cache(maxsize=4096)
def _config(text: str) -> Config:
    config: Config = json.loads(text)  # one object for all models of a task: some 30 kB each
    return config


def _without_loaded(config: Mapping[str, Any]) -> Config:
    """A task's configuration; what was loaded differs from run to run and has a column of its own."""
    metadata = dict(config.get("metadata") or {})
    metadata.pop("medtasks", None)
    return {**config, "metadata": metadata} if metadata else dict(config)


def _json(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, default=str)


# ---------------------------------------------------------------------- responses


def write_responses(
    folder: Path, model: str, run: str, experiments: Sequence[Experiment], lacking: dict[str, MedtasksError]
) -> list[str]:
    """Write a row per document with its `response`, and the rest of lm-eval's `record` as JSON.

    Args:
        folder: of the run in the store.
        model: as its user names it.
        run: its id.
        experiments: tasks that have logged no texts are left out.
        lacking: tasks whose texts cannot be read are added here.

    Returns:
        The tasks whose texts are stored; without any, nothing is written.
    """
    logged = [(item, item.read_samples) for item in experiments if item.read_samples is not None]
    if not logged:
        return []
    stored = []
    with (
        atomic_file(folder / RESPONSES) as file,
        parquet.ParquetWriter(file, _RESPONSES, compression="zstd", store_schema=False) as writer,
    ):
        for item, read in logged:
            try:
                samples = read()
            except MedtasksError as error:
                lacking[item.task] = error
                continue
            columns = {
                **_columns(model, run, [item], [len(samples)]),
                "document": [document_key(sample["doc"]) for sample in samples],
                "response": [_response(sample) for sample in samples],
                "record": [
                    _json({key: value for key, value in sample.items() if key != "resps"})
                    for sample in samples
                ],
            }
            writer.write_table(pa.table(columns).cast(_RESPONSES))
            stored.append(item.task)
    return stored


def _response(sample: Sample) -> str:
    [[response]] = sample["resps"]  # all tasks generate one answer
    return response


def read_samples(path: Path, task: str, first: int | None = None) -> list[Sample]:
    """lm-eval's records of one task; all, or so many of the first.

    Raises:
        MedtasksError: the file cannot be read.
    """
    with _reading(path):
        rows = parquet.read_table(
            path, columns=["response", "record"], filters=pc.field("task") == task, partitioning=None
        )
    pairs = zip(rows["response"].to_pylist(), rows["record"].to_pylist(), strict=True)
    return [_sample(record, response) for response, record in islice(pairs, first)]


def _sample(record: str, response: str) -> Sample:
    sample: Sample = json.loads(record)
    sample["resps"] = [[response]]
    return sample
