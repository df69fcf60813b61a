"""Which commands there are, and where each is declared: the core's own, and those that packages add.

A command's module is imported when the command is called; helps show the docstrings of the others' sources.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, MutableMapping
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
        "study gold": "judging:gold",
        "study judge": "judging:judge_models",
        "study reproduce": "reproduce:reproduce",
    },
}
#: Groups of commands, and what their help says.
_GROUPS = {
    "data": "Data of the suites and your own: list, download, import, check.",
    "dev": "Check task files, and build tasks, locks and the leaderboard.",
    "study": "Contamination, samples, experts' forms, judges, papers' tables.",
}
#: The commands whose next call goes on where an interrupted one ended, and long ones that begin again.
_AFTER_INTERRUPT = {
    **dict.fromkeys(("run", "judge", "data fetch"), "goes on"),
    **dict.fromkeys(
        (f"study {name}" for name in ("contamination", "departments", "gold", "judge")), "goes on"
    ),
    **dict.fromkeys(("report", "rescore", "data check", "card", "dev site"), "begins again"),
}


@lru_cache(maxsize=1)
def declared() -> dict[str, Hook]:
    """Full name of a command or group -> where it is declared. No package replaces a command of the core."""
    own = {name: place for commands in _PANELS.values() for name, place in commands.items()}
    points = (EntryPoint(name, f"medtasks_ext.cli.{place}", COMMANDS) for name, place in own.items())
    found = {point.name: Hook(point, "medtasks") for point in points}
    for hook in hooks(COMMANDS):
        if hook.package != "medtasks" and hook.name not in _GROUPS:  # those of the core stand above
            found.setdefault(hook.name, hook)
    return found


@lru_cache(maxsize=1)
def panels() -> dict[str, tuple[str, ...]]:
    """Panel of `medtasks --help` -> its commands: the core's own, and those that packages add.

    The module of a package's command names its panel by `PANEL = "…"`; without that it is the package's name.
    """
    found = {panel: list(dict.fromkeys(map(_first, commands))) for panel, commands in _PANELS.items()}
    own = {name for names in found.values() for name in names}
    for name, hook in declared().items():
        if _first(name) not in own:
            found.setdefault(_panel(hook.file()) or hook.package, []).append(_first(name))
            own.add(_first(name))
    return {panel: tuple(names) for panel, names in found.items()}


def _first(name: str) -> str:
    return name.partition(" ")[0]


def after_interrupt(words: list[str]) -> str:
    """What an interrupted command does when it is called again; empty where nobody says it."""
    names = [word for word in words if not word.startswith("-")]
    for first, second in zip(names, [*names[1:], ""], strict=True):
        for name in (f"{first} {second}", first):
            if name in declared():
                return _AFTER_INTERRUPT.get(name, "")
    return ""


def _parsed(file: Path | None) -> ast.Module:
    try:
        return ast.parse(file.read_text(encoding="utf-8") if file else "")
    except (OSError, ValueError, SyntaxError):  # whoever calls the command hears what is wrong
        return ast.parse("")


def _panel(file: Path | None) -> str:
    for node in _parsed(file).body:
        if isinstance(node, ast.Assign) and "PANEL" in map(ast.unparse, node.targets):
            return str(ast.literal_eval(node.value))
    return ""


def _short_help(name: str) -> str:
    """The first paragraph of the docstring under which a command, or a group of commands, is declared."""
    if (hook := declared().get(name)) is None:
        return _GROUPS.get(name, "")
    source = _parsed(hook.file())
    for node in source.body if hook.point.attr else ():
        if isinstance(node, ast.FunctionDef) and node.name == hook.point.attr:
            return _first_paragraph(ast.get_docstring(node))
    return _first_paragraph(ast.get_docstring(source))


def _first_paragraph(text: str | None) -> str:
    return " ".join((text or "").partition("\n\n")[0].split())


class LazyCommands(MutableMapping[str, Any]):
    """Name -> command, of those whose full names begin with a prefix. Modules are imported when used."""

    def __init__(self, prefix: str = "", made: Mapping[str, Any] | None = None) -> None:
        self.prefix, self._made = prefix, dict(made or {})
        every = [name for names in panels().values() for name in names]
        if prefix:
            every = [name.removeprefix(prefix).split()[0] for name in declared() if name.startswith(prefix)]
        self._names = list(dict.fromkeys([*self._made, *every]))

    def __getitem__(self, name: str) -> Any:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._made:
            self._made[name] = self._command(name)
        return self._made[name]

    def _command(self, name: str) -> Any:
        full = f"{self.prefix}{name}"
        hook = declared().get(full)
        if hook and hook.point.attr:
            command = command_of(hook.load(), name)
        else:
            command = Group(name=name, help=_short_help(full), no_args_is_help=True, rich_markup_mode=None)
        if isinstance(command, TyperGroup):
            command.commands = LazyCommands(f"{full} ", command.commands)
        elif any(other.startswith(f"{full} ") for other in declared()):
            assert hook is not None  # a group was made otherwise
            raise hook.fault("is a command, and no group of commands")
        return command

    def short_help(self, name: str) -> str:
        if name in self._made:
            return _first_paragraph(self._made[name].help)
        return _short_help(f"{self.prefix}{name}")

    def __setitem__(self, name: str, command: Any) -> None:
        raise TypeError("commands are declared in modules of their own")

    def __delitem__(self, name: str) -> None:
        raise TypeError("commands are declared in modules of their own")

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class Group(TyperGroup):
    def format_commands(self, ctx: Any, formatter: Any) -> None:
        assert isinstance(self.commands, LazyCommands)
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.commands.short_help(name)) for name in self.commands])


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
