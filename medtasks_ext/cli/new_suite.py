"""`medtasks new suite`: the file of a suite of one's own."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Annotated, Any

import typer
import yaml

from medtasks_ext.atomic import atomic_file
from medtasks_ext.cli.questions import answers_to
from medtasks_ext.cli.words import names_in
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import Registry, registry
from medtasks_ext.registry.folders import writable
from medtasks_ext.registry.new import Question
from medtasks_ext.registry.suites import RESERVED, SUITE_FILE

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")


def new_suite(
    id: Annotated[str | None, typer.Option(help="Of its folder, in lower case.")] = None,
    title: Annotated[str | None, typer.Option(help="As readers see it.")] = None,
    about: Annotated[str | None, typer.Option(help="What is in it, in one line.")] = None,
    dataset: Annotated[
        list[str] | None,
        typer.Option(help="A dataset: a name in the suite, or SUITE/NAME of another; repeatable."),
    ] = None,
    axis: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE,VALUE", help="An axis of the suite's own; repeatable."),
    ] = None,
) -> int:
    """Start a suite of your own.

    Its file in your folder of tasks; a mean over the first axis, each value counting once. Asks what the
    flags do not say.

    Example: medtasks new suite --id wards --title WardBench --about "short texts of two wards"
    --axis unit=emergency,outpatient --dataset triage
    """
    tasks = registry(empty=True)
    if not (own := writable(tasks.own)):
        raise MedtasksError(
            "no folder of your own is named",
            where="MEDTASKS_TASKS",
            remedy="mkdir my_tasks; export MEDTASKS_TASKS=my_tasks; then call it again",
        )
    given = {"id": id, "title": title, "about": about, "axis": "; ".join(axis or ())}
    flags = {key: value for key, value in {**given, "dataset": ",".join(dataset or ())}.items() if value}
    asks = partial(_questions, tasks)
    answers = answers_to(asks, flags, ask=sys.stdin.isatty(), command="medtasks new suite")
    folder, axes = own[0] / answers["id"], answers.get("axis", {})
    folder.mkdir(exist_ok=True)
    with atomic_file(folder / SUITE_FILE) as file:
        file.write(_text(answers["title"], answers["about"], axes, answers["dataset"]).encode())
    typer.echo(f"wrote {folder / SUITE_FILE}\n\nnext:")
    new = (name for name in answers["dataset"] if "/" not in name)
    for number, name in enumerate(new, start=1):
        placed = "".join(f" --axis {key}={values[0]}" for key, values in axes.items())
        typer.echo(f"  {number}. medtasks new --id {answers['id']}_{name}{placed}   asks the rest")
    return 0


def _questions(tasks: Registry, answers: Mapping[str, Any]) -> Iterator[Question]:
    """What has to be known of a new suite."""
    yield Question(
        "id",
        "Name of the suite in lower case, such as wards",
        help="names the folder; the tasks of the suite begin with this name.",
        reads=partial(_free_name, tasks),
    )
    yield Question("title", "Title, as readers see it", help="stands above tables and in the report.")
    yield Question("about", "What is in it, in one line", help="stands in lists and in the catalogue.")
    yield Question(
        "axis",
        "Axes of its own, such as unit=emergency,outpatient; setting=ward,home",
        required=False,
        help="each axis makes groups of tasks; the suite's mean counts each value of the first axis once.",
        reads=_axes,
    )
    yield Question(
        "dataset",
        "Its datasets",
        many=True,
        help="a name stands for a dataset that you will add, SUITE/NAME for one of another suite.",
    )


def _free_name(tasks: Registry, name: str) -> str:
    taken = any(name == suite or name.startswith(f"{suite}_") for suite in tasks.suites)
    if not _NAME.fullmatch(name) or taken or name == "medtasks":
        raise MedtasksError(
            f"{name!r} is the name of a suite, or begins with one"
            if taken
            else f"{name!r} is no name of a suite",
            where="--id",
            remedy="use another one, of lower-case letters, digits and single underscores",
        )
    folder = writable(tasks.own)[0] / name
    if folder.exists() and any(folder.iterdir()):
        raise MedtasksError("there is such a folder", where=folder, remedy="choose another --id, or edit it")
    return name


def _axes(text: str) -> dict[str, list[str]]:
    """Axis -> values, of NAME=VALUE,VALUE between semicolons."""
    return dict(_axis(part.strip()) for part in text.split(";") if part.strip())


def _axis(text: str) -> tuple[str, list[str]]:
    name, _, values = text.partition("=")
    given = names_in(values)
    if not given or name in RESERVED or not all(map(_NAME.fullmatch, (name, *given))):
        raise MedtasksError(
            f"{text!r} is no axis with its values",
            where="--axis",
            remedy="write --axis NAME=VALUE,VALUE in lower case; titles may be written into the file",
        )
    return name, given


def _text(title: str, about: str, axes: dict[str, list[str]], datasets: list[str]) -> str:
    """The file of a suite: what follows from the answers; docs/keys.md has the other keys."""
    first = next(iter(axes), "language")
    said: dict[str, object] = {"title": title, "about": about, "citation": ""}
    if axes:
        said["axes"] = {name: {"values": {key: _words(key) for key in keys}} for name, keys in axes.items()}
    said |= {
        "groups": {**dict.fromkeys(axes, ""), "language": ""},
        "partition": [first],
        "main_axes": list(dict.fromkeys(["language", *axes])),
        "sections": first,
    }
    if axes:
        said["averaged_over"] = first
    said |= {"assigned_by": "medtasks", "datasets": datasets}
    text = yaml.safe_dump(said, sort_keys=False, allow_unicode=True)
    if axes and (others := [name for name in datasets if "/" in name]):
        firsts = ", ".join(f"{name}: {values[0]}" for name, values in axes.items())
        text += "axis_values:\n" + "".join(
            f"  {name}: {{{firsts}}}  # TODO: its own values\n" for name in others
        )
    return f"# docs/keys.md describes the keys.\n{text}"


def _words(key: str) -> str:
    return key.replace("_", " ").capitalize()
