"""Rows, as a source has them and as the fields that prompts are made of; and what is wrong with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar

from medtasks_ext.errors import MedtasksError, RowError
from medtasks_ext.privacy import shows_text, what_happened

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

    def fault(self, cause: str, remedy: str, more: str = "") -> RowError:
        what = f"{self.place} {cause}{more}"
        return RowError(what, row=self.place, where=self.where, remedy=remedy, cause=cause)


_Made = TypeVar("_Made")
REMEDY = "check that row against the schema"


@dataclass
class Faults:
    """What is wrong with the rows of a dataset."""

    check: bool = False  # keep faults, leave out their rows and go on; otherwise the first fault is raised
    kept: list[MedtasksError] = field(default_factory=list)  # the faults so far
    #: column -> rows in which it holds nothing, where that is allowed
    blanks: Counter[str] = field(default_factory=Counter)
    #: what is right but worth knowing of rows -> how many
    notes: Counter[str] = field(default_factory=Counter)
    #: sees each test row with what is asked about it
    examine: Callable[[ReadRow, Any], None] | None = None

    def add(self, fault: RowError) -> None:
        if not self.check:
            raise fault
        self.kept.append(fault)

    def tried(self, place: str, where: str, make: Callable[..., _Made], *args: Any) -> _Made | None:
        """What is made of a row; None where the row has a fault that was kept."""
        try:
            return make(*args)
        except Exception as error:
            self.take(error, place, where)
        return None

    def take(self, error: Exception, place: str, where: str) -> None:
        """Keep what a row raised as a fault of the row, or raise it: always what is no fault of a row."""
        if not isinstance(error, MedtasksError):
            what = f"{place} cannot be used: {what_happened(error)}"
            error = RowError(what, row=place, where=where, remedy=REMEDY)
        if not isinstance(error, RowError):
            raise error
        self.add(error)
