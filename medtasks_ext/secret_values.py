"""The values by which this process logs in somewhere: JSON and messages get a mark in their place.

`medtasks_ext.runs.settings` keeps secrets out by their names. A server may send one back in an answer, and a
user may type one, so values are known, too: those of variables such as `*_KEY` and `*_TOKEN`, and those that
a command has seen (`note`).
"""

from __future__ import annotations

import html
import io
import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TextIO
from urllib.parse import quote

_VARIABLE = re.compile(r"_(KEY|TOKEN|SECRET|PASSWORD)S?$", re.IGNORECASE)
#: Shorter values, and words without a digit below the second length, are taken for no secret: a server
#: without login is often given the key EMPTY.
_SHORTEST, _SHORTEST_WORD = 8, 16
#: What stands in place of a secret.
MARK = "secret-hidden"
_noted: set[str] = set()


def note(*values: object) -> None:
    """Remember values that a command was given to log in with, at any depth."""
    for value in values:
        if isinstance(value, dict):
            note(*value.values())
        elif isinstance(value, list | tuple):
            note(*value)
        elif isinstance(value, str):
            _noted.update(part for part in (value, *value.split()) if _is_secret(part))


def forget() -> None:
    _noted.clear()


def _is_secret(value: str) -> bool:
    if len(value) < _SHORTEST or any(char.isspace() for char in value) or value[0] in "/~.":
        return False
    mixed = any(char.isdigit() for char in value) and any(char.isalpha() for char in value)
    return mixed or len(value) >= _SHORTEST_WORD


@dataclass(frozen=True)
class Secrets:
    values: tuple[str, ...] = field(repr=False)

    @classmethod
    def known(cls) -> Secrets:
        """Those of the environment, and those that were noted; the longest first."""
        named = {value for name, value in os.environ.items() if _VARIABLE.search(name) and _is_secret(value)}
        return cls(tuple(sorted(named | _noted, key=lambda value: (-len(value), value))))

    @cached_property
    def _forms(self) -> tuple[bytes, ...]:
        """Each value as plain text, JSON, HTML and a URL write it."""
        forms = (
            form
            for value in self.values
            for form in (value, json.dumps(value)[1:-1], html.escape(value), quote(value, safe=""))
        )
        return tuple(dict.fromkeys(form.encode(errors="surrogatepass") for form in forms))

    def hidden(self, content: bytes) -> bytes:
        for form in self._forms:
            if form in content:
                content = content.replace(form, MARK.encode())
        return content

    def hidden_text(self, text: str) -> str:
        for value in self.values:
            if value in text:
                text = text.replace(value, MARK)
        return text


class _Hiding:
    """A stream on which secrets do not appear; else the stream that it stands for."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(Secrets.known().hidden_text(text) if isinstance(text, str) else text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def hidden_output() -> Iterator[None]:
    streams = sys.stdout, sys.stderr
    for stream in streams:  # a terminal that lacks a character shows another one
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    sys.stdout, sys.stderr = map(_Hiding, streams)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams
