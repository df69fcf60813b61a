"""`medtasks judge --red-team`: bundled attacks on the judges of a jury."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks_ext.cli.words import say
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry
from medtasks_lab.cli.jury_study import Asking, JuryStudy, run_study

if TYPE_CHECKING:
    from medtasks_ext.egress import Egress
    from medtasks_ext.judge.jury import Jury
    from medtasks_ext.prompts.official.choice import PromptSource


def attack_judges(
    folders: Sequence[str],
    jury: Jury,
    egress: Egress,
    prompts: PromptSource,
    *,
    max_cost: float | None,
    dry_run: bool,
) -> int:
    """Ask the judges about attacked answers and controls, and print how many attacks succeed.

    Args:
        folders: one, of a run or of nothing yet; what judges say is kept below it.
        max_cost: USD that all calls on this folder may cost.

    Raises:
        MedtasksError: several folders; a judge that cannot work; the disk takes nothing.
    """
    from medtasks_lab.judge.red_team import FOLDER, STUDY, panels

    if len(folders) != 1:
        raise MedtasksError(
            "attacks are kept in one folder", where="--red-team", remedy="name one RUN; any of them serves"
        )
    run = Path(folders[0])
    attacked = panels(jury, registry(), prompts)
    for task in (task for panel in attacked for task in panel.tasks):
        whose = "the suite's own" if task.rubric.words else "our"
        say(f"{task.name}: asked in {whose} words")
    study = JuryStudy.of(
        STUDY,
        "medtasks judge --red-team",
        [(panel.jury, panel.tasks) for panel in attacked],
        attacked,
        _agreement(run, jury),
        missing=lambda found: found.missing,
        final=True,
    )
    asking = Asking(jury, max_cost=max_cost, dry_run=dry_run, allow_host=sorted(egress.allowed))
    return run_study(study, asking, run / FOLDER)


def _agreement(folder: Path, jury: Jury) -> dict[str, float]:
    """Judge -> mean kappa, with quadratic weights, with the other judges of the run; nothing without one."""
    from medtasks_ext.judge.report import POOLED, read_figures

    pairs = [
        item
        for item in read_figures(folder)
        if (item.table, item.item, item.measure) == ("judges", POOLED, "quadratic kappa")
    ]
    by_judge = {}
    for judge in jury.models:
        own = [x.value for x in pairs if judge.name in x.between.split(" + ") and x.value is not None]
        if own:
            by_judge[judge.name] = sum(own) / len(own)
    return by_judge
