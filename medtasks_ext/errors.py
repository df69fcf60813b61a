"""The one error type that users see."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType

#: how lm-eval is called from a shell
_COMMANDS, _MODULE = ("lm_eval", "lm-eval"), "lm_eval/__main__.py"


class MedtasksError(Exception):
    """Bad input, said in words: what is wrong, where, and how to mend it. Exit code 2, no traceback."""

    def __init__(self, what: str, *, where: object = None, remedy: str = "") -> None:
        self.what, self.where, self.remedy = what, where, remedy
        place = f"{where}: " if where is not None else ""
        super().__init__(f"{place}{what}" + (f"\n  → {remedy}" if remedy else ""))


def some(names: Sequence[object], most: int = 5, between: str = ", ") -> str:
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return between.join(map(str, names[:most])) + more


def near(value: str, known: Iterable[str]) -> str:
    """` (did you mean …?)` for a value that resembles a known one, else nothing."""
    close = difflib.get_close_matches(value, known, n=1)
    return f" (did you mean {close[0]}?)" if close else ""


class RowError(MedtasksError):
    """A fault of a `row` (`test row 3, item 2`); the `cause` is in words that other rows with it share."""

    def __init__(
        self,
        what: str,
        *,
        row: str,
        column: str | None = None,
        where: object = None,
        remedy: str = "",
        cause: str = "",
    ) -> None:
        self.row, self.column, self.cause = row, column, cause
        super().__init__(what, where=where, remedy=remedy)


def without_frames() -> None:
    """In the command `lm_eval`, an error of ours is said without the frames of lm-eval."""
    if Path(sys.argv[0]).name not in _COMMANDS and not sys.argv[0].endswith(_MODULE):
        return
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, frames: TracebackType | None) -> None:
        if isinstance(error, MedtasksError):
            print(f"medtasks: {error}", file=sys.stderr)
        else:
            before(kind, error, frames)

    sys.excepthook = hook
