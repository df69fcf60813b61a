"""Which commands there are, and where each is declared: the core's own, and those that packages add.

A command's module is imported when the command is called; helps show the docstrings of the others' sources.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, MutableMapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from typer.core import TyperGroup

from medtasks_ext.cli.app import command_of
from medtasks_ext.hooks import COMMANDS, Hook, hooks

#: Panel of `medtasks --help` -> the core's own commands.
_PANELS: Mapping[str, tuple[str, ...]] = {
    "Evaluate": ("ls", "plan", "preview", "run", "lm_eval", "rescore"),
    "Results": ("report", "view", "compare", "card"),
    "Leaderboard": (),
    "Judges": ("judge",),
    "Data": ("data", "prompts"),
    "Studies": (),
    "Contribute": ("new", "dev"),
}
#: The core's groups of commands, and what their help says.
_GROUPS = {
    "judge": "Let juries of models rate answers, and check the juries.",
    "dev": "Check task files, and build tasks, pages and locks.",
}
#: Command of a group -> the module below `cli` that declares it.
_PARTS = {
    "judge run": "judge:judge",
    "dev validate": "validate:validate",
    "dev lock": "lock:lock",
    "dev build": "build:build",
    "dev path": "path:path",
}
_APPS = ("data", "prompts")
#: The command of a group that other words than its commands' belong to: `judge RUN` is `judge run RUN`.
DEFAULTS = {"judge": "run"}
#: The core's commands whose next call goes on where an interrupted one ended, and long ones that begin again.
#: A module of a package says it by `AFTER_INTERRUPT = "goes on"` or `"begins again"`.
_AFTER_INTERRUPT = {
    **dict.fromkeys(("run", "judge run", "data fetch", "prompts fetch"), "goes on"),
    **dict.fromkeys(("report", "rescore", "data check"), "begins again"),
}


@lru_cache(maxsize=1)
def declared() -> dict[str, Hook]:
    """Full name of a command or group -> where it is declared. No package replaces a command of the core."""
    own = {name: f"{name}:{'app' if name in _APPS else name}" for names in _PANELS.values() for name in names}
    own = {name: place for name, place in own.items() if name not in _GROUPS} | _PARTS
    found = {
        name: Hook(COMMANDS, name, f"medtasks_ext.cli.{place}", "medtasks") for name, place in own.items()
    }
    for hook in hooks(COMMANDS):
        if hook.name not in found and hook.name not in _GROUPS:
            found[hook.name] = hook
    return found


@lru_cache(maxsize=1)
def panels() -> dict[str, tuple[str, ...]]:
    """Panel of `medtasks --help` -> its commands: the core's own, and those that packages add.

    The module of a package's command names its panel by `PANEL = "…"`; without that it is the package's name.
    """
    found = {panel: list(names) for panel, names in _PANELS.items()}
    own = {name for names in found.values() for name in names}
    for name, hook in declared().items():
        if (first := name.partition(" ")[0]) not in own:
            found.setdefault(_constant(hook.file(), "PANEL") or hook.package, []).append(first)
            own.add(first)
    return {panel: tuple(names) for panel, names in found.items() if names}


def after_interrupt(words: list[str]) -> str:
    """What an interrupted command does when it is called again; empty where nobody says it."""
    names = [word for word in words if not word.startswith("-")]
    for first, second in zip(names, [*names[1:], ""], strict=True):
        if first in DEFAULTS and f"{first} {second}" not in declared():
            second = DEFAULTS[first]
        for name in (f"{first} {second}", first):
            if name in _AFTER_INTERRUPT:
                return _AFTER_INTERRUPT[name]
            if name in declared():
                return _constant(declared()[name].file(), "AFTER_INTERRUPT")
    return ""


def _parsed(file: Path | None) -> ast.Module:
    try:
        return ast.parse(file.read_text(encoding="utf-8") if file else "")
    except (OSError, ValueError, SyntaxError):  # whoever calls the command hears what is wrong
        return ast.parse("")


def _constant(file: Path | None, name: str) -> str:
    for node in _parsed(file).body:
        if isinstance(node, ast.Assign) and name in map(ast.unparse, node.targets):
            return str(ast.literal_eval(node.value))
    return ""


def _short_help(name: str) -> str:
    """The first paragraph of the docstring under which a command, or a group of commands, is declared."""
    if (hook := declared().get(name)) is None:
        return _GROUPS.get(name, "")
    source = _parsed(hook.file())
    for node in source.body if hook.attribute else ():
        if isinstance(node, ast.FunctionDef) and (
            node.name == hook.attribute or (hook.attribute == "app" and node.decorator_list)
        ):
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
        if hook and hook.attribute:
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
        if name := DEFAULTS.get(self.name or ""):
            command = self.commands[name]
            inner = command.context_class(command, info_name=name, parent=ctx)
            records = [parameter.get_help_record(inner) for parameter in command.get_params(inner)]
            with formatter.section(f"Without a command, as in `{ctx.command_path} {name}`"):
                formatter.write_dl([record for record in records if record and record[0] != "--help"])

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the name of the command that is meant before words that are none."""
        own = self.name or ""
        if own in DEFAULTS and not (args and args[0] in (*self.commands, "--help")):
            args = [DEFAULTS[own], *args]
        return super().parse_args(ctx, args)
