"""The scores and costs that MedHELM's paper prints."""

from __future__ import annotations

from medtasks_ext.registry import Registry, Suite
from medtasks_ext.results.experiments import Entry
from medtasks_ext.results.published import published, published_entry, published_experiments

#: (name of the dataset in the paper's tables, strategy) -> score, 0-1
_Scores = dict[tuple[str, str], float]

#: small models of MedHELM whose printed metric is not the benchmark's score
_OTHER_METRICS = {("MedCalc-Bench", "Exact Match"), ("EHR-SQL", "EHRSQLReAns")}
_JURY = ("Jury Score", "LLM Jury")


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
    return [
        published_entry(
            suite, model, published_experiments(tasks, suite, model, of_model), facts.get(model, {})
        )
        for model, of_model in scores.items()
    ]


def benchmark_costs(suite: Suite) -> dict[str, tuple[float, str]]:
    """MedHELM's cost of its benchmarks by model: US dollars, and what they are."""
    rule = f"as {suite.title} prints it: an upper bound, in which every answer fills its budget; jury apart"
    return {
        row["model"]: (float(row["benchmark_cost_usd"]), rule)
        for row in published(f"{suite.id}_costs.csv")
        if row["paper_version"] == "nature_medicine_2026"
    }
