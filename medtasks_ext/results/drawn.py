"""Results over drawn documents: each stands for those of its stratum that were not drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from medtasks_ext.runs.records import EstimateRecord
from medtasks_ext.stats.bootstrap import IntervalRecord, interval_record
from medtasks_ext.stats.counts import statistic_of, unit_of
from medtasks_ext.stats.sampling import Estimate, estimated, half_width, interval_of, weighted

if TYPE_CHECKING:
    from medtasks_ext.runs.choice import Drawn, Stratum
    from medtasks_ext.stats.statistic import Array, Matrix, Statistic


@dataclass(frozen=True)
class Nearness:
    half: float  # of the 95 % interval
    asked: int  # documents
    of: int

    @property
    def words(self) -> str:
        return f"an estimate ± {self.half:.3f}, {self.asked:,} of {self.of:,} documents"


def nearness(
    weights: Sequence[float],
    scores: Sequence[float],
    records: Sequence[EstimateRecord | None],
    sizes: Sequence[int],
) -> Nearness | None:
    """How near a weighted mean, of weights that add up to 1, is to that over all documents; None where all
    were asked.
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
    of = [record["of"] if record else size for record, size in zip(records, sizes, strict=True)]
    return Nearness(half_width(estimate), sum(sizes), sum(of))


def estimate_of(
    samples: Sequence[Mapping[str, Any]],
    statistic: Statistic,
    strata: Sequence[Stratum],
    metric: str = "score",
) -> Estimate | None:
    """A metric of all documents from samples of those that were drawn; None where a stratum has none.

    Args:
        samples: records of documents: `doc`, `doc_id` and the metric, which a document may lack.
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
        metrics: as if the drawn documents were all; one that no count gives is left out.
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
            )
    return values, intervals, record
