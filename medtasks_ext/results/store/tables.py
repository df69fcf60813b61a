"""The tables of a store: experiments as rows, and rows as experiments."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from medtasks_ext.errors import MedtasksError
from medtasks_ext.results.bootstrap import Interval
from medtasks_ext.results.document_scores import as_table, from_table
from medtasks_ext.results.experiments import Experiment, task_settings
from medtasks_ext.results.store.layout import Rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from medtasks_ext.metrics.statistic import Statistic
    from medtasks_ext.registry import Registry
    from medtasks_ext.results.document_scores import DocumentScores

#: rows of the documents that are read at once
ROW_GROUP = 2**14
_MARK = b"medtasks_store"
_TEXTS = ("task", "run", "loaded", "cut", "config", "settings")
_RESULTS = pa.schema(
    {
        **dict.fromkeys(("task", "dataset", "run", "version"), pa.string()),
        "sample": pa.bool_(),
        "n": pa.int64(),
        "metric": pa.string(),
        **dict.fromkeys(("value", "interval_low", "interval_high"), pa.float64()),
        **dict.fromkeys(("prompt", "data", "rows", "rebuilt"), pa.string()),
        **dict.fromkeys(("tokens_input", "tokens_output"), pa.int64()),
        **dict.fromkeys(("cut", "loaded", "settings", "config"), pa.string()),
    }
)


def write(path: Path, table: pa.Table, mark: str) -> None:
    """Write a file that says which run it belongs to."""
    table = table.replace_schema_metadata({_MARK: mark})
    repeated = [name for name in table.column_names if name not in ("document", "content", "unit", "record")]
    parquet.write_table(table, path, compression="zstd", row_group_size=ROW_GROUP, use_dictionary=repeated)


def opened(path: Path, mark: str, texts: Sequence[str] = ()) -> parquet.ParquetFile:
    """Open a file, and see that it is the one that was written with the run.

    Raises:
        MedtasksError: it is gone, damaged, or of another state of the run.
    """
    try:
        file = parquet.ParquetFile(path, read_dictionary=list(texts))
    except FileNotFoundError:
        raise _damaged(path, "no such file") from None
    except (pa.ArrowException, OSError) as error:
        raise _damaged(path, f"damaged ({error})") from None
    if (file.schema_arrow.metadata or {}).get(_MARK, b"").decode() != mark:
        raise MedtasksError(
            "the run was stored anew since the store was opened", where=path, remedy="run the command again"
        )
    return file


def read_rows(file: parquet.ParquetFile, path: Path, first: int, n: int, columns: Sequence[str]) -> pa.Table:
    """Rows of a file of documents.

    Raises:
        MedtasksError: it is damaged.
    """
    if not n:
        return file.schema_arrow.empty_table().select(list(columns))
    size = file.metadata.row_group(0).num_rows  # of all row groups but the last
    groups = range(first // size, -(-(first + n) // size))
    try:
        table = file.read_row_groups(groups, columns=list(columns), use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise _damaged(path, f"damaged ({error})") from None
    return table.slice(first - groups.start * size, n)


def _damaged(path: Path, what: str) -> MedtasksError:
    return MedtasksError(what, where=path, remedy="delete the run's file below `runs`, and ingest it again")


# ---------------------------------------------------------------------- documents


def documents_table(task: str, run: str, sample: bool, scores: DocumentScores) -> pa.Table:
    """A row per document; what a document does not have is null, so that means leave it out."""
    table = as_table(scores)
    for name in ("score", "valid", "unclosed"):
        values = pa.array(table[name].to_numpy(), from_pandas=True)
        table = table.set_column(table.column_names.index(name), name, values)
    n = table.num_rows
    table = table.add_column(0, "task", pa.repeat(task, n))
    return table.append_column("run", pa.repeat(run, n)).append_column("sample", pa.repeat(sample, n))


def rows_of(first: int, table: pa.Table, scores: DocumentScores) -> Rows:
    """Where the documents of a task lie.

    Args:
        first: place of its first row.
        table: of `documents_table`.
        scores: what it was made of.
    """
    n = table.num_rows
    width = len(table["counts"][0]) if n else 0
    plain = bool(scores.scored.all()) and int(scores.units.max(initial=-1)) == n - 1  # numbered from 0
    return Rows(first, n, width, scores.statistic.name, plain)


def read_document_scores(path: Path, mark: str, rows: Rows, statistic: Statistic) -> DocumentScores:
    """The documents of one task.

    Raises:
        MedtasksError: the file cannot be read, or the score is made in another way by now.
    """
    check_statistic(path, rows, statistic)
    columns = ("document", "content", "unit", "scored", "score", "valid", "unclosed", "counts")
    return from_table(read_rows(opened(path, mark), path, rows.first, rows.n, columns), statistic)


def check_statistic(path: Path, rows: Rows, statistic: Statistic) -> None:
    """Refuse counts that the score does not follow from any more.

    Raises:
        MedtasksError: they are of another statistic.
    """
    if rows.statistic != statistic.name:
        raise MedtasksError(
            f"the score was {rows.statistic}, and is {statistic.name} in this version",
            where=path,
            remedy="medtasks rescore RUN, then ingest it again",
        )


# ---------------------------------------------------------------------- results


def results_table(run: str, settings: Mapping[str, str], experiments: Iterable[Experiment]) -> pa.Table:
    """A row per task and metric; a task without any metric has one row."""
    words = _json(settings)
    columns: dict[str, list[Any]] = {name: [] for name in _RESULTS.names}
    for item in experiments:
        shared = {
            "task": item.task,
            "dataset": item.dataset.id,
            "run": run,
            "version": item.version,
            "sample": item.sample,
            "n": item.n,
            **{name: item.settings[name] for name in ("prompt", "data", "rows", "rebuilt")},
            "tokens_input": item.tokens and item.tokens.get("input"),
            "tokens_output": item.tokens and item.tokens.get("output"),
            "cut": _json(item.cut),
            "loaded": _json(item.loaded),
            "settings": words,
            "config": _json(_without_loaded(item.config)),
        }
        metrics = list(dict.fromkeys([*item.metrics, *item.intervals])) or [""]
        intervals = [item.intervals.get(metric) for metric in metrics]
        columns["metric"] += [metric or None for metric in metrics]
        columns["value"] += [item.metrics.get(metric) for metric in metrics]
        columns["interval_low"] += [interval and interval.low for interval in intervals]
        columns["interval_high"] += [interval and interval.high for interval in intervals]
        for name, value in shared.items():
            columns[name] += [value] * len(metrics)
    return pa.table(columns, schema=_RESULTS)


def read_experiments(path: Path, mark: str, tasks: Registry) -> tuple[list[Experiment], list[str]]:
    """The experiments of one file, and its tasks that the registry does not know.

    Raises:
        MedtasksError: the file cannot be read.
    """
    try:
        table = opened(path, mark, _TEXTS).read(use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise _damaged(path, f"damaged ({error})") from None
    column = {name: _values(table[name]) for name in table.column_names}
    experiments: dict[str, Experiment] = {}
    unknown: dict[str, None] = {}
    for place, task in enumerate(column["task"]):
        if task not in tasks.tasks:
            unknown[task] = None
            continue
        if task not in experiments:
            experiments[task] = _experiment(task, {name: column[name][place] for name in column}, tasks)
        metric, value, low = (column[name][place] for name in ("metric", "value", "interval_low"))
        if value is not None:
            experiments[task].metrics[metric] = value
        if low is not None:
            experiments[task].intervals[metric] = Interval(low, column["interval_high"][place])
    return list(experiments.values()), list(unknown)


def _experiment(task: str, row: Mapping[str, Any], tasks: Registry) -> Experiment:
    dataset, strategy = tasks.tasks[task]
    loaded = json.loads(row["loaded"])
    counted = row["tokens_input"] is not None
    return Experiment(
        task=task,
        dataset=dataset,
        strategy=strategy,
        version=row["version"],
        metrics={},
        intervals={},
        n=row["n"],
        settings=task_settings(row["version"], loaded),
        loaded=loaded,
        cut=json.loads(row["cut"]),
        tokens={"input": row["tokens_input"], "output": row["tokens_output"]} if counted else None,
        sample=row["sample"],
        config=_config(row["config"]),
    )


def _values(column: pa.ChunkedArray) -> list[Any]:
    """As Python objects; a text that is repeated becomes one object."""
    if not pa.types.is_dictionary(column.type):
        return column.to_pylist()
    found: list[Any] = []
    for chunk in column.chunks:
        words = chunk.dictionary.to_pylist()
        found += [words[place] for place in chunk.indices.to_pylist()]
    return found


@lru_cache(maxsize=4096)
def _config(text: str) -> dict[str, Any]:
    return json.loads(text)  # one object for all models of a task: some 30 kB each


def _without_loaded(config: Mapping[str, Any]) -> dict[str, Any]:
    """A task's configuration; what was loaded differs from run to run and has a column of its own."""
    metadata = dict(config.get("metadata") or {})
    if isinstance(metadata.get("medtasks"), dict):
        own = metadata["medtasks"]
        metadata["medtasks"] = {key: own[key] for key in own if key != "loaded"}
    return {**config, "metadata": metadata} if metadata else dict(config)


def _json(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, default=str)


# ---------------------------------------------------------------------- responses


class Responses:
    """Writes texts: a row per document with its `response`, and the rest of lm-eval's `record` as JSON."""

    _schema = pa.schema(dict.fromkeys(("task", "run", "document", "response", "record"), pa.string()))

    def __init__(self, path: Path, run: str, mark: str) -> None:
        self._run = run
        schema = self._schema.with_metadata({_MARK: mark})
        self._writer = parquet.ParquetWriter(path, schema, compression="zstd", use_dictionary=["task", "run"])

    def add(self, task: str, documents: Sequence[str], samples: Sequence[Mapping[str, Any]]) -> None:
        """Add the texts of a task.

        Args:
            task: its name.
            documents: keys, in the order of samples.
            samples: lm-eval's records.
        """
        rows = [
            {
                "task": task,
                "run": self._run,
                "document": document,
                "response": _response(sample),
                "record": _json({key: sample[key] for key in sample if key != "resps"}),
            }
            for document, sample in zip(documents, samples, strict=True)
        ]
        table = pa.Table.from_pylist(rows, schema=self._schema)
        self._writer.write_table(table.replace_schema_metadata(self._writer.schema.metadata))

    def close(self) -> None:
        """Finish the file."""
        self._writer.close()


def _response(sample: Mapping[str, Any]) -> str:
    [[response]] = sample["resps"]  # all tasks generate one answer
    return response


def read_samples(path: Path, mark: str, task: str, first: int | None = None) -> list[dict[str, Any]]:
    """lm-eval's records of one task; all, or so many of the first.

    Raises:
        MedtasksError: the file cannot be read.
    """
    file = opened(path, mark)
    found: list[dict[str, Any]] = []
    for rows in _of_task(file, path, task):
        for response, record in zip(rows["response"].to_pylist(), rows["record"].to_pylist(), strict=True):
            found.append({**json.loads(record), "resps": [[response]]})
    return found[:first]


def _of_task(file: parquet.ParquetFile, path: Path, task: str) -> Iterator[pa.Table]:
    for group in range(file.num_row_groups):
        names = file.metadata.row_group(group).column(0).statistics
        if names is not None and not names.min <= task <= names.max:
            continue
        try:
            rows = file.read_row_group(group, columns=["task", "response", "record"], use_threads=False)
        except (pa.ArrowException, OSError) as error:
            raise _damaged(path, f"damaged ({error})") from None
        yield rows.filter(pc.equal(rows["task"], task))
