"""Published scores that come with the package (`results/reference`)."""

from __future__ import annotations

import csv
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks_ext.registry.metadata import SUITE_TITLES
from medtasks_ext.registry.tasks import STRATEGIES
from medtasks_ext.results.experiments import Entry, Experiment
from medtasks_ext.results.medhelm import normalised

if TYPE_CHECKING:
    from collections.abc import Mapping

    from medtasks_ext.registry import Registry
    from medtasks_ext.registry.tasks import Dataset

#: names of datasets in published tables that are not ours
_ALIASES = {
    "clinicbench": {
        "BC5-Disease": "BC5CDR-Disease",
        "DDI": "DDI 2013",
        "HoC": "Hallmarks of Cancer",
        "IU-Xray": "IU X-ray report summarization",
        "MedQA": "MedQA (USMLE)",
        "MIMIC-CXR": "MIMIC-CXR report summarization",
        "MMLU-Med": "MMLU-Medicine",
    },
    "medhelm": {"EHR-SQL": "EHRSQL", "N2C2 CT": "N2C2-CT"},
}
#: small models of MedHELM whose printed metric is not the benchmark's score
_OTHER_METRICS = {("MedCalc-Bench", "Exact Match"), ("EHR-SQL", "EHRSQLReAns")}
#: what to know before a row of one's own is set beside a published one
DIFFERENCES = {
    "bridge": "BRIDGE's official wording and test files; models and settings of the paper",
    "medhelm": "HELM's prompts; known to three decimals",
    "clinicbench": "the authors' prompts; five more test rows where a set has no few-shot pool",
    "mlb": "the authors' own sample of questions, most of them not public",
}


def reference_folder() -> Path:
    """The checkout's own folder, else the copy inside this package."""
    package = Path(__file__).resolve().parents[1]
    checkout = package.parent / "results" / "reference"
    return checkout if checkout.is_dir() else package / "reference"


@lru_cache(maxsize=32)
def published(name: str) -> tuple[dict[str, str], ...]:
    """The rows of one file."""
    with (reference_folder() / name).open(encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file))


def medhelm_scores(registry: Registry) -> dict[str, dict[str, float]]:
    """Model -> dataset id -> normalised score, for the nine models of MedHELM's Table 1."""
    ids = {
        item.metadata.name: item.id
        for item in registry.datasets.values()
        if item.metadata.benchmark == "medhelm"
    }
    scores: dict[str, dict[str, float]] = {}
    for row in published("medhelm_scores.csv"):
        value = float(row["score"])
        if row["metric"] == "Jury Score":
            value = normalised(value)
        if row["benchmark"] in ids:
            scores.setdefault(row["model"], {})[ids[row["benchmark"]]] = value
    return scores


def mlb_scores() -> dict[str, dict[str, float]]:
    """Model -> `average` and the five dimensions, 0-1, for the ten models of MLB's Table 4."""
    dimensions = ("average", "MedKQA", "MedSE", "MedRU", "SmartServ", "SmartCare")
    return {
        row["model"]: {name.lower(): float(row[name]) / 100 for name in dimensions}
        for row in published("mlb_overall.csv")
    }


def published_entries(tasks: Registry) -> list[Entry]:
    """The published models as lines of a leaderboard, per suite.

    BRIDGE (leaderboard, 98 models, three strategies), MedHELM (Table 1, nine models, and the three small
    ones), ClinicBench (Table 5, 22 models; the line of task-specific models is no model and left out) and
    MLB (Table 4, ten models, dimensions only).
    """
    entries = [*_bridge(tasks), *_medhelm(tasks), *_clinicbench(tasks), *_mlb()]
    papers = Counter(entry.model for entry in entries)
    for entry in entries:
        if papers[entry.model] > 1:
            entry.label = f"{entry.model} ({SUITE_TITLES[entry.settings['published']]}, published)"
    return entries


def _bridge(tasks: Registry) -> list[Entry]:
    facts = {row["model"]: row for row in published("bridge_models.csv")}
    scores: dict[str, dict[tuple[str, str], float]] = {}
    for row in published("bridge_leaderboard.csv"):
        place = (row["task"], row["strategy"])
        scores.setdefault(row["model"], {})[place] = float(row["score"]) / 100
    return [
        _entry("bridge", model, _experiments(tasks, "bridge", found), facts.get(model, {}))
        for model, found in scores.items()
    ]


def _medhelm(tasks: Registry) -> list[Entry]:
    facts = {row["model"]: row for row in published("medhelm_models.csv")}
    entries = []
    scores: dict[str, dict[tuple[str, str], float]] = {}
    for row in [*published("medhelm_scores.csv"), *published("medhelm_small_models.csv")]:
        value = float(row["score"])
        if (row["benchmark"], row["metric"]) in _OTHER_METRICS:
            continue
        if row["metric"] in ("Jury Score", "LLM Jury"):
            value = normalised(value)
        scores.setdefault(row["model"], {})[row["benchmark"], "zero_shot"] = value
    for model, found in scores.items():
        entries.append(_entry("medhelm", model, _experiments(tasks, "medhelm", found), facts.get(model, {})))
    return entries


def _clinicbench(tasks: Registry) -> list[Entry]:
    scores: dict[str, dict[tuple[str, str], float]] = {}
    facts: dict[str, dict[str, str]] = {}
    for row in published("clinicbench_zero_shot.csv"):
        if row["model_type"] == "task-specific fine-tuned":
            continue
        if row["score"]:
            scores.setdefault(row["model"], {})[row["dataset"], "zero_shot"] = float(row["score"]) / 100
        facts[row["model"]] = {"domain": row["model_type"], "parameters_b": row["params"]}
    return [
        _entry("clinicbench", model, _experiments(tasks, "clinicbench", found), facts[model])
        for model, found in scores.items()
    ]


def _mlb() -> list[Entry]:
    facts = {row["model"]: row for row in published("mlb_overall.csv")}
    entries = []
    for model, found in mlb_scores().items():
        groups = {"mlb" if name == "average" else f"mlb_{name}": value for name, value in found.items()}
        entries.append(_entry("mlb", model, {}, facts[model], groups))
    return entries


def _experiments(
    tasks: Registry, suite: str, scores: Mapping[tuple[str, str], float]
) -> dict[str, Experiment]:
    by_name = _by_name(tasks, suite)
    found = {}
    for (name, strategy), score in scores.items():
        dataset = by_name[_ALIASES.get(suite, {}).get(name, name)]
        assert strategy in STRATEGIES
        task = dataset.task(strategy)
        found[task] = Experiment(
            task=task,
            dataset=dataset,
            strategy=strategy,
            version="",
            metrics={"score": score},
            intervals={},
            n=dataset.metadata.n_test or 0,
            settings={"prompt": "the paper's", "data": "the paper's", "version": "published"},
        )
    return found


@lru_cache(maxsize=8)
def _by_name(tasks: Registry, suite: str) -> dict[str, Dataset]:
    return {item.metadata.name: item for item in tasks.datasets.values() if item.metadata.benchmark == suite}


def _entry(
    suite: str,
    model: str,
    experiments: dict[str, Experiment],
    facts: Mapping[str, str],
    groups: dict[str, float] | None = None,
) -> Entry:
    return Entry(
        model=model,
        label=f"{model} (published)",
        kind="published",
        settings={"published": suite},
        experiments=experiments,
        groups=groups or {},
        notes=(DIFFERENCES[suite],),
        details={key: value for key, value in facts.items() if value},
    )
