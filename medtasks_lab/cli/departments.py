"""`medtasks study departments`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medtasks_ext.cli.app import Origin, out_option
from medtasks_ext.cli.arguments import quiet, say_faults
from medtasks_ext.cli.words import names_in
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry
from medtasks_lab.cli.jury_study import Asking, JuryStudy, asks_jury, run_study

if TYPE_CHECKING:
    from medtasks_ext.prompts.documents import Document
    from medtasks_ext.registry import Dataset

AFTER_INTERRUPT = "goes on"


@asks_jury("Jury file with one model, which labels.")
def departments(
    tasks: Annotated[
        str, typer.Option("--tasks", help="Whose test questions are labelled: tasks, groups, tags.")
    ],
    sample: Annotated[
        str | None,
        typer.Option(
            "--sample", metavar="FILE", help="Labels of people to agree with: columns task, id, department."
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="The first N questions of each task.")
    ] = None,
    data: Origin = None,
    out: Annotated[str, out_option("Folder for TASK.json.")] = "departments",
    *,
    asking: Asking,
) -> int:
    """Label questions with clinical departments by a model.

    Up to three of a two-tier list, or none, as MLB does; with the agreement with people where rows or a file
    name departments. Resumable.

    Example: medtasks study departments --tasks mlb --jury labeller.yaml -o departments

    Exit code 1: labels are missing.
    """
    quiet()
    from medtasks_lab.studies.departments import (
        FILE,
        DepartmentRubric,
        own_labels,
        read_sample,
        texts_to_label,
    )

    model = asking.jury  # before rows are read
    if len(model.models) != 1:
        raise MedtasksError(
            f"{len(model.models)} models are in it",
            where=f"--jury {asking.name}",
            remedy="name one: it labels alone",
        )
    people = read_sample(Path(sample)) if sample else {}
    documents = _documents(tasks, data, limit)
    if strangers := {task for task, _ in people} - {dataset.id for dataset, _ in documents}:
        raise MedtasksError(
            f"{min(strangers)} is not among the tasks that are labelled", where=f"--sample {sample}",
            remedy="name it with --tasks, or leave its rows out",
        )  # fmt: skip
    rubric = DepartmentRubric()
    to_label = [texts_to_label(dataset, items, rubric) for dataset, items in documents]
    for dataset, items in documents:
        people = {(dataset.id, name): labels for name, labels in own_labels(items).items()} | people
    study = JuryStudy.of(
        FILE,
        "medtasks study departments",
        [(model, to_label)],
        rubric,
        [items for _, items in documents],
        people,
        sample=any(case.synthetic for task in to_label for case in task.cases),
        missing=lambda found: found.missing,
        then=lambda found: [f"medtasks report RUN --by {out}"],
    )
    return run_study(study, asking, Path(out))


def _documents(tasks: str, data: str | None, limit: int | None) -> list[tuple[Dataset, list[Document]]]:
    """The questions of the named tasks, each once."""
    from medtasks_ext.rows.sources import forced_origin
    from medtasks_lab.studies.contamination.ask import inputs_of

    known = registry()
    names = known.leaves_of(names_in(tasks))
    datasets = dict.fromkeys(known.tasks[name][0].id for name in names)
    documents, faults = inputs_of([known.datasets[name] for name in datasets], forced_origin(data), limit)
    say_faults(faults, stop=not documents)
    return [(known.datasets[name], items) for name, items in documents.items()]
