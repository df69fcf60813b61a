"""The scores and costs that the suites' papers and leaderboards print, and BRIDGE's own interval."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from medtasks_ext.registry import Registry, Suite
from medtasks_ext.registry.strategies import SUFFIX
from medtasks_ext.results.experiments import Entry, Printed
from medtasks_ext.results.published import (
    published,
    published_entries,
    published_entry,
    published_experiments,
)
from medtasks_ext.stats.comparison import win_shares
from medtasks_ext.stats.intervals import LEVEL, Interval
from medtasks_ext.stats.statistic import Array

#: (name of the dataset in the paper's tables, strategy) -> score, 0-1
_Scores = dict[tuple[str, str], float]
#: small models of MedHELM whose printed metric is not the benchmark's score
_OTHER_METRICS = {("MedCalc-Bench", "Exact Match"), ("EHR-SQL", "EHRSQLReAns")}
_JURY = ("Jury Score", "LLM Jury")
#: of MedHELM's tables of models, the one that ranks by win rates
_RANKED = "main (Table 1)"


def _entries(
    tasks: Registry,
    suite: Suite,
    scores: Mapping[str, _Scores],
    facts: Mapping[str, dict[str, str]],
    printed: Mapping[str, dict[str, Printed]] | None = None,
) -> list[Entry]:
    return [
        published_entry(
            suite,
            model,
            published_experiments(tasks, suite, model, of_model),
            facts.get(model, {}),
            printed=(printed or {}).get(model, {}),
        )
        for model, of_model in scores.items()
    ]


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
    return _entries(tasks, suite, scores, facts, printed)


def t_interval_of_bootstrap_mean(values: Array, level: float = LEVEL) -> Interval:
    """BRIDGE's official interval: no confidence interval of the score, for comparison only.

    It says how well 1,000 resamples determine their own mean: some sqrt(1000) = 32 times too narrow.
    """
    from scipy.special import stdtrit

    n, centre = len(values), float(np.mean(values))
    half = float(stdtrit(n - 1, (1 + level) / 2) * np.std(values, ddof=1) / np.sqrt(n))
    return Interval(centre - half, centre + half)


def zero_shot_table(tasks: Registry, suite: Suite) -> list[Entry]:
    """ClinicBench's Table 5: 22 models; the line of task-specific models is no model and left out."""
    scores: dict[str, _Scores] = {}
    facts: dict[str, dict[str, str]] = {}
    for row in published(f"{suite.id}_zero_shot.csv"):
        if row["model_type"] == "task-specific fine-tuned":
            continue
        if row["score"]:
            scores.setdefault(row["model"], {})[row["dataset"], "zero_shot"] = float(row["score"]) / 100
        facts[row["model"]] = {"domain": row["model_type"], "parameters_b": row["params"]}
    return _entries(tasks, suite, scores, facts)


def dimension_table(tasks: Registry, suite: Suite) -> list[Entry]:
    """MLB's Table 4: ten models, the average and five dimensions alone."""
    entries = []
    dimensions = suite.axes["dimension"].values
    for row in published(f"{suite.id}_overall.csv"):
        groups = {suite.id: float(row["average"]) / 100}
        for value, title in dimensions.items():
            groups[suite.named(suite.groups["dimension"], value)] = float(row[title]) / 100
        entries.append(published_entry(suite, row["model"], {}, row, groups=groups))
    return entries


def normalised(jury_score: float) -> float:
    return (jury_score - 1) / 4


def score_and_jury_tables(tasks: Registry, suite: Suite) -> list[Entry]:
    """MedHELM's Table 1 (nine models), and the three small models."""
    facts = {row["model"]: row for row in published(f"{suite.id}_models.csv")}
    scores: dict[str, _Scores] = {}
    for row in [*published(f"{suite.id}_scores.csv"), *published(f"{suite.id}_small_models.csv")]:
        if (row["benchmark"], row["metric"]) not in _OTHER_METRICS:
            value = float(row["score"])
            place = (row["benchmark"], "zero_shot")
            scores.setdefault(row["model"], {})[place] = (
                normalised(value) if row["metric"] in _JURY else value
            )
    return _entries(tasks, suite, scores, facts)


def benchmark_costs(suite: Suite) -> dict[str, tuple[float, str]]:
    """MedHELM's cost of its benchmarks by model: US dollars, and what they are."""
    rule = f"as {suite.title} prints it: an upper bound, in which every answer fills its budget; jury apart"
    return {
        row["model"]: (float(row["benchmark_cost_usd"]), rule)
        for row in published(f"{suite.id}_costs.csv")
        if row["paper_version"] == "nature_medicine_2026"
    }


def published_win_rates(tasks: Registry, suite: Suite) -> dict[str, float]:
    """Share of pairs that each model of MedHELM's Table 1 wins, 0-1, by its rule; of other suites none."""
    if suite.id != "medhelm":
        return {}
    scores = {
        entry.model: {
            item.dataset.id: item.score for item in entry.experiments.values() if item.score is not None
        }
        for entry in published_entries(tasks)
        if entry.paper == suite.id and entry.details.get("set") == _RANKED
    }
    return {name: line["win_rate"] for name, line in figures_of_rivals(scores).items()}


def figures_of_rivals(scores: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, Any]]:
    """MedHELM's figures of the models that were run on most benchmarks, by their normalised scores.

    Win rates count a tie as half a win and their population s.d. counts it as none: the paper's Methods say
    "at least as good" for both, but only these two rules give the printed values.
    """
    most = max(map(len, scores.values()), default=0)
    rivals = {name: found for name, found in scores.items() if len(found) == most}
    shared = sorted(set.intersection(*(set(found) for found in rivals.values())))
    table = np.array([[found[key] for key in shared] for found in rivals.values()], dtype=float)
    won, won_alone = win_shares(table), win_shares(table, tie=0.0)
    return {
        model: {
            "win_rate": np.delete(won[index], index).mean(),
            "win_sd": np.delete(won_alone[index], index).std(),
            "macro_average": table[index].mean(),
            "macro_sd": table[index].std(ddof=1) if table.shape[1] > 1 else 0.0,
        }
        for index, model in enumerate(rivals)
    }
