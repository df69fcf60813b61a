"""The words of answers in each language, as `languages.yaml` has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from pathlib import Path
from string import ascii_uppercase
from typing import Any

import yaml

from medtasks_ext.errors import MedtasksError

FILE = Path(__file__).with_name("languages.yaml")
#: whose words are known everywhere, since models fall back on them
COMMON = "en"


@dataclass(frozen=True)
class Words:
    """The words of one language. What each field is, the head of the file says."""

    answer: tuple[str, ...]
    filler: tuple[str, ...]
    option: tuple[str, ...]
    choose: tuple[str, ...]
    right: tuple[str, ...]
    wrong: tuple[str, ...]
    not_: tuple[str, ...]
    yes: tuple[str, ...]
    no: tuple[str, ...]
    all: tuple[str, ...]
    none: tuple[str, ...]
    joins: tuple[str, ...]
    or_: tuple[str, ...]
    range: tuple[str, ...]
    about: tuple[str, ...]
    corrects: tuple[str, ...]
    decimal: str
    because: tuple[str, ...] = ()
    so: tuple[str, ...] = ()
    than: tuple[str, ...] = ()
    limit: tuple[str, ...] = ()
    whereas: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    neither: tuple[str, ...] = ()
    over: tuple[str, ...] = ()
    aside: tuple[str, ...] = ()
    but: tuple[str, ...] = ()
    except_: tuple[str, ...] = ()
    of: tuple[str, ...] = ()
    out_of: tuple[str, ...] = ()
    tick: tuple[str, ...] = ()
    cross: tuple[str, ...] = ()
    labels: str = ascii_uppercase

    def extended_by(self, said: Mapping[str, Sequence[str]]) -> Words:
        """These words and others, by key of `LISTS`."""
        added: dict[str, Any] = {
            key: tuple(dict.fromkeys((*getattr(self, key), *words))) for key, words in said.items()
        }
        return replace(self, **added)

    def with_words_of(self, other: Words) -> Words:
        """These words and another language's; marks and letters stay."""
        both = {
            item.name: tuple(dict.fromkeys((*getattr(self, item.name), *getattr(other, item.name))))
            for item in fields(self)
            if item.name not in ("decimal", "labels", "words")
        }
        return Words(**both, decimal=self.decimal, labels=self.labels, words=self.words)


#: what a task may say of the words of its language: all that are lists of words
LISTS = tuple(item.name for item in fields(Words) if item.name not in ("decimal", "labels"))


@lru_cache(maxsize=1)
def _file() -> dict[str, dict[str, Any]]:
    said: dict[str, dict[str, Any]] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return said


@lru_cache(maxsize=1)
def languages() -> dict[str, Words]:
    """Language -> its words.

    Raises:
        MedtasksError: the file has an unknown key or lacks one.
    """
    by_code: dict[str, Words] = {}
    for code, said in _file().items():
        values: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value
            for key, value in said.items()
            if key not in ("like", "source")
        }
        if like := said.get("like"):
            shared = {item.name: getattr(by_code[like], item.name) for item in fields(Words)}
            values = {**shared, **{key: (*own, *shared[key]) for key, own in values.items()}}
        try:
            by_code[code] = Words(**values)
        except TypeError as error:
            raise MedtasksError(str(error), where=f"{FILE}, {code}", remedy="give each key once") from None
    return by_code


def sources() -> dict[str, dict[str, list[str]]]:
    """Language -> list of words, or `ours` -> the groups of which a word stands there."""
    return {code: said["source"] for code, said in _file().items()}


def own_groups(code: str) -> list[str]:
    """The groups that the file gives a language itself, and not the language that it is like."""
    return [key for key in _file()[code] if key not in ("like", "source")]


@lru_cache(maxsize=64)
def words_of(language: str) -> Words:
    """A language's words with the common ones; the common ones alone of a language that has none."""
    known = languages()
    return known[language].with_words_of(known[COMMON]) if language in known else known[COMMON]
