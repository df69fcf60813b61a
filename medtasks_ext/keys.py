"""Keys: which hosts may receive the key in a variable of the environment, and that none is shown."""

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
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from medtasks_ext.errors import MedtasksError

#: Variable that binds keys to hosts: NAME@HOST, separated by commas.
KEYS = "MEDTASKS_KEYS"
NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_BINDING = re.compile(rf"({NAME})@(\[[0-9a-f:.]+\]|[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?)")
# a label of a name; a zone is that of an interface, behind `%` or `%25`
_LABEL = "[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_SERVER = re.compile(
    r"(?:[\w.~!$&'()*+,;=:%-]*@)?"
    rf"(?:\[(?P<address>[0-9a-f:.]*:[0-9a-f:.]*(?:%[\w.-]+)?)\]|(?P<name>{_LABEL}(?:\.{_LABEL})*)\.?)(?::\d{{0,5}})?",
    re.ASCII | re.IGNORECASE,
)
_OF_PROVIDERS = frozenset({("OPENAI_API_KEY", "api.openai.com"), ("ANTHROPIC_API_KEY", "api.anthropic.com")})


@dataclass(frozen=True)
class Keys:
    """Which variables hold keys for which hosts."""

    bound: frozenset[tuple[str, str]] = _OF_PROVIDERS

    @classmethod
    def of_environment(cls) -> Keys:
        """The providers' own, and those that the environment binds, each NAME@HOST."""
        bound = set(_OF_PROVIDERS)
        for given in filter(None, re.split(r"[\s,]+", os.environ.get(KEYS, ""))):
            name, _, host = given.partition("@")
            match = _BINDING.fullmatch(f"{name}@{host.lower().rstrip('.')}")
            if match is None:
                what = f"{given!r} binds no key to a host"
                raise MedtasksError(what, where=KEYS, remedy="write NAME@HOST: MY_API_KEY@api.example.org")
            bound.add((match[1], match[2].strip("[]")))
        return cls(frozenset(bound))

    def with_host(self, name: str, url: str) -> Keys:
        return Keys(self.bound | {(name, host_of(url))})

    def permit(self, name: str, url: str) -> bool:
        return (name, host_of(url)) in self.bound

    def check(self, name: str, url: str, where: str) -> None:
        if not self.permit(name, url):
            host = host_of(url)
            what = f"{where} would send the key in {name} to {host}, to which nobody has bound it"
            remedy = f"if the key is for it, set {KEYS}={name}@{host}"
            raise MedtasksError(what, where=name, remedy=remedy)


def host_of(url: str) -> str:
    """The host of an address, in lower case. What clients read in ways of their own (`%2e`) is refused."""
    try:
        server = urlsplit(url).netloc if url.isascii() and url.isprintable() and " " not in url else ""
    except ValueError:
        server = ""
    match = _SERVER.fullmatch(server)
    address = match["address"] or "" if match else ""
    if match is None or unquote(zone := address.replace("%25", "%")) != zone:
        raise MedtasksError(
            "names no host that all programs read alike",
            where=shown_url(url),
            remedy="write a name of letters, digits, hyphens and dots (an international one in its form with "
            "xn--), or an address such as 127.0.0.1 or [::1]",
        )
    return (address or match["name"]).lower()


def shown_url(url: str) -> str:
    """An address as messages show it: without user info and query."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an address that cannot be read"
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment=""))


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
        if isinstance(value, dict | list | tuple):
            note(*(value.values() if isinstance(value, dict) else value))
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
        forms = dict.fromkeys(
            form.encode(errors="surrogatepass")
            for value in self.values
            for form in (value, json.dumps(value)[1:-1], html.escape(value), quote(value, safe=""))
        )
        return tuple(forms)

    def hidden(self, content: bytes) -> bytes:
        for form in self._forms:
            content = content.replace(form, MARK.encode())
        return content


class _Hiding:
    """A stream on which secrets do not appear; else the stream that it stands for."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        for value in Secrets.known().values:
            text = text.replace(value, MARK)
        return self._stream.write(text)

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
