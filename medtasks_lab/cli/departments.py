"""`medtasks study departments`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medtasks_ext.cli.app import AllowField, AllowHost, AllowKey, DryRun, cost_option, jury_option, out_option
from medtasks_ext.cli.arguments import quiet, say_faults
from medtasks_ext.cli.tables import figure, show, texts
from medtasks_ext.cli.words import names_in, say, say_next
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry

if TYPE_CHECKING:
    from medtasks_ext.judge.jury import Jury
    from medtasks_ext.prompts.documents import Document
    from medtasks_ext.registry import Dataset
    from medtasks_lab.cli.ask_folder import Asked
    from medtasks_lab.studies.departments import DepartmentRubric, Labelling
    from medtasks_lab.studies.judge_evaluation import Figure

AFTER_INTERRUPT = "goes on"

DONE, INCOMPLETE, INTERRUPTED = 0, 1, 130
_TITLES = {"cohen_kappa": "kappa", "f1": "F1"}


def departments(
    tasks: Annotated[
        str, typer.Option("--tasks", help="Whose test questions are labelled: tasks, groups, tags.")
    ],
    jury: Annotated[str, jury_option("Jury file with one model, which labels.")],
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
    dry_run: DryRun = False,
    max_cost: Annotated[float | None, cost_option("Stop before it has cost more USD in all.")] = None,
    allow_host: AllowHost = None,
    allow_key: AllowKey = None,
    allow_field: AllowField = None,
) -> int:
    """Label questions with clinical departments by a model.

    Up to three of a two-tier list, or none, as MLB does; with the agreement with people where rows or a file
    name departments. Resumable.

    Example: medtasks study departments --tasks mlb --jury labeller.yaml -o departments

    Exit code 1: labels are missing.
    """
    quiet()
    from medtasks_ext.judge.checks import check_prices
    from medtasks_ext.judge.jury import load_jury
    from medtasks_lab.cli.ask_folder import ask_in_folder
    from medtasks_lab.studies.departments import DepartmentRubric, read_sample, texts_to_label

    model = load_jury(jury, allow_key)
    if len(model.models) != 1:
        raise MedtasksError(
            f"{len(model.models)} models are in it",
            where=f"--jury {jury}",
            remedy="name one: it labels alone",
        )
    check_prices(model, max_cost, allow_field)  # before rows are read
    people = read_sample(Path(sample)) if sample else {}
    documents = _documents(tasks, data, limit)
    if strangers := {task for task, _ in people} - {dataset.id for dataset, _ in documents}:
        raise MedtasksError(
            f"{min(strangers)} is not among the tasks that are labelled", where=f"--sample {sample}",
            remedy="name it with --tasks, or leave its rows out",
        )  # fmt: skip
    rubric, folder = DepartmentRubric(), Path(out)
    to_label = [texts_to_label(dataset, items, rubric) for dataset, items in documents]
    with ask_in_folder(
        folder,
        model,
        to_label,
        command="medtasks study departments",
        dry_run=dry_run,
        max_cost=max_cost,
        allow_host=allow_host,
        allow_field=allow_field,
        private=any(not task.open_access for task in to_label),
    ) as asked:
        if asked is None:
            return DONE
        _say_asked(asked)
        return INTERRUPTED if asked.interrupted else _finish(folder, model, asked, rubric, documents, people)


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


def _say_asked(asked: Asked) -> None:
    """Say what became of the requests of this call, if there were any."""
    from medtasks_ext.cli.judging import money_words

    if asked.end is None:
        return
    for judge, reason in asked.end.stopped.items():
        say(f"✗ {judge}: {reason}")
    for (_, reason), count in asked.missing.most_common():
        say(f"missing: {count:,} ({reason})")
    if words := money_words(asked.planner.budget):
        say(f"spent: {words}")
    if asked.interrupted:
        say("medtasks: interrupted; the same command continues")


def _finish(
    folder: Path,
    jury: Jury,
    asked: Asked,
    rubric: DepartmentRubric,
    documents: Sequence[tuple[Dataset, list[Document]]],
    people: Mapping[tuple[str, str], Sequence[str]],
) -> int:
    from medtasks_lab.studies.departments import labelling, own_labels, write_labelling

    found = [
        labelling(task, rubric, items, jury, asked.store)
        for task, (_, items) in zip(asked.planner.runs[0].tasks, documents, strict=True)
    ]
    files = [write_labelling(folder, item) for item in found]
    _print(found)
    named = {
        (dataset.id, name): labels
        for dataset, items in documents
        for name, labels in own_labels(items).items()
    }
    _print_agreement({**named, **people}, found)
    for file in files:
        typer.echo(file)
    say_next(f"medtasks report RUN --by {folder}")
    return INCOMPLETE if any(item.missing for item in found) else DONE


def _print(found: Sequence[Labelling]) -> None:
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
