"""`medtasks rescore`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from medtasks_ext.cli.arguments import quiet
from medtasks_ext.cli.run import finish
from medtasks_ext.cli.words import say, say_next
from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts.documents import document_key
from medtasks_ext.registry import registry
from medtasks_ext.report.privacy import is_open
from medtasks_ext.results.run_files import read_run

#: characters of a reading, and of a response around it
_READING, _AROUND = 80, 60


def rescore(
    folder: Annotated[str, typer.Argument(help="Folder of a run.")],
    disagreements: Annotated[
        bool,
        typer.Option(
            "--disagreements", help="Compute nothing: list answers that the two readings see differently."
        ),
    ] = False,
) -> int:
    """Compute every metric again, without a model.

    From the stored responses, by the tasks' version of now. The words that they were asked in stay in the
    record: where these did not change, results of two versions compare once both are rescored.

    Example: medtasks rescore runs/MODEL

    Exit code 1: a task failed or is missing.
    """
    if disagreements:
        return _print_disagreements(folder)
    quiet()
    from medtasks_ext.results.reading import unknown_tasks
    from medtasks_ext.runner.run import Run
    from medtasks_ext.runs.seal import RunLease

    run = Run(Path(folder), registry())
    run.load()
    if not run.known_names():
        fault = unknown_tasks(list(run.manifest.tasks), folder)
        raise MedtasksError(fault.what, where=fault.where, remedy="call it with the folder of these tasks")
    with RunLease(run.folder, "medtasks rescore", "rescored"):
        run.rescore(lambda task, what: say(f"{task}: {what}"))
        return finish(run, 0)


def _print_disagreements(folder: str) -> int:
    """Print, task by task, what the official and the repaired reading see differently, and their reasons.

    The response is shown where the text is open. Of other texts the reading alone is, cut to its beginning.
    """
    run, tasks = read_run(Path(folder)), registry()
    total = 0
    for task in sorted(run.tasks):
        if task not in tasks.tasks:
            continue
        dataset = tasks.tasks[task][0]
        differing = [sample for sample in run.samples(task) if differs(sample)]
        total += len(differing)
        for sample in differing:
            shown = is_open(dataset, sample=sample["doc"].get("data") == "sample")
            for line in lines_of(task, sample, shown=shown):
                typer.echo(line)
    typer.echo(f"{total} answers are read differently")
    if total:
        say_next(f"medtasks view {folder}")
    return 0


def differs(sample: Mapping[str, Any]) -> bool:
    """Whether the two readings of a sample have another score, or one of them has no answer."""
    read = sample["filtered_resps"][0]
    if read.get("reader") != "official":
        return False
    return sample.get("score") != sample.get("score_repaired") or sample.get("valid") != sample.get(
        "readable_repaired"
    )


def lines_of(task: str, sample: Mapping[str, Any], *, shown: bool) -> list[str]:
    """A sample in words."""
    read, response = sample["filtered_resps"][0], sample["resps"][0][0]
    name = document_key(sample["doc"]) if shown else f"#{sample['doc_id'] + 1}"
    lines = [f"{task} {name}"]
    for title, said in (("official", read), ("repaired", read["repaired"])):
        answer, span = said["answer"], said.get("span")
        line = f"  {title}: {_short(answer, _READING)}"
        if said.get("why"):
            line += f" ({said['why']})"
        if span and shown:
            line += f" in {response[max(0, span[0] - _AROUND) : span[1] + _AROUND]!r}"
        lines.append(line)
    if shown and not any(said.get("span") for said in (read, read["repaired"])):
        lines.append(f"  response: {response[: 2 * _AROUND]!r}")
    return lines


def _short(value: Any, length: int) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= length else f"{text[:length]}…"
