"""`medtasks model new`."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Annotated

import typer

from medtasks_ext.atomic import atomic_file
from medtasks_ext.cli.app import out_option
from medtasks_ext.cli.words import say, say_next
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry.folders import is_checkout
from medtasks_lab.models.facts import read_facts
from medtasks_lab.models.ready import add_to_registry, ready_file, registry_row
from medtasks_lab.models.repository import find_repository

_OPEN = Path("model_configs/open")


def new(
    model: Annotated[
        str, typer.Argument(metavar="ORG/MODEL[@REVISION]", help="A model of the hub, or a folder.")
    ],
    out: Annotated[
        str | None, out_option("File to write; else MODEL.yaml, in a checkout among the ready files.")
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option("--from", metavar="DIR", help="Mirror that holds ORG/MODEL; nothing is downloaded."),
    ] = None,
) -> int:
    """Write the ready file of a model from its repository's own files.

    Each value names the file that says it; what no file says is left out and said. The chat template is
    rendered with thinking on, off and unsaid. No code of the repository is run. In a checkout, what is known
    of the model itself goes into the registry of models.

    Example: medtasks model new Qwen/Qwen3.5-9B
    """
    repository = find_repository(model, mirror=source)
    facts = read_facts(repository)
    name = repository.name.rstrip("/").rpartition("/")[2] or "model"
    file = Path(out) if out else (_OPEN if is_checkout() and _OPEN.is_dir() else Path()) / f"{name}.yaml"
    if file.exists():
        raise MedtasksError(
            "is there already", where=file, remedy="compare: medtasks model check; or give -o FILE"
        )
    with atomic_file(file) as written:
        written.write(ready_file(repository, facts, date.today()).encode())
    typer.echo(f"✓ {file}")
    for note in facts.notes:
        typer.echo(f"  {note}")
    row = registry_row(repository, facts)
    if repository.name == model and Path(model).is_dir():
        pass  # a folder is nobody's model by name
    elif is_checkout() and _OPEN.is_dir():
        registry = add_to_registry(repository.name, row)
        typer.echo(
            f"✓ {registry}" if registry else f"  {repository.name} is in the registry of models already"
        )
    else:
        say(f"for the registry of models (results/reference/models.yaml):\n{row}")
    say_next(f"medtasks plan {file}")
    return 0
