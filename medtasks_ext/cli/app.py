"""How a command is declared: as `app`, in the module of its name."""

from __future__ import annotations

import typer


def command_app() -> typer.Typer:
    """What a module declares its command with, or several of them.

    A command returns its exit code. The first paragraph of its docstring is its line in `medtasks --help`.
    """
    return typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None)
