"""Rows: as a source has them, and as the fields that prompts are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from medtasks_ext.privacy import shows_text

if TYPE_CHECKING:
    from typing_extensions import NotRequired

#: A row of a source: column -> cell.
Row = dict[str, Any]
Origin = Literal["local", "hub", "release", "sample"]


@dataclass(frozen=True)
class Rows:
    """Raw rows of one dataset and what they are.

    `rebuilt`: test rows made from the original source, so not the suite's own. `recovered`: how many of the
    suite's own test rows were found among them, and how many it has, where it has released their inputs.
    """

    origin: Origin
    test: list[Row]
    fewshot: list[Row]
    where: str
    revision: str | None = None
    instruction: str | None = None
    fewshot_where: str | None = None
    rebuilt: bool = False
    recovered: tuple[int, int] | None = None


class Point(TypedDict):
    id: str
    text: str
    weight: float
    tags: NotRequired[list[str]]  # kinds that it belongs to


@dataclass(slots=True)
class ReadRow:
    """A row as its fields."""

    fields: Row  # its columns and what the schema derives from them
    place: str  # which row it is, such as `test row 5, item 2`
    where: str  # its file, for messages
    instruction: str | None = None  # that comes with a row of the authors' own files, if any
    points: list[Point] | None = None  # its scoring points, where the task has some

    @property
    def named(self) -> str:
        """The row for messages; an id may name a patient."""
        return f"{self.place} (id {self.fields['id']})" if shows_text() else self.place
