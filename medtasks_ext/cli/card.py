"""`medtasks card`: what the author of a model publishes, and what leaderboards take."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from medtasks_ext.atomic import is_private, private_files, write_text
from medtasks_ext.cli.arguments import out_folder
from medtasks_ext.cli.commands import out_option
from medtasks_ext.cli.words import counted, say, say_next
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import write_json
from medtasks_ext.registry import registry
from medtasks_ext.registry.columns import references
from medtasks_ext.registry.suites import function
from medtasks_ext.report.card import (
    DETAILS,
    complete_tasks,
    eval_results,
    every_eval_ever,
    manifest,
    model_index,
    push,
)
from medtasks_ext.report.card.section import card_details, card_section, card_standings, drawn, picture_name
from medtasks_ext.report.pictures import is_possible
from medtasks_ext.report.submissions import levels_words
from medtasks_ext.report.submissions.make import submit
from medtasks_ext.results.experiments import Entry
from medtasks_ext.results.reading import read_results
from medtasks_ext.runs.folder import refuse_changed
from medtasks_ext.version import install_words


def card(
    folders: Annotated[
        list[str], Argument(metavar="RUN...", help="Runs of one model; or what lm_eval wrote.")
    ],
    out: Annotated[str, out_option("Folder to write to.")],
    parts: Annotated[
        bool,
        Option(
            "--parts",
            help="Keep scores over a part of the rows or judgements, and with --layout bridge tasks with "
            "other prompts; what is written says so.",
        ),
    ] = False,
    to_hub: Annotated[
        str | None,
        Option(
            "--push",
            metavar="ORG/MODEL",
            help="Open a pull request with the card on this model of the hub; else nothing is sent.",
        ),
    ] = None,
    layout: Annotated[
        str | None,
        Option(
            metavar="NAME",
            help="In place of the card, what a leaderboard takes: bridge, or medtasks, a submission.",
        ),
    ] = None,
) -> int:
    """Write the evaluation section of a model card.

    README.md is a section for the model card, of one screen, with its front matter; medical-evaluation.md
    has all details. Beside them: .eval_results for the hub (and eval.yaml, for
    owners of datasets there), a record of Every Eval Ever with answers to open data, at its path, and a
    manifest to repeat the run. --push opens a pull request on the hub with section, details and results; the
    rest of the card there stays.

    With --layout bridge: the folder that BRIDGE's leaderboard takes. What it does not take is left out
    and named: rebuilt or synthetic rows, a part of the rows, other prompts, other numbers of examples,
    sampled answers. With --layout medtasks: a submission to the leaderboard of medtasks, of scores,
    conditions, and final answers to open data with the ids of their rows; no other text, no other id.

    Example: medtasks card runs/MODEL -o card

    Example: medtasks card runs/MODEL -o results/submissions/ORG/MODEL/DATE --layout medtasks
    """
    if layout and to_hub:
        raise MedtasksError("a layout is for a leaderboard", where="--push", remedy="leave --layout out")
    if layout:
        return _write_layout(layout, folders, Path(out), own_words=parts)
    tasks, folder = registry(), out_folder(out)
    results = read_results([Path(name) for name in folders], tasks)
    for fault in results.faults:
        say(str(fault))
    entry = _only(results.entries)
    left_out: dict[str, str] = {}
    if not parts and not entry.sample:
        entry, left_out = complete_tasks(entry)
    for run in entry.folders:
        refuse_changed(run)
    rows, models = ([], {}) if entry.sample else card_standings(entry, tasks)
    pictures = is_possible()
    files = {DETAILS: card_details(entry, tasks, left_out, rows, pictures=pictures)}
    if pictures:
        files |= {picture_name(item): drawn(item, entry.model, models) for item in rows}
    elif rows:
        say(f"without pictures; for these: {install_words('plots')}")
    if entry.sample:
        say("SAMPLE DATA: the section says so; no results that machines read are written")
    else:
        section = card_section(entry, tasks, left_out, rows, pictures=pictures)
        files["README.md"] = f"{model_index(entry, tasks)}\n{section}"
        files |= {**eval_results(entry, tasks), **every_eval_ever(entry, tasks)}
    used = {name: tasks.tasks[name][0] for name in entry.experiments if name in tasks.tasks}
    try:
        files["references.bib"] = references(dict.fromkeys(used.values()))
    except MedtasksError as error:  # of a dataset of one's own; results are no worse for it
        say(f"no references.bib: {error}")
    for name, text in files.items():
        write_text(folder / name, text)
    write_json(folder / "medtasks-manifest.json", manifest(entry))
    for name in (*files, "medtasks-manifest.json"):
        typer.echo(folder / name)
    if to_hub:
        if entry.sample:
            what = "scores on sample rows mean nothing"
            raise MedtasksError(what, where="--push", remedy="run the tasks on their own data")
        address, sent = push(entry, tasks, to_hub, files)
        typer.echo(f"pull request: {address} ({counted(len(sent), 'file')})")
    if not entry.sample and len(folders) == 1:
        say_next(
            f"medtasks card {shlex.quote(folders[0])} --layout medtasks -o results/submissions/ORG/MODEL/DATE"
        )
    return 0


def _only(entries: list[Entry]) -> Entry:
    scored = [item for item in entries if any(task.score is not None for task in item.experiments.values())]
    if not scored:
        raise MedtasksError("no task has a score", remedy="`medtasks rescore RUN`, or `medtasks judge RUN`")
    if len(scored) > 1:
        labels = "; ".join(item.label for item in scored)
        what = f"a card is of one model under one set of settings; here are: {labels}"
        raise MedtasksError(what, remedy="name the runs of one of them")
    return scored[0]


#: The layout of a submission.
_OWN = "medtasks"


def _write_layout(name: str, folders: Sequence[str], out: Path, *, own_words: bool) -> int:
    tasks = registry()
    layouts = {suite: item.leaderboard for suite, item in tasks.suites.items() if item.leaderboard}
    if name not in (_OWN, *layouts):
        what, remedy = f"no leaderboard layout {name!r}", f"use: {', '.join((_OWN, *layouts))}"
        raise MedtasksError(what, where="--layout", remedy=remedy)
    if len(folders) > 1:
        raise MedtasksError("one run goes to one folder", where=f"--layout {name}", remedy="name one run")
    (folder,) = folders
    if name == _OWN:
        made, notes = submit(Path(folder), out, tasks)
        for note in notes:
            say(note)
        what = f"{counted(len(made.verdicts), 'task')}; no text, no ids, but in answers to open data"
        typer.echo(f"{out}: {what}\ntrust: {levels_words(made.verdicts.values())}")
        say_next("read submission.json, commit the folder, open a pull request (docs/compare.md)")
        return 0
    export = function(tasks.suites[name], layouts[name])
    with private_files(is_private(Path(folder))):  # rows hold answers
        written, refused = export(Path(folder), out, tasks, tasks.suites[name], own_words=own_words)
    for item in written:
        typer.echo(f"{item.path}: {item.n} rows{item.notes and f'  ({item.notes})'}")
    for error in refused:
        typer.echo(f"left out: {error}", err=True)
    if written:
        say_next(f"medtasks card {shlex.quote(folder)} -o card")
    return 1 if refused else 0
