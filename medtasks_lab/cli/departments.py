"""`medtasks study departments`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medtasks_ext.cli.app import AllowHost, DryRun
from medtasks_ext.cli.arguments import quiet, say_faults
from medtasks_ext.cli.tables import SAMPLE_DATA, console, new_table
from medtasks_ext.cli.words import names_in, say, say_next
from medtasks_ext.egress import Egress
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry

if TYPE_CHECKING:
    from medtasks_ext.engines.budget import Budget
    from medtasks_ext.judge.asks import RunToJudge
    from medtasks_ext.judge.jury import Jury
    from medtasks_ext.prompts.documents import Document
    from medtasks_ext.registry import Dataset
    from medtasks_lab.studies.departments import DepartmentRubric, Labelling
    from medtasks_lab.studies.judge_evaluation import Figure

AFTER_INTERRUPT = "goes on"

DONE, INCOMPLETE, INTERRUPTED = 0, 1, 130
_TITLES = {"cohen_kappa": "kappa", "f1": "F1"}


def departments(
    tasks: Annotated[
        str, typer.Option("--tasks", help="Whose test questions are labelled: tasks, groups, tags.")
    ],
    jury: Annotated[
        str, typer.Option("--jury", metavar="JURY", help="Jury file with one model, which labels.")
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
    out: Annotated[str, typer.Option("-o", "--out", help="Folder for TASK.json.")] = "departments",
    dry_run: DryRun = False,
    max_cost: Annotated[
        float | None, typer.Option("--max-cost", min=0.0, help="Stop before it has cost more USD in all.")
    ] = None,
    allow_host: AllowHost = None,
) -> int:
    """Label questions with clinical departments by a model.

    Up to three of a two-tier list, or none, as MLB does; with the agreement with people where rows or a file
    name departments. Resumable.

    Example: medtasks study departments --tasks mlb --jury labeller.yaml -o departments

    Exit code 1: labels are missing.
    """
    quiet()
    from medtasks_ext.judge.asks import RunToJudge
    from medtasks_ext.judge.budget import budget_of
    from medtasks_ext.judge.checks import check_prices
    from medtasks_ext.judge.jury import load_jury
    from medtasks_ext.judge.store import JudgementStore
    from medtasks_ext.runs.lease import Lease
    from medtasks_lab.studies.departments import DepartmentRubric, read_sample, texts_to_label

    model = load_jury(jury)
    if len(model.models) != 1:
        raise MedtasksError(
            f"{len(model.models)} models are in it",
            where=f"--jury {jury}",
            remedy="name one: it labels alone",
        )
    check_prices(model, max_cost)
    people = read_sample(Path(sample)) if sample else {}
    documents = _documents(tasks, data, limit)
    if strangers := {task for task, _ in people} - {dataset.id for dataset, _ in documents}:
        raise MedtasksError(
            f"{min(strangers)} is not among the tasks that are labelled", where=f"--sample {sample}",
            remedy="name it with --tasks, or leave its rows out",
        )  # fmt: skip
    rubric, folder = DepartmentRubric(), Path(out)
    to_label = [texts_to_label(dataset, items, rubric) for dataset, items in documents]
    store = JudgementStore(folder)
    private = any(not task.open_access for task in to_label)
    with (
        nullcontext() if dry_run else Lease(folder, "medtasks study departments", private=private),
        closing(store),
    ):
        store.open(write=not dry_run)
        asked = RunToJudge(to_label, store)
        budget = budget_of(max_cost, model, [store])
        if dry_run:
            return _dry_run(model, asked, budget, allow_host or [])
        interrupted = _ask(model, asked, budget, allow_host or [])
        return _finish(folder, model, asked, rubric, documents, people) if not interrupted else INTERRUPTED


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


def _dry_run(jury: Jury, asked: RunToJudge, budget: Budget, allow: Sequence[str]) -> int:
    from medtasks_ext.cli.judging import print_estimates, warn_withheld
    from medtasks_ext.judge.planner import JuryPlanner

    engine = JuryPlanner(jury, [asked], budget, egress=Egress.of(allow))
    asks = engine.pending()
    warn_withheld(engine, asks)
    print_estimates(engine.estimates(asks), budget)
    return DONE


def _ask(jury: Jury, asked: RunToJudge, budget: Budget, allow: Sequence[str]) -> bool:
    """Ask for the labels that are missing; whether a signal ended it."""
    from medtasks_ext.cli.judging import ask_all, money_words
    from medtasks_ext.judge.asks import NOT_ASKED
    from medtasks_ext.judge.jury import check_keys
    from medtasks_ext.judge.planner import JuryPlanner

    engine = JuryPlanner(jury, [asked], budget, say=say, egress=Egress.of(allow))
    asks = engine.pending()
    if not asks:
        return False
    check_keys(jury.models)
    engine.check(asks)
    outcome = ask_all(engine, asks)
    for judge, reason in outcome.stopped.items():
        say(f"✗ {judge}: {reason}")
    reasons = Counter(asked.store.failed.get(ask.key, NOT_ASKED) for ask in engine.pending())
    for reason, count in reasons.most_common():
        say(f"missing: {count:,} ({reason})")
    if words := money_words(budget):
        say(f"spent: {words}")
    if outcome.interrupted:
        say("medtasks: interrupted; the same command continues")
    return outcome.interrupted


def _finish(
    folder: Path,
    jury: Jury,
    asked: RunToJudge,
    rubric: DepartmentRubric,
    documents: Sequence[tuple[Dataset, list[Document]]],
    people: Mapping[tuple[str, str], Sequence[str]],
) -> int:
    from medtasks_lab.studies.departments import labelling, own_labels, write_labelling

    found = [
        labelling(task, rubric, items, jury, asked.store)
        for task, (_, items) in zip(asked.tasks, documents, strict=True)
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
    table = new_table(
        ["task", "most frequent"], ["questions", "labelled", "no department"], SAMPLE_DATA if sample else ""
    )
    for item in found:
        by_primary = dict(counts_of(item))
        none = by_primary.pop(NO_DEPARTMENT, 0)
        most = sorted(by_primary.items(), key=lambda pair: -pair[1])[:3]
        table.add_row(
            item.task,
            ", ".join(f"{name} {n:,}" for name, n in most),
            f"{len(item.by_question) + len(item.missing):,}",
            f"{len(item.by_question):,}",
            f"{none:,}",
        )
    console().print(table, markup=False)


def _print_agreement(people: Mapping[tuple[str, str], Sequence[str]], found: Sequence[Labelling]) -> None:
    """How far the model agrees with people, over all tasks together."""
    from medtasks_lab.studies.departments import MEASURES, agreement

    if not people:
        typer.echo("no agreement: neither rows nor --sample name departments")
        return
    model = {(item.task, name): labels for item in found for name, labels in item.by_question.items()}
    agreed = agreement(people, model)
    table = new_table([""], ["secondary departments", "primary departments"], pad_edge=False)
    for name in MEASURES:
        cells = (_figure(figures[name]) for figures in (agreed.figures, agreed.primary))
        table.add_row(_TITLES.get(name, name), *cells)
    console().print(table, markup=False)
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
