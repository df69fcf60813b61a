"""Results over drawn documents: each stands for those of its stratum that were not drawn."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from medtasks_ext.runs.records import EstimateRecord
from medtasks_ext.stats.bootstrap import IntervalRecord, interval_record
from medtasks_ext.stats.counts import statistic_of, unit_of
from medtasks_ext.stats.sampling import DIFFERENCE, Estimate, estimated, half_width, interval_of, weighted
from medtasks_ext.stats.sequences import sequence_half_width, variance_for

if TYPE_CHECKING:
    from medtasks_ext.runs.choice import Drawn, Stratum
    from medtasks_ext.stats.statistic import Array, Matrix, Statistic


@dataclass(frozen=True)
class Nearness:
    """How near the score of a task or group is to that of all its documents."""

    half: float  # of the 95 % interval
    asked: int  # documents
    of: int

    @property
    def words(self) -> str:
        """As tables say it beside the score."""
        return f"an estimate ± {self.half:.3f}, {self.asked:,} of {self.of:,} documents"


def nearness(
    weights: Sequence[float],
    scores: Sequence[float],
    records: Sequence[EstimateRecord | None],
    sizes: Sequence[int],
) -> Nearness | None:
    """How near a weighted mean of tasks is to that over all documents; None where all of them were asked.

    Args:
        weights: of the tasks; they add up to 1.
        scores: of each.
        records: of each; None of a task that was asked all its documents.
        sizes: documents that each was asked.
    """
    if not any(records):
        return None
    parts = [
        Estimate(score, record["variance"], record["variance"], record["degrees"])
        if record
        else Estimate(score, 0.0, 0.0, 1.0)
        for score, record in zip(scores, records, strict=True)
    ]
    estimate = weighted(weights, parts)
    tuned = max((record["tuned"] or 0.0 for record in records if record), default=0.0)
    half = float(sequence_half_width(estimate.variance, tuned)) if tuned else half_width(estimate)
    of = [record["of"] if record else size for record, size in zip(records, sizes, strict=True)]
    return Nearness(half, sum(sizes), sum(of))


def estimate_of(
    samples: Sequence[Mapping[str, Any]],
    statistic: Statistic,
    strata: Sequence[Stratum],
    metric: str = "score",
) -> Estimate | None:
    """A metric of all documents from samples of those that were drawn; None where a stratum has none.

    Args:
        samples: records of documents: `doc`, `doc_id` and the metric, which a document may lack.
        statistic: how the metric follows.
    """
    there = [sample for sample in samples if metric in sample]
    stratum_of = {place: i for i, stratum in enumerate(strata) for place in stratum.samples}
    units: dict[Any, int] = {}
    rows = [units.setdefault(unit_of(sample), len(units)) for sample in samples]
    strata_of_units = np.zeros(len(units), dtype=int)
    for row, sample in zip(rows, samples, strict=True):
        strata_of_units[row] = stratum_of[sample["doc_id"]]
    sizes = np.array([item.units for item in strata], dtype=float)
    if not there or len(np.unique(strata_of_units)) < len(sizes):
        return None
    dense = _dense(statistic.counts([sample[metric] for sample in there]))
    sums = np.zeros((len(units), dense.shape[1]))
    np.add.at(sums, [row for row, sample in zip(rows, samples, strict=True) if metric in sample], dense)
    return estimated(sums, strata_of_units, sizes, statistic.value)


def difference_of(
    ours: Mapping[int, Any],
    theirs: Mapping[int, Any],
    units: Mapping[int, Any],
    statistic: Statistic,
    strata: Sequence[Stratum],
    without_gold: Collection[int] = (),
) -> Estimate | None:
    """The difference of two models' scores on the same drawn documents; None where a stratum has none.

    Args:
        ours: place -> what a document contributes to the score, of those with gold.
        theirs: the same of the other model.
        units: place -> what it is drawn with.
        without_gold: places that count in no score, though they were drawn.
    """
    stratum_of = {place: i for i, stratum in enumerate(strata) for place in stratum.samples}
    places = [place for place in stratum_of if place in ours and place in theirs]
    drawn = [*places, *(place for place in stratum_of if place in without_gold)]
    numbers: dict[Any, int] = {}
    rows = [numbers.setdefault(units[place], len(numbers)) for place in drawn]
    strata_of_units = np.zeros(len(numbers), dtype=int)
    strata_of_units[rows] = [stratum_of[place] for place in drawn]
    sizes = np.array([item.units for item in strata], dtype=float)
    if not places or len(np.unique(strata_of_units)) < len(sizes):
        return None
    sides = [[side[place] for place in places] for side in (ours, theirs)]
    if statistic.labels:  # columns are those labels that occur
        both = _dense(statistic.counts([*sides[0], *sides[1]]))
        pair = both[: len(places)], both[len(places) :]
    else:
        pair = _dense(statistic.counts(sides[0])), _dense(statistic.counts(sides[1]))
    k = pair[0].shape[1]
    sums = np.zeros((len(numbers), 2 * k))
    np.add.at(sums, rows[: len(places)], np.concatenate(pair, axis=1))

    def value(counts: Array) -> Array:
        difference: Array = statistic.value(counts[..., :k]) - statistic.value(counts[..., k:])
        return difference

    return estimated(sums, strata_of_units, sizes, value, doubt=DIFFERENCE)


def _dense(counts: Matrix) -> Array:
    return counts if isinstance(counts, np.ndarray) else counts.toarray()


def drawn_results(
    samples: Sequence[Mapping[str, Any]],
    metrics: Mapping[str, float],
    aggregations: Mapping[str, Callable[..., Any]],
    drawn: Drawn,
) -> tuple[dict[str, float], dict[str, IntervalRecord], EstimateRecord | None]:
    """Metrics of all documents from those that were drawn, their intervals, and how near the score is.

    Args:
        samples: lm-eval's records of the drawn documents.
        metrics: over them as if they were all; one that no count gives is left out.
        aggregations: metric -> aggregation.
    """
    values: dict[str, float] = {}
    intervals: dict[str, IntervalRecord] = {}
    record: EstimateRecord | None = None
    for metric in metrics:
        statistic = statistic_of(aggregations[metric]) if metric in aggregations else None
        if (
            statistic is None
            or (estimated_score := estimate_of(samples, statistic, drawn.strata, metric)) is None
        ):
            continue
        values[metric] = estimated_score.value
        intervals[metric] = interval_record(interval_of(estimated_score))
        if metric == "score":
            record = EstimateRecord(
                variance=estimated_score.variance,
                degrees=estimated_score.degrees,
                asked=len(samples),
                of=drawn.documents,
                tuned=variance_for(drawn.error / 100) if drawn.watched else None,
            )
    return values, intervals, record
