"""Bootstrap: documents of a task resampled with replacement, 1,000 times.

BRIDGE (Methods, Statistical Analysis) resamples the test documents 1,000 times and computes every
metric anew. Since each metric is a function of summed counts, a resample is a vector of weights (how
often each document was drawn), and all resamples of all metrics are one matrix product. Paired comparisons
of models take the resamples; the intervals of scores (`stats.intervals`) take the variance of those that are
no means.

BRIDGE's released code reports the t-interval of the mean of the 1,000 values, mean ± t(0.975, 999) · sd /
√1000: how precisely 1,000 resamples determine their own mean, about 32 (√1000) times narrower than the
interval of the score. It is kept as `t_interval_of_bootstrap_mean`. A label that a resample lacks counts
there as F1 0 in `f1_macro`; ours leaves such labels out. Resamples depend only on the dataset, the number of
documents and a fixed seed (42).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
from threadpoolctl import ThreadpoolController

from medtasks_ext.process import SEED
from medtasks_ext.stats.intervals import HOLDING, LEVEL, Estimated, Interval, intervals_of, is_mean
from medtasks_ext.stats.statistic import Counts, counts_of, question_of, unit_of

if TYPE_CHECKING:
    from typing_extensions import NotRequired

    from medtasks_ext.stats.statistic import Array, Matrix

RESAMPLES = 1000
#: metrics that say what was there rather than how good it was
NOT_ESTIMATED = ("scored", "SAMPLE_DATA")
_BLOCK = 2**20  # weights that are drawn at once
_FACTOR = 2**21  # weights that are multiplied at once
_TINY = 1e-9  # of rounding
_KEPT = 500  # units; the weights of so many take half a megabyte, and are kept


@dataclass(frozen=True)
class Resampled:
    """One metric on each resample."""

    values: Array  # (resamples,)
    published: Array  # the same as the suite's own bootstrap takes it; equal for most metrics


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

    `matrices`: dense or sparse; k may differ. Those of all models of a task can be given together: the dense
    ones are one product, in single precision if they are. `weights`: (resamples, n).
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


_limited: ContextVar[bool] = ContextVar("limited", default=False)


@lru_cache(maxsize=1)
def _linear_algebra() -> ThreadpoolController:
    return ThreadpoolController()  # looks through all loaded libraries: some milliseconds


@contextmanager
def single_threaded() -> Iterator[None]:
    """Within it, a matrix product takes one thread; inside another such block it changes nothing."""
    if _limited.get():
        yield
        return
    token = _limited.set(True)
    try:
        with _linear_algebra().limit(limits=1, user_api="blas"):
            yield
    finally:
        _limited.reset(token)


def resample(counts: Iterable[Counts], dataset: str) -> dict[str, Resampled]:
    """Every metric on every resample; those over fewer than two units are left out."""
    values = {}
    usable = [item for item in counts if item.n_units > 1]
    for n in sorted({item.n_units for item in usable}):
        same = [item for item in usable if item.n_units == n]
        weights = resampling_weights(dataset, n)
        # one model's products are too small for threads, which would only wait for each other
        with single_threaded():
            sums = resampled_sums([item.matrix for item in same], weights)
        for item, total in zip(same, sums, strict=True):
            for metric, statistic in item.statistics.items():
                ours = statistic.value(total)
                again = ours if statistic.published is statistic.value else statistic.published(total)
                values[metric] = Resampled(ours, again)
    return values


def percentile_interval(values: Array) -> Interval:
    """Percentile interval of a metric's values on the resamples, (resamples,): what is printed.

    Efron and Tibshirani, An Introduction to the Bootstrap (1993), chapter 13; quantiles are
    interpolated linearly, as by `scipy.stats.bootstrap`.
    """
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(low), float(high))


class PaperInterval(TypedDict):
    """The interval that a suite's paper takes, with the mean of the resamples."""

    mean: float
    low: float
    high: float


class IntervalRecord(TypedDict):
    """The interval of a metric, as results record it."""

    interval_low: float | None  # None where there are fewer than two units
    interval_high: float | None
    interval_method: str  # how it was taken, in words
    rough: NotRequired[bool]  # whether intervals of its kind hold the truth in less than 90 %
    clusters: NotRequired[int]  # how many there are, where several questions share what they are about
    #: named after the one that BRIDGE takes
    t_interval_of_bootstrap_mean: NotRequired[PaperInterval]


def task_intervals(
    samples: Sequence[Mapping[str, Any]],
    aggregations: Mapping[str, Callable[..., Any]],
    dataset: str,
    of_paper: Callable[[Array], Interval] | None = None,
) -> tuple[dict[str, IntervalRecord], Array | None]:
    """The intervals of one task as results record them, and its score on each resample.

    The latter is None where there are fewer than two units, or without gold. `samples`: lm-eval's records of
    the documents. `of_paper`: gives the paper's own interval of a metric on the resamples, to stand beside
    ours.
    """

    def is_resampled(item: Counts) -> bool:
        return any(name == "score" or not is_mean(known.value) for name, known in item.statistics.items())

    counts = counts_of(samples, aggregations)
    wanted = counts if of_paper else [item for item in counts if is_resampled(item)]
    resampled = resample(wanted, dataset)
    n_units = len(set(map(unit_of, samples)))
    clusters = n_units if n_units < len(set(map(question_of, samples))) else None
    records = {}
    for item in counts:
        estimated = intervals_of(item, {name: draws_of.values for name, draws_of in resampled.items()})
        for metric in item.statistics:
            if metric in NOT_ESTIMATED:
                continue
            records[metric] = interval_record(estimated.get(metric), clusters)
            if of_paper and metric in resampled:
                values = resampled[metric].published
                interval = of_paper(values)
                records[metric]["t_interval_of_bootstrap_mean"] = {
                    "mean": float(np.mean(values)),
                    "low": interval.low,
                    "high": interval.high,
                }
    return records, resampled["score"].values if "score" in resampled else None


def score_interval(counts: Counts, dataset: str) -> Interval | None:
    """The interval of one score alone, the `score` of `counts`; None for fewer than two units."""
    means = is_mean(counts.statistics["score"].value)
    draws = {} if means else {name: item.values for name, item in resample([counts], dataset).items()}
    estimated = intervals_of(counts, draws).get("score")
    return estimated.interval if estimated else None


def interval_record(intervals: Estimated | None, clusters: int | None = None) -> IntervalRecord:
    """An interval, or that there is none, as results record it; `clusters`: how many there are, if any."""
    drawn = "documents" if clusters is None else "clusters"
    none = f"none: fewer than two {drawn}, or all of them alike"
    record: IntervalRecord = {"interval_low": None, "interval_high": None, "interval_method": none}
    if intervals:
        found = intervals.interval
        record = {
            "interval_low": found.low, "interval_high": found.high, "interval_method": intervals.method,
        }  # fmt: skip
        if found.rough:
            record["rough"] = True
    if clusters is not None:
        record["clusters"] = clusters
    return record


def intervals_of_record(records: Mapping[str, IntervalRecord]) -> dict[str, Interval]:
    """Metric -> its interval, of those that have one."""
    return {
        metric: Interval(low, high, item.get("rough", False))
        for metric, item in records.items()
        if (low := item["interval_low"]) is not None and (high := item["interval_high"]) is not None
    }


def missed_by(records: Mapping[str, IntervalRecord], metrics: Mapping[str, float]) -> Iterator[str]:
    """In words, intervals that do not hold their metric though all of their kind do: somebody changed one.

    A paper's own interval may miss its score: it lies around the mean of the resamples.
    """
    for metric, item in records.items():
        low, high, value = item["interval_low"], item["interval_high"], metrics.get(metric)
        if item["interval_method"] not in HOLDING or low is None or high is None or value is None:
            continue
        if value < low - _TINY or value > high + _TINY:
            yield f"the interval of {metric}, {low:g} to {high:g}, does not hold its {value:g}"
