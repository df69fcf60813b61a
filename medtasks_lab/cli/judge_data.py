"""`medtasks judge data`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from medtasks_ext.atomic import private_files
from medtasks_ext.cli.app import out_option
from medtasks_ext.cli.words import say_next
from medtasks_ext.seed import SEED
from medtasks_lab.studies.judge_sft import expert_decisions, read_cases, split_by_question, write_split


def judge_data(
    files: Annotated[list[str], typer.Argument(metavar="CASES...", help="JSONL files of adjudicated cases.")],
    expert: Annotated[
        list[str] | None,
        typer.Option(help="Decisions of experts (`medtasks human ingest`), if not in CASES."),
    ] = None,
    test_share: Annotated[float, typer.Option(help="Share of the questions that are held out.")] = 0.1,
    seed: Annotated[int, typer.Option(help="Of the split and the order of rows.")] = SEED,
    out: Annotated[str, out_option("Folder for the data.")] = "judge_data",
) -> int:
    """Write fine-tuning data of a judge model.

    From cases that experts decided, as MLB does.

    Example: medtasks judge data queue.jsonl --expert decisions.jsonl -o judge_data
    """
    cases = read_cases([Path(file) for file in files])
    decisions = expert_decisions(cases, [Path(file) for file in expert or []])
    split = split_by_question(cases, decisions, test_share, seed)
    with private_files(True):  # rows hold questions and answers
        record = write_split(Path(out), split, test_share, seed)
    for side, counts in record["sides"].items():
        typer.echo(
            f"{side}: {counts['questions']:,} questions, {counts['answers']:,} answers, "
            f"{counts['points']:,} points ({counts['met'] / counts['points']:.1%} met)"
        )
    points = sum(len(case.points) for case in cases.values())
    if left := points - len(decisions):
        typer.echo(f"left out: {left:,} of {points:,} points, which no expert has decided")
    typer.echo(f"{out}: train.jsonl and test.jsonl for training; test_cases.jsonl for `medtasks judge eval`")
    evaluate = f"medtasks judge eval {out}/test_cases.jsonl --jury JURY -o judge_eval"
    say_next("train a model on it (docs/judges.md)", evaluate)
    return 0
