"""`medtasks prompts`: the suites' own words, where they come from, and whether ours are equal to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from difflib import ndiff
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from medtasks_ext.cli.app import command_app
from medtasks_ext.cli.words import say, say_next
from medtasks_ext.errors import MedtasksError, near, some
from medtasks_ext.registry import STRATEGIES, Dataset, Suite, registry

if TYPE_CHECKING:
    from medtasks_ext.judge.protocol import Rubric
    from medtasks_ext.prompts.documents import Document, LoadedRecord
    from medtasks_ext.prompts.official.choice import PromptSource
    from medtasks_ext.registry.official import Artefact

app = command_app()
_SOURCES: tuple[PromptSource, PromptSource] = ("official", "own")


@app.callback()
def prompts() -> None:
    """The suites' own words, read from what they released."""


@app.command("fetch")
def fetch(
    folder: Annotated[
        str | None,
        typer.Option("--from", metavar="DIR", help="Take the files from here, under their own names."),
    ] = None,
) -> int:
    """Get the released files that hold official words, and check their hashes.

    From the package index and the addresses in suite.yaml; none of them is installed or imported.

    Example: medtasks prompts fetch --from carried

    Exit code 1: one of them could not be had.
    """
    from medtasks_ext.prompts.official import artefacts

    place = Path(folder).expanduser() if folder is not None else None
    if place is not None and not place.is_dir():
        raise MedtasksError("no such folder", where=f"--from {folder}", remedy="correct the path")
    failed = False
    for suite, artefact in _artefacts():
        try:
            path = artefacts.fetched_artefact(artefact, place)
        except MedtasksError as error:
            failed = True
            say(f"✗ {suite.title}: {artefact.file}: {error}")
        else:
            typer.echo(f"✓ {suite.title}: {artefact.file} ({artefact.revision}) at {path}")
    say_next("medtasks prompts status" if failed else "medtasks prompts verify")
    return 1 if failed else 0


@app.command("status")
def status() -> int:
    """Show which official words can be asked here.

    Example: medtasks prompts status

    Exit code 1: a file is another one than the suite pins.
    """
    from medtasks_ext.prompts.official import artefacts

    wrong = missing = False
    for suite in registry().suites.values():
        typer.echo(suite.title)
        for artefact in suite.official.artefacts.values() if suite.official else ():
            try:
                path = artefacts.local_artefact(artefact)
                missing |= path is None
                said = f"at {path}" if path else f"not here; {artefacts.source_of(artefact)}"
            except MedtasksError as error:
                wrong, said = True, f"WRONG: {error.what}"
            typer.echo(f"  {artefact.file} ({artefact.revision}): {said}")
        typer.echo(f"  {_covered(suite)}")
    say_next("medtasks prompts fetch" if wrong or missing else "medtasks prompts verify")
    return 1 if wrong else 0


@app.command("diff")
def diff(
    task: Annotated[str, typer.Argument(help="A task.")],
    document: Annotated[int, typer.Option("--document", min=1, help="Which document.")] = 1,
    data: Annotated[
        str | None, typer.Option("--data", help="Origin of the rows; by default sample rows.")
    ] = None,
) -> int:
    """Show a document in official words beside ours: `-` official, `+` ours.

    Where judges rate the answers, what they are asked, too.

    Example: medtasks prompts diff medhelm_pubmedqa
    """
    from medtasks_ext.judge.cases import rubric_of

    dataset, strategy = _one(task)
    theirs, ours = (_document(dataset, strategy, source, document, data) for source in _SOURCES)
    record = theirs.loaded.record
    typer.echo(f"{task}, {_from(record)}; own {ours.loaded.record['prompt_hash']}")
    _print_diff(_text(theirs), _text(ours))
    judged, own = rubric_of(dataset, "auto"), rubric_of(dataset, "own")
    if judged and own and judged.words:
        origin = judged.words.origin
        file = f"{origin.artefact} {origin.revision}"
        typer.echo(f"\njudges: official of {file} ({origin.sha256}); own {own.version}")
        _print_diff(_judged(judged), _judged(own))
    say_next(f"medtasks preview {task}")
    return 0


@app.command("verify")
def verify(
    suites: Annotated[list[str] | None, typer.Argument(help="Suites; by default all.")] = None,
) -> int:
    """Prove that official prompts equal the suite's own.

    Renders the sample rows and compares hashes of whole message lists, budgets and stop sequences.

    Example: medtasks prompts verify medhelm

    Exit code 1: one differs, or could not be compared.
    """
    from medtasks_ext.runner.proof import proof_of
    from medtasks_ext.runner.proof import verify as compared

    tasks, failed = registry(), False
    if wrong := [name for name in suites or [] if name not in tasks.suites]:
        raise MedtasksError(
            f"no suite {wrong[0]!r}{near(wrong[0], tasks.suites)}",
            remedy=f"suites: {', '.join(tasks.suites)}",
        )
    for name, suite in tasks.suites.items():
        proof = proof_of(suite)
        if (suites and name not in suites) or proof is None:
            continue
        counts: Counter[str] = Counter()
        wrong_for: dict[str, list[str]] = {}
        for verdict in compared(tasks, suite):
            counts["tasks"] += 1
            counts["same tasks"] += verdict.ok
            counts["lists"] += verdict.n
            counts["same lists"] += verdict.same
            counts["juries"] += verdict.n_jury
            counts["same juries"] += verdict.same_jury
            counts["budgets"] += verdict.same_budget is not None
            counts["same budgets"] += verdict.same_budget is True
            counts["same stops"] += verdict.same_stop and not verdict.why
            if not verdict.ok:
                jury = f", {verdict.same_jury} of {verdict.n_jury} of judges" if verdict.n_jury else ""
                why = verdict.why or f"{verdict.same} of {verdict.n} message lists{jury} are identical"
                wrong_for.setdefault(why, []).append(verdict.dataset)
        for why, datasets in wrong_for.items():
            failed = True
            say(f"✗ {some(datasets)}: {why}")
        made_by = " ".join(proof.made_by.values())
        juries = f" {counts['same juries']} of {counts['juries']} of judges," if counts["juries"] else ""
        typer.echo(
            f"{suite.title} ({made_by}): {counts['same lists']} of {counts['lists']} message lists,{juries}"
            f" {counts['same budgets']} of {counts['budgets']} budgets,"
            f" {counts['same stops']} of {counts['tasks']} stop sequences identical;"
            f" {counts['same tasks']} of {counts['tasks']} datasets"
        )
    say_next("medtasks prompts diff TASK")
    return 1 if failed else 0


def _artefacts() -> Iterator[tuple[Suite, Artefact]]:
    for suite in registry().suites.values():
        for artefact in suite.official.artefacts.values() if suite.official else ():
            yield suite, artefact


def _covered(suite: Suite) -> str:
    of_it = [item for item in registry().datasets.values() if item.suite.id == suite.id]
    known = sum("official" in item.blocks for item in of_it)
    said = []
    if known:
        said.append(f"{known} of {len(of_it)} datasets")
    if judged := sum(bool(item.blocks.get("judge", {}).get("official")) for item in of_it):
        said.append(f"the judges of {judged}")
    if suite.files:
        said.append("datasets whose rows, or the release's, carry an instruction")
    return "official words: " + ("; ".join(said) or "none published")


def _one(task: str) -> tuple[Dataset, str]:
    tasks = registry().tasks
    if task not in tasks:
        raise MedtasksError(
            f"there is no task {task!r}{near(task, tasks)}",
            remedy=f"name one dataset, in one of: {', '.join(STRATEGIES)}",
        )
    return tasks[task]


def _document(dataset: Dataset, strategy: str, words: str, place: int, data: str | None) -> Document:
    from medtasks_ext.prompts.load import load_documents

    documents = load_documents(dataset, cot=strategy == "cot", origin=data or "sample", prompts=words)["test"]
    if place > len(documents):
        raise MedtasksError(
            f"{dataset.id} has {len(documents)} documents", where="--document", remedy="lower it"
        )
    return documents[place - 1]


def _print_diff(theirs: str, ours: str) -> None:
    for line in ndiff(theirs.splitlines(), ours.splitlines()):
        if not line.startswith("?"):
            typer.echo(line)


def _judged(rubric: Rubric) -> str:
    names = ("question", "response", *(("gold",) if rubric.judging.show_gold else ()))
    return "\n\n".join(turn["content"] for turn in rubric.messages({name: f"({name})" for name in names}))


def _text(document: Document) -> str:
    return "\n\n".join(filter(None, (str(document["system"]), document["prompt"])))


def _from(record: LoadedRecord) -> str:
    artefact = record.get("artefact")
    where = f" of {artefact} {record['artefact_revision']}" if artefact else ""
    return f"{record['instruction']}{where} ({record['prompt_hash']})"


def say_wording(tasks: Mapping[str, Any]) -> None:
    from medtasks_ext.runner.run import loaded_record

    records = {name: loaded_record(task) for name, task in tasks.items()}
    asked = [name for name, record in records.items() if record["origin"] != "sample"]
    known = [name for name in asked if records[name]["instruction"] == "own" and has_official(name)]
    if not known:
        return
    say(
        f"asked in our own words, though the suite's are known: {len(known)} of {len(asked)} tasks"
        f" ({some(known)}); `medtasks prompts status` says why"
    )


def has_official(task: str) -> bool:
    """Whether the suite has words of its own for a task, and for its strategy."""
    dataset, strategy = registry().known(task)
    official = dataset.suite.official
    if official is None:
        return False
    return bool(dataset.suite.files) or ("official" in dataset.blocks and strategy == "zero_shot")
