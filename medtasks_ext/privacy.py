"""What messages say of rows, which hold patients' texts: the kind of a value, not the value.

It is quoted only where rows are public (a download, the bundled samples) or `$MEDTASKS_SHOW_TEXT` is set.
"""

from __future__ import annotations

import os
import re
import traceback
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from hashlib import sha256
from pathlib import Path

from medtasks_ext.errors import MedtasksError

_public = ContextVar("_public", default=False)

#: Errors of machines and connections; what they say does not come from rows.
_OF_MACHINES = (OSError, RuntimeError, MemoryError)
_OF_CONNECTIONS = ("aiohttp", "httpx", "requests", "torch")
_HASHED = re.compile(r"text-[0-9a-f]{12}")


def text_hash(text: str) -> str:
    """What stands for a text that is not shown; what stands for one already stays."""
    if _HASHED.fullmatch(text):
        return text
    return f"text-{sha256(text.encode(errors='replace')).hexdigest()[:12]}"


class RowValueError(ValueError):
    """A value of a row that cannot be used. Its message quotes the row through `excerpt` alone."""


def shows_text() -> bool:
    return _public.get() or os.environ.get("MEDTASKS_SHOW_TEXT", "0") not in ("", "0")


@contextmanager
def public_rows(public: bool) -> Iterator[None]:
    token = _public.set(public)
    try:
        yield
    finally:
        _public.reset(token)


def excerpt(value: object, length: int = 40) -> str:
    """A value of a row as a message shows it: its beginning where that is allowed, else its kind and size."""
    if shows_text():
        return repr(value[:length]) if isinstance(value, str) else repr(value)[:length]
    if isinstance(value, str):
        size = "1 character" if len(value) == 1 else f"{len(value)} characters"
        return f"<text of {size}>" if value.strip() else "<blank text>"
    if isinstance(value, list | dict):
        return f"<{'list' if isinstance(value, list) else 'object'} of {len(value)}>"
    kinds = {type(None): "null", bool: "true or false", int: "a number", float: "a number"}
    return f"<{kinds.get(type(value), type(value).__name__)}>"


def describe_columns(columns: Collection[str], wanted: Collection[str]) -> str:
    """A file without a header has a row's text in place of its columns: names are then counted."""
    if shows_text():
        return f"found: {', '.join(columns)}"
    close = [near for name in wanted for near in get_close_matches(name, columns, n=1, cutoff=0.7)]
    among = f", {', '.join(dict.fromkeys(close))} among them" if close else ""
    return f"other columns found: {len(columns)}{among}"


def what_happened(error: BaseException, template: str = "") -> str:
    """What an error says, or where it arose if its message may quote a row, beside its `template`."""
    kind, undefined = type(error), type(error).__name__ == "UndefinedError"
    named = re.findall(r"'([^']*)'", str(error)) if undefined else []
    if (
        shows_text()
        or isinstance(error, (MedtasksError, RowValueError, *_OF_MACHINES))
        or kind.__module__.partition(".")[0] in _OF_CONNECTIONS
        or (named and all(name in template or name.endswith(" object") for name in named))
    ):
        return str(error) or kind.__name__
    if undefined:
        return "a value that it does not know"
    # places in this package say nothing about a row
    frames, package = traceback.extract_tb(error.__traceback__), Path(__file__).parent
    own = [frame for frame in frames if package in Path(frame.filename).parents]
    return kind.__name__ + (f" in {Path(own[-1].filename).name}, line {own[-1].lineno}" if own else "")
