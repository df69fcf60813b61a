"""Tables for the terminal; plain text when it is not one."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from medtasks_ext.cli.words import counted
from medtasks_ext.registry import paper_datasets

if TYPE_CHECKING:
    from medtasks_ext.results.rollup import Row


def console() -> Console:
    """Standard output; wide enough not to wrap when it is a file or a pipe, unless COLUMNS says how wide."""
    known = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(width=None if known else 140, highlight=False)


def print_rows(rows: list[Row], results: dict[str, Any]) -> None:
    """The roll-up table. Synthetic rows and partial groups are said in every line that has them."""
    sample = any(row.sample for row in rows)
    table = Table(
        box=box.SIMPLE_HEAD,
        collapse_padding=True,
        pad_edge=False,
        title="SAMPLE DATA: synthetic rows, not a result" if sample else None,
        title_style="bold",
        title_justify="left",
    )
    table.add_column("group or task", overflow="fold")
    table.add_column("score [95 % interval]", no_wrap=True)
    table.add_column("valid", justify="right", no_wrap=True)
    table.add_column("scored", justify="right", no_wrap=True)
    table.add_column("documents", justify="right", no_wrap=True)
    table.add_column("")
    for row in rows:
        marks = [mark for mark, holds in (("SAMPLE", row.sample), ("partial", row.partial)) if holds]
        table.add_row(
            row.name,
            _score(row),
            "–" if row.valid is None else f"{row.valid:.1%}",
            f"{row.n_scored}/{row.n_tasks}",
            f"{row.n_documents:,}",
            ", ".join(marks),
        )
    console().print(table, markup=False)
    if any(row.score is not None and row.interval is None for row in rows):
        console().print(_NO_INTERVAL, markup=False)
    for line in remarks(results):
        console().print(line)


_NO_INTERVAL = (
    "[–]: no interval, since a task has fewer than two documents or its resamples are missing"
    " (`medtasks rescore` makes them)"
)


def _score(row: Row) -> Text:
    if row.score is None:
        return Text("–")
    interval = f"{row.interval.low:.3f}, {row.interval.high:.3f}" if row.interval else "–"
    return Text(f"{row.score:.4f} [{interval}]")


_CUT = {
    "answers_cut": "answers fill the token budget: raise max_gen_toks",
    "shots_dropped": "prompts carry fewer shots than asked for, to fit the context",
    "inputs_cut": "inputs lost their end, to fit the context",
}


def remarks(results: dict[str, Any]) -> list[str]:
    """What a reader must know beside the scores: traces that never closed, rows held out, rebuilt rows."""
    lines = []
    unclosed = {name: item["metrics"].get("unclosed_reasoning", 0) for name, item in results.items()}
    if worst := {name: share for name, share in unclosed.items() if share > 0}:
        name = max(worst, key=worst.__getitem__)
        lines.append(
            f"reasoning that never ended in {counted(len(worst), 'task')} (most: {name}, {worst[name]:.1%}):"
            " raise max_gen_toks"
        )
    for key, text in _CUT.items():
        counts = {name: item["cut"].get(key, 0) for name, item in results.items()}
        if total := sum(counts.values()):
            most = max(counts, key=counts.__getitem__)
            lines.append(f"{total:,} {text} (most: {most}, {counts[most]:,})")
    held = {
        name: item["loaded"]["n_held_out"] for name, item in results.items() if item["loaded"]["n_held_out"]
    }
    if held:
        lines.append(
            f"no few-shot pool in {counted(len(held), 'task')}: "
            f"{max(held.values())} test rows of each serve as shots"
        )
    judged = [
        name
        for name, item in results.items()
        if "score" not in item["metrics"] and _judging(item["config"]) is not None
    ]
    if judged:
        waiting = counted(len(judged), "task")
        lines.append(f"judges are still to score {waiting}: medtasks judge RUN --jury NAME")
    if added := [name for name, item in results.items() if _was_added(item)]:
        lines.append(
            f"datasets that no suite's paper has: {', '.join(added)}; groups with them have other means than"
            " the papers'"
        )
    rebuilt = [name for name, item in results.items() if item["loaded"]["rebuilt"]]
    if rebuilt:
        lines.append(f"test rows rebuilt from the source, not the suite's own: {', '.join(rebuilt)}")
    return lines


def _was_added(result: dict[str, Any]) -> bool:
    """Whether a task's dataset joined its suite later. Twins join no group."""
    twin = result["config"]["metadata"]["medtasks"].get("twin_of")
    return not twin and result["loaded"]["task"] not in paper_datasets()


def _judging(config: dict[str, Any]) -> Any:
    """How a task's answers are judged; None where they are not."""
    return ((config.get("dataset_kwargs") or {}).get("medtasks_dataset") or {}).get("judge")
