"""Sentences of the papers as queries on their published data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from medtasks_ext.report.groups import Group, groups_of
from medtasks_ext.results.published import published

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry, Suite
    from medtasks_lab.atlas.models import PaperModel
    from medtasks_lab.atlas.spec import Claim


def claimed(claim: Claim, models: Sequence[PaperModel], tasks: Registry, suite: Suite) -> float | str | None:
    """What the data say; None where they say nothing.

    Args:
        claim: the sentence.
        models: of the paper.
        suite: of the paper.
    """
    chosen = [model for model in models if model.has(claim.only)]
    group = next(
        (
            item
            for item in groups_of(tasks)
            if (item.suite, item.axis, item.value) == (suite.id, claim.axis, claim.value or suite.id)
        ),
        None,
    )
    return _QUERIES[claim.query](claim, chosen, group, tasks)


def _better(claim: Claim, models: Sequence[PaperModel], group: Group | None, tasks: Registry) -> float | None:
    """Models whose score with one strategy is above that with another, by more than some percent."""
    if group is None:
        return None
    pairs = [(model.score(group, claim.strategy), model.score(group, claim.than)) for model in models]
    return float(
        sum(
            one is not None and other is not None and one > other * (1 + claim.by_percent / 100)
            for one, other in pairs
        )
    )


def _best(claim: Claim, models: Sequence[PaperModel], group: Group | None, tasks: Registry) -> str | None:
    """The model with the highest score in a group."""
    if group is None:
        return None
    scores = {
        model.name: score for model in models if (score := model.score(group, claim.strategy)) is not None
    }
    return max(scores, key=scores.__getitem__)


def _score(claim: Claim, models: Sequence[PaperModel], group: Group | None, tasks: Registry) -> float | None:
    """The score of one model in a group, in percent."""
    score = next(
        (model.score(group, claim.strategy) for model in models if group and model.name == claim.model), None
    )
    return None if score is None else 100 * score


def _above(claim: Claim, models: Sequence[PaperModel], group: Group | None, tasks: Registry) -> float:
    """Rows of a file whose figure is above a level."""
    return float(sum(value > claim.level for value in _column(claim)))


def _easier(claim: Claim, models: Sequence[PaperModel], group: Group | None, tasks: Registry) -> float | None:
    """Models that are better on one task than on another; None where no model has both."""
    one, other = claim.tasks
    scores = [model.scores[claim.strategy] for model in models]
    both = [item for item in scores if one in item and other in item]
    return float(sum(item[one] > item[other] for item in both)) if both else None


def _sum(claim: Claim, models: Sequence[PaperModel], group: Group | None, tasks: Registry) -> float:
    """Sum of a column."""
    return sum(_column(claim))


def _saving(claim: Claim, models: Sequence[PaperModel], group: Group | None, tasks: Registry) -> float:
    """By how many percent the lowest of some figures is below the highest."""
    values = list(_column(claim))
    return 100 * (1 - min(values) / max(values))


def _column(claim: Claim) -> Iterable[float]:
    return [
        float(row[claim.column])
        for row in published(claim.file)
        if row[claim.column] and all(row[name] in value.split("|") for name, value in claim.where.items())
    ]


_QUERIES: Mapping[
    str, Callable[[Claim, Sequence[PaperModel], Group | None, Registry], float | str | None]
] = {
    "better": _better,
    "best": _best,
    "score": _score,
    "above": _above,
    "easier": _easier,
    "sum": _sum,
    "saving": _saving,
}
