"""How a command is declared: as `app`, in the module of its name; options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

AllowHost = Annotated[
    list[str] | None,
    typer.Option("--allow-host", help="Send text that is gated or private to this host, too; repeatable."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print requests, tokens and cost; ask nobody.")]
OnlyTasks = Annotated[str | None, typer.Option("--tasks", help="Only these tasks, groups or tags.")]


def command_app() -> typer.Typer:
    """What a module declares its command with, or several of them.

    A command returns its exit code. The first paragraph of its docstring is its line in `medtasks --help`.
    """
    return typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None)
