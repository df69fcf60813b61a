"""MedHELM's suite figures (Nature Medicine 2026, Table 1 and Methods): win rates and averages.

The conventions are those that reproduce the published tables; `tests/studies/test_figures.py`
checks each. Scores are a matrix (models, benchmarks) on 0-1, jury scores normalised first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from medtasks_ext.registry import Registry, Suite
from medtasks_ext.results.published import published_entries
from medtasks_ext.stats.comparison import win_shares

#: Of the paper's tables of models, the one that ranks by win rates.
RANKED = "main (Table 1)"


@dataclass(frozen=True)
class SuiteFigures:
    win_rate: float  # mean over benchmarks of (models beaten + half of the ties) / (models - 1)
    win_sd: float  # population s.d. of the model's pairwise win rates, in which a tie is no win
    macro_average: float  # mean of the normalised scores
    macro_sd: float  # their sample s.d.


#: the suite that this module is named for
_SUITE = __name__.rpartition(".")[2].removesuffix("_figures")


def suite_figures(scores: Mapping[str, Sequence[float]]) -> dict[str, SuiteFigures]:
    """The figures of models that were run on the same benchmarks.

    Win rates count a tie as half a win and their s.d. counts it as none: the paper's Methods say "at least as
    good" for both, but only these two rules give the printed values.

    `scores`: two models or more -> normalised score per benchmark, unrounded, in one order for all models.
    """
    table = np.array(list(scores.values()), dtype=float)
    won, won_alone = win_shares(table), win_shares(table, tie=0.0)
    return {
        model: SuiteFigures(
            win_rate=float(np.delete(won[index], index).mean()),
            win_sd=float(np.delete(won_alone[index], index).std()),
            macro_average=float(table[index].mean()),
            macro_sd=float(table[index].std(ddof=1)) if table.shape[1] > 1 else 0.0,
        )
        for index, model in enumerate(scores)
    }


def published_win_rates(tasks: Registry, suite: Suite) -> dict[str, float]:
    """Share of pairs that each model of MedHELM's Table 1 wins, 0-1, by its rule; of other suites none."""
    if suite.id != _SUITE:
        return {}
    scores = {
        entry.model: {
            item.dataset.id: item.score for item in entry.experiments.values() if item.score is not None
        }
        for entry in published_entries(tasks)
        if entry.paper == suite.id and entry.details.get("set") == RANKED
    }
    return {name: line.win_rate for name, line in figures_of_rivals(scores).items()}


def figures_of_rivals(scores: Mapping[str, Mapping[str, float]]) -> dict[str, SuiteFigures]:
    most = max(map(len, scores.values()), default=0)
    rivals = {name: found for name, found in scores.items() if len(found) == most}
    shared = sorted(set.intersection(*(set(found) for found in rivals.values())))
    return suite_figures({name: [found[key] for key in shared] for name, found in rivals.items()})
