"""Bootstrap: documents of a task resampled with replacement, 1,000 times (BRIDGE, Methods).

Since each metric is a function of summed counts, a resample is a vector of weights (how often each document
was drawn), and all resamples of all metrics are one matrix product. BRIDGE's released code reports the
t-interval of the mean of the 1,000 values, which is about 32 (√1000) times narrower than the interval of the
score; it is kept as `t_interval_of_bootstrap_mean`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from threadpoolctl import ThreadpoolController

from medtasks_ext.process import SEED
from medtasks_ext.stats.intervals import LEVEL, Interval, intervals_of, is_mean
from medtasks_ext.stats.statistic import Counts, counts_of, question_of, unit_of

if TYPE_CHECKING:
    from medtasks_ext.stats.statistic import Array, Matrix

RESAMPLES = 1000
#: metrics that say what was there rather than how good it was
NOT_ESTIMATED = ("scored", "SAMPLE_DATA")
_BLOCK = 2**20  # weights that are drawn at once
_FACTOR = 2**21  # weights that are multiplied at once
_KEPT = 500  # units; the weights of so many take half a megabyte, and are kept

#: The interval of a metric, as results record it: `interval_low` and `interval_high`, None for fewer than two
#: units; `interval_method` in words; where it is so, `rough` (intervals of its kind hold the truth in less
#: than 90 %); `clusters` (how many, where several questions share what they are about); where a paper takes
#: its own, `t_interval_of_bootstrap_mean` with `mean`, `low` and `high`.
IntervalRecord: TypeAlias = dict[str, Any]


def resampling_weights(dataset: str, n: int, resamples: int = RESAMPLES, seed: int = SEED) -> Array:
    """How often each of n units is drawn in each resample: exact multinomial weights.

    (resamples, n), uint8, read-only; each row sums to n. (No unit is ever drawn 256 times.) They depend on
    the arguments alone, so all models and strategies of a dataset are resampled alike and can be compared in
    pairs; those of two datasets are independent. `dataset`: its id, the same for all strategies.
    """
    if n <= _KEPT:  # a report resamples some documents of one dataset for every model
        return _kept_weights(dataset, n, resamples, seed)
    return _weights(dataset, n, resamples, seed)


def _weights(dataset: str, n: int, resamples: int, seed: int) -> Array:
    key = int.from_bytes(sha256(f"{seed} {dataset} {n}".encode()).digest()[:16], "little")
    generator = np.random.Generator(np.random.Philox(key=key))
    weights = np.empty((resamples, n), dtype=np.uint8)
    step = max(1, _BLOCK // max(n, 1))
    for start in range(0, resamples, step):
        rows = min(step, resamples - start)
        drawn = generator.integers(0, n, size=(rows, n), dtype=np.uint32) + n * np.arange(rows)[:, None]
        weights[start : start + rows] = np.bincount(drawn.ravel(), minlength=rows * n).reshape(rows, n)
    weights.flags.writeable = False
    return weights


_kept_weights = lru_cache(maxsize=128)(_weights)


def resampled_sums(matrices: Sequence[Matrix], weights: Array) -> list[Array]:
    """Column sums of each matrix, (n, k), under each row of weights: (resamples, k), exact for whole numbers.

    `matrices`: dense or sparse; k may differ. The dense ones are one product, in single precision if they
    are. `weights`: (resamples, n).
    """
    dense = [matrix for matrix in matrices if isinstance(matrix, np.ndarray)]
    sparse = [matrix.T.tocsr() for matrix in matrices if not isinstance(matrix, np.ndarray)]
    side_by_side = np.hstack(dense) if dense else np.empty((weights.shape[1], 0))
    precision = np.result_type(side_by_side, np.float32)
    edges = np.cumsum([matrix.shape[1] for matrix in dense])
    parts: list[list[Array]] = []
    step = max(1, _FACTOR // max(weights.shape[1], 1))
    for start in range(0, len(weights), step):
        block = weights[start : start + step]
        columns = np.ascontiguousarray(block.T, dtype=float) if sparse else None
        sums = iter(np.split(block.astype(precision) @ side_by_side, edges, axis=1))
        more = iter([(matrix @ columns).T for matrix in sparse])
        parts.append([next(sums if isinstance(matrix, np.ndarray) else more) for matrix in matrices])
    return [np.concatenate(rows) for rows in zip(*parts, strict=True)]


@lru_cache(maxsize=1)
def _linear_algebra() -> ThreadpoolController:
    return ThreadpoolController()  # looks through all loaded libraries: some milliseconds


def single_threaded() -> AbstractContextManager[Any]:
    """Within it, a matrix product takes one thread: small products would only wait for each other."""
    limited: AbstractContextManager[Any] = _linear_algebra().limit(limits=1, user_api="blas")
    return limited


def resample(counts: Iterable[Counts], dataset: str, *, published: bool = False) -> dict[str, Array]:
    """Every metric on every resample, (resamples,); those over fewer than two units are left out.

    `published`: as the suite's own bootstrap takes it, where that is another way.
    """
    values = {}
    usable = [item for item in counts if item.n_units > 1]
    for n in sorted({item.n_units for item in usable}):
        same = [item for item in usable if item.n_units == n]
        with single_threaded():
            sums = resampled_sums([item.matrix for item in same], resampling_weights(dataset, n))
        for item, total in zip(same, sums, strict=True):
            for metric, statistic in item.statistics.items():
                values[metric] = (statistic.published if published else statistic.value)(total)
    return values


def percentile_interval(values: Array) -> Interval:
    """Percentile interval of a metric's values on the resamples, (resamples,), as `scipy.stats.bootstrap`."""
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(low), float(high))


def task_intervals(
    samples: Sequence[Mapping[str, Any]],
    aggregations: Mapping[str, Callable[..., Any]],
    dataset: str,
    of_paper: Callable[[Array], Interval] | None = None,
) -> tuple[dict[str, IntervalRecord], Array | None]:
    """The intervals of one task as results record them, and its score on each resample.

    The latter is None where there are fewer than two units, or without gold. `of_paper`: gives the paper's
    own interval of a metric on the resamples, to stand beside ours.
    """
    counts = counts_of(samples, aggregations)
    resampled = resample(counts, dataset)
    otherwise = [
        item for item in counts if any(one.published is not one.value for one in item.statistics.values())
    ]
    published = {**resampled, **resample(otherwise, dataset, published=True)} if of_paper else {}
    n_units = len(set(map(unit_of, samples)))
    clusters = n_units if n_units < len(set(map(question_of, samples))) else None
    records = {}
    for item in counts:
        found = intervals_of(item, resampled)
        for metric in (name for name in item.statistics if name not in NOT_ESTIMATED):
            records[metric] = interval_record(found.get(metric), clusters)
            if of_paper and metric in published:
                official, mean = of_paper(published[metric]), float(np.mean(published[metric]))
                ends = {"low": official.low, "high": official.high}
                records[metric]["t_interval_of_bootstrap_mean"] = {"mean": mean, **ends}
    return records, resampled.get("score")


def score_interval(counts: Counts, dataset: str) -> Interval | None:
    """The interval of one score alone, the `score` of `counts`; None for fewer than two units."""
    resampled = {} if is_mean(counts.statistics["score"].value) else resample([counts], dataset)
    return intervals_of(counts, resampled).get("score")


def interval_record(interval: Interval | None, clusters: int | None = None) -> IntervalRecord:
    """An interval, or that there is none, as results record it; `clusters`: how many there are, if any."""
    drawn = "documents" if clusters is None else "clusters"
    none = f"none: fewer than two {drawn}, or all of them alike"
    return {
        "interval_low": interval.low if interval else None,
        "interval_high": interval.high if interval else None,
        "interval_method": interval.method if interval else none,
        **({"rough": True} if interval and interval.rough else {}),
        **({} if clusters is None else {"clusters": clusters}),
    }


def intervals_of_record(records: Mapping[str, IntervalRecord]) -> dict[str, Interval]:
    """Metric -> its interval, of those that have one."""
    return {
        metric: Interval(item["interval_low"], item["interval_high"], item.get("rough", False))
        for metric, item in records.items()
        if item["interval_low"] is not None
    }
