"""How sure models are of answers that were taken by likelihood, and whether they are right to be."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from medtasks_ext.errors import MedtasksError
from medtasks_ext.metrics.likelihood import reliability, risks
from medtasks_ext.registry.strategies import by_likelihood, strategy_title
from medtasks_ext.results.experiments import Fault

if TYPE_CHECKING:
    from collections.abc import Sequence

    from medtasks_ext.registry import Registry
    from medtasks_ext.results.experiments import Entry, Experiment
    from medtasks_ext.stats.statistic import Array

#: Points of a risk-coverage curve: 5 %, 10 % … of the documents.
POINTS = 20


@dataclass(frozen=True)
class Sureness:
    """One task of one entry."""

    entry: str  # its label
    item: Experiment
    documents: int  # that have a score
    bins: Array  # (BINS, 3) sums of confidence and of rightness, and documents, by confidence
    risks: Array  # (POINTS,) share of errors among the surest 1 / POINTS, 2 / POINTS … of the documents

    @property
    def norm_differs(self) -> bool:
        """Whether the answer likeliest per character has another score."""
        return self.item.metrics["acc_norm"] != self.item.metrics["acc"]


def sureness(entries: Sequence[Entry], faults: list[Fault]) -> list[Sureness]:
    """That of all tasks that were asked by likelihood; documents that cannot be read become faults."""
    found = []
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
            if len(sure):
                places = np.ceil(np.arange(1, POINTS + 1) / POINTS * len(sure)).astype(int) - 1
                curve = risks(sure, right)[places]
                found.append(Sureness(entry.label, item, len(sure), reliability(sure, right), curve))
    return found


def sureness_words(found: Sequence[Sureness], tasks: Registry) -> list[str]:
    """A line for each entry, suite and strategy: means over its tasks."""

    def place(one: Sureness) -> tuple[str, str, str]:
        return one.entry, one.item.dataset.suite.id, one.item.strategy

    lines = []
    for (entry, suite, strategy), group in groupby(sorted(found, key=place), key=place):
        some = list(group)
        mean = {
            name: fmean(one.item.metrics[name] for one in some)
            for name in ("acc", "acc_norm", "calibration_error", "brier_score", "risk_coverage")
        }
        half = fmean(float(one.risks[POINTS // 2 - 1]) for one in some)
        line = (
            f"{entry}, {tasks.suites[suite].title if suite in tasks.suites else suite}, "
            f"{strategy_title(strategy)}: calibration error {mean['calibration_error']:.3f}, Brier score "
            f"{mean['brier_score']:.3f}, risk-coverage {mean['risk_coverage']:.3f}; "
            f"errors {1 - mean['acc']:.1%}, of the surer half {half:.1%}"
        )
        if differ := sum(one.norm_differs for one in some):
            line += (
                f"; acc {mean['acc']:.4f}, acc_norm {mean['acc_norm']:.4f} ({differ} of {len(some)} differ)"
            )
        lines.append(line)
    return lines
