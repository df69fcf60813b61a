"""`medtasks judge-data`."""

from __future__ import annotations

from pathlib import Path

import typer

from medtasks_ext.studies.judge_sft import expert_decisions, read_cases, split_by_question, write_split


def judge_data_command(files: list[str], expert: list[str], *, test_share: float, seed: int, out: str) -> int:
    """Write the training and test data of a judge model; returns the exit code."""
    cases = read_cases([Path(file) for file in files])
    decisions = expert_decisions(cases, [Path(file) for file in expert])
    split = split_by_question(cases, decisions, test_share, seed)
    record = write_split(Path(out), split, test_share, seed)
    for side, counts in record["sides"].items():
        typer.echo(
            f"{side}: {counts['questions']:,} questions, {counts['answers']:,} answers, "
            f"{counts['points']:,} points ({counts['met'] / counts['points']:.1%} met)"
        )
    points = sum(len(case.points) for case in cases.values())
    if left := points - len(decisions):
        typer.echo(f"left out: {left:,} of {points:,} points, which no expert has decided")
    typer.echo(f"{out}: train.jsonl and test.jsonl for training; test_cases.jsonl for `medtasks judge-eval`")
    return 0
