"""`medtasks view RUN TASK [DOCUMENT]`: one answered document of a run, in the terminal."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

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

#: Documents that are listed where none is named.
_LISTED = 20
_STYLES = {"found": "green", "missed": "bold red", "spurious": "bold yellow"}


def show(run: str, task: str, document: str | None, *, whole: bool) -> None:
    """Print a document of a run, by its key or its place from 0: prompt, response, readings, score.

    Without a document: the errors of the task, the score if each were mended, and the documents of each.
    """
    from medtasks_ext.report.answers.dataset import DatasetAnswers
    from medtasks_ext.report.answers.files import columns_of, sources_named, sources_of
    from medtasks_ext.results.entries import read_results

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
