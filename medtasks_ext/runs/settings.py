"""Every setting that can reach an engine, and what it can do to a score: `settings.yaml` is the one list.

A key that no line names is taken to move a score. Values that say how to log in are taken out before anything
is recorded: those of names such as `api_key`, and user info and query of addresses.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qsl, urlsplit

from pydantic import TypeAdapter

from medtasks_ext.keys import note, shown_url
from medtasks_ext.strict import Config, Strict, read_yaml


class Effect(Enum):
    """What a setting can do to a score."""

    HARMLESS = "harmless"  # nothing, whatever its value
    SAID = "said"  # another field of the record says it
    ROUNDS = "rounds"  # rounding alone: it is recorded and named
    MODEL = "model"  # it is part of which model was asked, and is named with the model
    DRAWS = "draws"  # something where answers are drawn, and nothing where the likeliest ones are taken
    MOVES = "moves"  # it moves a score


#: Where a setting is given: generation (`--gen_kwargs`, a task's `generation_kwargs`), `--model_args`,
#: lm-eval's command line, or the context of a chat template (`chat_template_args`).
Place = Literal["generation", "model", "flag", "template"]


class Setting(Strict):
    """A line of the list, as its file explains it."""

    names: tuple[str, ...]
    effect: Effect
    why: str
    values: tuple[Any, ...] = ()
    untried: str = ""


LISTS = TypeAdapter(Mapping[Place, tuple[Setting, ...]]).validate_python(
    read_yaml(Path(__file__).with_suffix(".yaml"))
)
#: (place, name) -> its line.
SETTINGS = {(place, name): line for place, lines in LISTS.items() for line in lines for name in line.names}
_KNOWN = frozenset(name for _, name in SETTINGS)
#: Arguments whose value holds settings of templates.
_NESTED = ("chat_template_args", "chat_template_kwargs")


def is_harmless(argument: str) -> bool:
    """Whether a model argument moves no score, whatever its value: where and how fast a model answers."""
    return (line := SETTINGS.get(("model", argument))) is not None and line.effect is Effect.HARMLESS


def effect(place: Place, name: str, value: Any) -> Effect:
    if (line := SETTINGS.get((place, name))) is None:
        return Effect.MOVES
    read = read_value(value)
    # 1 is 1.0, and no truth value is a number
    usual = any(isinstance(read, bool) == isinstance(item, bool) and read == item for item in line.values)
    return Effect.HARMLESS if usual and line.effect is not Effect.SAID else line.effect


def with_effect(place: Place, values: Mapping[str, Any], wanted: Effect) -> dict[str, Any]:
    """Settings that have an effect; what a template is given stands by name."""
    given: list[tuple[Place, str, Any]] = []
    for name, value in values.items():
        if name not in _NESTED:
            given.append((place, name, value))
        elif isinstance(inner := read_value(value), Mapping):
            given += (("template", str(key), item) for key, item in inner.items())
        elif inner:
            given.append(("template", name, value))
    return {name: value for at, name, value in given if effect(at, name, value) is wanted}


def read_value(value: Any) -> Any:
    """A value as it is meant: command lines and plain lm-eval write numbers, lists and mappings as text."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    for read in (json.loads, ast.literal_eval):
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            return read(text)
    return {"none": None, "null": None, "true": True, "false": False}.get(text.lower(), text)


#: Parts of names whose values are secrets, whole words between `_`, `-` and changes of case.
_WORDS = frozenset(
    {"key", "apikey", "token", "secret", "password", "passwd", "pwd", "authorization", "auth", "bearer"}
    | {"header", "headers", "cookie", "credential", "credentials", "signature", "sig"}
)
_SPLIT = re.compile(r"[^A-Za-z0-9]+|(?<=[a-z0-9])(?=[A-Z])")
#: an address; several of one model stand with `+` between them
_URL = re.compile(r"[a-zA-Z][a-zA-Z0-9.-]*://(?:(?!\+https?://)[^\s'\"])+")


@lru_cache(maxsize=4096)
def is_secret(name: str) -> bool:
    """Of a known setting it does not."""
    return any(part.lower() in _WORDS for part in _SPLIT.split(name)) and name not in _KNOWN


def dropped_secrets(content: Any, *, fields: bool = False) -> Any:
    """The same content without secrets, at any depth, and nothing that is written later shows one of them."""
    if isinstance(content, dict):
        kept = {}
        for key, value in content.items():
            if fields or not is_secret(str(key)):
                kept[key] = dropped_secrets(value, fields=key == "properties")
            else:
                note(value)
        return kept
    if isinstance(content, list | tuple):
        return [dropped_secrets(value) for value in content]
    return _URL.sub(_without_login, content) if isinstance(content, str) else content


def _without_login(found: re.Match[str]) -> str:
    """An address, which may hold user info, and keys in its query."""
    with suppress(ValueError):
        parts = urlsplit(found[0])
        note(parts.username, parts.password, *(value for _, value in parse_qsl(parts.query)))
    return shown_url(found[0])


def without_login(config: Config) -> Config:
    """lm-eval's record of a task's configuration, which holds all model arguments under `metadata`."""
    parts = ("generation_kwargs", "metadata")
    return {**config, **{name: dropped_secrets(config[name]) for name in parts if name in config}}
