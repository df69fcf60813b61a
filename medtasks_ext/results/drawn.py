"""Results over drawn documents, which stand for those that were not drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from medtasks_ext.runs.records import EstimateRecord
from medtasks_ext.stats.bootstrap import IntervalRecord, interval_record
from medtasks_ext.stats.sampling import Estimate, estimated, half_width, interval_of, weighted
from medtasks_ext.stats.statistic import statistic_of, unit_of

if TYPE_CHECKING:
    from medtasks_ext.runs.manifest import Drawn
    from medtasks_ext.stats.statistic import Statistic


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


def _estimate_of(
    samples: Sequence[Mapping[str, Any]], metric: str, statistic: Statistic, units: int
) -> Estimate | None:
    """None where no document has the metric; one that lacks it counts nothing in its unit."""
    there = [sample for sample in samples if metric in sample]
    if not there:
        return None
    rows = {unit: row for row, unit in enumerate(dict.fromkeys(map(unit_of, samples)))}
    counts = statistic.counts([sample[metric] for sample in there])
    dense = counts if isinstance(counts, np.ndarray) else counts.toarray()
    sums = np.zeros((len(rows), dense.shape[1]))
    np.add.at(sums, [rows[unit_of(sample)] for sample in there], dense)
    return estimated(sums, units, statistic.value)


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
        found = _estimate_of(samples, metric, statistic, drawn.units) if statistic else None
        if found is None:
            continue
        values[metric] = found.value
        intervals[metric] = interval_record(interval_of(found))
        if metric == "score":
            record = EstimateRecord(
                variance=found.variance, degrees=found.degrees, asked=len(samples), of=drawn.documents
            )
    return values, intervals, record
