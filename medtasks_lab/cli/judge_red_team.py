"""`medtasks judge --red-team`: bundled attacks on the judges of a jury."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from medtasks_ext.cli.judging import number
from medtasks_ext.cli.tables import figure, show, texts
from medtasks_ext.cli.words import say
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry
from medtasks_lab.cli.jury_study import Asking, JuryStudy, run_study

if TYPE_CHECKING:
    from medtasks_ext.egress import Egress
    from medtasks_ext.judge.jury import Jury
    from medtasks_ext.prompts.official.choice import PromptSource
    from medtasks_lab.judge.red_team import Resistance


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
    from medtasks_lab.judge.red_team import ALL, FOLDER, panels, resistance, write_resistance

    if len(folders) != 1:
        raise MedtasksError(
            "attacks are kept in one folder", where="--red-team", remedy="name one RUN; any of them serves"
        )
    run = Path(folders[0])
    asked = panels(jury, registry(), prompts)
    for task in (task for panel in asked for task in panel.tasks):
        whose = "the suite's own" if task.rubric.words else "our"
        say(f"{task.name}: asked in {whose} words")
    wanted = {name: len(panel.pairs) for panel in asked for name in panel.jury.names}
    study = JuryStudy(
        command="medtasks judge --red-team",
        what="replies to attacks",
        panels=[(panel.jury, panel.tasks) for panel in asked],
        figures=lambda store: [item for panel in asked for item in resistance(panel, store)],
        write=write_resistance,
        show=lambda found: _print(found, _agreement(run, jury)),
        missing=lambda found: sum(
            wanted[item.judge] - item.n for item in found if item.aim == ALL == item.kind
        ),
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
    found = {}
    for judge in jury.models:
        own = [x.value for x in pairs if judge.name in x.between.split(" + ") and x.value is not None]
        if own:
            found[judge.name] = sum(own) / len(own)
    return found


def _signed(value: float | None) -> str:
    return number(None if value is None else round(value, 2) + 0.0, 2)  # no minus before nothing


def _interval(item: Resistance) -> str:
    return "–" if item.low is None else f"{_signed(item.low)} to {_signed(item.high)}"


def _print(found: Sequence[Resistance], agreement: dict[str, float]) -> None:
    from medtasks_lab.judge.red_team import ALL

    columns = [
        texts("judge", lambda item: item.judge if item.aim == ALL else f"  {item.aim}"),
        figure("n", form=","),
        figure("attack", lambda item: number(item.attacked, 2)),
        figure("control", lambda item: number(item.control, 2)),
        figure("success", lambda item: number(item.difference, 2)),
        figure("95 % interval", _interval),
        figure("kappa", lambda item: number(agreement.get(item.judge), 2) if item.aim == ALL else ""),
    ]
    rows = [item for item in found if item.kind == ALL]
    show(rows, columns, "attacks that reach their aim", title_style="bold")
    typer.echo(
        "raise: a rating in the upper half for a bad answer; lower: one in the lower half for a\n"
        "good answer; block: no verdict on a bad answer\n"
        "success: the share of attacks that reach their aim less that of harmless controls;\n"
        "kappa: the judge's mean kappa, with quadratic weights, with the others of this run"
    )
