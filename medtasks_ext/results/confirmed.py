"""Whether a result was asked the suite's rows, in its words, with its examples, and who says so.

*Confirmed*: their hash is one that the suite's release, a pinned download or the dataset's `data.lock` gives.
*Claimed*: they may well be the suite's, and nobody has confirmed it. *Different*: they are others.
Nothing of this says anything of the answers: how far those are trusted is the matter of submissions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from medtasks_ext.registry.datalock import are_pinned

if TYPE_CHECKING:
    from medtasks_ext.registry import Dataset
    from medtasks_ext.runs.conditions import Conditions

State = Literal["confirmed", "claimed", "different"]


@dataclass(frozen=True)
class Confirmed:
    """The states of one result. None: there is none, as of invented rows, or without examples."""

    rows: State | None
    words: State | None
    shots: State | None

    @property
    def state(self) -> State | None:
        """The weakest of them: `different`, else `claimed`, else `confirmed`."""
        states = [item for item in (self.rows, self.words, self.shots) if item]
        return next((item for item in _WEAKEST if item in states), None)


_WEAKEST: tuple[State, ...] = ("different", "claimed", "confirmed")


def confirmed(dataset: Dataset, record: Conditions) -> Confirmed:
    """By the dataset's lock as it is now."""
    if record.synthetic or record.source is None:
        return Confirmed(None, None, None)
    download, lock = dataset.blocks["rows"].get("download"), dataset.lock
    public = record.origin in ("hub", "release")
    if public:
        revision = download.get("revision") if isinstance(download, dict) else None
        proven = are_pinned(dataset.blocks["rows"]) and record.revision == (revision and str(revision))
    else:
        known = lock.rows.test.folded if lock and lock.rows else None
        proven = bool(known) and record.folded == known
    short = record.n_of_suite and (record.accounted or 0) != record.n_of_suite
    other = record.source != "suite" or record.differs or short
    rows: State = "different" if other else "confirmed" if proven else "claimed"
    # words of a released file that the suite pins are its own; what rows carry is what their owner wrote
    official = record.artefact or record.origin == "release"
    words: State = "different" if record.wording != "official" else "confirmed" if official else "claimed"
    # examples are confirmed with the bytes of a download alone
    shots: State = "confirmed" if rows == "confirmed" and public else "claimed"
    return Confirmed(rows, words if record.wording else None, shots if record.shots else None)


def counted(states: Iterable[State | None]) -> dict[State, int]:
    found = list(states)
    return {state: n for state in reversed(_WEAKEST) if (n := found.count(state))}


def confirmed_words(n: dict[State, int], of: int) -> str:
    """How many of some tasks, those of invented rows among them, are confirmed; empty of no task."""
    if not of:
        return ""
    said = f", claimed but not confirmed in {n['claimed']}" if n.get("claimed") else ""
    unlike = f", others than the suite's in {n['different']}" if n.get("different") else ""
    return f"rows and words confirmed in {n.get('confirmed', 0)} of {of}{said}{unlike}"
