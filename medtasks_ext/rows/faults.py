"""Faults of rows: the first one stops the reading, or, in a check, all are kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from medtasks_ext.errors import MedtasksError, RowError
from medtasks_ext.privacy import what_happened

if TYPE_CHECKING:
    from medtasks_ext.rows.row import ReadRow

_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")
REMEDY = "check that row against the schema"
#: Rows between two words about how far the reading is.
STEP = 2_000


@dataclass
class Faults:
    """What is wrong with the rows of a dataset."""

    check: bool = False  # keep faults, leave out their rows and go on; otherwise the first fault is raised
    kept: list[MedtasksError] = field(default_factory=list)  # the faults so far
    #: column -> rows in which it holds nothing, where that is allowed
    blanks: Counter[str] = field(default_factory=Counter)
    #: what is right but worth knowing of rows -> how many
    notes: Counter[str] = field(default_factory=Counter)
    #: told which row is read or rendered, every `STEP` rows
    watch: Callable[[str], None] | None = None
    #: sees each test row with what is asked about it
    examine: Callable[[ReadRow, Any], None] | None = None
    _n_tried: int = 0

    def anew(self) -> Faults:
        """These, without what was found: the rows are read from another place."""
        for kind in (self.kept, self.blanks, self.notes):
            kind.clear()
        return self

    def add(self, fault: RowError) -> None:
        if not self.check:
            raise fault
        self.kept.append(fault)

    def tried(
        self,
        place: str,
        where: str,
        make: Callable[_Given, _Made],
        *args: _Given.args,
        **named: _Given.kwargs,
    ) -> _Made | None:
        """What is made of a row; None where the row has a fault that was kept.

        What `make` raises is a fault of the row, unless it is a `MedtasksError` of something else.
        """
        if self.watch:
            self.step(place)
        try:
            return make(*args, **named)
        except Exception as error:
            self.take(error, place, where)
        return None

    def step(self, place: str) -> None:
        self._n_tried += 1
        if self.watch and self._n_tried % STEP == 0:
            self.watch(place)

    def take(self, error: Exception, place: str, where: str) -> None:
        """Keep what a row raised as a fault of the row, or raise it: always what is no fault of a row."""
        if isinstance(error, RowError):
            self.add(error)
        elif isinstance(error, MedtasksError):
            raise error
        else:
            what = f"{place} cannot be used: {what_happened(error)}"
            self.add(RowError(what, row=place, where=where, remedy=REMEDY))
