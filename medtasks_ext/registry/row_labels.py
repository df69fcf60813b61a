"""What rows may say of themselves, by which scores are shown apart: a level of difficulty, departments."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal, TypeAlias

from pydantic import Field, field_validator

from medtasks_ext.privacy import excerpt
from medtasks_ext.strict import Strict

Level: TypeAlias = Literal["hard", "medium", "easy"]
#: Levels of difficulty, in the order in which a ratio names them.
LEVELS: tuple[Level, ...] = ("hard", "medium", "easy")
DIFFICULTY = "difficulty"


class RowLabel(Strict):
    """A column of rows that says what a row is about, whatever its task."""

    #: value -> the values within it, each with another name that rows may use, if it has one. Rows name one
    #: of these; where there are none, the value itself.
    values: dict[str, dict[str, str | None]] = Field(min_length=1)
    none: str | None = None  #: what rows that are about none of them say.
    most: int = Field(default=1, ge=1)  #: how many a row may name.

    @field_validator("values")
    @classmethod
    def _have_plain_names(cls, given: dict[str, dict[str, str | None]]) -> dict[str, dict[str, str | None]]:
        names = [name for whole, parts in given.items() for name in parts or [whole]]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"{twice[0]!r} stands twice")
        if comma := [name for name in (*given, *names) if ", " in name]:
            raise ValueError(f"{comma[0]!r}: write it without a comma, which stands before a value within it")
        return given

    @cached_property
    def whole_of(self) -> dict[str, str]:
        """What a row may name -> the value that it is or lies within."""
        wholes = {name: whole for whole, parts in self.values.items() for name in parts or [whole]}
        return {**wholes, **({self.none: self.none} if self.none else {})}

    @cached_property
    def _spelled(self) -> dict[str, str]:
        pairs = [pair for parts in self.values.values() for pair in parts.items()]
        others = {_plain(other): name for name, other in pairs if other}
        return {**others, **{_plain(name): name for name in self.whole_of}}

    def read(self, said: Any) -> list[str]:
        """The values that a row names, as they are written here; ValueError of anything else."""
        names = said if isinstance(said, list) else [said]
        if not 1 <= len(names) <= self.most:
            raise ValueError(f"{len(names)} values; a row has {self.many}")
        if wrong := [name for name in names if _plain(name) not in self._spelled]:
            raise ValueError(f"{excerpt(str(wrong[0]))} is no value of it")
        labels = [self._spelled[_plain(name)] for name in names]
        if len(set(labels)) < len(labels):
            raise ValueError("a value is named twice")
        if self.none in labels and len(labels) > 1:
            raise ValueError(f"{self.none!r} stands beside others")
        return labels

    @property
    def many(self) -> str:
        return "one" if self.most == 1 else f"one to {self.most}"

    def shown(self, named: list[str]) -> tuple[str, ...]:
        """The labels under which a row with these values is shown: each, and what it lies within once."""
        pairs = [(self.whole_of[name], name) for name in named]
        titles = (x for whole, name in pairs for x in (whole, whole if name == whole else f"{whole}, {name}"))
        return tuple(dict.fromkeys(titles))

    @cached_property
    def order(self) -> tuple[str, ...]:
        """All such labels in the order of display: each value, those within it after it."""
        titles = []
        for whole, parts in self.values.items():
            titles += [whole, *(f"{whole}, {name}" for name in parts if name != whole)]
        return (*titles, *([self.none] if self.none else []))


def _plain(name: Any) -> str:
    return str(name).strip().casefold().replace("'", "’")


#: Rows of any suite may say how difficult they are.
OF_ALL = {DIFFICULTY: RowLabel(values={level: {} for level in LEVELS})}
