"""`medtasks view`: every answer of any runs, in a browser or in the terminal."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from medtasks_ext.cli.tables import SAMPLE_DATA, console, figure, texts
from medtasks_ext.cli.tables import show as show_table
from medtasks_ext.cli.words import say, say_next
from medtasks_ext.errors import MedtasksError, near
from medtasks_ext.registry import registry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from medtasks_ext.jsonfile import Json
    from medtasks_ext.report.answers.column import Column
    from medtasks_ext.report.answers.dataset import DatasetAnswers


def view(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN... [TASK [DOCUMENT]]",
            help="Folders of runs, or of lm_eval --output_path --log_samples. With a task, and a document's "
            "key or place from 0: in the terminal.",
        ),
    ],
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port on this machine; 0: any.")] = 0,
    whole: Annotated[bool, typer.Option("--whole", help="With a document: print long texts whole.")] = False,
) -> int:
    """Show the report with every answer in a browser.

    The page of `report`, on this machine alone, with all answers: filters, search, two runs side by side,
    clusters of errors and confusion matrices. It is made anew while a run goes on.

    With a task, in the terminal: its errors, the score if each were mended, and the documents of each; with a
    document: prompt, response, readings, score.

    Example: medtasks view runs/A runs/B

    Example: medtasks view runs/MODEL bridge_mednli t3
    """
    paths, named = _runs_and_names(paths)
    if named:
        if len(paths) > 1 or len(named) > 2:
            raise MedtasksError(
                "one document of one run is shown at a time, in the terminal",
                where=" ".join([*paths, *named]),
                remedy="write: medtasks view RUN TASK DOCUMENT; and is each folder of a run there?",
            )
        show(paths[0], named[0], named[1] if len(named) > 1 else None, whole=whole)
    else:
        _serve(paths, port)
    return 0


def _runs_and_names(words: list[str]) -> tuple[list[str], list[str]]:
    n = 1
    while n < len(words) and (Path(words[n]).exists() or "/" in words[n]):
        n += 1
    return words[:n], words[n:]


def _serve(paths: Sequence[str], port: int) -> None:
    from medtasks_ext.report.answers.server import HOST, Viewed, ViewServer

    os.environ["HF_HUB_OFFLINE"] = "1"  # who watches a run downloads nothing
    logging.getLogger("medtasks_ext.metrics").setLevel(logging.ERROR)  # the run named what lacks data
    viewed = Viewed([Path(name) for name in paths], registry())
    for fault in viewed.report().faults:
        say(str(fault))
    with ViewServer(viewed, port) as server:
        say("open this address, Ctrl-C ends")
        typer.echo(server.url)
        number = server.server_address[1]
        say(f"From another machine: ssh -L {number}:{HOST}:{number} THIS_MACHINE, then the same address")
        with suppress(KeyboardInterrupt):
            server.serve_forever()
    say_next(f"medtasks report {' '.join(paths)} -o report")


#: Documents that are listed where none is named.
_LISTED = 20
_STYLES = {"found": "green", "missed": "bold red", "spurious": "bold yellow"}


def show(run: str, task: str, document: str | None, *, whole: bool) -> None:
    """Print a document of a run, by its key or its place from 0: prompt, response, readings, score.

    Without a document: the errors of the task, the score if each were mended, and the documents of each.
    """
    from medtasks_ext.report.answers.column import columns_of, sources_named, sources_of
    from medtasks_ext.report.answers.dataset import DatasetAnswers
    from medtasks_ext.results.reading import read_results

    tasks, path = registry(), Path(run)
    results = read_results([path], tasks)
    sources = sources_named(sources_of(results.entries, tasks, [path]), task, tasks)
    of_task = [item for item in sources if item.task == task]
    if not of_task:
        names = [item.task for item in sources]
        raise MedtasksError(
            f"no answers to {task!r}{near(task, names)}",
            where="TASK",
            remedy=f"name one of: {', '.join(names)}",
        )
    columns = columns_of(of_task[:1], results.faults)
    for fault in results.faults:
        say(str(fault))
    if not columns:
        raise MedtasksError("its answers cannot be read", where=task, remedy="mend what is named above")
    answers, [column] = DatasetAnswers(columns), columns
    if column.source.sample:
        _say(SAMPLE_DATA, "bold yellow")
    if document is None:
        _print_errors(answers, column)
        say_next(f"medtasks view {run} {task} DOCUMENT", f"medtasks view {run}")
        return
    seen = answers.document(answers.place_of(document), whole=whole)
    _say(f"{task}, document {seen['key']}", "bold")
    _print(seen["target"], seen["responses"][0], column, whole=whole)


# ---------------------------------------------------------------------- the errors of a task


def _print_errors(answers: DatasetAnswers, column: Column) -> None:
    head = answers.head()
    [found] = head["columns"]
    mark = "SAMPLE " if column.source.sample else ""
    said = "no score" if found["score"] is None else f"{mark}score {found['score']:.4f}"
    _say(f"{column.source.task}: {len(column.rows):,} documents, {said}", "bold")
    if not found["errors"]:
        typer.echo("no error was found")
        return
    columns = [
        texts("error", "cluster"),
        figure("documents", form=","),
        figure(f"{mark}score if mended", "mended", ".4f"),
    ]
    show_table(found["errors"], columns)
    for item in head["meaning"]:
        keys = [row.key for row in column.rows if row.cluster and row.cluster.value == item]
        if keys:
            more = f" and {len(keys) - _LISTED:,} more" if len(keys) > _LISTED else ""
            _say(f"{item}: {', '.join(keys[:_LISTED])}{more}")


# ---------------------------------------------------------------------- one document


def _print(target: str, response: Json, column: Column, *, whole: bool) -> None:
    if response["fault"]:
        _say(response["fault"], "red")
        return
    for turn in response["turns"]:
        role = "as text" if turn["role"] == "text" else turn["role"]
        _heading(f"prompt, {role} ({turn['length']:,} characters)")
        _text(Text(turn["text"]))
    _heading("gold answer")
    _say(target or "(none: this row is predicted, not scored)", "green")
    stretches = response["stretches"]
    if trace := [part for part in stretches if part["trace"]]:
        _heading("reasoning trace")
        _text(_response_text(trace, "dim"))
    _heading(f"response ({response['length']:,} characters)")
    _text(_response_text([part for part in stretches if not part["trace"]], ""))
    if not whole and any(part["left_out"] for part in stretches):
        _say("--whole prints all of it", "dim")
    _heading("readings")
    for reading in response["readings"]:
        answer, why = reading["answer"], reading["why"]
        _say(f"{reading['reader']}: {'unreadable' if answer is None else _short(answer)}", "bold")
        _say(f"  compared with {_short(reading['gold'])}{f'; {why}' if why else ''}", "dim")
    if response["items"]:
        _print_items(response)
    _heading("score")
    _say(_score_line(response, column))
    for word in response["judges"]:
        ratings = ", ".join(f"{axis} {rating:g}" for axis, rating in word["ratings"].items())
        point = f", {word['point']}" if word["point"] else ""
        _say(f"{word['judge']}{point}: {ratings}", "bold")
        for axis, said in word["verdict"].items():
            _say(f"  {axis}: {_short(said)}", "dim")


def _print_items(response: Json) -> None:
    if response["pieces"]:
        _heading("in the document: found, missed, spurious")
        marked = Text()
        for piece in response["pieces"]:
            marks = piece["marks"]
            marked.append(_bracketed(piece["text"], marks), style=_STYLES[marks[-1]] if marks else "")
        _text(marked)
    for kind, style in _STYLES.items():
        if items := response["items"][kind]:
            _say(f"{kind}: {'; '.join(' · '.join(item) for item in items)}", style)


def _bracketed(text: str, marks: Sequence[str]) -> str:
    """With its marks in words where no colours are seen."""
    return text if not marks or sys.stdout.isatty() else f"[{'+'.join(marks)}: {text}]"


def _response_text(parts: Sequence[Json], style: str) -> Text:
    text = Text()
    for part in parts:
        marks = part["marks"]
        if part["left_out"]:
            text.append(f" … {part['left_out']:,} characters … ", style="yellow")
        else:
            own = "reverse" if "official" in marks else "underline" if marks else style
            text.append(_bracketed(part["text"], marks), style=own)
    return text


def _score_line(response: Json, column: Column) -> str:
    mark = "SAMPLE " if column.source.sample else ""
    score, cluster, why, tokens = (response[name] for name in ("score", "cluster", "why", "tokens"))
    parts = [
        "no score of its own" if score is None else f"{mark}score {score:.4g}",
        f"{cluster}{f' ({why})' if why else ''}" if cluster else "",
        "" if tokens is None else f"{tokens[1]:,} tokens",
        f"ended: {response['finish']}" if response["finish"] else "",
        *(f"{mark}{name} {value:.4g}" for name, value in response["metrics"].items()),
    ]
    return "; ".join(filter(None, parts))


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 2000 else f"{text[:2000]}… ({len(text):,} characters)"


def _heading(title: str) -> None:
    _say(f"\n── {title} ──", "bold blue")


def _text(text: Text) -> None:
    known = sys.stdout.isatty() or "COLUMNS" in os.environ
    Console(width=None if known else 140, highlight=False).print(text, overflow="fold")


def _say(line: str, style: str = "") -> None:
    console().print(Text(line, style), overflow="fold")
