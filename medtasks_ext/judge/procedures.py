"""The few functions that protocols name: who is asked what, and how ratings become a score.

A procedure is called again after each round with what has been judged so far, and returns all
requests that a response needs. A protocol whose second round depends on the first (an adjudicator
where two assessors differ) returns more of them then; one that shows two responses in both orders
returns requests with other texts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from math import lcm
from typing import NamedTuple

N_ASSESSORS = 2


class Subject(NamedTuple):
    texts: Mapping[str, str]  # name -> text
    weights: Mapping[str, float]  # what each axis or scoring point weighs
    #: scoring point -> the texts shown to a judge that is asked about it alone; none where axes are rated
    points: Mapping[str, Mapping[str, str]] = {}


class Panel(NamedTuple):
    judges: Sequence[str]  # names, in the order of the jury file
    adjudicator: str  # who decides where assessors differ
    #: difference of two assessments, on the rating scale, above which they do
    dispute_above: Fraction = Fraction(0)
    points_one_by_one: bool = False  # the adjudicator gets a request for each scoring point


class JudgeRequest(NamedTuple):
    """One judge is shown some texts (name -> text), and asked about one scoring point or about everything."""

    judge: str
    texts: Mapping[str, str]
    point: str | None = None


class Judged(NamedTuple):
    """A request that was answered: axis or point -> rating as a number."""

    request: JudgeRequest
    ratings: Mapping[str, float]


def weighted_mean(ratings: Mapping[str, float], weights: Mapping[str, float]) -> Fraction:
    """Mean of one judge's ratings; axes weigh the same. Exact in the decimal digits of the weights:
    a difference of a quarter is a quarter, which it need not be in floating point.

    A negative weight is a penalty: it is taken off, and the whole is what the positive weights add up to, so
    that the least is below 0 (HealthBench, `healthbench_eval.py`).
    """
    shares = {axis: _exact(weights[axis]) for axis in ratings}
    values = {axis: value.as_integer_ratio() for axis, value in ratings.items()}
    # whole numbers over one denominator: adding fractions one by one takes many times as long
    unit = lcm(*(part for _, part in shares.values()))
    step = lcm(*(part for _, part in values.values()))
    whole = {axis: share * (unit // part) for axis, (share, part) in shares.items()}
    reached = sum(whole[axis] * value * (step // part) for axis, (value, part) in values.items())
    return Fraction(reached, step * sum(share for share in whole.values() if share > 0))


@lru_cache(maxsize=1024)
def _exact(weight: float) -> tuple[int, int]:
    return Fraction(str(weight)).as_integer_ratio()


def ratings_by_judge(subject: Subject, done: Sequence[Judged]) -> dict[str, dict[str, float]]:
    """Judge -> axis or point -> rating, of the judges that have rated all of them."""
    by_judge: dict[str, dict[str, float]] = {}
    for item in done:
        by_judge.setdefault(item.request.judge, {}).update(item.ratings)
    return {judge: ratings for judge, ratings in by_judge.items() if ratings.keys() == subject.weights.keys()}


def every_judge_once(subject: Subject, panel: Panel, done: Sequence[Judged]) -> list[JudgeRequest]:
    """All judges see the same texts, once."""
    return [JudgeRequest(judge, subject.texts) for judge in panel.judges]


def every_judge_each_point(subject: Subject, panel: Panel, done: Sequence[Judged]) -> list[JudgeRequest]:
    return [
        JudgeRequest(judge, texts, point) for judge in panel.judges for point, texts in subject.points.items()
    ]


def mean_of_ratings(subject: Subject, panel: Panel, done: Sequence[Judged]) -> float | None:
    """Mean of judges x axes (MedHELM, Methods: the mean of all nine ratings), on the rating scale.

    A judge counts who has rated all of them.
    """
    means = [weighted_mean(item, subject.weights) for item in ratings_by_judge(subject, done).values()]
    return float(sum(means) / len(means)) if means else None


def assessors_then_adjudicator(subject: Subject, panel: Panel, done: Sequence[Judged]) -> list[JudgeRequest]:
    """MLB, Section 3.6.2."""
    asked = [JudgeRequest(judge, subject.texts) for judge in panel.judges[:N_ASSESSORS]]
    return [*asked, *adjudication(subject, panel)] if is_disputed(subject, panel, done) else asked


def adjudication(subject: Subject, panel: Panel) -> list[JudgeRequest]:
    if panel.points_one_by_one and subject.points:
        return [JudgeRequest(panel.adjudicator, texts, point) for point, texts in subject.points.items()]
    return [JudgeRequest(panel.adjudicator, subject.texts)]


def is_disputed(subject: Subject, panel: Panel, done: Sequence[Judged]) -> bool | None:
    """By more than the threshold; None while an assessment is missing."""
    given = _assessments(subject, panel, done)
    return None if len(given) < N_ASSESSORS else abs(given[0] - given[1]) > panel.dispute_above


def agreed_or_adjudicated(subject: Subject, panel: Panel, done: Sequence[Judged]) -> float | None:
    """Mean of the two assessments, or the adjudicator's where they differ; None while that is missing.

    MLB does not say what becomes of two assessments that agree; the mean is this project's choice.
    """
    disputed = is_disputed(subject, panel, done)
    if disputed is None:
        return None
    if disputed:
        final = ratings_by_judge(subject, done).get(panel.adjudicator)
        return float(weighted_mean(final, subject.weights)) if final else None
    return float(sum(_assessments(subject, panel, done)) / N_ASSESSORS)


def _assessments(subject: Subject, panel: Panel, done: Sequence[Judged]) -> list[Fraction]:
    assessors = panel.judges[:N_ASSESSORS]
    return [weighted_mean(item.ratings, subject.weights) for item in done if item.request.judge in assessors]


PROCEDURES: dict[str, Callable[[Subject, Panel, Sequence[Judged]], list[JudgeRequest]]] = {
    "every_judge_once": every_judge_once,
    "every_judge_each_point": every_judge_each_point,
    "assessors_then_adjudicator": assessors_then_adjudicator,
}
AGGREGATIONS: dict[str, Callable[[Subject, Panel, Sequence[Judged]], float | None]] = {
    "mean_of_ratings": mean_of_ratings,
    "agreed_or_adjudicated": agreed_or_adjudicated,
}
