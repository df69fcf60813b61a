"""Official prompts: where they come from, which can be asked, and whether they equal the suites' own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from medtasks_ext.cli.words import say, say_next
from medtasks_ext.errors import MedtasksError, near, some
from medtasks_ext.registry import Suite, registry

if TYPE_CHECKING:
    from medtasks_ext.registry.official import Artefact


def fetch_official(folder: str | None) -> int:
    """Get the released files that hold official prompts, from a folder if one is given."""
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
    say_next("medtasks data status --official" if failed else "medtasks dev validate --official")
    return 1 if failed else 0


def print_official() -> int:
    """Show which official prompts can be asked here."""
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
    say_next("medtasks data fetch --official" if wrong or missing else "medtasks dev validate --official")
    return 1 if wrong else 0


def prove_official(suites: list[str]) -> int:
    """Prove that official prompts equal the suite's own."""
    from medtasks_ext.runner.proof import proof_of
    from medtasks_ext.runner.proof import verify as compared

    tasks, failed = registry(), False
    if wrong := [name for name in suites if name not in tasks.suites]:
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
    say_next("medtasks preview TASK --prompts official")
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


def say_wording(tasks: Mapping[str, Any]) -> None:
    from medtasks_ext.runner.run import loaded_record

    records = {name: loaded_record(task) for name, task in tasks.items()}
    asked = [name for name, record in records.items() if record["origin"] != "sample"]
    known = [name for name in asked if records[name]["instruction"] == "own" and has_official(name)]
    if not known:
        return
    say(
        f"asked in our own words, though the suite's are known: {len(known)} of {len(asked)} tasks"
        f" ({some(known)}); `medtasks data status --official` says why"
    )


def has_official(task: str) -> bool:
    """Whether the suite has words of its own for a task, and for its strategy."""
    dataset, strategy = registry().known(task)
    official = dataset.suite.official
    if official is None:
        return False
    return bool(dataset.suite.files) or ("official" in dataset.blocks and strategy == "zero_shot")
