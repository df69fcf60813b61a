"""`medtasks ls`."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from typer import Argument, Option

from medtasks_ext.cli.commands import AsJson
from medtasks_ext.cli.words import aligned, counted, say, say_next, terminal_width
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import STRATEGIES, SUFFIX, Dataset, Registry, registry
from medtasks_ext.registry.groups import select
from medtasks_ext.rows.sources import forced_origin, origin_of

_DATA = {
    "local": "local files",
    "hub": "download",
    "release": "inputs only",
    "sample": "sample rows",
    None: "missing",
}
_FACTS = (
    "name", "language", "task_type", "stage", "specialties", "access", "use", "third_party_api", "scoreable",
    "primary_metric", "n_test", "published_strategy", "control_of", "draft",
)  # fmt: skip
_COLUMNS = ("task", "language", "task_type", "stage", "access", "primary_metric", "n_test", "data")
#: a row that is too long would break inside a word
_WIDE, _NARROW = 140, ("task", "language", "access", "data")


def ls(
    words: Annotated[
        list[str] | None, Argument(metavar="[FILTER...]", help="Tasks, groups; KEY=VALUE; part of a name.")
    ] = None,
    groups: Annotated[bool, Option("--groups", help="List groups and how many tasks they hold.")] = False,
    as_json: AsJson = False,
) -> int:
    """List datasets and whether their data is at hand.

    With a group: the tasks that it holds.

    Example: medtasks ls language=zh access=open
    """
    (_list_groups if groups else _list_tasks)(words or [], as_json=as_json)
    return 0


def _list_tasks(words: list[str], *, as_json: bool) -> None:
    tasks, forced = registry(), forced_origin()
    try:
        chosen = select(tasks, words)
    except MedtasksError:  # what is asked for may stand in a file that cannot be read
        _say_unreadable(tasks)
        raise
    records = [{"task": name, **_record(item, origin_of(item, forced))} for name, item in chosen.items()]
    if as_json:
        typer.echo(json.dumps(records, ensure_ascii=False, indent=1))
    else:
        _print(records)
        _say_unreadable(tasks)


def _say_unreadable(tasks: Registry) -> None:
    for folder, reason in tasks.broken.items():
        say(f"not listed: {folder.name}: {reason}")
    said = {*tasks.broken.values()}  # by the datasets of a suite whose file cannot be read
    for reason in (reason for reason in tasks.suite_faults.values() if reason not in said):
        say(reason)


def _list_groups(filters: list[str], *, as_json: bool) -> None:
    tasks = registry()
    names = [name for name in tasks.listed if all(part in name for part in filters)]
    sizes = {name: len(tasks.listed[name]) for name in names}
    if as_json:
        typer.echo(json.dumps(sizes, indent=1))
        return
    if not sizes:
        where, remedy = f"--groups {' '.join(filters)}", "`medtasks ls --groups` lists all"
        raise MedtasksError("no name of groups holds this", where=where, remedy=remedy)
    for line in aligned([(name, str(size)) for name, size in sorted(sizes.items())], {1}):
        typer.echo(line)
    say_next("medtasks ls NAME", "medtasks plan MODEL --tasks NAME")


def _record(dataset: Dataset, origin: str | None) -> dict[str, Any]:
    metadata, budget = dataset.metadata, dataset.official_budget
    return {
        "id": dataset.id,
        **{name: getattr(metadata, name) for name in _FACTS},
        "licence": metadata.licence.spdx,
        "pinned": dataset.is_pinned,
        "official_budget": budget.at_most if budget else None,
        "strategies": list(dataset.strategies),
        "version": dataset.version,
        "data": origin,
        "file": str(dataset.file),
    }


def _print(records: list[dict[str, Any]]) -> None:
    columns = _COLUMNS if terminal_width() >= _WIDE else _NARROW
    for line in aligned([columns, *([_cell(record, name) for name in columns] for record in records)]):
        typer.echo(line)
    controls = sum(record["control_of"] is not None for record in records)
    drafts = {record["id"]: record["draft"] for record in records if record["draft"]}
    n_datasets = len({record["id"] for record in records}) - controls - len(drafts)
    said = counted(n_datasets, "dataset")
    said += f" and {controls} with rows of others, outside all groups" if controls else ""
    said += f" and {counted(len(drafts), 'draft')}, outside all groups" if drafts else ""
    ways = [item for item in STRATEGIES if any(item in record["strategies"] for record in records)]
    typer.echo(
        f"{said}, each as {', '.join(f'TASK{SUFFIX[item]}' for item in ways)}; `--groups` lists groups"
    )
    for name, why in drafts.items():
        typer.echo(f"draft: {name}: {why}")
    say_next(f"medtasks preview {records[0]['task']} --data sample", "medtasks data status TASK")


def _cell(record: dict[str, Any], column: str) -> str:
    if column == "data":
        unpinned = record["data"] == "hub" and not record["pinned"]
        return _DATA[record["data"]] + (", unpinned" if unpinned else "")
    return str(record[column])
