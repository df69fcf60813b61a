"""The `medtasks` command: the panels of its help, what it takes itself, and how calls end.

`commands` says where each command is declared.
"""

from __future__ import annotations

import errno
import inspect
import os
import sys
import traceback
from typing import Annotated, Any

import typer
from typer import Option

from medtasks_ext.atomic import cannot_write
from medtasks_ext.cli.commands import Group, goes_on
from medtasks_ext.cli.words import say
from medtasks_ext.errors import MedtasksError
from medtasks_ext.keys import forget, hidden_output
from medtasks_ext.privacy import shows_text, what_happened
from medtasks_ext.version import __version__

BAD_INPUT, INTERRUPTED = 2, 130
#: What a disk refuses at any place, which is no defect.
_OF_DISKS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EACCES})

#: Usage statistics of packages that medtasks may import: variable -> the value that switches them off.
SWITCHES = {
    "DO_NOT_TRACK": "1",  # huggingface_hub and all that ask it, vLLM
    "HF_HUB_DISABLE_TELEMETRY": "1",  # huggingface_hub, transformers, trl
    "HF_UPDATE_DOWNLOAD_COUNTS": "0",  # datasets and evaluate: a request per dataset or metric loaded
    "VLLM_NO_USAGE_STATS": "1",  # vLLM
    "RAY_USAGE_STATS_ENABLED": "0",  # Ray, which vLLM uses on several machines
}


class Commands(Group):
    """A command's result is the exit code; an interrupted one ends with a word."""

    def invoke(self, ctx: Any) -> Any:
        try:
            code = super().invoke(ctx)
        except KeyboardInterrupt:
            _say_interrupted()
            raise typer.Exit(INTERRUPTED) from None
        except Exception as error:
            if type(error).__name__ == "MissingParameter":
                _say_example(error)
            raise
        raise typer.Exit(code or 0)


def _say_interrupted() -> None:
    if not goes_on(sys.argv[1:]):
        say("medtasks: interrupted")
        return
    from medtasks_ext.cli.end import shown_command

    say("medtasks: interrupted; what came is kept, and the same command goes on:")
    say(f"  {shown_command(sys.argv[1:])}")


def _say_example(error: Any) -> None:
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
    version: Annotated[bool, Option("--version", callback=_version, help="Print the version.")] = False,
) -> None:
    """Options of the program itself."""


def switch_off_telemetry() -> None:
    """Must be called before those packages are imported. Variables that are set are left as they are."""
    for name, value in SWITCHES.items():
        os.environ.setdefault(name, value)


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
