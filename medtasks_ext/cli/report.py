"""`medtasks report`: how good models are, where, and how sure that is."""

from __future__ import annotations

import json
import logging
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from medtasks_ext.atomic import private_files
from medtasks_ext.cli.commands import AsJson, ByLabels, out_option
from medtasks_ext.cli.report_tables import print_report
from medtasks_ext.cli.words import names_in, say, say_next
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import Json
from medtasks_ext.process import collector_paused
from medtasks_ext.registry import STRATEGIES, registry
from medtasks_ext.registry.strategies import is_strategy, strategy_order
from medtasks_ext.report.gather import Report, gather
from medtasks_ext.results.frames import records


def report(
    folders: Annotated[
        list[str] | None,
        Argument(
            metavar="[RUN...]",
            help="Folders of runs, or of lm_eval --output_path; none with --published.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        str | None, out_option("Folder for the page (HTML) and the tables (CSV, Parquet).")
    ] = None,
    published: Annotated[
        str | None,
        Option(help="Published models beside yours: a suite, all or none; by default of the suites you ran."),
    ] = None,
    strategy: Annotated[
        list[str] | None, Option(help="Only zero_shot, cot or five_shot; repeatable.")
    ] = None,
    by: ByLabels = None,
    answers: Annotated[
        bool, Option("--answers", help="Answers to gated and private data, too: patients' text.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Report scores, strengths and weaknesses, with intervals.

    Any number of runs side by side, with intervals, ranks, paired comparisons and published models. The page
    shows the answers, too: those to open data, unless more is asked for.

    Example: medtasks report runs/A runs/B -o report

    Exit code 1: something in the runs could not be used, and is named.
    """
    logging.getLogger("medtasks_ext.metrics").setLevel(logging.ERROR)  # the run named what lacks data
    strategies = _strategies(strategy or [])
    runs, labels = [Path(name) for name in folders or []], [Path(name) for name in by or []]
    with _folder(out) as folder, collector_paused():  # thousands of results are read, and all of them stay
        report = gather(runs, registry(), strategies, published, labels)
        written = list[Path]()
        if folder is not None:
            from medtasks_ext.report.write import write_report, write_views

            if answers:
                say("--answers: the files hold text of gated and private data, as confidential as they are")
            with private_files(answers):
                written = write_report(folder, report, closed=answers)
                written += write_views(folder, report, written)
        if as_json:
            typer.echo(json.dumps(_summary(report), ensure_ascii=False, indent=1))
        else:
            print_report(report, files=out is not None, labelled=bool(by))
    for path in written:
        say(str(path))
    if folders and not as_json:
        named = shlex.join(folders)
        say_next(f"medtasks view {named}" if written else f"medtasks report {named} -o report")
    return 1 if any(fault.skipped for fault in report.faults) else 0


@contextmanager
def _folder(out: str | None) -> Iterator[Path | None]:
    """The folder to write to; one that was made for a report that fails does not stay."""
    if out is None:
        yield None
        return
    from medtasks_ext.report.write import check_folder

    folder = Path(out)
    is_new = not folder.exists()
    check_folder(folder)
    try:
        yield folder
    except MedtasksError:
        if is_new:
            with suppress(OSError):  # it holds something
                folder.rmdir()
        raise


def _strategies(given: Sequence[str]) -> list[str] | None:
    names = [name for item in given for name in names_in(item)]
    if unknown := [name for name in names if not is_strategy(name)]:
        what = f"unknown strategy {unknown[0]!r}"
        remedy = f"use {', '.join(STRATEGIES)}, or what was asked with --num_fewshot: 3_shot, cot_1_shot"
        raise MedtasksError(what, where="--strategy", remedy=remedy)
    return sorted(set(names), key=strategy_order) or None


def _summary(report: Report) -> Json:
    shown = ("groups", "standings", "pairs")
    costs = zip(report.entries, report.costs.to_pylist(), strict=True)
    return {
        "schema": 1,
        "sample": report.sample,
        "entries": [
            {
                "entry": entry.label,
                "model": entry.model,
                "kind": entry.kind,
                "sample": entry.sample,
                "settings": entry.words,
                "notes": list(entry.notes),
                "tokens": {side: cost[f"{side}_tokens"] for side in ("input", "output")}
                if cost["counted"]
                else None,
                **{name: cost[name] for name in ("usd", "price", "jury")},
            }
            for entry, cost in costs
        ],
        **{name: records(getattr(report, name)) for name in shown},
        "without_score": [
            {name: gap[name] for name in ("entry", "task", "state", "reason")}
            for gap in report.gaps.to_pylist()
            if gap["state"] != "not asked"
        ],
        "labels": records(report.labels),
        "differences": report.differences,
        "faults": [item.record() for item in report.faults],
    }
