"""The `medtasks` command: the panels of its help, what it takes itself, and how calls end.

Each command is declared in the module of its name (see `app`). Only the module of the command that is called
is imported; `medtasks --help` reads the others' docstrings.
"""

from __future__ import annotations

import ast
import errno
import inspect
import os
import sys
import traceback
from collections.abc import Iterator, MutableMapping
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from medtasks_ext.atomic import cannot_write
from medtasks_ext.cli.app import command_of
from medtasks_ext.cli.words import near_options, say
from medtasks_ext.errors import MedtasksError
from medtasks_ext.hooks import COMMANDS, Hook, hooks
from medtasks_ext.privacy import shows_text, what_happened
from medtasks_ext.secret_values import forget, hidden_output
from medtasks_ext.telemetry import switch_off_telemetry
from medtasks_ext.version import __version__

BAD_INPUT, INTERRUPTED = 2, 130
#: What a disk refuses at any place, which is no defect.
_OF_DISKS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EACCES})

#: Panel of `medtasks --help` -> the core's own commands, each of them declared in the module of that name.
_OWN = {
    "Evaluate": ("ls", "plan", "preview", "run", "requests", "responses", "merge", "rescore", "verify"),
    "Results": ("report", "view", "show", "compare", "card", "cite", "ingest"),
    "Leaderboard": (),
    "Judges": ("judge",),
    "Data": ("data", "prompts", "doctor"),
    "Studies": (),
    "Contribute": ("new", "new-suite", "validate", "build", "lock", "path"),
}
#: Commands whose next call goes on where an interrupted one ended, and long ones that begin again.
_RESUMABLE = frozenset(
    {
        "run",
        "contamination",
        "judge",
        "judge-gold",
        "judge-votes",
        "judge-eval",
        "departments",
        "data fetch",
        "prompts fetch",
    }
)
_REPEATED = frozenset(
    {"report", "ingest", "site", "rescore", "merge", "verify", "check-submission", "data check"}
)
#: What to write in place of an option that is no more.
_GONE = {"--allow-gated": "name each host that may receive such text: --allow-host HOST"}


def panels() -> dict[str, tuple[str, ...]]:
    """Panel of `medtasks --help` -> its commands: the core's own, and those that packages add.

    The module of a package's command names its panel by `PANEL = "…"`; without that it is the package's name.
    """
    found = {panel: list(names) for panel, names in _OWN.items()}
    for name, hook in _hooks().items():
        if " " not in name:
            found.setdefault(_constant(hook.file(), "PANEL") or hook.package, []).append(name)
    return {panel: tuple(names) for panel, names in found.items() if names}


@lru_cache(maxsize=1)
def _hooks() -> dict[str, Hook]:
    """Name of a command -> the hook that adds it. The core's own commands cannot be replaced."""
    own = {name for names in _OWN.values() for name in names}
    return {hook.name: hook for hook in hooks(COMMANDS) if hook.name not in own}


def _constant(file: Path | None, name: str) -> str:
    """The text that a module assigns to a name; the module is not imported."""
    for node in _parsed(file):
        if isinstance(node, ast.Assign) and name in map(ast.unparse, node.targets):
            return str(ast.literal_eval(node.value))
    return ""


def _parsed(file: Path | None) -> list[ast.stmt]:
    try:
        return ast.parse(file.read_text(encoding="utf-8")).body if file else []
    except (OSError, ValueError, SyntaxError):  # its own command says what is wrong
        return []


class _LazyCommands(MutableMapping[str, Any]):
    """Name -> command. A command's module is imported when the command is looked at."""

    def __init__(self) -> None:
        self._names = [name for names in panels().values() for name in names]
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._made:
            hook = _hooks().get(name)
            self._made[name] = command = command_of(hook.load() if hook else _declared(name), name)
            for word, more in _hooks().items():
                if word.startswith(f"{name} "):
                    part = word.removeprefix(f"{name} ")
                    command.commands[part] = command_of(more.load(), part)
        return self._made[name]

    def __setitem__(self, name: str, command: Any) -> None:
        raise TypeError("commands are declared in modules of their own")

    def __delitem__(self, name: str) -> None:
        raise TypeError("commands are declared in modules of their own")

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _module(name: str) -> str:
    return f"medtasks_ext.cli.{name.replace('-', '_')}"


def _declared(name: str) -> Any:
    """What a module of the core declares as a command: an `app` of several, or the function of its name."""
    module = import_module(_module(name))
    return getattr(module, "app", None) or getattr(module, name.replace("-", "_"))


def _short_help(name: str) -> str:
    """The first paragraph of the docstring under which a command, or a group of commands, is declared."""
    hook = _hooks().get(name)
    file = hook.file() if hook else Path(__file__).with_name(f"{_module(name).rpartition('.')[2]}.py")
    declared = hook.value.rpartition(":")[2] if hook else name.replace("-", "_")
    for node in _parsed(file):
        if isinstance(node, ast.FunctionDef) and (
            node.name == declared or (declared == "app" and node.decorator_list)
        ):
            return " ".join((ast.get_docstring(node) or "").partition("\n\n")[0].split())
    return ""


class Commands(TyperGroup):
    """All commands, in panels. A command's result is the exit code; an interrupted one ends with a word."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _LazyCommands()

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The panels of the help."""
        for panel, names in panels().items():
            with formatter.section(panel):
                formatter.write_dl([(name, _short_help(name)) for name in names])

    def invoke(self, ctx: Any) -> Any:
        """Call a command; its exit code is that of the process."""
        try:
            code = super().invoke(ctx)
        except KeyboardInterrupt:
            _say_interrupted(ctx.invoked_subcommand)
            raise typer.Exit(INTERRUPTED) from None
        except Exception as error:
            if option := getattr(error, "option_name", None):  # one that the command does not have
                _say_more(error, option)
            elif type(error).__name__ == "MissingParameter":
                _say_example(error)
            raise
        raise typer.Exit(code or 0)


def _say_interrupted(command: str | None) -> None:
    from medtasks_ext.cli.end import shown_command

    words = sys.argv[1:]
    command = command or next(
        (word for word in words if word in _LazyCommands()), ""
    )  # it came before the command
    names = {command, *(f"{command} {word}" for word in words)}
    if names & _RESUMABLE:
        how = f"; what came is kept, and the same command goes on:\n  {shown_command(words)}"
    elif names & _REPEATED:
        how = f"; the same command begins again:\n  {shown_command(words)}"
    else:
        how = ""
    say(f"medtasks: interrupted{how}")


def _say_more(error: Any, option: str) -> None:
    """Let a message about an unknown option say what may be meant."""
    known = [name for item in error.ctx.command.params for name in item.opts] if error.ctx else []
    if hint := _GONE.get(option) or near_options(option, known):
        error.message = f"No such option: {option}; {hint}"
        error.possibilities = None


def _say_example(error: Any) -> None:
    """Let a message about what is missing show the example of the command's help."""
    _, found, text = (inspect.getdoc(error.ctx.command.callback) or "").partition("Example: ")
    if found:
        error.message = "\nFor example: " + " ".join(text.partition("\n\n")[0].split())


app = typer.Typer(
    name="medtasks",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Medical LLM benchmarks (BRIDGE, MedHELM, ClinicBench, MLB) on lm-evaluation-harness.",
    epilog="Exit codes: 0 done; 1 something failed or is not valid; 2 bad input; 130 interrupted.",
)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"medtasks {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[bool, typer.Option("--version", callback=_version, help="Print the version.")] = False,
    tasks_dir: Annotated[
        list[str],
        typer.Option(
            metavar="FOLDER",
            help="A folder with datasets or suites of your own; may be repeated. As MEDTASKS_TASKS.",
        ),
    ] = [],  # noqa: B006
) -> None:
    """Options of the command itself."""
    if tasks_dir:
        from medtasks_ext.registry.folders import add_own_folders

        add_own_folders(tasks_dir)


def main() -> None:
    """Entry point: user errors become one message, exit code 2."""
    switch_off_telemetry()
    forget()
    with hidden_output():
        _main()


def _main() -> None:
    try:
        app(standalone_mode=True)
    except MedtasksError as error:
        say(f"medtasks: {error}")
        sys.exit(BAD_INPUT)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _OF_DISKS:
            say(f"medtasks: {cannot_write(error.filename or 'a file', error)}")
            sys.exit(BAD_INPUT)
        # a defect; what it says may quote a row
        if shows_text():
            raise
        typer.echo("".join(traceback.format_tb(error.__traceback__)), err=True, nl=False)
        say(f"medtasks: {what_happened(error)} (MEDTASKS_SHOW_TEXT=1 shows all of it)")
        sys.exit(1)
