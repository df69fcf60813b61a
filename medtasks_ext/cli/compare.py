"""`medtasks compare`: what changed between two runs, two models, or the strategies of one."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from medtasks_ext.cli.app import AsJson, ByLabels, out_option
from medtasks_ext.cli.arguments import out_folder
from medtasks_ext.cli.tables import SAMPLE_DATA, console, figure, show, texts
from medtasks_ext.cli.words import say, say_next
from medtasks_ext.csvfile import write_csv
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry
from medtasks_ext.registry.strategies import strategy_title
from medtasks_ext.results.changes import TaskChange, suite_groups
from medtasks_ext.results.compared import ALPHA, Line, compare_results
from medtasks_ext.results.entries import read_results
from medtasks_ext.results.label_files import read_labels
from medtasks_ext.results.models import published_rows
from medtasks_ext.results.published import published_entries
from medtasks_ext.results.published_changes import published_changes

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.results.ways import Pair
    from medtasks_ext.stats.comparison import Comparison

_FILES = ("groups", "tasks", "labels", "flipped")
SHOWN = 15  # lines of a table that are printed without --all


def compare(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="BEFORE AFTER",
            help="Two runs; one folder of two models; one run with several strategies; two published models.",
        ),
    ],
    out: Annotated[str | None, out_option("Folder for groups.csv, tasks.csv and flipped.csv.")] = None,
    by: ByLabels = None,
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
    tasks = registry()
    if out is not None:
        out_folder(out)
    no_runs = [name for name in paths if not Path(name).exists()]
    if len(paths) == len(no_runs) == 2:
        return _published(paths[0], paths[1], everything, as_json)
    if no_runs:
        published_rows(no_runs[0], published_entries(tasks))
        raise MedtasksError(
            "is a published model, and no run: of such a model no document is known",
            where=no_runs[0],
            remedy="`medtasks report RUN` puts a run beside published models",
        )
    labels = read_labels([Path(name) for name in by or []], tasks)
    compared = compare_results(read_results([Path(name) for name in paths], tasks), tasks, labels)
    for fault in compared.faults:
        say(str(fault))
    content = compared.record()
    if out is not None:
        _write(Path(out), content)
    if as_json:
        typer.echo(json.dumps(content, ensure_ascii=False, indent=1))
        return 0
    _head(content)
    suites = suite_groups(tasks)
    whole = [line for line in compared.groups if line.name in suites]
    shown = [line for line in compared.groups if line.name not in suites and (everything or line.significant)]
    _table("suite", whole, whole, everything=True)
    _table("group", shown, [line for line in compared.groups if line.name not in suites], everything)
    _table("task", compared.tasks, compared.tasks, everything)
    _table("label", compared.labels, compared.labels, everything=True, sort=False)
    _flips(compared.changes, documents)
    say_next(f"medtasks view {shlex.join(paths)}")
    if out is not None:
        say(f"{', '.join(f'{name}.csv' for name in _FILES if content[name])}: {out}")
    return 0


def _published(one: str, other: str, everything: bool, as_json: bool) -> int:
    """Two models as papers print them; no paper gives out documents, so there is no test."""
    found = published_changes(one, other, registry())
    if as_json:
        typer.echo(json.dumps(asdict(found), ensure_ascii=False, indent=1))
        return 0
    typer.echo(f"before: {found.before} (published)\nafter:  {found.after} (published)")
    for row in found.alone:
        typer.echo(f"  {row.suite} has one of the two alone: {row.words}")
    rows = {(item.before, item.after) for item in found.changes}
    for before, after in sorted(rows, key=lambda pair: pair[0].suite):
        typer.echo(f"  {before.suite}: {before.words} → {after.words}")
    scores = [
        figure("before", form=".4f"),
        figure("after", form=".4f"),
        figure("change", lambda item: item.after - item.before, "+.4f"),
    ]
    columns = [
        texts("suite", lambda item: f"{item.suite}, {strategy_title(item.strategy)}"),
        figure("before", "mean_before", ".4f"),
        figure("after", "mean_after", ".4f"),
        figure("change", lambda item: item.mean_after - item.mean_before, "+.4f"),
        figure("tasks", lambda item: len(item.scores)),
        figure("better"),
        figure("worse"),
    ]
    show(found.changes, columns)
    changes = [line for item in found.changes for line in item.scores]
    changes.sort(key=lambda line: -abs(line[2] - line[1]))
    lines = [
        (name, f"{before:.4f}", f"{after:.4f}", f"{after - before:+.4f}") for name, before, after in changes
    ]
    show(lines if everything else lines[:SHOWN], [texts("task"), *scores])
    typer.echo("Papers give out no answers of documents, so differences are not tested.")
    return 0


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
    if question := _QUESTIONS[first["question"]]:
        typer.echo(question)


def _table(
    title: str, chosen: Sequence[Line], lines: Sequence[Line], everything: bool, *, sort: bool = True
) -> None:
    if not lines:
        return
    ordered = list(chosen)
    if sort:
        ordered.sort(key=lambda line: (not line.significant, -abs(line.change.comparison.difference)))
    shown = ordered if everything else ordered[:SHOWN]
    several = len({line.pair.words for line in lines}) > 1
    columns = [
        texts(title, "name"),
        *([texts("strategies", lambda line: line.pair.words)] if several else []),
        figure("before", lambda line: line.change.before, ".4f"),
        figure("after", lambda line: line.change.after, ".4f"),
        figure("change [95 % interval]", lambda line: _difference(line.change.comparison)),
        figure("p (Holm)", lambda line: _p(line.p_holm)),
        figure("", _marks),
    ]
    show(shown, columns, pad_edge=False, collapse_padding=True)
    n = sum(line.significant for line in lines)
    hidden = len(lines) - len(shown)
    more = f"; {hidden} more with --all" if hidden else ""
    console().print(f"{n} of {len(lines)} {title}s changed (p < {ALPHA} after Holm's adjustment){more}")


def _difference(found: Comparison) -> str:
    return f"{found.difference:+.4f} \\[{found.interval.low:+.3f}, {found.interval.high:+.3f}]"


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


def _write(folder: Path, content: Json) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in _FILES:
        rows = content[name]
        if name == "labels" and not rows:
            (folder / "labels.csv").unlink(missing_ok=True)  # of an earlier comparison
            continue
        write_csv(folder / f"{name}.csv", rows, list(rows[0]) if rows else ["name"])
