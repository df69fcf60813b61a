"""`medtasks compare`: what changed between two runs, two models, or the strategies of one."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import ascii_uppercase
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument

from medtasks_ext.cli.arguments import out_folder
from medtasks_ext.cli.commands import AsJson, ByLabels, out_option
from medtasks_ext.cli.tables import SAMPLE_DATA, console, figure, show, texts
from medtasks_ext.cli.words import p_words, say, say_next
from medtasks_ext.registry import registry
from medtasks_ext.results.compared import compare_results, read_named, suite_groups
from medtasks_ext.results.labels import read_labels
from medtasks_ext.stats.comparison import ALPHA
from medtasks_ext.tables import write_csv

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json

_FILES = ("groups", "tasks", "labels", "flipped")
SHOWN = 15  # lines of a table that are printed


def compare(
    paths: Annotated[
        list[str],
        Argument(
            metavar="BEFORE AFTER",
            help="Two runs; one folder of two models; one run with several strategies.",
        ),
    ],
    out: Annotated[str | None, out_option("Folder for groups.csv, tasks.csv and flipped.csv.")] = None,
    by: ByLabels = None,
    as_json: AsJson = False,
) -> int:
    """Show what changed between runs, models or strategies.

    By group and by task, with intervals and adjusted p-values; -o lists the documents that changed.

    Example: medtasks compare runs/BASE runs/TUNED -o changes
    """
    tasks, folder = registry(), out_folder(out) if out else None
    labels = read_labels([Path(name) for name in by or []], tasks)
    compared = compare_results(read_named(paths, tasks), tasks, labels)
    for fault in compared.faults:
        say(str(fault))
    tables = {name: frame.to_pylist() for name, frame in compared.frames.items()}
    content = {"pairs": compared.pairs, "sample": compared.sample, **tables}
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
        for name in _FILES:
            if name != "labels" or tables[name]:
                write_csv(folder / f"{name}.csv", tables[name], compared.frames[name].column_names)
    if as_json:
        typer.echo(json.dumps(content, ensure_ascii=False, indent=1))
        return 0
    there = {row["pair"] for name in ("asked", "tasks") for row in content[name]}
    apart = [pair["pair"] for pair in content["pairs"] if pair["pair"] not in there]
    _head(content)
    if apart:
        typer.echo(f"not compared, since they share no task with a score: {'; '.join(apart)}")
    several = len({label for pair in content["pairs"] for label in (pair["before"], pair["after"])}) > 2
    most = 0 if several and content["pairs"][0]["question"] != "strategies" else SHOWN  # else a sentence
    suites = suite_groups(tasks)
    whole = [row for row in content["groups"] if row["name"] in suites]
    parts = [row for row in content["groups"] if row["name"] not in suites]
    if len(content["pairs"]) > 1 or len(content["asked"]) > len(whole):
        _table("name", content["asked"], content["asked"], most=len(content["asked"]), sort=False)
    _table("suite", whole, whole, most=len(whole))
    _table("group", [row for row in parts if _is_significant(row)], parts, most=most)
    _table("task", content["tasks"], content["tasks"], most=most)
    _table("label", content["labels"], content["labels"], most=len(content["labels"]), sort=False)
    if asked := sum(row["documents"] for row in content["tasks"]):
        gained = sum(row["after"] > row["before"] for row in content["flipped"])
        worse = len(content["flipped"]) - gained
        typer.echo(f"\n{gained + worse:,} of {asked:,} documents changed: {gained:,} better, {worse:,} worse")
    if runs := [path for path in paths if Path(path).is_dir()]:  # of published models no answer is known
        say_next(f"medtasks view {shlex.join(runs)}")
    if folder:
        say(f"{', '.join(f'{name}.csv' for name in _FILES if content[name])}: {out}")
    return 0


def _head(content: Mapping[str, Any]) -> None:
    if content["sample"]:
        typer.echo(SAMPLE_DATA)
    first, pairs = content["pairs"][0], content["pairs"]
    strategies = first["question"] == "strategies"
    if len(pairs) == 1:
        typer.echo(f"before: {first['before']}\nafter:  {first['after']}")
    elif strategies:
        typer.echo(f"strategies of {first['before'].rpartition(',')[0]}")
    else:  # names of models are long: letters stand for them
        labels = dict.fromkeys(label for pair in pairs for label in (pair["before"], pair["after"]))
        letters = dict(zip(labels, ascii_uppercase, strict=False))
        typer.echo("\n".join(f"{letter}: {label}" for label, letter in letters.items()))
        short = {
            pair["pair"]: " → ".join(letters.get(pair[side], pair[side]) for side in ("before", "after"))
            for pair in pairs
        }
        for row in (row for name in ("asked", "groups", "tasks", "labels") for row in content[name]):
            row["pair"] = short[row["pair"]]
        return
    for name, (one, other) in first["settings"].items():
        typer.echo(f"  {name}: {one} → {other}")
    if strategies:
        typer.echo("one model, other strategies: paired tests on the same documents")


def _is_significant(row: Json) -> bool:
    return row["p_holm"] is not None and bool(row["p_holm"] < ALPHA)


def _table(
    title: str, chosen: Sequence[Json], rows: Sequence[Json], *, most: int = SHOWN, sort: bool = True
) -> None:
    if not rows:
        return
    ordered = list(chosen)
    if sort:
        ordered.sort(key=lambda row: (not _is_significant(row), -abs(row["difference"])))
    shown = ordered[:most]
    several = len({row["pair"] for row in rows}) > 1
    differs = {row.get("differs") for row in rows}
    same = next(iter(differs)) if len(rows) > 1 and len(differs) == 1 else None  # said once, below
    columns = [
        texts(title, "name"),
        *([texts("pair")] if several else []),
        figure("before", form=".4f"),
        figure("after", form=".4f"),
        figure("change [95 % interval]", _difference),
        figure("p (Holm)", lambda row: None if row["p_holm"] is None else p_words(row["p_holm"])),
        figure("", lambda row: _marks({**row, "differs": None} if same else row)),
    ]
    if shown:
        show(shown, columns, pad_edge=False, collapse_padding=True)
    if same:
        console().print(f"other in all {title}s: {same}")
    n = sum(map(_is_significant, rows))
    hidden = len(rows) - len(shown)
    more = f"; {hidden} more in {title}s.csv of -o" if hidden else ""
    console().print(f"{n} of {len(rows)} {title}s changed (p < {ALPHA} after Holm's adjustment){more}")


def _difference(row: Json) -> str:
    if row["interval_low"] is None:
        return f"{row['difference']:+.4f} \\[unknown]"
    return f"{row['difference']:+.4f} \\[{row['interval_low']:+.3f}, {row['interval_high']:+.3f}]"


def _marks(row: Json) -> str:
    marks = []
    if _is_significant(row):
        marks.append("better" if row["difference"] > 0 else "worse")
    if row["p"] is None:
        marks.append(row["method"])
    if row.get("differs"):
        marks.append(f"other {row['differs']}")
    if row.get("documents_of_one_alone"):
        marks.append(f"{row['documents']} shared documents")
    if "of" in row and row["tasks"] < row["of"]:
        marks.append(f"{row['tasks']}/{row['of']} tasks")
    return "; ".join(marks)
