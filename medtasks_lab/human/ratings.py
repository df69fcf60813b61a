"""What clinicians' ratings amount to: agreement, means by run and axis, and the file for `medtasks judge`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from medtasks_ext.csvfile import write_csv
from medtasks_ext.jsonfile import write_json
from medtasks_ext.stats.agreement import (
    Coefficient,
    icc_of_raters,
    krippendorff_alpha,
    mean_kappa,
    pairwise_baseline,
    rating_table,
)
from medtasks_ext.stats.bootstrap import METHOD, RESAMPLES
from medtasks_lab.human.results import origin

if TYPE_CHECKING:
    from medtasks_lab.human.ingest import Filled, Ingested

COMPOSITE = "mean of axes"
ICC, PAIRWISE_ICC = "ICC(3,k) after z-scoring", "mean pairwise ICC(3,k) after z-scoring"
KAPPA = {"quadratic": "kappa, quadratic weights", "linear": "kappa, linear weights"}
ALPHA = {"ordinal": "alpha, ordinal", "interval": "alpha, interval"}

#: unit (run and document) -> rater -> axis -> rating
Rated = dict[tuple[str, str, str], dict[str, dict[str, float]]]


@dataclass(frozen=True)
class RaterFigure:
    """How far clinicians agree in one task."""

    task: str
    axis: str  # or `mean of axes`
    measure: str
    value: float | None  # None where it is undefined
    low: float | None  # 95 % interval over answers; over pairs for the pairwise ICC
    high: float | None
    n: int  # answers; pairs of clinicians for kappa and the pairwise ICC


@dataclass(frozen=True)
class RatedScore:
    """The ratings that one run got in one task."""

    task: str
    run: str
    axis: str  # or `mean of axes`
    mean: float  # over answers, of the means over clinicians
    sd: float | None  # of these means, sample s.d.
    n: int  # answers


@dataclass(frozen=True)
class Ratings:
    """What filled forms of the kind `likert` hold."""

    rows: list[dict[str, Any]]  # as `medtasks judge --ratings` reads them
    figures: list[RaterFigure]
    scores: list[RatedScore]
    incomplete: int  # answers that a clinician rated on some axes only; they do not count


def ratings_of(rows: Iterable[Filled], key: Mapping[str, Any]) -> Ratings:
    """The ratings of forms of the kind `likert`, and how far they agree."""
    rated: Rated = {}
    responses: dict[tuple[str, str, str], str] = {}
    for row in rows:
        about = row.about
        unit = (about["task"], about["run"], about["document"])
        responses[unit] = about["response"]
        rated.setdefault(unit, {}).setdefault(row.form, {})[about["axis"]] = float(row.answers["rating"])
    whole: Rated = {
        unit: {rater: axes for rater, axes in by.items() if len(axes) == len(key["tasks"][unit[0]]["axes"])}
        for unit, by in rated.items()
    }
    lines = [
        {
            "task": unit[0],
            "document": unit[2],
            "rater": rater,
            "axis": axis,
            "score": int(score),
            "run": unit[1],
            "response": responses[unit],
        }
        for unit, by in whole.items()
        for rater, axes in by.items()
        for axis, score in axes.items()
    ]
    figures: list[RaterFigure] = []
    scores: list[RatedScore] = []
    for task, about in key["tasks"].items():
        here = {unit[1:]: by for unit, by in whole.items() if unit[0] == task and by}
        for axis in (*about["axes"], COMPOSITE) if here else ():
            by_rater = _by_rater(here, axis)
            figures += _agreement(task, axis, by_rater, about["scale"])
            scores += _means(task, axis, by_rater)
    left = sum(len(by) for by in rated.values()) - sum(len(by) for by in whole.values())
    return Ratings(lines, figures, scores, left)


def _by_rater(
    here: Mapping[tuple[str, str], Mapping[str, Mapping[str, float]]], axis: str
) -> dict[str, dict[str, float]]:
    """Rater -> answer -> rating on an axis, or the mean of all axes."""
    by_rater: dict[str, dict[str, float]] = {}
    for (run, document), by in here.items():
        for rater, axes in by.items():
            value = float(np.mean(list(axes.values()))) if axis == COMPOSITE else axes[axis]
            by_rater.setdefault(rater, {})[f"{run}\t{document}"] = value
    return by_rater


def _agreement(
    task: str, axis: str, by_rater: Mapping[str, Mapping[str, float]], scale: Sequence[float]
) -> list[RaterFigure]:
    if len(by_rater) < 2:
        return []
    table = rating_table(by_rater)
    estimates: dict[str, Coefficient] = {
        ICC: icc_of_raters(table, task),
        PAIRWISE_ICC: pairwise_baseline(by_rater),
        ALPHA["ordinal"]: krippendorff_alpha(table, "ordinal", task),
        ALPHA["interval"]: krippendorff_alpha(table, "interval", task),
    }
    if axis != COMPOSITE:  # a mean is no value of the scale
        estimates[KAPPA["quadratic"]] = mean_kappa(table, scale, "quadratic", task)
        estimates[KAPPA["linear"]] = mean_kappa(table, scale, "linear", task)
    return [RaterFigure(task, axis, measure, *estimate) for measure, estimate in estimates.items()]


def _means(task: str, axis: str, by_rater: Mapping[str, Mapping[str, float]]) -> list[RatedScore]:
    by_answer: dict[str, list[float]] = {}
    for ratings in by_rater.values():
        for unit, value in ratings.items():
            by_answer.setdefault(unit, []).append(value)
    scores = []
    for run in dict.fromkeys(unit.partition("\t")[0] for unit in by_answer):
        means = [np.mean(values) for unit, values in by_answer.items() if unit.partition("\t")[0] == run]
        sd = float(np.std(means, ddof=1)) if len(means) > 1 else None
        scores.append(RatedScore(task, run, axis, float(np.mean(means)), sd, len(means)))
    return scores


def write_ratings(folder: Path, result: Ratings, read: Ingested, key: Mapping[str, Any]) -> None:
    """`ratings.csv`, `agreement.csv`, `scores.csv`, `results.json`."""
    write_csv(folder / "ratings.csv", result.rows)
    write_csv(folder / "agreement.csv", [asdict(item) for item in result.figures])
    write_csv(folder / "scores.csv", [asdict(item) for item in result.scores])
    write_json(
        folder / "results.json",
        {
            "evaluation": "clinicians' ratings on the axes of a jury, blinded",
            **origin(read, key),
            "runs": key["runs"],
            "tasks": key["tasks"],
            "answers_rated_in_part": result.incomplete,
            "interval_method": f"{METHOD}, over answers; over pairs of clinicians for the pairwise ICC",
            "resamples": RESAMPLES,
            "agreement": [asdict(item) for item in result.figures],
            "scores": [asdict(item) for item in result.scores],
        },
    )
