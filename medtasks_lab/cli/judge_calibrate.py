"""`medtasks judge calibrate`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medtasks_ext.cli.arguments import quiet
from medtasks_ext.cli.tables import figure, show, texts
from medtasks_ext.cli.words import say_next
from medtasks_ext.csvfile import write_csv
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry

if TYPE_CHECKING:
    from medtasks_ext.runner.run import Run
    from medtasks_lab.judge.calibrate import Calibration


def judge_calibrate(
    folders: Annotated[
        list[str], typer.Argument(metavar="RUN...", help="Runs that one jury judged; some hold the anchors.")
    ],
    anchors: Annotated[
        str | None,
        typer.Option(help="Answers of these runs with others' ratings: CSV or JSONL."),
    ] = None,
    sheet: Annotated[
        str | None,
        typer.Option(help="Write an anchor set without ratings to this CSV, to fill in."),
    ] = None,
) -> int:
    """Place a jury's scores on the scale of other raters.

    Calibrated scores stand beside the jury's own as score_calibrated, and are in no rank.

    Example: medtasks judge calibrate runs/MODEL runs/RATED --anchors anchors.csv
    """
    quiet()
    from medtasks_ext.runner.run import Run
    from medtasks_ext.runs.seal import RunLease
    from medtasks_lab.judge.calibrate import anchor_sheet, calibrate

    if bool(anchors) == bool(sheet):
        raise MedtasksError(
            "needs ratings (--anchors FILE), or writes the sheet for them (--sheet FILE)",
            where="medtasks judge calibrate",
            remedy="give one of the two",
        )
    with ExitStack() as stack:
        runs: list[Run] = []
        for name in dict.fromkeys(folder.rstrip("/") for folder in folders):
            run = Run(Path(name), registry())
            run.load()
            stack.enter_context(RunLease(run.folder, "medtasks judge calibrate", "calibrated"))
            runs.append(run)
        if sheet:
            _write(Path(sheet), anchor_sheet(runs))
            learn = f"medtasks judge calibrate {shlex.join(folders)} --anchors {sheet}"
            say_next(f"fill in the ratings of {sheet}", learn)
        elif anchors:
            _print(calibrate(runs, Path(anchors)))
            say_next(f"medtasks report {shlex.join(folders)} -o report")
    return 0


def _write(path: Path, lines: Sequence[dict[str, str]]) -> None:
    write_csv(path, lines)
    typer.echo(
        f"{path}: {len(lines):,} answers; fill in rating and rater, lines without a rating do not count"
    )


def _print(calibrations: Sequence[Calibration]) -> None:
    for item in calibrations:
        title = f"{item.jury}\non the scale of {item.rater}"
        several = len({line.folder for line in item.tasks}) > 1
        rows = []
        for line in item.tasks:
            limits = f" [{line.interval.low:.3f}, {line.interval.high:.3f}]" if line.interval else " [–]"
            name = f"{line.task}, {line.folder}" if several else line.task
            rows.append((name, f"{line.score:.4f}", f"{line.calibrated:.4f}{limits}"))
        columns = [texts("task"), figure("score"), figure("calibrated [95 % interval]")]
        show(rows, columns, title, pad_edge=False)
        errors = item.errors
        typer.echo(
            f"{item.anchors} anchors; distance from {item.rater} out of sample: {errors.calibrated:.3f}, "
            f"uncalibrated {errors.as_they_are:.3f}"
        )
        if errors.calibrated >= errors.as_they_are:
            typer.echo("the map brings scores no nearer to these raters: quote the jury's own")
        if item.absent:
            typer.echo(f"{item.absent} anchors are about answers that none of these runs has")
