"""`medtasks compare`: what changed between two runs or two models."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from medtasks_ext.cli.app import AsJson, command_app
from medtasks_ext.cli.tables import SAMPLE_DATA, console, new_table
from medtasks_ext.cli.words import say
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import SUFFIX, Registry, registry

if TYPE_CHECKING:
    from medtasks_ext.results.changes import GroupChange, TaskChange
    from medtasks_ext.results.experiments import Entry, Fault

app = command_app()


ALPHA = 0.05
SHOWN = 15  # lines of a table that are printed without --all


@dataclass(frozen=True)
class Line:
    """One line of a table: a group or a task, with p-values adjusted for all lines of the table."""

    change: GroupChange | TaskChange
    name: str
    p_holm: float
    p_bh: float

    @property
    def significant(self) -> bool:
        """Whether it stands after Holm's adjustment."""
        return self.p_holm < ALPHA

    def record(self) -> dict[str, Any]:
        """As files hold it."""
        from medtasks_ext.results.changes import GroupChange

        change = self.change
        found = change.comparison
        record = {
            "name": self.name,
            "before": change.before,
            "after": change.after,
            "difference": found.difference,
            "interval_low": found.interval.low,
            "interval_high": found.interval.high,
            "p": found.p_value,
            "p_holm": self.p_holm,
            "p_bh": self.p_bh,
            "method": found.method,
            "detectable": found.detectable,
        }
        if isinstance(change, GroupChange):
            return {**record, "tasks": change.n_shared, "of": change.n_tasks}
        return {
            **record,
            "documents": change.n,
            "documents_of_one_alone": change.alone,
            "gained": sum(flip.after > flip.before for flip in change.flips),
            "lost": sum(flip.after < flip.before for flip in change.flips),
            "differs": ", ".join(change.differs),
        }


@app.command("compare")
def compare(
    paths: Annotated[
        list[str],
        typer.Argument(metavar="BEFORE AFTER", help="Two runs; or one folder that holds two models."),
    ],
    out: Annotated[
        str | None, typer.Option("-o", "--out", help="Folder for groups.csv, tasks.csv and flipped.csv.")
    ] = None,
    documents: Annotated[
        int, typer.Option("--documents", min=0, help="Print so many documents of each task that changed.")
    ] = 0,
    everything: Annotated[
        bool, typer.Option("--all", help="Print all groups and tasks, not the largest changes alone.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Show what changed between two runs or two models.

    By group and by task, with intervals and adjusted p-values, and the documents that changed.

    Example: medtasks compare runs/BASE runs/TUNED --documents 5
    """
    from medtasks_ext.results.changes import group_changes, settings_that_differ, task_changes
    from medtasks_ext.results.reading import read_results

    tasks = registry()
    if out is not None and Path(out).exists() and not Path(out).is_dir():
        raise MedtasksError("is a file", where=out, remedy="name a folder with -o")
    results = read_results([Path(name) for name in paths], tasks)
    first, second = _two(results.entries)
    changes, faults = task_changes(first, second)
    _say([*results.faults, *faults])
    if not changes:
        raise MedtasksError(
            f"{first.label} and {second.label} have no scored task in common that can be compared",
            remedy="run both on the same tasks and rows",
        )
    groups = _group_lines(group_changes(changes, tasks), tasks)
    lines = _lines(changes, "task")
    content = {
        "before": first.label,
        "after": second.label,
        "sample": first.sample or second.sample,
        "settings": settings_that_differ(first, second),
        "groups": [line.record() for line in groups],
        "tasks": [line.record() for line in lines],
        "flipped": [
            {"task": flip.task, "document": flip.document, "before": flip.before, "after": flip.after}
            for change in changes
            for flip in change.flips
        ],
    }
    if out is not None:
        _write(Path(out), content)
    if as_json:
        typer.echo(json.dumps(content, ensure_ascii=False, indent=1))
        return 0
    _head(first, second, content["settings"])
    _table("group", [line for line in groups if everything or _is_main(line, tasks)], groups, everything)
    _table("task", lines, lines, everything)
    _flips(changes, documents)
    if out is not None:
        say(f"groups.csv, tasks.csv and flipped.csv: {out}")
    return 0


def _two(entries: list[Entry]) -> tuple[Entry, Entry]:
    if len(entries) != 2:
        names = "; ".join(entry.label for entry in entries) or "none"
        same = " (the runs hold the same results)" if len(entries) == 1 else ""
        raise MedtasksError(
            f"two entries are compared; here are {len(entries)}: {names}{same}",
            remedy="name one run of each of the two",
        )
    if entries[0].sample != entries[1].sample:
        raise MedtasksError(
            "one of the two was run on synthetic sample rows, which are never set beside real ones",
            remedy="compare runs on the same rows",
        )
    return entries[0], entries[1]


def _say(faults: Sequence[Fault]) -> None:
    for fault in faults:
        say(str(fault))


def _group_lines(changes: Sequence[GroupChange], tasks: Registry) -> list[Line]:
    """Suites and strategies are one family of tests; other groups, each set of tasks once, a second."""
    suites = _suite_names(tasks)
    known = {frozenset(tasks.leaves(item.name)) for item in changes if item.name in suites}
    others: dict[frozenset[str], GroupChange] = {}
    for item in changes:
        members = frozenset(tasks.leaves(item.name))
        if item.name not in suites and members not in known:
            others.setdefault(members, item)
    first = [item for item in changes if item.name in suites]
    return [*_lines(first, "name"), *_lines(list(others.values()), "name")]


def _suite_names(tasks: Registry) -> set[str]:
    return {suite + suffix for suite in tasks.suites for suffix in SUFFIX.values()}


def _lines(changes: Sequence[Any], name: str) -> list[Line]:
    from medtasks_ext.stats.multiplicity import benjamini_hochberg, holm

    if not changes:
        return []
    raw = np.array([change.comparison.p_value for change in changes])
    adjusted = zip(changes, holm(raw), benjamini_hochberg(raw), strict=True)
    return [Line(change, getattr(change, name), float(one), float(other)) for change, one, other in adjusted]


def _is_main(line: Line, tasks: Registry) -> bool:
    """Whether a group is shown without --all: whole suites, and what has changed."""
    return line.significant or line.name in _suite_names(tasks)


def _head(first: Entry, second: Entry, settings: Any) -> None:
    if first.sample:
        typer.echo(SAMPLE_DATA)
    typer.echo(f"before: {first.label}\nafter:  {second.label}")
    for name, (one, other) in settings.items():
        typer.echo(f"  {name}: {one} → {other}")


def _table(title: str, chosen: Sequence[Line], lines: Sequence[Line], everything: bool) -> None:
    if not lines:
        return
    ordered = sorted(chosen, key=lambda line: (not line.significant, -abs(line.change.comparison.difference)))
    shown = ordered if everything else ordered[:SHOWN]
    figures = ["before", "after", "change [95 % interval]", "p (Holm)", ""]
    table = new_table([title], figures, pad_edge=False, collapse_padding=True)
    for line in shown:
        found = line.change.comparison
        table.add_row(
            line.name,
            f"{line.change.before:.4f}",
            f"{line.change.after:.4f}",
            f"{found.difference:+.4f} \\[{found.interval.low:+.3f}, {found.interval.high:+.3f}]",
            _p(line.p_holm),
            _marks(line),
        )
    console().print(table)
    n = sum(line.significant for line in lines)
    hidden = len(lines) - len(shown)
    more = f"; {hidden} more with --all" if hidden else ""
    console().print(f"{n} of {len(lines)} {title}s changed (p < {ALPHA} after Holm's adjustment){more}")


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _marks(line: Line) -> str:
    marks = []
    if line.significant:
        marks.append("better" if line.change.comparison.difference > 0 else "worse")
    record = line.record()
    if record.get("differs"):
        marks.append(f"other {record['differs']}")
    if record.get("documents_of_one_alone"):
        marks.append(f"{record['documents']} shared documents")
    if "of" in record and record["tasks"] < record["of"]:
        marks.append(f"{record['tasks']}/{record['of']} tasks")
    return "; ".join(marks)


def _flips(changes: Sequence[TaskChange], documents: int) -> None:
    flips = [flip for change in changes for flip in change.flips]
    gained = sum(flip.after > flip.before for flip in flips)
    asked = sum(change.n for change in changes)
    typer.echo(
        f"\n{len(flips):,} of {asked:,} documents changed: {gained:,} better, {len(flips) - gained:,} worse"
    )
    for change in changes:
        for flip in change.flips[:documents]:
            typer.echo(f"  {flip.task}  {flip.document}  {flip.before:.3f} → {flip.after:.3f}")


def _write(folder: Path, content: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("groups", "tasks", "flipped"):
        rows = content[name]
        with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(rows[0]) if rows else ["name"])
            writer.writeheader()
            writer.writerows(rows)
