"""Which commands there are, and where each is declared: the core's own, and those that packages add.

A command's module is imported when the command is called; helps show the docstrings of the others' sources.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import EntryPoint
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option
from typer.core import TyperGroup

from medtasks_ext.cli.words import PROMPTS
from medtasks_ext.hooks import COMMANDS, Hook, hooks

#: Panel of `medtasks --help` -> its commands -> the module below `cli`, and the function there, that each is.
_PANELS: Mapping[str, Mapping[str, str]] = {
    "Evaluate": {
        "ls": "ls:ls",
        "plan": "plan:plan",
        "preview": "preview:preview",
        "run": "run:run",
        "lm_eval": "run:lm_eval",
        "rescore": "run:rescore",
        "judge": "judge:judge",
    },
    "Results": {
        "report": "report:report",
        "view": "view:view",
        "compare": "compare:compare",
        "card": "card:card",
    },
    "Data": {
        "data status": "data:data_status",
        "data fetch": "data:data_fetch",
        "data template": "own_data:data_template",
        "data import": "own_data:data_import",
        "data check": "own_data:data_check",
        "data new": "own_data:new",
    },
    "Contribute": {
        "dev validate": "dev:validate",
        "dev lock": "dev:lock",
        "dev build": "dev:build",
        "dev site": "dev:site",
    },
    "Studies": {
        "study contamination": "study:contamination",
        "study departments": "study:departments",
        "study difficulty": "study:difficulty",
        "study sample": "study:sample",
        "study prompts": "study:choose",
        "study forms": "study:forms",
        "study gold": "study:gold",
        "study judge": "study:judge_models",
        "study reproduce": "reproduce:reproduce",
    },
}
#: Groups of commands, and what their help says.
_GROUPS = {
    "data": "Data of the suites and your own: list, download, import, check.",
    "dev": "Check task files, and build tasks, locks and the leaderboard.",
    "study": "Contamination, samples, experts' forms, judges, papers' tables.",
}
#: The commands whose next call goes on where an interrupted one ended.
_GOES_ON = (
    "run", "judge", "data fetch", "study contamination", "study departments", "study gold", "study judge",
)  # fmt: skip


def goes_on(words: list[str]) -> bool:
    """Whether an interrupted command goes on when it is called again."""
    return any(" ".join(words[:n]) in _GOES_ON for n in (1, 2))


@lru_cache(maxsize=1)
def declared() -> dict[str, Hook]:
    """Full name of a command -> where it is declared. No package replaces a command of the core."""
    own = {name: place for commands in _PANELS.values() for name, place in commands.items()}
    points = (EntryPoint(name, f"medtasks_ext.cli.{place}", COMMANDS) for name, place in own.items())
    found = {point.name: Hook(point, "medtasks") for point in points}
    for hook in hooks(COMMANDS):
        if hook.package != "medtasks" and hook.point.name not in _GROUPS:  # those of the core stand above
            found.setdefault(hook.point.name, hook)
    return found


def panels(prefix: str = "") -> dict[str, list[str]]:
    """Panel of a help -> its commands: the core's own, and those of a package below the package's name."""
    own = {name.split()[0]: panel for panel, commands in _PANELS.items() for name in commands}
    found: dict[str, list[str]] = {}
    for full, hook in declared().items():
        if full.startswith(prefix):
            name = full.removeprefix(prefix).split()[0]
            names = found.setdefault("Commands" if prefix else own.get(name, hook.package), [])
            names += [] if name in names else [name]
    return found


def _short_help(name: str) -> str:
    """The first paragraph of the docstring under which a command is declared, which is not imported."""
    if (hook := declared().get(name)) is None:
        return _GROUPS.get(name, "")
    try:
        source = ast.parse(Path(str(hook.file())).read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError):  # whoever calls the command hears what is wrong
        return ""
    for node in source.body:
        if isinstance(node, ast.FunctionDef) and node.name == hook.point.attr:
            return " ".join((ast.get_docstring(node) or "").partition("\n\n")[0].split())
    return ""


class Group(TyperGroup):
    """Commands whose full names begin alike. The module of each is imported when it is called."""

    def __init__(self, prefix: str = "", **settings: Any) -> None:
        super().__init__(**settings)
        self.prefix, self._panels = prefix, panels(prefix)
        known: Any = dict.fromkeys(name for names in self._panels.values() for name in names)
        self.commands = known

    def get_command(self, ctx: Any, name: str) -> Any:
        full = f"{self.prefix}{name}"
        if name in self.commands and full not in declared():
            settings = {"no_args_is_help": True, "rich_markup_mode": None}
            return Group(f"{full} ", name=name, help=_GROUPS.get(full), **settings)
        return command_of(declared()[full].load(), name) if name in self.commands else None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for panel, names in self._panels.items():
            with formatter.section(panel):
                formatter.write_dl([(name, _short_help(f"{self.prefix}{name}")) for name in names])


AllowHost = Annotated[
    list[str] | None,
    Option("--allow-host", help="Send text that is gated or private to this host, too; repeatable."),
]
AsJson = Annotated[bool, Option("--json", help="Print JSON.")]
ByLabels = Annotated[
    list[str] | None,
    Option(
        "--by",
        metavar="FILE",
        help="Scores by difficulty, by department, on clean inputs: files or folders of `medtasks "
        "study difficulty`, `departments`, `contamination`; repeatable.",
    ),
]
Origin = Annotated[
    str | None,
    Option("--data", metavar="ORIGIN", help="Rows: sample, local, hub or release; else what a run takes."),
]
DryRun = Annotated[bool, Option("--dry-run", help="Print requests, tokens and cost; ask nobody.")]
Prompts = Annotated[str | None, Option("--prompts", metavar="WORDS", help=PROMPTS)]
OnlyTasks = Annotated[str | None, Option("--tasks", help="Only these tasks or groups.")]


def out_option(help: str) -> Any:
    return Option("-o", "--out", help=help)


#: Of commands that hand lm-eval's flags on.
_ANY_FLAGS = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


def command_of(declared: Any, name: str) -> Any:
    """The command of a function, or of an `app` of several commands.

    A command returns its exit code. The first paragraph of its docstring is its line in `medtasks --help`.
    One that takes the context alone gets all arguments as they are.
    """
    app = declared
    if not isinstance(declared, typer.Typer):
        app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None)
        hands_on = [*signature(declared).parameters] == ["context"]
        app.command(name, context_settings=_ANY_FLAGS if hands_on else None)(declared)
    command = typer.main.get_command(app)
    command.name = name
    return command
