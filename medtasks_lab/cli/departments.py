"""`medtasks study departments`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medtasks_ext.cli.app import out_option
from medtasks_ext.cli.arguments import quiet, say_faults
from medtasks_ext.cli.tables import figure, show, texts
from medtasks_ext.cli.words import names_in
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry
from medtasks_lab.cli.jury_study import Asking, JuryStudy, asks_jury, run_study

if TYPE_CHECKING:
    from medtasks_ext.prompts.documents import Document
    from medtasks_ext.registry import Dataset
    from medtasks_lab.studies.departments import Labelling
    from medtasks_lab.studies.judge_evaluation import Figure

AFTER_INTERRUPT = "goes on"

_TITLES = {"cohen_kappa": "kappa", "f1": "F1"}


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
    data: Annotated[
        str | None, typer.Option("--data", metavar="ORIGIN", help="As for `medtasks run`.")
    ] = None,
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
        DepartmentRubric,
        labelling,
        own_labels,
        read_sample,
        texts_to_label,
        write_labelling,
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
    to_label = [(texts_to_label(dataset, items, rubric), items) for dataset, items in documents]
    named = {
        (dataset.id, name): labels
        for dataset, items in documents
        for name, labels in own_labels(items).items()
    }
    study = JuryStudy(
        command="medtasks study departments",
        what="labels of questions",
        panels=[(model, [task for task, _ in to_label])],
        figures=lambda store: [labelling(task, rubric, items, model, store) for task, items in to_label],
        write=lambda folder, found: [write_labelling(folder, item) for item in found],
        show=lambda found: _print(found, {**named, **people}),
        missing=lambda found: sum(len(item.missing) for item in found),
        then=lambda found: [f"medtasks report RUN --by {out}"],
        private=not all(task.open_access for task, _ in to_label),
    )
    return run_study(study, asking, Path(out))


def _documents(tasks: str, data: str | None, limit: int | None) -> list[tuple[Dataset, list[Document]]]:
    """The questions of the named tasks, each once."""
    from medtasks_ext.rows.sources import forced_origin
    from medtasks_lab.studies.contamination.ask import inputs

    known, origin = registry(), forced_origin(data)
    names = [leaf for leaves in known.resolve(names_in(tasks)).values() for leaf in leaves]
    datasets = dict.fromkeys(known.tasks[name][0].id for name in names)
    found, faults = [], {}
    for name in datasets:
        try:
            found.append((known.datasets[name], inputs(known.datasets[name], origin)[:limit]))
        except MedtasksError as error:
            faults[name] = error
    say_faults(faults, stop=not found)
    return found


def _print(found: Sequence[Labelling], people: Mapping[tuple[str, str], Sequence[str]]) -> None:
    from medtasks_ext.registry.departments import NO_DEPARTMENT
    from medtasks_lab.studies.departments import counts_of

    sample = any(item.origin == "sample" for item in found)
    rows = []
    for item in found:
        by_primary = dict(counts_of(item))
        none = by_primary.pop(NO_DEPARTMENT, 0)
        most = sorted(by_primary.items(), key=lambda pair: -pair[1])[:3]
        counts = (len(item.by_question) + len(item.missing), len(item.by_question), none)
        frequent = ", ".join(f"{name} {n:,}" for name, n in most)
        rows.append((item.task, frequent, *(f"{n:,}" for n in counts)))
    columns = [texts("task"), texts("most frequent")]
    columns += map(figure, ("questions", "labelled", "no department"))
    show(rows, columns, sample=sample)
    _print_agreement(people, found)


def _print_agreement(people: Mapping[tuple[str, str], Sequence[str]], found: Sequence[Labelling]) -> None:
    """How far the model agrees with people, over all tasks together."""
    from medtasks_lab.studies.departments import MEASURES, agreement

    if not people:
        typer.echo("no agreement: neither rows nor --sample name departments")
        return
    model = {(item.task, name): labels for item in found for name, labels in item.by_question.items()}
    agreed = agreement(people, model)
    columns = [
        texts("", lambda name: _TITLES.get(name, name)),
        figure("secondary departments", lambda name: _figure(agreed.figures[name])),
        figure("primary departments", lambda name: _figure(agreed.primary[name])),
    ]
    show(MEASURES, columns, pad_edge=False)
    typer.echo(
        f"agreement with people on {agreed.questions:,} of {len(people):,} questions that they labelled; "
        "exact: the same set; the others are of all decisions, question by department; [95 % interval]: "
        "questions resampled 1,000 times"
    )


def _figure(found: Figure) -> str:
    if found.value is None:
        return "–"
    limits = f" [{found.interval.low:.3f}, {found.interval.high:.3f}]" if found.interval else ""
    return f"{found.value:.4f}{limits}"
