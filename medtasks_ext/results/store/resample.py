"""All experiments of a store on the same resamples.

The models and strategies of a dataset share their resampling weights, so their scores on all resamples
are one matrix product (`results.bootstrap`), a thousand times faster than drawing documents one by one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from medtasks_ext.results.document_scores import score_statistic
from medtasks_ext.results.store.layout import DOCUMENTS, Rows, StoredRun, stored_runs
from medtasks_ext.results.store.tables import read_rows
from medtasks_ext.stats.bootstrap import (
    RESAMPLES,
    resampled_sums,
    resampling_weights,
    single_threaded,
)
from medtasks_ext.stats.counts import Counts, by_unit
from medtasks_ext.stats.intervals import intervals_of
from medtasks_ext.stats.statistic import Array, Statistic, mean

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from medtasks_ext.registry import Dataset, Registry

#: counts that are held in memory at once; most take a byte
_AT_ONCE = 2**27
#: whole numbers up to here are exact in single precision
_EXACT = 2**24


class Store:
    """A store as it was when it was opened.

    Attributes:
        folder: where it lies.
        tasks: the registry.
        runs: id -> run.
    """

    def __init__(self, folder: Path, tasks: Registry, runs: dict[str, StoredRun]) -> None:
        self.folder, self.tasks, self.runs = folder, tasks, runs
        self._resampled: dict[tuple[str, str], Array] = {}
        self._datasets: set[str] = set()

    def resampled(self, dataset: str, run: str, task: str) -> Array | None:
        """A score on each resample, (resamples,); computed for all models at once, and kept.

        The first dataset that is asked for is read alone. Who asks for a second wants them all, and
        reading them together is many times faster.
        """
        if dataset not in self._datasets:
            self._compute(None if self._datasets else [dataset])
        return self._resampled.get((run, task))

    def _compute(self, datasets: list[str] | None) -> None:
        for item in task_bootstrap(self, datasets):
            self._resampled.update(zip(item.experiments, item.resampled, strict=True))
        self._datasets.update(self.tasks.datasets if datasets is None else datasets)


def open_store(folder: Path, tasks: Registry) -> Store:
    """Open a store for `task_bootstrap`.

    Raises:
        MedtasksError: there is none, it is damaged, or of another layout.
    """
    return Store(folder, tasks, stored_runs(folder))


@dataclass(frozen=True)
class TaskBootstrap:
    """The experiments of one dataset, all models and strategies, on the same resamples."""

    dataset: Dataset  # what they have in common
    experiments: list[tuple[str, str]]  # (run, task) of each; those with fewer than two units are left out
    values: Array  # (m,) scores on all documents
    resampled: Array  # (m, resamples) scores on the resamples
    intervals: Array  # (m, 2) ends of the 95 % intervals of the scores, as tasks have them


class _Stored(NamedTuple):
    """The documents of one experiment, and where they lie."""

    run: StoredRun
    task: str
    rows: Rows
    dataset: Dataset
    statistic: Statistic


def task_bootstrap(store: Store, datasets: Iterable[str] | None = None) -> Iterator[TaskBootstrap]:
    """Scores on all documents and on 1,000 resamples, dataset by dataset.

    Documents are read a few datasets at a time. Experiments whose score is made in another way by now are
    left out; `read_store` names them.

    Args:
        store: an open store.
        datasets: ids; all by default.

    Raises:
        MedtasksError: a file is gone or damaged.
    """
    wanted = None if datasets is None else set(datasets)
    stored = sorted(_stored(store, wanted), key=lambda item: item.dataset.id)
    by_dataset = [list(items) for _, items in groupby(stored, key=lambda item: item.dataset.id)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for batch in _batches(by_dataset):
            # one product per thread: the threads of a product would wait for each other
            with single_threaded():
                counts = _read(store, [item for items in batch for item in items], pool)
                done = list(pool.map(partial(_bootstrap, counts), batch))
            yield from (item for item in done if item.experiments)


def _stored(store: Store, datasets: set[str] | None) -> Iterator[_Stored]:
    for run in store.runs.values():
        for task, rows in run.documents.items():
            known = store.tasks.asked(task)
            if known is None:
                continue
            dataset, strategy = known
            if datasets is not None and dataset.id not in datasets:
                continue
            statistic = score_statistic(dataset, strategy)
            if statistic.name == rows.statistic and rows.n:
                yield _Stored(run, task, rows, dataset, statistic)


def _batches(by_dataset: Sequence[list[_Stored]]) -> Iterator[list[list[_Stored]]]:
    batch: list[list[_Stored]] = []
    numbers = 0
    for items in by_dataset:
        size = sum(item.rows.n * max(item.rows.width, 2) for item in items)
        if batch and numbers + size > _AT_ONCE:
            yield batch
            batch, numbers = [], 0
        batch.append(items)
        numbers += size
    if batch:
        yield batch


# ---------------------------------------------------------------------- reading


def _read(store: Store, items: Sequence[_Stored], pool: ThreadPoolExecutor) -> dict[tuple[str, str], Array]:
    """(run, task) -> the columns of its counts, (k, n_units)."""
    by_file: dict[str, list[_Stored]] = {}
    for item in items:
        by_file.setdefault(item.run.table_of(DOCUMENTS, item.task), []).append(item)
    counts: dict[tuple[str, str], Array] = {}
    files = [store.folder / name for name in by_file]
    for of_file in pool.map(_read_file, files, by_file.values()):
        counts.update(of_file)
    return counts


def _read_file(path: Path, items: list[_Stored]) -> dict[tuple[str, str], Array]:
    """The same of one file. Experiments whose scores are made of one column lie together in it."""
    counts = {}
    for means in (True, False):
        together = [item for item in items if (item.statistic is mean) is means]
        if not together:
            continue
        first = min(item.rows.first for item in together)
        end = max(item.rows.first + item.rows.n for item in together)
        table = read_rows(path, first, end - first, _columns(together))
        columns = {name: table[name].combine_chunks() for name in table.column_names}
        if "counts" in columns:
            lists = columns.pop("counts")
            columns |= {"ends": lists.offsets, "numbers": lists.values}
        arrays = {name: _values(column) for name, column in columns.items()}
        for item in together:
            counts[item.run.run, item.task] = _counts(item, item.rows.first - first, arrays)
    return counts


def _values(column: pa.Array) -> Array:
    """The numbers of a column; any number where it has none, which is read nowhere.

    Taken from the buffer, since `to_numpy` imports pandas.
    """
    import pyarrow as pa

    if pa.types.is_boolean(column.type):
        return _values(column.cast(pa.uint8())).astype(bool)
    numbers = np.frombuffer(column.buffers()[1], column.type.to_pandas_dtype())
    return numbers[column.offset : column.offset + len(column)]


def _columns(items: Sequence[_Stored]) -> list[str]:
    own = ["score" if items[0].statistic is mean else "counts"]
    return own if all(item.rows.plain for item in items) else [*own, "scored", "unit"]


def _counts(item: _Stored, start: int, arrays: dict[str, Array]) -> Array:
    """What the score of an experiment is made of, (k, n_units).

    Args:
        start: place of its first row.
        arrays: columns of the file; `ends` and `numbers` are those of `counts`.
    """
    n, width = item.rows.n, item.rows.width
    rows = slice(start, start + n)
    if item.statistic is mean:
        scores = _compact(arrays["score"][rows])
        counts = np.ones((2, n), scores.dtype)
        counts[0] = scores
    else:
        first = arrays["ends"][start]
        counts = _compact(arrays["numbers"][first : first + n * width].reshape(n, width).T)
    if item.rows.plain:
        return counts
    scored = arrays["scored"][rows]
    return _compact(by_unit(counts.T[scored].astype(float), arrays["unit"][rows][scored]).T)


def _compact(numbers: Array) -> Array:
    """Bytes where nothing is lost: most counts are small whole numbers."""
    with np.errstate(invalid="ignore"):  # what is no byte differs afterwards
        small = numbers.astype(np.uint8, order="C")
    return small if np.array_equal(small, numbers) else np.ascontiguousarray(numbers)


# ---------------------------------------------------------------------- products


def _bootstrap(counts: dict[tuple[str, str], Array], items: list[_Stored]) -> TaskBootstrap:
    """All experiments of one dataset; those of one shape are worked on together."""
    shapes: dict[tuple[int, ...], list[tuple[str, str]]] = {}
    for item in items:
        place = item.run.run, item.task
        if counts[place].shape[1] > 1:
            shapes.setdefault(counts[place].shape, []).append(place)
    dataset, statistic = items[0].dataset, items[0].statistic
    experiments, values, resampled = [], [np.empty(0)], [np.empty((0, RESAMPLES))]
    ends: list[tuple[float, float]] = []
    for n in sorted({shape[1] for shape in shapes}):
        weights = resampling_weights(dataset.id, n)
        for places in (places for shape, places in shapes.items() if shape[1] == n):
            totals, sums = _sums([counts[place] for place in places], weights)
            experiments += places
            values.append(statistic.value(totals))
            resampled.append(statistic.value(sums).T)
            ends += [
                _ends(counts[place], statistic, draws)
                for place, draws in zip(places, resampled[-1], strict=True)
            ]
    return TaskBootstrap(
        dataset,
        experiments,
        np.concatenate(values),
        np.concatenate(resampled),
        np.array(ends, dtype=float).reshape(-1, 2),
    )


def _ends(counts: Array, statistic: Statistic, draws: Array) -> tuple[float, float]:
    """Of the interval of one score; NaN where it has none."""
    estimated = intervals_of(Counts(counts.T, {"score": statistic}), {"score": draws}).get("score")
    return (estimated.interval.low, estimated.interval.high) if estimated else (np.nan, np.nan)


def _sums(counts: Sequence[Array], weights: Array) -> tuple[Array, Array]:
    """Sums of columns over all units, and under each row of weights.

    Args:
        counts: columns of each experiment, all (k, n).
        weights: (resamples, n).

    Returns:
        (experiments, k) and (resamples, experiments, k).
    """
    columns, places = _distinct(counts)
    # single precision is twice as fast, and exact for whole numbers that are not too large
    exact = columns.dtype == np.uint8 and int(columns.max()) * columns.shape[1] < _EXACT
    [sums] = resampled_sums([columns.astype(np.float32 if exact else float).T], weights)
    return columns.sum(axis=1, dtype=float)[places], sums[:, places].astype(float)


def _distinct(counts: Sequence[Array]) -> tuple[Array, Array]:
    """Columns without those that equal the first experiment's, (distinct, n); which is where, (m, k).

    All models of a task share the numbers of documents and of gold items.
    """
    first = [(column.dtype, column.tobytes()) for column in counts[0]]
    columns, places = list(counts[0]), np.tile(np.arange(len(first)), (len(counts), 1))
    for row, own in enumerate(counts):
        for place, column in enumerate(own):
            if (column.dtype, column.tobytes()) != first[place]:
                places[row, place] = len(columns)
                columns.append(column)
    return np.stack(columns), places
