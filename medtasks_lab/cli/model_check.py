"""`medtasks model check`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry.model_configs import bundled_configs, find_config
from medtasks_lab.models.facts import read_facts
from medtasks_lab.models.ready import findings, named_model
from medtasks_lab.models.repository import find_repository


def check(
    names: Annotated[
        list[str], typer.Argument(metavar="[FILE]...", help="Ready files, by path or name; all by default.")
    ] = [],  # noqa: B006
    source: Annotated[
        Path | None,
        typer.Option("--from", metavar="DIR", help="Mirror that holds ORG/MODEL; nothing is downloaded."),
    ] = None,
    download: Annotated[
        bool, typer.Option("--download", help="Get small files of models that are not here.")
    ] = False,
) -> int:
    """Hold ready files against their models' repositories.

    The chat template is rendered, and context, template, system turn and thinking of the file are compared
    with what the repository says. What it does not say is said, too. No code of a repository is run.

    Example: medtasks model check Qwen3-8B-Thinking

    Exit code 1: a file says what its repository contradicts.
    """
    files = [find_config(name) for name in names]
    if not files:
        files = [file for file in bundled_configs().values() if file.parent.name == "open"]
    wrong, away = 0, []
    for file in files:
        try:
            repository = find_repository(named_model(file), mirror=source, local=not download)
        except MedtasksError as error:
            if names:
                raise
            away.append(f"{file.stem} ({error.what})")
            continue
        found = list(findings(file, read_facts(repository)))
        bad = [item for item in found if item.kind == "wrong"]
        wrong += bool(bad)
        typer.echo(
            f"{'✗' if bad else '✓'} {file.stem}: {repository.name} {repository.revision[:12]}".rstrip()
        )
        for item in found:
            typer.echo(f"  {'✗' if item.kind == 'wrong' else '?'} {item.what}")
    if away:
        few = ", ".join(away[:3])
        typer.echo(
            f"not checked: {len(away)} of {len(files)} files, whose repositories are not here: {few}, …"
        )
    return 1 if wrong else 0
