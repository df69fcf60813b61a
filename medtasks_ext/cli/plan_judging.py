"""What judging the answers of a plan costs at most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from medtasks_ext.cli.cost_words import JURY_RULE, bound_words
from medtasks_ext.cli.words import counted
from medtasks_ext.judge.cases import is_judged
from medtasks_ext.judge.cost import JuryBound, jury_bound
from medtasks_ext.judge.jury import load_jury

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry
    from medtasks_ext.runner.plan import TaskPlan


@dataclass(frozen=True)
class PlannedJudging:
    """The judged tasks of a plan that one jury judges."""

    jury: str  # by its file or bundled name
    tasks: int
    bound: JuryBound | None  # None where a judge has no price


def judging_of(registry: Registry, plans: Sequence[TaskPlan], jury: str | None) -> list[PlannedJudging]:
    """What judging costs at most, by jury.

    Args:
        plans: tasks of a plan; those that no model judges are left out.
        jury: whose prices count; by default each suite's own, where it names one.

    Raises:
        MedtasksError: there is no such jury.
    """
    by_jury: dict[str, list[TaskPlan]] = {}
    for plan in plans:
        dataset, _ = registry.known(plan.task)
        if is_judged(dataset) and (name := jury or dataset.suite.jury):
            by_jury.setdefault(name, []).append(plan)
    return [PlannedJudging(name, len(some), _bound(name, some)) for name, some in by_jury.items()]


def _bound(name: str, plans: Sequence[TaskPlan]) -> JuryBound | None:
    jury, total = load_jury(name), None
    for plan in plans:
        budget = plan.most_output_tokens // plan.documents
        found = jury_bound(jury, plan.prompt_tokens, plan.documents, budget)
        if found is None:
            return None
        total = found if total is None else total + found
    return total


def judging_words(found: Sequence[PlannedJudging]) -> Iterator[str]:
    """A line for each jury."""
    for item in found:
        of = f"judging {counted(item.tasks, 'task')} by jury {item.jury}"
        if item.bound is None:
            yield f"{of}: no price, a judge has none in the jury file"
        else:
            yield f"{of}: {bound_words(item.bound)}; {JURY_RULE}"
