"""`medtasks new-suite`: the file of a suite of one's own."""

from __future__ import annotations

import re
from typing import Annotated

import typer
import yaml

from medtasks_ext.atomic import atomic_file
from medtasks_ext.cli.words import names_in
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry
from medtasks_ext.registry.suites import RESERVED, SUITE_FILE

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")


def new_suite(
    id: Annotated[str, typer.Option(prompt="Name of the suite in lower case", help="Of its folder.")],
    title: Annotated[str, typer.Option(prompt="Title, as readers see it", help="As readers see it.")],
    about: Annotated[
        str, typer.Option(prompt="What is in it, in one line", help="What is in it, in one line.")
    ],
    dataset: Annotated[
        list[str], typer.Option(help="A dataset: a name in the suite, or SUITE/NAME of another; repeatable.")
    ],
    axis: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE,VALUE", help="An axis of the suite's own; repeatable."),
    ] = None,
) -> int:
    """Start a suite of your own.

    Its file in your folder of tasks; a mean over the first axis, each value counting once.

    Example: medtasks new-suite --id wards --title WardBench --about "short texts of two wards"
    --axis unit=emergency,outpatient --dataset triage
    """
    tasks = registry(empty=True)
    if not tasks.own:
        raise MedtasksError(
            "no folder of your own is named",
            where="MEDTASKS_TASKS",
            remedy="mkdir my_tasks; export MEDTASKS_TASKS=my_tasks; then call it again",
        )
    taken = [name for name in tasks.suites if id == name or id.startswith(f"{name}_")]
    if not _NAME.fullmatch(id) or taken or id == "medtasks":
        raise MedtasksError(
            f"{id!r} is the name of a suite, or begins with one"
            if taken
            else f"{id!r} is no name of a suite",
            where="--id",
            remedy="use another one, of lower-case letters, digits and single underscores",
        )
    folder = tasks.own[0] / id
    if folder.exists():
        raise MedtasksError("there is such a folder", where=folder, remedy="choose another --id, or edit it")
    axes = dict(_axis(text) for text in axis or ())
    folder.mkdir()
    with atomic_file(folder / SUITE_FILE) as file:
        file.write(_text(title, about, axes, dataset).encode())
    typer.echo(f"wrote {folder / SUITE_FILE}\n\nnext:")
    for number, name in enumerate((name for name in dataset if "/" not in name), start=1):
        flags = "".join(f" --axis {key}={values[0]}" for key, values in axes.items())
        typer.echo(f"  {number}. medtasks new --id {id}_{name}{flags}   asks the rest")
    return 0


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
    """The file of a suite: what follows from the answers; docs/metadata.md has the other keys."""
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
        text += "placed:\n" + "".join(f"  {name}: {{{firsts}}}  # TODO: its own values\n" for name in others)
    return f"# docs/metadata.md describes the keys.\n{text}"


def _words(key: str) -> str:
    return key.replace("_", " ").capitalize()
