"""How a command is declared: as the function of its module's name; options that several commands have."""

from __future__ import annotations

from inspect import signature
from typing import Annotated, Any

import typer

from medtasks_ext.cli.words import PROMPTS

AllowHost = Annotated[
    list[str] | None,
    typer.Option("--allow-host", help="Send text that is gated or private to this host, too; repeatable."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
ByLabels = Annotated[
    list[str] | None,
    typer.Option(
        "--by",
        metavar="FILE",
        help="Scores by difficulty, by department, on clean inputs: files or folders of `medtasks "
        "study difficulty`, `departments`, `contamination`; repeatable.",
    ),
]
Official = Annotated[bool, typer.Option("--official", help="Of official prompts, in place of data.")]
Origin = Annotated[
    str | None,
    typer.Option(
        "--data", metavar="ORIGIN", help="Rows: sample, local, hub or release; else what a run takes."
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print requests, tokens and cost; ask nobody.")]
Prompts = Annotated[str | None, typer.Option("--prompts", metavar="WORDS", help=PROMPTS)]
OneStrategy = Annotated[str | None, typer.Option("--strategy", help="zero_shot, cot or five_shot.")]
OnlyTasks = Annotated[str | None, typer.Option("--tasks", help="Only these tasks or groups.")]


def out_option(help: str) -> Any:
    return typer.Option("-o", "--out", help=help)


#: Of commands that hand lm-eval's flags on.
_ANY_FLAGS = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


def command_app() -> typer.Typer:
    return typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None)


def command_of(declared: Any, name: str) -> Any:
    """The command of a function, or of an `app` of several commands.

    A command returns its exit code. The first paragraph of its docstring is its line in `medtasks --help`.
    One that takes the context alone gets all arguments as they are.
    """
    app = declared
    if not isinstance(declared, typer.Typer):
        app = command_app()
        hands_on = [*signature(declared).parameters] == ["context"]
        app.command(name, context_settings=_ANY_FLAGS if hands_on else None)(declared)
    command = typer.main.get_command(app)
    command.name = name
    return command
