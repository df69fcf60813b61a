"""`medtasks new`: a dataset folder from answers to a few questions."""

from __future__ import annotations

import shutil
import sys
from functools import partial
from typing import Annotated, Any

import typer

from medtasks_ext.cli.new_from import InspectedSource, read, show, tried
from medtasks_ext.cli.questions import answers_to
from medtasks_ext.cli.words import pairs, say
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import Dataset, Registry, forget, registry
from medtasks_ext.registry.build import check_names
from medtasks_ext.registry.folders import is_checkout, writable
from medtasks_ext.registry.new import Draft, draft, questions, suite_of
from medtasks_ext.registry.suites import NO_SUITE, RESERVED


def new(
    context: typer.Context,
    id: Annotated[str | None, typer.Option(help="DATASET, or SUITE_DATASET.")] = None,
    suite: Annotated[str | None, typer.Option(help="Suite that the dataset joins.")] = None,
    kind: Annotated[str | None, typer.Option(help="Answer kind (docs/keys.md).")] = None,
    language: Annotated[str | None, typer.Option(help="Of the documents: en, zh, …")] = None,
    task_type: Annotated[str | None, typer.Option(help="What is done with a document.")] = None,
    document_types: Annotated[
        str | None, typer.Option("--document-types", "--documents", help="Kinds of documents: A,B.")
    ] = None,
    specialties: Annotated[str | None, typer.Option(help="Medical specialties: A,B.")] = None,
    stage: Annotated[str | None, typer.Option(help="Clinical stage.")] = None,
    access: Annotated[str | None, typer.Option(help="open, gated, private.")] = None,
    axis: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="A value on an axis of the suite's own.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="The dataset's own name.")] = None,
    summary: Annotated[str | None, typer.Option(help="What goes in, what comes out.")] = None,
    url: Annotated[str | None, typer.Option(help="Where the data is.")] = None,
    licence: Annotated[str | None, typer.Option(help="Under which terms.")] = None,
    citation: Annotated[str | None, typer.Option(help="BibTeX key.")] = None,
    n_test: Annotated[int | None, typer.Option(min=1, help="Number of test documents.")] = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="FILE", help="File of rows, or ORG/DATASET of the hub, to start from."
        ),
    ] = None,
    answer: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="With --from: the column of gold answers.")
    ] = None,
) -> int:
    """Start a dataset folder.

    Asks what the flags do not say; what may wait is marked TODO. Without a terminal nothing is asked.
    `--from` finds options, gold answers, kind, language and number of rows in a file, whatever its columns
    are called; what a prompt may not show is left out. On a terminal the first row's prompt is shown, and you
    are asked whether to keep it. No row is copied.

    Example: medtasks new --id medhelm_falls_clinic --kind exact_letter
    """
    given = context.params
    tasks = registry(empty=True)
    check_names(tasks)  # a registry that cannot be read is mended first
    said = {key: value for key, value in given.items() if value and key not in ("axis", "source", "answer")}
    flags = said | _axes(given.get("axis"))
    if answer and not source:
        raise MedtasksError("names a column of no file", where="--answer", remedy="add --from FILE")
    inspected = read(source, answer) if source else None
    if inspected:
        show(inspected)
        flags = inspected.flags(tasks, flags) | flags
    if not writable(tasks.own) and (
        flags.get("suite") == NO_SUITE or str(flags.get("id", "")).startswith(f"{NO_SUITE}_")
    ):
        raise MedtasksError(
            "no folder of your own is named",
            where=f"--suite {NO_SUITE}",
            remedy="mkdir my_tasks; export MEDTASKS_TASKS=my_tasks; then call it again",
        )
    answers = answered(tasks, flags, ask=sys.stdin.isatty())
    folder = draft(tasks, answers, inspected.template(answers["kind"]) if inspected else None)
    folder.write()
    forget()
    if inspected and not _is_kept(inspected, folder):
        shutil.rmtree(folder.folder)
        typer.echo("nothing was written")
        return 1
    typer.echo(f"wrote {folder.folder}: {', '.join(folder.files)}")
    forget()
    joined = Dataset(folder.folder).suite
    if joined.datasets and tasks.root not in folder.folder.parents:
        typer.echo(f"means of {joined.id} leave it out until `datasets` in {joined.file} lists it")
    place = f"{joined.id}/{folder.folder.name}"
    steps = [
        f"in {folder.folder.name}/task.yaml, card.yaml and sample.jsonl, replace all that is marked TODO",
        f"medtasks preview {folder.task} --data sample     shows the prompts",
        f"medtasks dev validate {folder.task}                  says what is missing",
    ]
    if inspected and not inspected.hub:
        data = f"$MEDTASKS_DATA_DIR/{place}"
        copies = [f"cp {source} {data}/test{inspected.path.suffix}"]
        copies += (
            [f"cp {inspected.examples} {data}/fewshot{inspected.path.suffix}"] if inspected.examples else []
        )
        steps.append(f"mkdir -p {data}; {'; '.join(copies)}; medtasks data check")
    if inspected and inspected.hub and not inspected.hub.gated:
        steps.append(f"medtasks data pin {folder.task}     writes what the files hold into data.lock")
    if is_checkout() and tasks.root in folder.folder.parents:
        steps.append(f"medtasks dev lock {folder.task}; make test-task TASK={folder.task}")
    typer.echo("\nnext:\n" + "\n".join(f"  {number}. {step}" for number, step in enumerate(steps, start=1)))
    return 0


def _is_kept(inspected: InspectedSource, folder: Draft) -> bool:
    """Say what the file's own rows make of the new task; on a terminal, show one prompt and ask."""
    result, n = tried(inspected, Dataset(folder.folder)), len(inspected.rows)
    shown = f"; {result.n_shown} serve as examples" if result.n_shown else ""
    typer.echo(f"{result.n:,} of {n:,} rows can be asked as the new task file says{shown}")
    if result.fault:
        say(f"note: {result.fault}")
    if not sys.stdin.isatty():
        return True
    typer.echo(f"\nthe first row is asked so:\n\n{result.prompt}\n")
    return typer.confirm("Keep this?", default=True)


def _axes(given: list[str] | None) -> dict[str, str]:
    """Axis -> value, of `--axis NAME=VALUE`."""
    values = pairs(given, "--axis", "NAME=VALUE")
    if taken := [name for name in values if name in RESERVED]:
        raise MedtasksError(f"{taken[0]} is no axis of a suite", where="--axis", remedy="leave it out")
    return values


def answered(tasks: Registry, flags: dict[str, Any], *, ask: bool) -> dict[str, Any]:
    """The answers to all questions, from flags and, if wished, from the terminal.

    Raises:
        MedtasksError: a wrong value, a flag that does not belong to this suite, or, where nothing is asked,
            flags that are missing.
    """
    answers = answers_to(partial(questions, tasks), flags, ask=ask, command="medtasks new")
    suite = suite_of(tasks, answers["id"]) or answers["suite"]
    if flags.get("suite", suite) != suite:
        raise MedtasksError(
            f"{answers['id']!r} begins with {suite}_",
            where=f"--suite {flags['suite']}",
            remedy="leave one out",
        )
    kept = {key: value for key, value in flags.items() if key in ("url", "licence", "citation", "n_test")}
    if foreign := flags.keys() - answers.keys() - kept.keys() - {"suite"}:
        raise MedtasksError(
            f"{suite} datasets have no {', '.join(sorted(foreign))}",
            where="medtasks new",
            remedy="leave it out",
        )
    return {**kept, **answers}
