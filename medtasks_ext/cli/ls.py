"""`medtasks ls`."""

from __future__ import annotations

import json
import textwrap
from typing import Annotated, Any

import typer

from medtasks_ext.cli.app import AsJson
from medtasks_ext.cli.words import aligned, counted, say, say_next, terminal_width
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import STRATEGIES, SUFFIX, Dataset, Registry, Suite, registry
from medtasks_ext.registry.select import select
from medtasks_ext.rows.missing import origin_of
from medtasks_ext.rows.row import Origin
from medtasks_ext.rows.sources import forced_origin

_DATA = {
    "local": "local files",
    "hub": "download",
    "release": "inputs only",
    "sample": "sample rows",
    None: "missing",
}
#: columns that the number of tasks behind a group or tag takes
_SIZE = 6
#: columns that stand around the name of a group in a taxonomy
_AROUND = 3
_COLUMNS = ("task", "language", "task_type", "stage", "access", "primary_metric", "n_test", "data")
#: columns that a narrow terminal does without, in this order
_LEFT_OUT_FIRST = ("stage", "primary_metric", "n_test", "task_type")


def ls(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILTER...]", help="Tasks, tags, groups; KEY=VALUE; part of a name."),
    ] = None,
    groups: Annotated[
        bool, typer.Option("--groups", help="List groups and how many tasks they hold.")
    ] = False,
    tags: Annotated[bool, typer.Option("--tags", help="List tags and how many tasks they hold.")] = False,
    taxonomy: Annotated[
        bool,
        typer.Option("--taxonomy", help="Show the suites' taxonomies, and the datasets that cover them."),
    ] = False,
    as_json: AsJson = False,
) -> int:
    """List datasets and whether their data is at hand.

    With a group or tag: the tasks that it holds.

    Example: medtasks ls language=zh access=open
    """
    if taxonomy:
        _list_taxonomy(as_json=as_json)
    elif groups or tags:
        _list_names("groups" if groups else "tags", words or [], as_json=as_json)
    else:
        _list_tasks(words or [], as_json=as_json)
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


def _list_names(kind: str, filters: list[str], *, as_json: bool) -> None:
    tasks = registry()
    sizes = {
        name: len(tasks.leaves(name))
        for name in getattr(tasks, kind)
        if all(part in name for part in filters)
    }
    if as_json:
        typer.echo(json.dumps(sizes, indent=1))
        return
    if not sizes:
        where = f"--{kind} {' '.join(filters)}"
        raise MedtasksError(
            f"no name of {kind} holds this", where=where, remedy=f"`medtasks ls --{kind}` lists all"
        )
    room = terminal_width() - _SIZE
    for line in aligned([(_shortened(name, room), str(size)) for name, size in sorted(sizes.items())], {1}):
        typer.echo(line)
    _say_shortened(sum(len(name) > room for name in sizes), kind)
    say_next("medtasks ls NAME", "medtasks plan MODEL --tasks NAME")


def _say_shortened(names: int, kind: str) -> None:
    if names:
        say(f"a wider terminal shows {counted(names, 'name')} whole; `medtasks ls --{kind} --json` has all")


def _shortened(name: str, width: int) -> str:
    if len(name) <= width:
        return name
    end = (width - 1) // 2
    return f"{name[: width - 1 - end]}…{name[-end:]}"


def _list_taxonomy(*, as_json: bool) -> None:
    forced = forced_origin()
    trees: dict[str, Any] = {}
    for suite in registry().suites.values():
        for name, axis in suite.axes.items():
            if any(part.tasks for parts in axis.parts.values() for part in parts.values()):
                tree = _taxonomy(suite, name, forced)
                trees |= tree
                if not as_json:
                    _print_taxonomy(suite, name, tree)
    if as_json:
        typer.echo(json.dumps(trees, ensure_ascii=False, indent=1))
    else:
        say_next("medtasks ls GROUP")


def _taxonomy(suite: Suite, name: str, forced: Origin | None) -> dict[str, Any]:
    """Value -> its title and its parts, each with its tasks and the datasets that cover it."""
    covering: dict[str, list[dict[str, Any]]] = {}
    for dataset in registry().datasets_of(suite):
        for value in dataset.values(suite, name):
            covering.setdefault(value, []).append(_record(dataset, origin_of(dataset, forced)))
    axis = suite.axes[name]
    outer = suite.titles(axis.within or "")
    return {
        value: {
            "title": outer[value],
            "subcategories": {
                key: {"title": part.title, "tasks": part.tasks, "datasets": covering.get(key, [])}
                for key, part in parts.items()
            },
        }
        for value, parts in axis.parts.items()
    }


def _print_taxonomy(suite: Suite, name: str, tree: dict[str, Any]) -> None:
    parts = {key: part for entry in tree.values() for key, part in entry["subcategories"].items()}
    room, cut = terminal_width(), 0
    for entry in tree.values():
        typer.echo(entry["title"])
        for key, part in entry["subcategories"].items():
            group = suite.group_name(name, key)
            cut += group is not None and len(group) > room - _AROUND
            of_group = f"; group {_shortened(group, room - _AROUND)}" if group else ""
            _echo_filled(f"{part['title']} ({counted(len(part['tasks']), 'task')}{of_group})", 2, room)
            _echo_filled("; ".join(part["tasks"]), 4, min(room, 100))
            for record in part["datasets"]:
                typer.echo(f"    • {record['id']}  ({record['access']}; data: {_DATA[record['data']]})")
    n_tasks = sum(len(part["tasks"]) for part in parts.values())
    n_sets = sum(len(part["datasets"]) for part in parts.values())
    typer.echo(f"{len(tree)} categories, {len(parts)} subcategories, {n_tasks} tasks; {n_sets} datasets")
    _say_shortened(cut, "groups")


def _echo_filled(text: str, indent: int, width: int) -> None:
    space = " " * indent
    lines = textwrap.wrap(
        text,
        width,
        initial_indent=space,
        subsequent_indent=space,
        break_long_words=False,
        break_on_hyphens=False,
    )
    typer.echo("\n".join(lines))


def _record(dataset: Dataset, origin: str | None) -> dict[str, Any]:
    metadata = dataset.metadata
    return {
        "id": dataset.id,
        "name": metadata.name,
        "language": metadata.language,
        "task_type": metadata.task_type,
        "stage": metadata.stage,
        "specialties": metadata.specialties,
        "access": metadata.access,
        "licence": metadata.licence.spdx,
        "use": metadata.use,
        "third_party_api": metadata.third_party_api,
        "scoreable": metadata.scoreable,
        "pinned": dataset.is_pinned,
        "primary_metric": metadata.primary_metric,
        "n_test": metadata.n_test,
        "official_budget": budget.at_most if (budget := dataset.official_budget) else None,
        "published_strategy": metadata.published_strategy,
        "strategies": list(dataset.strategies),
        "version": dataset.version,
        "control_of": metadata.control_of,
        "draft": metadata.draft,
        "data": origin,
    }


def _asked_as(records: list[dict[str, Any]]) -> str:
    names = [
        f"TASK{SUFFIX[item]}" for item in STRATEGIES if any(item in one["strategies"] for one in records)
    ]
    fewer = sum(len(record["strategies"]) < len(names) for record in records)
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1]))) + f" ({fewer} have fewer)" * bool(
        fewer
    )


def _print(records: list[dict[str, Any]]) -> None:
    cells = {name: [name, *(_cell(record, name) for record in records)] for name in _COLUMNS}
    widths = {name: max(map(len, column)) + 2 for name, column in cells.items()}
    shown, room = list(_COLUMNS), terminal_width()
    for name in _LEFT_OUT_FIRST:  # a row that is too long would break inside a word
        if sum(widths[column] for column in shown) - 2 > room:
            shown.remove(name)
    for line in aligned(list(zip(*(cells[name] for name in shown), strict=True))):
        typer.echo(line)
    if hidden := [name for name in _COLUMNS if name not in shown]:
        say(f"a wider terminal also shows {', '.join(hidden)}; --json has all")
    controls = sum(record["control_of"] is not None for record in records)
    drafts = {record["id"]: record["draft"] for record in records if record["draft"]}
    if any(record["task"] != record["id"] for record in records):
        n_datasets = len({record["id"] for record in records})
        typer.echo(f"{counted(len(records), 'task')} of {counted(n_datasets, 'dataset')}")
    else:
        typer.echo(
            counted(len(records) - controls - len(drafts), "dataset")
            + (f" and {controls} with rows of others, outside all groups" if controls else "")
            + (f" and {counted(len(drafts), 'draft')}, outside all groups" if drafts else "")
            + f", each as {_asked_as(records)}; `--groups` lists groups"
        )
    for name, why in drafts.items():
        typer.echo(f"draft: {name}: {why}")
    say_next(f"medtasks preview {records[0]['task']} --data sample", "medtasks data where TASK")


def _cell(record: dict[str, Any], column: str) -> str:
    if column == "data":
        unpinned = record["data"] == "hub" and not record["pinned"]
        return _DATA[record["data"]] + (", unpinned" if unpinned else "")
    return str(record[column])
