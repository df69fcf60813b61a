"""Published scores that come with the package (`results/reference`)."""

from __future__ import annotations

import csv
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks_ext.results.medhelm import normalised

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry


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
