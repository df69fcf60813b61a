"""The scores that ClinicBench's paper prints."""

from __future__ import annotations

from medtasks_ext.registry import Registry, Suite
from medtasks_ext.results.experiments import Entry
from medtasks_ext.results.published import published, published_entry, published_experiments

#: (name of the dataset in the paper's tables, strategy) -> score, 0-1
_Scores = dict[tuple[str, str], float]


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
    return [
        published_entry(suite, model, published_experiments(tasks, suite, model, of_model), facts[model])
        for model, of_model in scores.items()
    ]
