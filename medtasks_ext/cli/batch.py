"""What commands say of batch files: which there are, and how they get their answers."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer

from medtasks_ext.cli.words import counted, say
from medtasks_ext.errors import some

if TYPE_CHECKING:
    from medtasks_ext.engines.batch import FileReport, Intake, Written


class ForModel(NamedTuple):
    """Files of requests to one model."""

    title: str
    files: Sequence[Written]
    url: str  # of each request; empty for Anthropic's
    model: str  # as requests name it
    server: str  # address up to /v1 of a provider; empty where one runs the model oneself
    key: str = "OPENAI_API_KEY"  # variable that holds the provider's key
    cost: str = ""  # in words

    @property
    def paths(self) -> list[Path]:
        """The files."""
        return [item.path for item in self.files]


def say_written(written: Sequence[ForModel], back: str) -> None:
    """Name files of requests, and the commands by which they get their answers, to be copied.

    Args:
        back: the command that takes results, without their names.
    """
    for model in written:
        typer.echo(f"{model.title}:")
        for item in model.files:
            typer.echo(f"  {item.path}: {counted(item.requests, 'request')}, {item.bytes:,} bytes")
        if model.cost:
            typer.echo(model.cost)
    typer.echo("next:")
    for model in written:
        _say_answering(model)
    typer.echo(f"  {back} {' '.join(results_named(model.paths) for model in written)}")


def _say_answering(given: ForModel) -> None:
    files = given.paths
    if not given.url:
        _say_messages(files)
    elif given.server:
        _say_upload(files, given.url, given.server, given.key)
    elif given.url.endswith("/chat/completions"):
        name = shlex.quote(given.model)
        _say_each(files, lambda given, got: f"vllm run-batch -i {given} -o {got} --model {name}")
    else:
        typer.echo("  `vllm run-batch` takes conversations alone: docs/evaluate.md asks a server with Ray")


def _say_upload(files: Sequence[Path], url: str, server: str, variable: str) -> None:
    curl, key = f"curl {server}", f' -H "Authorization: Bearer ${variable}"' if variable else ""
    batch = f'{{"input_file_id": "FILE", "endpoint": "{url}", "completion_window": "24h"}}'
    _say_each(files, lambda given, got: f"{curl}/files{key} -F purpose=batch -F file=@{given}")
    typer.echo(f"  {curl}/batches{key} -H 'Content-Type: application/json' -d '{batch}'")
    typer.echo(f"  {curl}/batches/BATCH{key}   # until it names output_file_id, and error_file_id")
    typer.echo(f"  {curl}/files/FILE/content{key} > {results_named(files[:1])}")


def _say_messages(files: Sequence[Path]) -> None:
    """Anthropic takes the lines in a list."""
    curl = "curl https://api.anthropic.com/v1/messages/batches"
    key = '-H "x-api-key: $ANTHROPIC_API_KEY" -H "anthropic-version: 2023-06-01"'
    send = f"{curl} {key} -H 'Content-Type: application/json' --data-binary @-"
    _say_each(files, lambda given, got: f"jq -cs '{{requests: .}}' {given} | {send}")
    typer.echo(f"  {curl}/BATCH {key}   # until its processing_status is ended")
    typer.echo(f"  {curl}/BATCH/results {key} > {results_named(files[:1])}")


def _say_each(files: Sequence[Path], command: Callable[[str, str], str]) -> None:
    """A command over all files, given the names of requests and results as a shell writes them."""
    if len(files) == 1:
        typer.echo(f"  {command(_named(files, '.jsonl'), results_named(files))}")
        return
    one = command('"$part"', '"${part%.jsonl}.results.jsonl"')
    typer.echo(f"  for part in {_named(files, '.jsonl')}; do {one}; done")


def results_named(files: Sequence[Path]) -> str:
    """The files of results that the commands make, as a shell names them."""
    return _named(files, ".results.jsonl")


def _named(files: Sequence[Path], ending: str) -> str:
    stem = str(files[0]).removesuffix(".jsonl")
    if len(files) == 1:
        return shlex.quote(stem + ending)
    front, _, back = stem.rpartition("-00001-of-")
    return f"{shlex.quote(front)}-*-of-{back}{ending}"


def take_files(intake: Intake, paths: Sequence[Path]) -> bool:
    """Store the results in files, and say what was in each; whether every line is a result of ours.

    Raises:
        MedtasksError: the disk takes no more. What was stored stays.
    """
    sound = True
    for path in paths:
        report = intake.take(path)
        _say_report(report)
        sound = sound and report.is_sound
    return sound


def _say_report(report: FileReport) -> None:
    """What was in a file of results, and what of it cannot be used."""
    parts = [counted(report.answers, "new answer")]
    parts += [counted(report.faults, "new fault")] * bool(report.faults)
    parts += [f"{report.there:,} stored before"] * bool(report.there)
    parts += [f"{report.repeated:,} repeated"] * bool(report.repeated)
    say(f"{report.path}: {', '.join(parts)}")
    for what, items in (
        ("results with another content than before in this call; the first counts", report.different),
        ("results of other requests", report.unknown),
        ("lines that hold no result", report.broken),
    ):
        if items:
            say(f"✗ {report.path}: {len(items):,} {what}: {some(items)}")
