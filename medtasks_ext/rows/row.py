"""Rows: those of a source, and each as its fields."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypedDict

from medtasks_ext.privacy import shows_text

if TYPE_CHECKING:
    from typing_extensions import NotRequired

    from medtasks_ext.rows.files import Row

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
    """A scoring point."""

    id: str
    text: str
    weight: float
    tags: NotRequired[list[str]]  # kinds that it belongs to


@dataclass(slots=True)
class ReadRow:
    """A row as its fields.

    Attributes:
        fields: its columns and what the schema derives from them.
        place: which row it is, such as `test row 5, item 2`.
        where: its file, for messages.
        instruction: that comes with a row of the authors' own files, if any.
        points: its scoring points, where the task has some.
    """

    fields: Row
    place: str
    where: str
    instruction: str | None = None
    points: list[Point] | None = None

    @property
    def named(self) -> str:
        """The row for messages; an id may name a patient."""
        return f"{self.place} (id {self.fields['id']})" if shows_text() else self.place


@dataclass(frozen=True)
class ReadRows:
    """The rows of a split.

    Attributes:
        n_dropped: rows left out since their gold is blank.
        rebuilt: the schema says that they are not the suite's own.
        excluded: reason -> rows that the task's file excludes.
        n_source: rows of the source, excluded ones among them.
    """

    rows: list[ReadRow]
    n_dropped: int = 0
    rebuilt: bool = False
    excluded: dict[str, int] = field(default_factory=dict)
    n_source: int = 0
