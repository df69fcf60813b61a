"""All experiments of a store on the same resamples.

The models and strategies of a dataset share their resampling weights, so their scores on all resamples
are one matrix product (`results.bootstrap`), a thousand times faster than drawing documents one by one.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from medtasks_ext.metrics.statistic import mean
from medtasks_ext.results.bootstrap import (
    LEVEL,
    RESAMPLES,
    resampled_sums,
    resampling_weights,
    single_threaded,
)
from medtasks_ext.results.document_scores import score_statistic
from medtasks_ext.results.statistics import by_unit
from medtasks_ext.results.store.layout import DOCUMENTS
from medtasks_ext.results.store.tables import opened, read_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa

    from medtasks_ext.metrics.statistic import Array, Statistic
    from medtasks_ext.registry import Dataset
    from medtasks_ext.results.store.layout import Part, Rows, StoredRun
    from medtasks_ext.results.store.read import Store

#: numbers that are held in memory at once
_AT_ONCE = 2**24
#: whole numbers up to here are exact in single precision
_EXACT = 2**24


@dataclass(frozen=True)
class TaskBootstrap:
    """The experiments of one dataset, all models and strategies, on the same resamples.

    Attributes:
        dataset: what they have in common.
        experiments: (run, task) of each; those with fewer than two units are left out.
        values: (m,) scores on all documents.
        resampled: (m, resamples) scores on the resamples.
    """

    dataset: Dataset
    experiments: list[tuple[str, str]]
    values: Array
    resampled: Array

    def intervals(self) -> Array:
        """95 % percentile intervals, (m, 2); the same as `percentile_interval` of each row."""
        return np.quantile(self.resampled, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=1).T


class _Stored(NamedTuple):
    """The documents of one experiment, and where they lie."""

    run: StoredRun
    part: Part
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
        MedtasksError: a file is gone, damaged, or of another state of its run.
    """
    wanted = None if datasets is None else set(datasets)
    stored = sorted(_stored(store, wanted), key=lambda item: item.dataset.id)
    by_dataset = [list(items) for _, items in groupby(stored, key=lambda item: item.dataset.id)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for batch in _batches(by_dataset):
            # one product per thread: the threads of a product would wait for each other
            with single_threaded():
                tables = _read(store, [item for items in batch for item in items], pool)
                done = list(pool.map(partial(_bootstrap, tables), batch))
            yield from (item for item in done if item.experiments)


def _stored(store: Store, datasets: set[str] | None) -> Iterator[_Stored]:
    for run in store.runs.values():
        for part in run.parts:
            for task, rows in part.documents.items():
                if task not in store.tasks.tasks:
                    continue
                dataset, _ = store.tasks.tasks[task]
                if datasets is not None and dataset.id not in datasets:
                    continue
                statistic = score_statistic(dataset)
                if statistic.name == rows.statistic:
                    yield _Stored(run, part, task, rows, dataset, statistic)


def _batches(by_dataset: Sequence[list[_Stored]]) -> Iterator[list[list[_Stored]]]:
    batch: list[list[_Stored]] = []
    numbers = 0
    for items in by_dataset:
        size = sum(item.rows.n * max(item.rows.width, 1) for item in items)
        if batch and numbers + size > _AT_ONCE:
            yield batch
            batch, numbers = [], 0
        batch.append(items)
        numbers += size
    if batch:
        yield batch


# ---------------------------------------------------------------------- reading


def _read(
    store: Store, items: Sequence[_Stored], pool: ThreadPoolExecutor
) -> dict[tuple[str, str], pa.Table]:
    """(run, task) -> what the score follows from. Each file is opened once."""
    by_file: dict[str, list[_Stored]] = {}
    for item in items:
        by_file.setdefault(item.part.path, []).append(item)
    tables: dict[tuple[str, str], pa.Table] = {}
    for found in pool.map(partial(_read_file, store), by_file.values()):
        tables.update(found)
    return tables


def _read_file(store: Store, items: list[_Stored]) -> dict[tuple[str, str], pa.Table]:
    path = store.folder / DOCUMENTS / items[0].part.path
    file = opened(path, items[0].run.fingerprint)
    found = {}
    for together in _neighbours(sorted(items, key=lambda item: item.rows.first)):
        first, last = together[0].rows.first, together[-1].rows
        table = read_rows(file, path, first, last.first + last.n - first, _columns(together))
        for item in together:
            found[item.run.run, item.task] = table.slice(item.rows.first - first, item.rows.n)
    return found


def _neighbours(items: Iterable[_Stored]) -> list[list[_Stored]]:
    """Items whose rows follow each other, to be read at once."""
    found: list[list[_Stored]] = []
    for item in items:
        if found and found[-1][-1].rows.first + found[-1][-1].rows.n == item.rows.first:
            found[-1].append(item)
        else:
            found.append([item])
    return found


def _columns(items: Iterable[_Stored]) -> list[str]:
    names: set[str] = set()
    for item in items:
        names.add("score" if item.statistic is mean else "counts")
        if not item.rows.plain:
            names |= {"scored", "unit"}
    return sorted(names)


def _counts(item: _Stored, table: pa.Table) -> Array:
    """What the score of an experiment is made of, (n_units, k)."""
    n = item.rows.n
    scored = np.ones(n, bool) if item.rows.plain else table["scored"].to_numpy()
    if item.statistic is mean:
        counts = np.column_stack([np.where(scored, table["score"].to_numpy(), 0.0), scored])
    else:
        counts = table["counts"].combine_chunks().flatten().to_numpy().reshape(n, -1)
    return counts if item.rows.plain else by_unit(counts[scored], table["unit"].to_numpy()[scored])


# ---------------------------------------------------------------------- products


def _bootstrap(tables: dict[tuple[str, str], pa.Table], items: list[_Stored]) -> TaskBootstrap:
    """All experiments of one dataset; those of one shape are worked on together."""
    counts = {(item.run.run, item.task): _counts(item, tables[item.run.run, item.task]) for item in items}
    shapes: dict[tuple[int, ...], list[tuple[str, str]]] = {}
    for place, matrix in counts.items():
        if len(matrix) > 1:
            shapes.setdefault(matrix.shape, []).append(place)
    dataset, statistic = items[0].dataset, items[0].statistic
    experiments, values, resampled = [], [np.empty(0)], [np.empty((0, RESAMPLES))]
    for n in sorted({shape[0] for shape in shapes}):
        weights = resampling_weights(dataset.id, n)
        for shape, places in shapes.items():
            if shape[0] == n:
                matrices = [counts[place] for place in places]
                experiments += places
                values.append(statistic.value(np.stack([matrix.sum(axis=0) for matrix in matrices])))
                resampled.append(statistic.value(_sums(matrices, weights)).T)
    return TaskBootstrap(dataset, experiments, np.concatenate(values), np.concatenate(resampled))


def _sums(matrices: Sequence[Array], weights: Array) -> Array:
    """Column sums of matrices of one shape (n, k) under each row of weights: (resamples, m, k)."""
    columns, places = _distinct_columns(matrices)
    [sums] = resampled_sums([columns.T], weights)
    return sums.astype(float)[:, places]


def _distinct_columns(matrices: Sequence[Array]) -> tuple[Array, Array]:
    """Columns of all matrices, those of the first that recur only once, (distinct, n); their places, (m, k).

    All models of a task share the numbers of documents and of gold items. In single precision, which is
    twice as fast, where that is exact under all weights.
    """
    first = matrices[0].T
    columns, places = list(first), np.tile(np.arange(len(first)), (len(matrices), 1))
    for row, matrix in enumerate(matrices):
        for place, column in enumerate(matrix.T):
            if not np.array_equal(column, first[place]):
                places[row, place] = len(columns)
                columns.append(column)
    return np.stack(columns, dtype=np.float32 if all(map(_is_exact, columns)) else float), places


def _is_exact(column: Array) -> bool:
    """Whether sums of as many drawn values stay exact in single precision: whole and not too large."""
    return bool(np.abs(column).max() * len(column) < _EXACT and np.array_equal(column, np.rint(column)))
