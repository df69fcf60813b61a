"""Corpus-level metrics as functions of counts that are summed over documents.

lm-eval calls a `Statistic` like a function; the bootstrap sums the same counts under weights.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    import scipy.sparse

Array: TypeAlias = np.ndarray
#: counts, one row per item; sparse where a column stands for one of many labels
Matrix: TypeAlias = "np.ndarray | scipy.sparse.csr_array"


class Statistic:
    """An aggregation for a task's YAML that can be resampled, too.

    `counts`: items of n documents -> (n, k). k may depend on the items. A statistic of several documents at
    once (the trials of a question) puts its counts into the row of the first. `value`: sums of the rows (...,
    k) -> metric (...). Never NaN: a ratio without a whole is 0. `labels`: items -> the labels that the
    columns of `label_counts` stand for; None of other counts.
    """

    # no dataclass: lm-eval's copy of a configuration would take it apart

    def __init__(
        self,
        name: str,
        counts: Callable[[Sequence[Any]], Matrix],
        value: Callable[[Array], Array],
        published: Callable[[Array], Array] | None = None,
        labels: Callable[[Sequence[Any]], Sequence[Hashable]] | None = None,
    ) -> None:
        self.name, self.counts, self.value, self.labels = name, counts, value, labels
        #: `value` as the suite's own bootstrap takes it on a resample, where that is something else; on all
        #: documents both agree
        self.published = published or value

    def __repr__(self) -> str:
        return self.name

    def __call__(self, items: Sequence[Any]) -> float:
        """The metric over all items: the aggregation that lm-eval calls."""
        return float(self.value(np.asarray(self.counts(items).sum(axis=0))))


def ratios(part: Array, whole: Array) -> Array:
    """part / whole element by element, 0 where there is no whole."""
    part, whole = np.broadcast_arrays(np.asarray(part, float), np.asarray(whole, float))
    quotients: Array = np.divide(part, whole, out=np.zeros(whole.shape), where=whole != 0)
    return quotients


def f1_scores(tp: Array, fp: Array, fn: Array) -> Array:
    """Harmonic mean of precision and recall element by element; 0 where it is undefined.

    Computed from both parts, as the official scorers do, rather than as 2tp / (2tp + fp + fn).
    """
    precision, recall = ratios(tp, tp + fp), ratios(tp, tp + fn)
    return ratios(2 * precision * recall, precision + recall)


def value_and_one(items: Sequence[float]) -> Array:
    """(n, 2): the document's value, and 1."""
    values = np.asarray(items, dtype=float).reshape(-1)
    return np.column_stack([values, np.ones(len(values))])


def as_they_are(items: Sequence[Sequence[float]]) -> Array:
    """(n, k): items that are rows of counts already."""
    return np.asarray(items, dtype=float).reshape(len(items), -1)


def share(sums: Array) -> Array:
    return ratios(sums[..., 0], sums[..., 1])


#: lm-eval's aggregation `mean`
mean = Statistic("mean", value_and_one, share)
#: mean over the documents that count: items are (value, 1), and (0, 0) for the others
mean_of_some = Statistic("mean_of_some", as_they_are, share)


def in_run(document: Mapping[str, Any], metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Each value with the run of its document, where the benchmark has runs; else unchanged."""
    if "run" not in document:
        return dict(metrics)
    return {name: (document["run"], value) for name, value in metrics.items()}


def _by_run(items: Sequence[tuple[str, float]]) -> Array:
    """(n, 2 x runs): a document's value in the column of its run, and a 1 for it."""
    column = {run: place for place, run in enumerate(sorted({run for run, _ in items}))}
    counts = np.zeros((len(items), 2, len(column)))
    for row, (run, value) in enumerate(items):
        counts[row, :, column[run]] = value, 1
    return counts.reshape(len(items), -1)


def _mean_of_means(sums: Array) -> Array:
    values, sizes = np.split(sums, 2, axis=-1)
    return ratios(ratios(values, sizes).sum(axis=-1), (sizes > 0).sum(axis=-1))


#: mean over runs (MedHELM: subjects, conditions, subsets) of the mean over a run's documents: each run counts
#: once, whatever its size
mean_of_runs = Statistic("mean_of_runs", _by_run, _mean_of_means)
#: the same, no less than 0 and no more than 1, where documents may have less than nothing (penalties)
clipped_mean_of_runs = Statistic(
    "clipped_mean_of_runs", _by_run, lambda sums: np.clip(_mean_of_means(sums), 0.0, 1.0)
)


def label_counts(
    gold: Sequence[Iterable[Hashable]], predicted: Sequence[Iterable[Hashable]], labels: Sequence[Hashable]
) -> Matrix:
    """(n, 3 x labels): which labels a document has right, predicts, and has as gold; others vanish."""
    from scipy.sparse import csr_array

    column, size = {label: place for place, label in enumerate(labels)}, len(labels)
    indices: list[int] = []
    ends = [0]
    for wanted, given in zip(gold, predicted, strict=True):
        true = {column[label] for label in wanted if label in column}
        answered = {column[label] for label in given if label in column}
        indices += [
            *true & answered,
            *(size + place for place in answered),
            *(2 * size + place for place in true),
        ]
        ends.append(len(indices))
    return csr_array((np.ones(len(indices)), indices, ends), shape=(len(gold), 3 * size))


def by_label(sums: Array) -> tuple[Array, Array, Array]:
    """Sums of `label_counts` as (hits, predicted, gold), each (..., labels)."""
    hits, predicted, gold = np.split(sums, 3, axis=-1)
    return hits, predicted, gold


def macro_f1(sums: Array, counted: Array | bool = True) -> Array:
    """Mean F1 over the labels that are `counted` (..., labels); all by default."""
    hits, predicted, gold = by_label(sums)
    scores = f1_scores(hits, predicted - hits, gold - hits)
    counted = np.broadcast_to(counted, scores.shape)
    return ratios((scores * counted).sum(axis=-1), counted.sum(axis=-1))


def pooled_f1(sums: Array, counted: Array | bool = True) -> Array:
    """F1 of the counts pooled over the labels that are `counted` (..., labels); all by default."""
    hits, predicted, gold = (part * counted for part in by_label(sums))
    tp = hits.sum(axis=-1)
    return f1_scores(tp, predicted.sum(axis=-1) - tp, gold.sum(axis=-1) - tp)


@dataclass(frozen=True)
class Counts:
    """What each unit of a task contributes to the metrics that are computed from the same counts."""

    matrix: Matrix  # (n_units, k)
    statistics: dict[str, Statistic]
    labels: tuple[Hashable, ...] = ()  # what the columns of `label_counts` stand for, where that is known

    @property
    def n_units(self) -> int:
        rows: int = self.matrix.shape[0]
        return rows

    @property
    def dense(self) -> Array:
        return self.matrix if isinstance(self.matrix, np.ndarray) else np.asarray(self.matrix.todense())

    def values(self) -> dict[str, float]:
        sums = np.asarray(self.matrix.sum(axis=0))
        return {name: float(statistic.value(sums)) for name, statistic in self.statistics.items()}


def statistic_of(aggregation: Callable[..., Any]) -> Statistic | None:
    """The statistic of an aggregation of a task; None for a plain function, which cannot be resampled."""
    if isinstance(aggregation, Statistic):
        return aggregation
    from medtasks_ext.harness import mean as lm_eval_mean  # loads all of its metrics

    return mean if aggregation is lm_eval_mean else None


def over_repeats(aggregation: Callable[..., Any], n: int) -> Any:
    """An aggregation of documents that were asked n times: the mean over repeats of what it gives for each.

    A mean over documents takes their means over repeats. An item of any other one has a part for each repeat.
    """
    statistic = statistic_of(aggregation)
    if n == 1 or statistic in (mean, mean_of_runs):
        return aggregation
    if statistic is not None:
        return _over_repeats(statistic, n)
    return lambda items: sum(aggregation([item[k] for item in items]) for k in range(n)) / n


@lru_cache(maxsize=256)
def _over_repeats(statistic: Statistic, n: int) -> Statistic:
    counts = _counts_of_repeats(statistic.counts, n, statistic.labels is not None)
    of, published = (partial(_mean_of_repeats, way, n) for way in (statistic.value, statistic.published))
    same = statistic.published is statistic.value
    return Statistic(f"{statistic.name}_of_{n}_repeats", counts, of, None if same else published)


@lru_cache(maxsize=256)  # metrics share their counts by the function
def _counts_of_repeats(
    counts: Callable[[Sequence[Any]], Matrix], n: int, by_labels: bool
) -> Callable[[Sequence[Any]], Matrix]:
    def of_repeats(items: Sequence[Sequence[Any]]) -> Matrix:
        if by_labels:  # one repeat may lack a label that another one has
            every = counts([part for item in items for part in item])
            matrix = every.reshape(len(items), n * every.shape[1])
            return matrix if isinstance(matrix, np.ndarray) else matrix.tocsr()
        return np.hstack([counts([item[k] for item in items]) for k in range(n)])

    return of_repeats


def _mean_of_repeats(value: Callable[[Array], Array], n: int, sums: Array) -> Array:
    """The mean of a metric over the repeats, whose sums stand one after another in (..., n x k)."""
    found: Array = np.mean([value(part) for part in np.split(sums, n, axis=-1)], axis=0)
    return found


def question_of(sample: Mapping[str, Any]) -> Hashable:
    """The question that a sample belongs to, if that was asked several times; else it is alone."""
    question: Hashable = sample["doc"].get("item", ("document", sample["doc_id"]))
    return question


def unit_of(sample: Mapping[str, Any]) -> Hashable:
    """What a sample is resampled with: what its question is about, if others are, too; else its question."""
    cluster = sample["doc"].get("cluster")
    return ("cluster", cluster) if cluster else question_of(sample)


def counts_of(
    samples: Sequence[Mapping[str, Any]],
    aggregations: Mapping[str, Callable[..., Any]],
    unit: Callable[[Mapping[str, Any]], Hashable] = unit_of,
) -> list[Counts]:
    """The counts of one task, the rows in the order of its documents, whatever the order of the samples.

    Metrics that share their counts share a matrix; those that no sample reports are left out.
    """
    ordered = sorted(samples, key=lambda sample: sample["doc_id"])
    units = [unit(sample) for sample in ordered]
    made: list[tuple[list[Any], Statistic, Counts]] = []
    for metric, aggregation in aggregations.items():
        statistic = statistic_of(aggregation)
        items = [sample[metric] for sample in ordered if metric in sample]
        if statistic is None or not items:
            continue
        for known, like, counts in made:
            if like.counts is statistic.counts and known == items:
                counts.statistics[metric] = statistic
                break
        else:
            theirs = [unit for unit, sample in zip(units, ordered, strict=True) if metric in sample]
            matrix = by_unit(statistic.counts(items), theirs)
            labels = tuple(statistic.labels(items)) if statistic.labels else ()
            made.append((items, statistic, Counts(matrix, {metric: statistic}, labels)))
    return [counts for _, _, counts in made]


def by_unit(matrix: Matrix, units: Iterable[Hashable]) -> Matrix:
    """(n, k) -> (n_units, k): rows of the same unit summed, units in the order of their first row."""
    number: dict[Hashable, int] = {}
    rows = [number.setdefault(unit, len(number)) for unit in units]
    if len(number) == len(rows):
        return matrix
    from scipy.sparse import csr_array

    member = csr_array((np.ones(len(rows)), (rows, np.arange(len(rows)))), shape=(len(number), len(rows)))
    return member @ matrix
