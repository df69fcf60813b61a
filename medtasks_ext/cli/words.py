"""Words of messages and of help."""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path

import typer

from medtasks_ext.errors import MedtasksError

#: Help of an option that several commands have.
PROMPTS = "Prompt wording: official (the suite's own), own (ours), or auto: official where it is available."


def say(line: str) -> None:
    """Print a remark: to standard error, so that results can be piped."""
    typer.echo(line, err=True)


def say_changed(folders: Iterable[Path]) -> None:
    """Say what was changed in folders of runs since their last calls ended; nothing of what are none."""
    from medtasks_ext.runs.folder import RunFolder, changed_in, mark_of

    for folder in folders:
        if RunFolder(folder).manifest.is_file() and (changed := changed_in(folder)):
            say(f"note: {folder}: {mark_of(changed)}")


def say_next(*commands: str) -> None:
    """Say which command makes sense now; several stand below each other.

    A remark as `say` prints it, so what is piped stays whole. Nothing is said after `--json`.
    """
    if len(commands) == 1:
        say(f"next: {commands[0]}")
    elif commands:
        for line in ["next:", *(f"  {command}" for command in commands)]:
            say(line)


def terminal_width() -> int:
    return shutil.get_terminal_size((10_000, 0)).columns


def counted(n: int, noun: str) -> str:
    """A number and what is counted: 1 task, 2,000 tasks."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def aligned(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """Lines of plain text, each column as wide as its longest cell; those in `right` stand at the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if place in right else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def duration(seconds: float) -> str:
    """A time in two units at most: 45 s, 12 min, 3 h 20 min, 2 d 4 h."""
    minutes, hours = round(seconds / 60), round(seconds / 3600)
    if seconds < 90:
        return f"{seconds:.0f} s"
    if minutes < 90:
        return f"{minutes} min"
    if hours < 48:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{hours // 24} d {hours % 24} h"


def p_words(p: float) -> str:
    return f"{p:.3f}" if p >= 0.001 else "< 0.001"


def names_in(text: str | None) -> list[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def near_options(given: str, known: Iterable[str]) -> str:
    """`did you mean …?` for an option that a command does not have; nothing where none is near.

    A short option is near to the long ones that begin with its letter.
    """
    long = sorted({name for name in known if name.startswith("--")}, key=lambda name: (len(name), name))
    if re.fullmatch(r"-\w", given):
        close = [name for name in long if name[2] == given[1]][:3]
    else:
        close = get_close_matches(given.partition("=")[0], long, n=3)
    return f"did you mean {' or '.join(close)}?" if close else ""


def pairs(given: Iterable[str] | None, flag: str, form: str) -> dict[str, str]:
    """`ONE=OTHER`, as a mapping; `form` is how it is written, for the message."""
    found: dict[str, str] = {}
    for one, _, other in (item.partition("=") for item in given or ()):
        if one and other and one not in found:
            found[one] = other
            continue
        what = f"no value after {one}" if one else "no name before ="
        what = f"{one} is said twice" if one in found else what
        raise MedtasksError(what, where=flag, remedy=f"write {form} once for each name")
    return found


def unsure_words(usd: float) -> str:
    """What requests may have cost whose reply never came; nothing where there are none."""
    return f", and up to {usd:,.2f} for requests whose reply never came" if usd else ""
