"""A jury, ROUGE-L and BERTScore-F beside clinicians: what MedHELM validates its jury with.

All sources are compared on the same answers. An ICC below 0 counts as 0 everywhere, among clinicians as
between clinicians and a jury or a metric: it has no lower bound, so one pair with two answers could outweigh
all others.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from medtasks_ext.judge.report import ALL, COMPOSITE, Figure
from medtasks_ext.metrics.open_ended import bertscore_f_values, rouge_scores
from medtasks_ext.stats import agreement
from medtasks_ext.stats.agreement import icc_of_groups, krippendorff_alpha, rank_correlation, rating_table
from medtasks_ext.stats.intervals import of_shares

if TYPE_CHECKING:
    from medtasks_ext.judge.cases import JudgedTask
    from medtasks_ext.judge.scores import DocumentScore
    from medtasks_ext.stats.agreement import Coefficient
    from medtasks_ext.stats.statistic import Array
    from medtasks_lab.judge.ratings import Ratings

PEOPLE, JURY, ROUGE, BERTSCORE = "clinicians", "jury", "ROUGE-L", "BERTScore-F"
ICC, PAIRWISE_ICC, SPEARMAN = "ICC(3,k)", "mean pairwise ICC(3,k)", "Spearman"
RAW, RESAMPLED, ALPHA = "not clamped", "bootstrap interval", "alpha, interval"
NEARER, MUCH_NEARER = "nearer to clinicians", "much nearer to clinicians"
#: "Much" is by more than this, in standard deviations; the paper does not say what it takes for substantial.
MUCH = 0.5
#: Levels of an answer's quality: the clinicians' mean on 0-1; moderate is 3 to 4 on a scale of 1 to 5
#: (MedHELM, Results, "Performance advantages").
LEVELS: Mapping[str, Callable[[float], bool]] = {
    "all": lambda rating: True,
    "low": lambda rating: rating < 0.5,
    "moderate": lambda rating: 0.5 <= rating <= 0.75,
    "high": lambda rating: rating > 0.75,
}

#: (run, task, document)
_Unit = tuple[str, str, str]
#: rater -> unit -> mean of the axes, or a metric's value
_Composites = Mapping[str, Mapping[str, float]]
#: run -> its judged tasks with the scores of their answers
Scored = Mapping[str, Sequence[tuple["JudgedTask", Sequence["DocumentScore"]]]]


class _Compared(NamedTuple):
    """What is said of the same answers, by whom."""

    people: _Composites
    others: Mapping[str, _Composites]  # jury or metric -> its raters
    quality: Mapping[str, float]  # answer -> the clinicians' mean rating on 0-1


def clinician_figures(runs: Scored, ratings: Ratings) -> list[Figure]:
    """Agreement with clinicians, per task and over all tasks, and by answer quality (MedHELM, Extended Data
    Table 4, and Results).

    Composites are z-scored per rater: clinician, judge or metric. ICC(3,k) with k = 2 compares the
    clinicians' mean with the jury's mean or the metric.
    """
    tasks = list(dict.fromkeys(task for _, task, _ in ratings))
    scopes = [(name, {name}) for name in tasks]
    if len(tasks) > 1:
        scopes.append((ALL, set(tasks)))
    figures: list[Figure] = []
    for name, members in scopes:
        compared = _compared(runs, ratings, members)
        figures += _agreement(name, compared)
        figures += _by_quality(name, compared)
    return figures


def _compared(runs: Scored, ratings: Ratings, members: set[str]) -> _Compared:
    """The answers that clinicians rated, the jury judged, and each metric could be computed of."""
    judged: dict[_Unit, DocumentScore] = {}
    tasks: dict[str, JudgedTask] = {}
    for run, scored in runs.items():
        for task, scores in scored:
            if task.name in members:
                tasks[task.name] = task
                for item in scores:
                    unit = (run, task.name, item.case.document)
                    if unit in ratings and item.ratings():
                        judged[unit] = item
    metrics = _metrics(judged)
    shared = set(judged).intersection(*(set(values) for values in metrics.values()))
    people = agreement.composites((_key(unit), ratings[unit]) for unit in sorted(shared))
    jury = agreement.composites((_key(unit), judged[unit].ratings()) for unit in sorted(shared))
    quality = {
        _key(unit): float(
            np.mean(
                [
                    tasks[unit[1]].rubric.protocol.normalised(rating)
                    for axes in ratings[unit].values()
                    for rating in axes.values()
                ]
            )
        )
        for unit in shared
    }
    others: dict[str, _Composites] = {JURY: jury}
    for name, values in metrics.items():
        others[name] = {name: {_key(unit): values[unit] for unit in shared}}
    return _Compared(people, others, quality)


def _key(unit: _Unit) -> str:
    return " ".join(unit)


def _metrics(judged: Mapping[_Unit, DocumentScore]) -> dict[str, dict[_Unit, float]]:
    """Metric -> answer -> value, over the answers that have a reference; no metric where none has."""
    texts = {
        unit: (item.case.texts["response"], item.case.texts["gold"])
        for unit, item in judged.items()
        if "gold" in item.case.texts
    }
    if not texts:
        return {}
    by_metric = {ROUGE: {unit: rouge_scores(*pair)["rouge_l"] for unit, pair in texts.items()}}
    if has_bertscore():
        values = bertscore_f_values(list(texts.values()))
        by_metric[BERTSCORE] = dict(zip(texts, values, strict=True))
    return by_metric


def has_bertscore() -> bool:
    """Whether BERTScore is switched on; it loads a model."""
    return bool(os.environ.get("MEDTASKS_BERTSCORE"))


# ---------------------------------------------------------------------- agreement


def _agreement(name: str, compared: _Compared) -> list[Figure]:
    figures = []
    tables = {PEOPLE: rating_table(compared.people)}
    for source, composites in compared.others.items():
        between = f"{PEOPLE} + {source}"
        both = agreement.group_agreement(compared.people, composites)
        tables[source] = rating_table(composites)
        again = icc_of_groups([tables[PEOPLE], tables[source]], name) if len(tables[PEOPLE]) else both
        figures += [
            _figure(name, between, ICC, agreement.at_least_zero(both)),
            _figure(name, between, f"{ICC}, {RAW}", both),
            _figure(name, between, f"{ICC}, {RESAMPLED}", agreement.at_least_zero(again)),
        ]
    if len(tables[PEOPLE]):  # the clinicians' mean and the jury's, on the rating scale itself
        means = np.column_stack([np.nanmean(tables[source], axis=1) for source in (PEOPLE, JURY)])
        alpha = krippendorff_alpha(means, "interval", name)
        figures.append(_figure(name, f"{PEOPLE} + {JURY}", ALPHA, alpha))
    clamped, raw = (agreement.pairwise_baseline(compared.people, clamp=clamp) for clamp in (True, False))
    figures.append(_figure(name, PEOPLE, PAIRWISE_ICC, clamped))
    figures.append(_figure(name, PEOPLE, f"{PAIRWISE_ICC}, {RAW}", raw))
    return figures


def _figure(task: str, between: str, measure: str, value: Coefficient) -> Figure:
    return Figure("clinicians", task, between, COMPOSITE, measure, *value)


# ---------------------------------------------------------------------- by answer quality


def _by_quality(name: str, compared: _Compared) -> list[Figure]:
    """Whether the jury or a metric is nearer to the clinicians, and how each goes with them, by quality.

    Means are z-scored anew over the answers, so that a mean of several raters, which varies less, is not
    nearer for that alone.
    """
    means = {
        source: agreement.mean_by_instance(agreement.z_by_rater(composites))
        for source, composites in {PEOPLE: compared.people, **compared.others}.items()
    }
    means = {source: by_answer for source, by_answer in means.items() if by_answer}  # who varies at all
    answers = sorted(set.intersection(*map(set, means.values()))) if means else []
    z = {
        source: scores
        for source, by_answer in means.items()
        if (scores := agreement.z_scores([by_answer[answer] for answer in answers])) is not None
    }
    people = z.pop(PEOPLE, None)
    if people is None:
        return []
    figures: list[Figure] = []
    for level, holds in LEVELS.items():
        here = np.array([holds(compared.quality[answer]) for answer in answers])
        if not here.any():
            continue
        far = {source: np.abs(other - people)[here] for source, other in z.items()}
        for source, other in z.items():
            rho = rank_correlation(other[here], people[here])
            low, high = (rho.interval.low, rho.interval.high) if rho and rho.interval else (None, None)
            value = rho.value if rho else None
            figures.append(
                Figure("quality", name, source, level, SPEARMAN, value, low, high, int(here.sum()))
            )
        for metric in (source for source in far if source != JURY and JURY in far):
            for near, away in ((JURY, metric), (metric, JURY)):
                for measure, margin in ((NEARER, 0.0), (MUCH_NEARER, MUCH)):
                    hits = far[away] - far[near] > margin
                    figures.append(_share(name, duel(near, away), level, measure, hits))
    return figures


def duel(near: str, away: str) -> str:
    """How figures name the question whether one source is nearer to clinicians than another."""
    return f"{near} rather than {away}"


def _share(name: str, between: str, level: str, measure: str, hits: Array) -> Figure:
    interval = of_shares(hits)
    low, high = (interval.low, interval.high) if interval else (None, None)
    return Figure("quality", name, between, level, measure, float(hits.mean()), low, high, len(hits))
