"""`medtasks view`: every answer of any runs, in a browser or in the terminal."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument

from medtasks_ext.cli.tables import SAMPLE_DATA, short, write, write_heading
from medtasks_ext.cli.words import say, say_next
from medtasks_ext.errors import MedtasksError, near
from medtasks_ext.registry import registry
from medtasks_ext.report.answers.column import Column, columns_of, sources_named, sources_of
from medtasks_ext.report.answers.dataset import DatasetAnswers
from medtasks_ext.results.reading import read_results

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json

#: Characters of a reading, or of a judge's verdict, that are printed.
_MOST = 2000
_STYLES = {"found": "green", "missed": "bold red", "spurious": "bold yellow"}


def view(
    paths: Annotated[
        list[str],
        Argument(
            metavar="RUN... [TASK DOCUMENT]",
            help="Folders of runs, or of lm_eval --output_path --log_samples. With a task, and a document's "
            "key or place from 0: in the terminal.",
        ),
    ],
) -> int:
    """Show the report with every answer in a browser.

    The page of `report`, only on this machine, with all answers: filters, search, two runs side by side,
    clusters of errors and confusion matrices. It is made anew while a run goes on.

    With a task and a document, in the terminal: prompt, response, readings, score.

    Example: medtasks view runs/A runs/B

    Example: medtasks view runs/MODEL bridge_mednli t3
    """
    n = 1
    while n < len(paths) and (Path(paths[n]).exists() or "/" in paths[n]):
        n += 1
    named = paths[n:]
    if not named:
        _serve(paths)
        return 0
    if n > 1 or len(named) != 2:
        what = "one document of one run is shown at a time, in the terminal"
        remedy = "write: medtasks view RUN TASK DOCUMENT; and is each folder of a run there?"
        raise MedtasksError(what, where=" ".join(paths), remedy=remedy)
    run, task = paths[0], named[0]
    column = _column(run, task)
    if column.source.sample:
        write(SAMPLE_DATA, "bold yellow")
    answers = DatasetAnswers([column])
    seen = answers.document(answers.place_of(named[1]), whole=True)
    write(f"{task}, document {seen['key']}", "bold")
    _print_document(seen["target"], seen["responses"][0], column)
    return 0


def _serve(paths: Sequence[str]) -> None:
    from medtasks_ext.report.answers.server import HOST, Viewed, ViewServer

    os.environ["HF_HUB_OFFLINE"] = "1"  # who watches a run downloads nothing
    logging.getLogger("medtasks_ext.metrics").setLevel(logging.ERROR)  # the run named what lacks data
    viewed = Viewed([Path(name) for name in paths], registry())
    for fault in viewed.report().faults:
        say(str(fault))
    with ViewServer(viewed) as server:
        say("open this address, Ctrl-C ends")
        typer.echo(server.url)
        number = server.server_address[1]
        say(f"From another machine: ssh -L {number}:{HOST}:{number} THIS_MACHINE, then the same address")
        with suppress(KeyboardInterrupt):
            server.serve_forever()
    say_next(f"medtasks report {' '.join(paths)} -o report")


def _column(run: str, task: str) -> Column:
    tasks, path = registry(), Path(run)
    results = read_results([path], tasks)
    sources = sources_named(sources_of(results.entries, tasks, [path]), task, tasks)
    of_task = [item for item in sources if item.task == task]
    if not of_task:
        names = [item.task for item in sources]
        what, remedy = f"no answers to {task!r}{near(task, names)}", f"name one of: {', '.join(names)}"
        raise MedtasksError(what, where="TASK", remedy=remedy)
    columns = columns_of(of_task[:1], results.faults)
    for fault in results.faults:
        say(str(fault))
    if not columns:
        raise MedtasksError("its answers cannot be read", where=task, remedy="mend what is named above")
    return columns[0]


def _print_document(target: str, response: Json, column: Column) -> None:
    if response["fault"]:
        write(response["fault"], "red")
        return
    for turn in response["turns"]:
        role = "as text" if turn["role"] == "text" else turn["role"]
        write_heading(f"prompt, {role} ({turn['length']:,} characters)")
        write(turn["text"])
    write_heading("gold answer")
    write(target or "(none: this row is predicted, not scored)", "green")
    trace, said = (
        "".join(part["text"] for part in response["stretches"] if part["trace"] is of) for of in (True, False)
    )
    if trace:
        write_heading("reasoning trace")
        write(trace, "dim")
    write_heading(f"response ({response['length']:,} characters)")
    write(said)
    write_heading("readings")
    for reading in response["readings"]:
        answer, why = reading["answer"], reading["why"]
        write(f"{reading['reader']}: {'unreadable' if answer is None else short(answer, _MOST)}", "bold")
        write(f"  compared with {short(reading['gold'], _MOST)}{f'; {why}' if why else ''}", "dim")
    for kind, style in _STYLES.items() if response["items"] else ():
        if items := response["items"][kind]:
            write(f"{kind}: {'; '.join(' · '.join(item) for item in items)}", style)
    write_heading("score")
    write(_score_line(response, "SAMPLE " if column.source.sample else ""))
    for word in response["judges"]:
        ratings = ", ".join(f"{axis} {rating:g}" for axis, rating in word["ratings"].items())
        point = f", {word['point']}" if word["point"] else ""
        write(f"{word['judge']}{point}: {ratings}", "bold")
        for axis, said in word["verdict"].items():
            write(f"  {axis}: {short(said, _MOST)}", "dim")


def _score_line(response: Json, mark: str) -> str:
    score, cluster, tokens = (response[name] for name in ("score", "cluster", "tokens"))
    parts = [
        "no score of its own" if score is None else f"{mark}score {score:.4g}",
        cluster,
        "" if tokens is None else f"{tokens[1]:,} tokens",
        f"ended: {response['finish']}" if response["finish"] else "",
        *(f"{mark}{name} {value:.4g}" for name, value in response["metrics"].items()),
    ]
    return "; ".join(filter(None, parts))
