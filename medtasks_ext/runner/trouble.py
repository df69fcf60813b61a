"""When to stop asking: causes that fail every request, and what to do about them."""

from __future__ import annotations

import re

from medtasks_ext.engines.records import Answer, Fault, FaultKind, Outcome
from medtasks_ext.errors import MedtasksError

#: Requests in a row that must fail for one cause before it is taken for the cause of all.
IN_A_ROW = 20
_NUMBER = re.compile(r"\d+")

#: For faults that do not say themselves what to do.
REMEDIES = {
    FaultKind.UNREACHABLE: "start the server, or correct base_url",
    FaultKind.BUSY: "ask with fewer connections (num_concurrent), or later",
    FaultKind.MALFORMED: "look at what base_url serves; it ends in /v1/chat/completions or /v1/completions",
    FaultKind.REFUSED: "correct what the server names; --gen_kwargs sets the decoding",
}
_LOOK = "mend what the message names; `medtasks run … --limit 1` tries it quickly"


class Trouble:
    """Watches outcomes for a cause that ends the run.

    Every one of the first tens of requests fails for one cause, or as many in a row for a cause that lies
    with the server, or one fails for a cause that no request escapes (key, credit, model). A cause that may
    lie in the requests themselves must have failed those of two tasks: one bad task costs no other.
    """

    def __init__(self, n_tasks: int = 1) -> None:
        self.cause: Fault | None = None  # the fault that ends the run, once there is one
        self.wish: str | None = None  # why a rule of the user's ends it, once it does
        self.answered = False  # whether any request was answered
        self._last: Fault | None = None
        self._in_a_row = 0
        self._tasks: set[str] = set()
        self._needed = min(2, n_tasks)

    def see(self, task: str, outcome: Outcome) -> bool:
        """Take note of the outcome of a task's request; whether the run should stop."""
        if isinstance(outcome, Answer):
            self.answered, self._in_a_row, self._last = True, 0, None
            return self.ends
        if self._last is None or _cause(self._last) != _cause(outcome):
            self._in_a_row, self._tasks = 0, set()
        self._in_a_row += 1
        self._tasks.add(task)
        self._last = outcome
        if self.cause is None and (outcome.kind.ends_all or (self._in_a_row >= IN_A_ROW and self._of_all())):
            self.cause = outcome
        return self.ends

    @property
    def ends(self) -> bool:
        """Whether the run should stop."""
        return self.cause is not None or self.wish is not None

    @property
    def error(self) -> MedtasksError | None:
        """What ended the run before its time, in words; None if nothing did."""
        if self.cause is not None:
            return stopped(self.cause)
        if self.wish is not None:
            return MedtasksError(
                self.wish,
                where="stopped (--stop-if)",
                remedy="`medtasks view` shows the answers; without --stop-if the same command goes on, and "
                "nothing is asked twice",
            )
        return None

    def _of_all(self) -> bool:
        """Whether requests of other tasks would fail like the last ones."""
        assert self._last is not None
        return self._last.kind.is_transient or (not self.answered and len(self._tasks) >= self._needed)

    def settle(self) -> None:
        """At the end of the asking: where nothing was answered, the one cause is the cause of all."""
        if self.cause is None and not self.answered and self._last is not None:
            self.cause = self._last


def _cause(fault: Fault) -> tuple[FaultKind, str]:
    """Kind and reason; a count of tokens or a time in it is another for each request."""
    return fault.kind, _NUMBER.sub("#", fault.reason)


def stopped(fault: Fault) -> MedtasksError:
    """The error of a run that a fault ended."""
    return MedtasksError(
        f"no request gets an answer: {fault.reason}",
        where=f"stopped ({fault.kind.value})",
        remedy=f"{fault.remedy or REMEDIES.get(fault.kind, _LOOK)}; the same command continues",
    )
