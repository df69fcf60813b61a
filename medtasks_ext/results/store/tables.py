"""The tables of a store: experiments as rows, and rows as experiments."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
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
from medtasks_ext.results.frames import table
from medtasks_ext.results.older_conditions import stored_conditions
from medtasks_ext.results.reading import choice_of
from medtasks_ext.results.result_frame import result_parts
from medtasks_ext.results.store.layout import (
    DOCUMENTS,
    RESPONSES,
    RESULTS,
    SCHEMA,
    TASKS,
    Rows,
    damaged,
    missing_file,
)
from medtasks_ext.runs.conditions import run_conditions
from medtasks_ext.stats.intervals import Interval, of_earlier
from medtasks_ext.stats.statistic import Statistic, mean

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry
    from medtasks_ext.registry.yamlfile import Config
    from medtasks_ext.results.experiments import Entry
    from medtasks_ext.results.store.layout import StoredRun
    from medtasks_ext.runs.conditions import RunConditions
    from medtasks_ext.runs.records import Sample

#: rows of a file that are compressed together
ROW_GROUP = 2**14
#: columns that differ from row to row, so that a dictionary would not help
_DISTINCT = ("document", "content", "unit", "response", "record")
#: columns from which experiments are read; of the layout before, some had other names
_FIGURES = {
    **{name: name for name in ("task", "metric", "value", "interval_low", "interval_high", "n", "jury")},
    **{"version": "task_version", "tokens_input": "input_tokens", "tokens_output": "output_tokens"},
}
_LATER = ("interval_rough", "paper_interval_low", "paper_interval_high")
#: Column that stores of earlier versions may lack -> what that is.
LACKED = {
    "jury": "who judged",
    "conditions": "a part of the conditions",
    "interval_rough": "which intervals are rough",
    "paper_interval_low": "intervals as the suites' code computes them",
    "paper_interval_high": "intervals as the suites' code computes them",
}
_RECORDS = ("cut", "loaded", "conditions", "config")
_RESPONSES = pa.schema(
    dict.fromkeys(
        ("suite", "model", "strategy", "task", "entry", "document", "response", "record"), pa.string()
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
        "entry": [run] * len(experiments),
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
        raise missing_file(path) from None
    except (pa.ArrowException, OSError) as error:
        raise damaged(path, f"damaged ({error})") from None


# ---------------------------------------------------------------------- documents


def write_documents(
    folder: Path, model: str, run: str, scored: Sequence[tuple[Experiment, DocumentScores]]
) -> dict[str, Rows]:
    """Write a row per document, if there are any; what a document does not have is null: means leave it out.

    Returns:
        Task -> where its documents lie.
    """
    if not scored:
        return {}
    # what follows from `score` lies together, so that `counts` need not be read with it
    scored = sorted(scored, key=lambda pair: pair[1].statistic is not mean)
    experiments, lengths = [item for item, _ in scored], [len(scores.documents) for _, scores in scored]
    sample = pa.array([item.sample for item in experiments])
    columns = _columns(model, run, experiments, lengths, sample=sample)
    own = pa.concat_tables([as_table(scores) for _, scores in scored])
    columns |= {name: own[name] for name in own.column_names}
    for name in ("score", "valid", "unclosed", "confidence"):
        columns[name] = pa.array(own[name].to_numpy(), from_pandas=True)
    _write(folder / DOCUMENTS, table("documents", columns))
    starts = np.cumsum([0, *lengths]).tolist()
    return {item.task: _rows(first, scores) for first, (item, scores) in zip(starts, scored, strict=False)}


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
    columns = ("document", "content", "unit", "scored", "score", "valid", "unclosed", "counts", "confidence")
    return from_table(read_rows(path, rows.first, rows.n, columns), statistic)


# ---------------------------------------------------------------------- results


def write_results(folder: Path, run: str, entry: Entry, tasks: Registry) -> None:
    """Write a row per task and metric, and a row per task with what its experiment is read from.

    Args:
        folder: of the run in the store.
        run: its id, by which the store calls the entry.
        entry: the run.
        tasks: the registry.
    """
    own = entry.part(entry.experiments, run)
    _write(folder / RESULTS, result_parts([own], tasks).packed())
    items = list(entry.experiments.values())
    records = {
        "cut": [_json(item.cut) for item in items],
        "loaded": [_json(item.loaded) for item in items],
        "conditions": [_json(item.conditions.record()) for item in items],
        "config": [_json(_without_loaded(item.config)) for item in items],
    }
    whose = _columns(entry.model, run, items, [1] * len(items))
    dataset = [item.dataset.id for item in items]
    _write(folder / TASKS, table("tasks", {**whose, "dataset": dataset, **records}))


def read_experiments(
    folder: Path, tasks: Registry, run: StoredRun
) -> tuple[dict[str, Experiment], list[str]]:
    """The experiments of one run by task, and its tasks that the registry does not know.

    Args:
        folder: of the store.
        tasks: the registry.
        run: the run.

    Raises:
        MedtasksError: a file cannot be read.
    """
    figures, records = _read(folder, run)
    first: dict[str, int] = {}
    metrics: dict[str, dict[str, float]] = {}
    intervals: dict[str, dict[str, Interval]] = {}
    of_paper: dict[str, dict[str, Interval]] = {}
    unknown: dict[str, None] = {}
    for place, task in enumerate(figures["task"]):
        if tasks.asked(task) is None:
            unknown[task] = None
            continue
        if task not in first:
            first[task], metrics[task], intervals[task], of_paper[task] = place, {}, {}, {}
        metric, value, low = (figures[name][place] for name in ("metric", "value", "interval_low"))
        if value is not None:
            metrics[task][metric] = value
        if low is not None:
            rough = bool(_at(figures, "interval_rough", place))
            interval = Interval(low, figures["interval_high"][place], rough)
            if value is not None and interval.low == interval.high:  # stored by an earlier version
                interval = of_earlier(value, interval, figures["n"][place])
            intervals[task][metric] = interval
        if (end := _at(figures, "paper_interval_low", place)) is not None:
            of_paper[task][metric] = Interval(end, figures["paper_interval_high"][place])
    conditions, experiments = run_conditions(run.manifest), {}
    places = dict(zip(reversed(records["task"]), reversed(range(len(records["task"]))), strict=True))
    for task, place in first.items():
        row = {name: column[place] for name, column in figures.items()} | {"metrics": metrics[task]}
        row |= {name: records[name][places[task]] for name in _RECORDS if name in records}
        documents = choice_of(run.manifest, task).words
        experiments[task] = replace(
            _experiment(folder, task, row, intervals[task], conditions, documents, tasks),
            paper_intervals=of_paper[task],
        )
    return experiments, list(unknown)


def _read(folder: Path, run: StoredRun) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
    """Columns of the figures, a row per metric, and of the records, at least a row per task."""
    former = run.layout < SCHEMA
    names = [name if former else own for name, own in _FIGURES.items()]
    names += _LATER
    wanted = {RESULTS: [*names, *_RECORDS]} if former else {RESULTS: names, TASKS: ["task", *_RECORDS]}
    read: dict[str, dict[str, list[Any]]] = {}
    for name_of_table, columns in wanted.items():
        of_table = read.setdefault(name_of_table, {})
        for file in run.tables(name_of_table):
            with _reading(folder / file):
                there = {*parquet.read_schema(folder / file).names}
                known = [name for name in columns if name in there or name not in LACKED]
                texts = [name for name in known if name in ("task", "metric", *_RECORDS)]
                opened = parquet.ParquetFile(folder / file, read_dictionary=texts)
                table = opened.read(columns=known, use_threads=False)
            for name in table.column_names:
                of_table.setdefault(_FIGURES.get(name, name), []).extend(_values(table[name]))
    return read[RESULTS], read[RESULTS if former else TASKS]


def lacking(folder: Path, run: StoredRun) -> list[str]:
    """What an earlier version did not keep of a run, in words."""
    if run.layout == SCHEMA:
        return []
    with _reading(folder / run.tables(RESULTS)[0]):
        there = parquet.read_schema(folder / run.tables(RESULTS)[0]).names
    return [what for column, what in LACKED.items() if column not in there]


def _at(columns: Mapping[str, list[Any]], name: str, place: int) -> Any:
    """A value; None where the store was written before there was such a column."""
    return columns[name][place] if name in columns else None


def _experiment(
    folder: Path,
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
    counted = row["input_tokens"] is not None
    config = _config(row["config"])
    stored = {
        **{"version": row["task_version"], "n": row["n"], "metrics": row["metrics"]},
        **{"loaded": loaded, "config": config, "jury": row.get("jury"), "cut": json.loads(row["cut"])},
        "conditions": json.loads(row.get("conditions") or "{}"),
    }
    return Experiment(
        task=task,
        dataset=dataset,
        conditions=stored_conditions(stored, run, dataset, strategy, documents, folder),
        metrics=row["metrics"],
        intervals=intervals,
        n=row["n"],
        loaded=loaded,
        tokens={"input": row["input_tokens"], "output": row["output_tokens"]} if counted else None,
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
