"""The scores of BRIDGE's leaderboard, as its files print them, and its interval."""

from __future__ import annotations

import numpy as np

from medtasks_ext.registry import Registry, Suite
from medtasks_ext.registry.strategies import SUFFIX
from medtasks_ext.results.experiments import Entry, Printed
from medtasks_ext.results.published import published, published_entry, published_experiments
from medtasks_ext.stats.intervals import LEVEL, Interval
from medtasks_ext.stats.statistic import Array

#: (name of the dataset in the leaderboard's files, strategy) -> score, 0-1
_Scores = dict[tuple[str, str], float]


def leaderboard(tasks: Registry, suite: Suite) -> list[Entry]:
    """BRIDGE's leaderboard: 98 models, three strategies; 95 of them with intervals and readable shares."""
    facts = {row["model"]: row for row in published(f"{suite.id}_models.csv")}
    scores: dict[str, _Scores] = {}
    for row in published(f"{suite.id}_leaderboard.csv"):
        place = (row["task"], row["strategy"])
        scores.setdefault(row["model"], {})[place] = float(row["score"]) / 100
    valid = {row["model"]: row for row in published(f"{suite.id}_valid_rate.csv")}
    printed = {
        row["model"]: {
            suite.id + suffix: Printed(
                Interval(float(row[f"{strategy}_ci_low"]) / 100, float(row[f"{strategy}_ci_high"]) / 100),
                float(valid[row["model"]][strategy]) / 100,
            )
            for strategy, suffix in SUFFIX.items()
        }
        for row in published(f"{suite.id}_overall.csv")
    }
    return [
        published_entry(
            suite,
            model,
            published_experiments(tasks, suite, model, of_model),
            facts.get(model, {}),
            printed=printed.get(model),
        )
        for model, of_model in scores.items()
    ]


def t_interval_of_bootstrap_mean(values: Array, level: float = LEVEL) -> Interval:
    """BRIDGE's official interval, which is no confidence interval of the score; for comparison only.

    The official code takes the t-interval of the mean of the resampled values: their standard deviation is
    divided by the square root of their number. It says how well 1,000 resamples determine their own mean,
    shrinks to nothing with more resamples, and is about sqrt(1000) = 32 times narrower than it should be.
    """
    from scipy.special import stdtrit

    n, centre = len(values), float(np.mean(values))
    half = float(stdtrit(n - 1, (1 + level) / 2) * np.std(values, ddof=1) / np.sqrt(n))
    return Interval(centre - half, centre + half)
