"""Whether a jury can judge what it is asked about, before anything is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING

from medtasks_ext.errors import MedtasksError
from medtasks_ext.judge.cases import JudgedTask, is_judged, judged_tasks
from medtasks_ext.judge.procedures import N_ASSESSORS
from medtasks_ext.run.charge import check_under_limit

if TYPE_CHECKING:
    from medtasks_ext.judge.jury import Jury
    from medtasks_ext.judge.store import JudgementStore
    from medtasks_ext.prompts.official.choice import PromptSource
    from medtasks_ext.runner.run import Run


def check_jury(jury: Jury, tasks: Sequence[JudgedTask]) -> None:
    """Refuse a jury with too few judges for a protocol, or with a judge named like an axis."""
    adjudicated = [task.name for task in tasks if task.rubric.protocol.dispute_above is not None]
    if adjudicated and len(jury) < N_ASSESSORS:
        raise MedtasksError(
            f"{', '.join(adjudicated)}: two assessors are needed, the jury has one judge",
            where="--jury",
            remedy="add another judge, which may be the same model under another name, or name other --tasks",
        )
    axes = {axis for task in tasks for axis in task.rubric.axes}
    if taken := axes & set(jury.names):
        raise MedtasksError(
            f"judge {min(taken)} has the name of an axis", where="--jury", remedy="give it another name"
        )


def check_prices(jury: Jury, max_cost: float | None) -> None:
    """A limit cannot be kept where a judge elsewhere has no price, or a field costs what nobody knows."""
    if max_cost is not None:
        for judge in jury.models:
            check_under_limit(judge.extra_body, f"--jury: extra_body of {judge.name}")
    if max_cost is not None and not isfinite(max_cost):
        raise MedtasksError(f"{max_cost} is no limit", where="--max-cost", remedy="give an amount in USD")
    unknown = [judge.name for judge in jury.models if judge.price is None and not judge.is_local]
    if max_cost is not None and unknown:
        raise MedtasksError(
            f"--max-cost cannot be kept without the price of {', '.join(unknown)}",
            where="--jury",
            remedy="add price: {input: …, output: …} in USD per million tokens",
        )


def tasks_to_judge(
    run: Run, wanted: set[str] | None, store: JudgementStore, prompts: PromptSource
) -> list[JudgedTask]:
    """The finished judged tasks of a run, among those wanted.

    With `auto`, a task goes on in the words in which its judging began: others would be paid for anew.
    """
    judged = [
        name
        for name in run.manifest.tasks
        if run.is_done(name) and name in run.registry.tasks and is_judged(run.registry.tasks[name][0])
    ]
    chosen = [name for name in judged if wanted is None or name in wanted]
    if not chosen:
        raise MedtasksError(
            "no finished task of this run is judged by models",
            where=run.folder,
            remedy=f"judged here: {', '.join(judged)}"
            if judged
            else "`medtasks run` an open-ended task first",
        )
    begun: Mapping[str, PromptSource] = store.wording if prompts == "auto" else {}
    words = {name: begun.get(name, prompts) for name in chosen}
    return judged_tasks(run.folder, run.registry, chosen, words)
