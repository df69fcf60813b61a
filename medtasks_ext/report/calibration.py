"""How sure models are of answers that were taken by likelihood, and whether they are right to be."""

from __future__ import annotations

from itertools import groupby
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from medtasks_ext.errors import MedtasksError
from medtasks_ext.metrics.likelihood import reliability, risk_deviations, risks
from medtasks_ext.registry.strategies import by_likelihood, strategy_title
from medtasks_ext.results.experiments import Fault
from medtasks_ext.results.frames import table_of
from medtasks_ext.stats.bootstrap import resampling_weights

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Registry
    from medtasks_ext.results.experiments import Entry

#: Points of a risk-coverage curve: 5 %, 10 % … of the documents.
POINTS = 20
#: Sets of documents that are drawn for the curve's intervals.
RESAMPLES = 200

#: Metrics that the frame has.
METRICS = ("acc", "acc_norm", "brier_score", "calibration_error", "risk_coverage")
_BIN = ("confidence", "rightness", "documents")


def calibration(entries: Sequence[Entry], faults: list[Fault]) -> pa.Table:
    """The frame `calibration`; documents that cannot be read become faults."""
    found: list[Json] = []
    for entry in entries:
        for item in entry.experiments.values():
            if not by_likelihood(item.strategy) or item.score is None or item.read_documents is None:
                continue
            try:
                documents = item.read_documents()
            except MedtasksError as error:
                faults.append(Fault(f"{entry.label}, {item.task}", error.what, error.remedy or ""))
                continue
            kept = documents.scored & ~np.isnan(documents.confidence)
            sure, right = documents.confidence[kept], documents.scores[kept]
            if not len(sure):
                continue
            places = np.ceil(np.arange(1, POINTS + 1) / POINTS * len(sure)).astype(int) - 1
            bins = reliability(sure, right).tolist()
            _, units = np.unique(documents.units[kept], return_inverse=True)
            weights = resampling_weights(item.dataset.id, int(units.max()) + 1, RESAMPLES)[:, units]
            found.append(
                {
                    "entry": entry.label,
                    "suite": item.dataset.suite.id,
                    "dataset": item.dataset.id,
                    "task": item.task,
                    "strategy": item.strategy,
                    "documents": len(sure),
                    **{name: item.metrics.get(name) for name in METRICS},
                    "bins": [dict(zip(_BIN, part, strict=True)) for part in bins],
                    "risks": risks(sure, right)[places].tolist(),
                    "risks_sd": risk_deviations(sure, right, weights, POINTS).tolist(),
                }
            )
    return table_of("calibration", found)


def calibration_words(found: pa.Table, tasks: Registry) -> list[str]:
    """A line for each entry, suite and strategy: means over its tasks."""

    def place(row: Json) -> tuple[str, str, str]:
        return row["entry"], row["suite"], row["strategy"]

    lines = []
    for (entry, suite, strategy), group in groupby(sorted(found.to_pylist(), key=place), key=place):
        some = list(group)
        mean = {name: fmean(row[name] for row in some) for name in METRICS}
        half = fmean(row["risks"][POINTS // 2 - 1] for row in some)
        line = (
            f"{entry}, {tasks.suites[suite].title if suite in tasks.suites else suite}, "
            f"{strategy_title(strategy)}: calibration error {mean['calibration_error']:.3f}, Brier score "
            f"{mean['brier_score']:.3f}, risk-coverage {mean['risk_coverage']:.3f}; "
            f"errors {1 - mean['acc']:.1%}, of the surer half {half:.1%}"
        )
        if differ := sum(row["acc_norm"] != row["acc"] for row in some):
            line += (
                f"; acc {mean['acc']:.4f}, acc_norm {mean['acc_norm']:.4f} ({differ} of {len(some)} differ)"
            )
        lines.append(line)
    return lines
