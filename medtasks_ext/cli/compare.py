"""`medtasks compare`: what changed between two runs, two models, or the strategies of one."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from medtasks_ext.cli.app import AsJson
from medtasks_ext.cli.tables import SAMPLE_DATA, console, new_table
from medtasks_ext.cli.words import say
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import Registry, registry
from medtasks_ext.results.changes import GroupChange, suite_groups

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from medtasks_ext.results.changes import TaskChange
    from medtasks_ext.results.experiments import Fault
    from medtasks_ext.results.ways import Pair

ALPHA = 0.05
SHOWN = 15  # lines of a table that are printed without --all


@dataclass(frozen=True)
class Line:
    """One line of a table: a group or a task, with p-values adjusted for all lines of the table."""

    pair: Pair
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
        change = self.change
        found = change.comparison
        record = {
            "pair": self.pair.words,
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
            "documents": change.shared.n,
            "documents_of_one_alone": change.alone,
            "gained": sum(flip.after > flip.before for flip in change.flips),
            "lost": sum(flip.after < flip.before for flip in change.flips),
            "differs": ", ".join(change.differs),
        }


def compare(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="BEFORE AFTER",
            help="Two runs; one folder that holds two models; or one run with several strategies.",
        ),
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
    """Show what changed between runs, models or strategies.

    By group and by task, with intervals and adjusted p-values, and the documents that changed.

    Example: medtasks compare runs/BASE runs/TUNED --documents 5
    """
    from medtasks_ext.results.changes import group_changes, settings_that_differ, task_changes
    from medtasks_ext.results.reading import read_results
    from medtasks_ext.results.ways import pairs_to_compare

    tasks = registry()
    if out is not None and Path(out).exists() and not Path(out).is_dir():
        raise MedtasksError("is a file", where=out, remedy="name a folder with -o")
    results = read_results([Path(name) for name in paths], tasks)
    pairs = pairs_to_compare(results.entries)
    changes: list[tuple[Pair, TaskChange]] = []
    faults: list[Fault] = list(results.faults)
    for pair in pairs:
        found, more = task_changes(pair.before, pair.after)
        changes += [(pair, change) for change in found]
        faults += more
    _say(faults)
    if not changes:
        raise MedtasksError(
            f"{pairs[0].before.label} and {pairs[0].after.label} have no scored task in common that can be"
            " compared",
            remedy="run both on the same tasks and rows",
        )
    of_groups = [
        (pair, change)
        for pair in pairs
        for change in group_changes([item for of, item in changes if of is pair], tasks)
    ]
    groups = _group_lines(of_groups, tasks)
    lines = _lines(changes, "task")
    content = {
        "pairs": [
            {
                "pair": pair.words,
                "question": pair.question,
                "before": pair.before.label,
                "after": pair.after.label,
                "settings": settings_that_differ(pair.before, pair.after),
            }
            for pair in pairs
        ],
        "sample": pairs[0].before.sample,
        "groups": [line.record() for line in groups],
        "tasks": [line.record() for line in lines],
        "flipped": [
            {
                "pair": pair.words,
                "task": flip.task,
                "document": flip.document,
                "before": flip.before,
                "after": flip.after,
            }
            for pair, change in changes
            for flip in change.flips
        ],
    }
    if out is not None:
        _write(Path(out), content)
    if as_json:
        typer.echo(json.dumps(content, ensure_ascii=False, indent=1))
        return 0
    _head(content)
    _table("group", [line for line in groups if everything or _is_main(line, tasks)], groups, everything)
    _table("task", lines, lines, everything)
    _flips(changes, documents)
    if out is not None:
        say(f"groups.csv, tasks.csv and flipped.csv: {out}")
    return 0


def _say(faults: Sequence[Fault]) -> None:
    for fault in faults:
        say(str(fault))


def _group_lines(changes: Sequence[tuple[Pair, GroupChange]], tasks: Registry) -> list[Line]:
    """Suites and strategies are one family of tests; other groups, each set of tasks once, a second."""
    suites = suite_groups(tasks)
    known = {(id(pair), frozenset(tasks.leaves(item.name))) for pair, item in changes if item.name in suites}
    others: dict[tuple[int, frozenset[str]], tuple[Pair, GroupChange]] = {}
    for pair, item in changes:
        members = id(pair), frozenset(tasks.leaves(item.name))
        if item.name not in suites and members not in known:
            others.setdefault(members, (pair, item))
    first = [(pair, item) for pair, item in changes if item.name in suites]
    return [*_lines(first, "name"), *_lines(others.values(), "name")]


def _lines(changes: Iterable[tuple[Pair, Any]], name: str) -> list[Line]:
    from medtasks_ext.stats.multiplicity import benjamini_hochberg, holm

    changes = list(changes)
    if not changes:
        return []
    raw = np.array([change.comparison.p_value for _, change in changes])
    adjusted = zip(changes, holm(raw), benjamini_hochberg(raw), strict=True)
    return [
        Line(pair, change, getattr(change, name), float(one), float(other))
        for (pair, change), one, other in adjusted
    ]


def _is_main(line: Line, tasks: Registry) -> bool:
    """Whether a group is shown without --all: whole suites, and what has changed."""
    return line.significant or line.name in suite_groups(tasks)


_QUESTIONS = {
    "entries": "",
    "strategies": "one model, other strategies: paired tests on the same documents",
    "prompts": "one model, other wording: a paired test of prompts on the same documents",
}


def _head(content: Mapping[str, Any]) -> None:
    if content["sample"]:
        typer.echo(SAMPLE_DATA)
    first = content["pairs"][0]
    if len(content["pairs"]) == 1:
        typer.echo(f"before: {first['before']}\nafter:  {first['after']}")
    else:
        typer.echo(f"strategies of {first['before'].rpartition(',')[0]}")
    for name, (one, other) in first["settings"].items():
        typer.echo(f"  {name}: {one} → {other}")
    if words := _QUESTIONS[first["question"]]:
        typer.echo(words)


def _table(title: str, chosen: Sequence[Line], lines: Sequence[Line], everything: bool) -> None:
    if not lines:
        return
    ordered = sorted(chosen, key=lambda line: (not line.significant, -abs(line.change.comparison.difference)))
    shown = ordered if everything else ordered[:SHOWN]
    several = len({line.pair.words for line in lines}) > 1
    figures = ["before", "after", "change [95 % interval]", "p (Holm)", ""]
    names = [title, "strategies"] if several else [title]
    table = new_table(names, figures, pad_edge=False, collapse_padding=True)
    for line in shown:
        found = line.change.comparison
        table.add_row(
            line.name,
            *([line.pair.words] if several else []),
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


def _flips(changes: Sequence[tuple[Pair, TaskChange]], documents: int) -> None:
    flips = [flip for _, change in changes for flip in change.flips]
    gained = sum(flip.after > flip.before for flip in flips)
    asked = sum(change.shared.n for _, change in changes)
    typer.echo(
        f"\n{len(flips):,} of {asked:,} documents changed: {gained:,} better, {len(flips) - gained:,} worse"
    )
    for pair, change in changes:
        for flip in change.flips[:documents]:
            named = f"  {pair.words}" * (pair.question == "strategies")
            typer.echo(f"  {flip.task}{named}  {flip.document}  {flip.before:.3f} → {flip.after:.3f}")


def _write(folder: Path, content: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("groups", "tasks", "flipped"):
        rows = content[name]
        with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(rows[0]) if rows else ["name"])
            writer.writeheader()
            writer.writerows(rows)
