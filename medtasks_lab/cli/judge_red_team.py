"""`medtasks judge --red-team`: bundled attacks on the judges of a jury."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from medtasks_ext.cli.judging import ask_all, money_words, number, print_estimates
from medtasks_ext.cli.tables import figure, show, texts
from medtasks_ext.cli.words import say
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import write_json
from medtasks_ext.registry import registry

if TYPE_CHECKING:
    from medtasks_ext.egress import Egress
    from medtasks_ext.judge.jury import Jury
    from medtasks_ext.judge.planner import JuryPlanner
    from medtasks_ext.judge.store import JudgementStore
    from medtasks_ext.prompts.official.choice import Wish
    from medtasks_lab.judge.red_team import AttackPanel, Resistance

DONE, INCOMPLETE, INTERRUPTED = 0, 1, 130


def attack_judges(
    folders: Sequence[str], jury: Jury, egress: Egress, wish: Wish, *, max_cost: float | None, dry_run: bool
) -> int:
    """Ask the judges about attacked answers and controls, and print how many attacks succeed.

    Args:
        folders: one, of a run or of nothing yet; what judges say is kept below it.
        max_cost: USD that all calls on this folder may cost.

    Raises:
        MedtasksError: several folders; a judge that cannot work; the disk takes nothing.
    """
    from medtasks_ext.judge.jury import check_keys
    from medtasks_ext.judge.store import JudgementStore
    from medtasks_ext.runs.seal import RunLease
    from medtasks_lab.judge.red_team import ALL, FOLDER, panels, records, resistance

    if len(folders) != 1:
        raise MedtasksError(
            "attacks are kept in one folder", where="--red-team", remedy="name one RUN; any of them serves"
        )
    folder = Path(folders[0]) / FOLDER
    asked = panels(jury, registry(), wish)
    _say_words(asked)
    store = JudgementStore(folder)
    if dry_run:
        store.open(write=False)
        return _estimate(asked, store, jury, egress, max_cost)
    check_keys(jury.models)
    with RunLease(folder.parent, "medtasks judge --red-team", "judged"):
        store.open()
        with closing(store):
            code = _ask(asked, store, jury, egress, max_cost)
            found = [item for panel in asked for item in resistance(panel, store)]
        write_json(folder / "red_team.json", records(found))
    _print(found, _agreement(Path(folders[0]), jury))
    say(f"results: {folder / 'red_team.json'}, {folder / 'judgements'}")
    wanted = {name: len(panel.pairs) for panel in asked for name in panel.jury.names}
    if code == DONE and any(item.n < wanted[item.judge] for item in found if item.aim == ALL):
        code = INCOMPLETE
    if code == INCOMPLETE:
        say("replies are missing; the same command asks for them again")
    return code


def _say_words(asked: Sequence[AttackPanel]) -> None:
    for task in (task for panel in asked for task in panel.tasks):
        whose = "the suite's own" if task.rubric.words else "our"
        say(f"{task.name}: asked in {whose} words")


def _engines(
    asked: Sequence[AttackPanel], store: JudgementStore, jury: Jury, egress: Egress, max_cost: float | None
) -> list[JuryPlanner]:
    """One for each panel. A reply without a verdict is a result, and not asked for again."""
    from medtasks_ext.judge.asks import RunToJudge
    from medtasks_ext.judge.budget import budget_of
    from medtasks_ext.judge.planner import JuryPlanner

    budget = budget_of(max_cost, jury, [store])
    return [
        JuryPlanner(
            panel.jury,
            [RunToJudge(panel.tasks, store)],
            budget,
            say=say,
            egress=egress,
            final=store.unreadable,
        )
        for panel in asked
    ]


def _estimate(
    asked: Sequence[AttackPanel], store: JudgementStore, jury: Jury, egress: Egress, max_cost: float | None
) -> int:
    engines = _engines(asked, store, jury, egress, max_cost)
    print_estimates(
        [item for engine in engines for item in engine.estimates(engine.pending())], engines[0].budget
    )
    return DONE


def _ask(
    asked: Sequence[AttackPanel], store: JudgementStore, jury: Jury, egress: Egress, max_cost: float | None
) -> int:
    code = DONE
    for engine in _engines(asked, store, jury, egress, max_cost):
        if not (pending := engine.pending()):
            continue
        engine.check(pending)
        outcome = ask_all(engine, pending)
        for name, reason in outcome.stopped.items():
            say(f"✗ judge {name}: {reason}")
        if outcome.out_of_money:
            say("✗ --max-cost is reached; a higher one continues")
        if outcome.interrupted:
            say("medtasks: interrupted; the same command continues")
            return INTERRUPTED
        if outcome.stopped or outcome.out_of_money:
            code = INCOMPLETE
        if words := money_words(engine.budget):
            say(f"spent on these attacks: {words}")
    return code


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
