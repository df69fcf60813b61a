"""Every setting that can reach an engine, and what it can do to a score: `settings.yaml` is the one list.

Keys of generation (vLLM's `SamplingParams`, `GenerationConfig` of transformers, chat requests), arguments of
models and of engines, flags of lm-eval, and what a chat template is given. A key that no line names is taken
to move a score.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import ConfigDict, TypeAdapter

from medtasks_ext.registry.yamlfile import read_yaml


class Effect(Enum):
    """What a setting can do to a score."""

    #: nothing, whatever its value
    HARMLESS = "harmless"
    #: another field of the record says it
    SAID = "said"
    #: rounding alone: it is recorded and named, and makes two results `close`
    CLOSE = "close"
    #: it is part of which model was asked: it is named with the model, and makes two results `close`
    MODEL = "model"
    #: something where answers are drawn, and nothing where the likeliest ones are taken
    DRAWS = "draws"
    #: it moves a score
    MOVES = "moves"


#: Where a setting is given: generation (`--gen_kwargs`, a task's `generation_kwargs`), `--model_args`,
#: lm-eval's command line, or the context of a chat template (`chat_template_args`).
Place = Literal["generation", "model", "flag", "template"]


@dataclass(frozen=True)
class Setting:
    """A line of the list.

    Attributes:
        names: keys, for which all the same holds.
        values: those that change nothing: the engines' own defaults.
        untried: why no test compares answers with and without it; empty where one does.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    names: tuple[str, ...]
    effect: Effect
    why: str
    values: tuple[Any, ...] = ()
    untried: str = ""


#: The list, as its file has it.
LISTS = TypeAdapter(Mapping[Place, tuple[Setting, ...]]).validate_python(
    read_yaml(Path(__file__).with_suffix(".yaml"))
)
#: no value
UNSET: tuple[Any, ...] = (None, "", [], {}, False)
#: Arguments whose value holds settings of templates.
NESTED = ("chat_template_args", "chat_template_kwargs")


@lru_cache(maxsize=1)
def _by_name() -> dict[tuple[Place, str], Setting]:
    return {(place, name): line for place, lines in LISTS.items() for line in lines for name in line.names}


def is_known(name: str) -> bool:
    return any(known == name for _, known in _by_name())


def setting_of(place: Place, name: str) -> Setting | None:
    return _by_name().get((place, name))


def effect(place: Place, name: str, value: Any) -> Effect:
    line = setting_of(place, name)
    if line is None:
        return Effect.MOVES
    if line.effect not in (Effect.HARMLESS, Effect.SAID) and _is_one_of(value, line.values):
        return Effect.HARMLESS
    return line.effect


def with_effect(place: Place, values: Mapping[str, Any], *effects: Effect) -> dict[str, Any]:
    """What a template is given stands by name."""
    return {name: value for at, name, value in _each(place, values) if effect(at, name, value) in effects}


def _each(place: Place, values: Mapping[str, Any]) -> Iterator[tuple[Place, str, Any]]:
    for name, value in values.items():
        inner = read_value(value) if name in NESTED else None
        if isinstance(inner, Mapping):
            yield from (("template", str(key), item) for key, item in inner.items())
        elif name in NESTED:
            if not _is_one_of(value, UNSET):
                yield "template", name, value
        else:
            yield place, name, value


def read_value(value: Any) -> Any:
    """A value as it is meant: command lines and plain lm-eval write numbers, lists and mappings as text."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    if text.lower() in ("none", "null"):
        return None
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for read in (json.loads, ast.literal_eval):
        try:
            return read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return text


def _is_one_of(value: Any, known: Iterable[Any]) -> bool:
    """Whether a value is one of some; 1 is 1.0, and no truth value is a number."""
    read = read_value(value)
    return any(isinstance(read, bool) == isinstance(item, bool) and read == item for item in known)
