"""Progress of a run: a live display on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.live import Live

from medtasks_ext.cli.live import (
    alarm_words,
    fault_words,
    left_words,
    money_words,
    readable_words,
    speed_words,
    view,
)
from medtasks_ext.cli.words import counted, duration, say
from medtasks_ext.runs.manifest import TaskEntry, TaskState

if TYPE_CHECKING:
    from rich.console import RenderableType

    from medtasks_ext.engines.records import Outcome, Request
    from medtasks_ext.run.charge import Budget
    from medtasks_ext.runner.alarms import Alarms
    from medtasks_ext.runner.tally import Tally, TaskTally

#: What is said where `--max-cost` ended a call.
LIMIT_REACHED = "✗ --max-cost is reached; a higher one continues"
#: Seconds between two lines about tasks that are not done, where there is no terminal.
QUIET_SECONDS = 600
#: Tasks under way that such a line names.
_NAMED = 3
#: Seconds between two drawings of the live display.
_DRAW_SECONDS = 0.5


def say_unpriced(budget: Budget) -> None:
    """Name answers of earlier calls that a limit cannot count."""
    if budget.unpriced:
        say(
            f"note: {counted(budget.unpriced, 'answer')} of earlier calls have no recorded cost, and too "
            "little is kept to say what they may have cost: they are not in what --max-cost limits"
        )


class Progress:
    """Shows a tally as it grows, and says what becomes of tasks.

    Threads that build requests and keep outcomes call, and one of its own draws. The figures are made into
    lines before the screen is locked, so that nobody waits for both. A signal may speak within any of them.
    `every`: seconds between two lines about all that is asked, where there is no terminal; by default they
    are rare, and name a few tasks that are under way. `alarms`: None where no answers are meant to be read.
    """

    def __init__(
        self,
        tally: Tally,
        *,
        what: str = "responses",
        every: float | None = None,
        alarms: Alarms | None = None,
        score: Callable[[str], str] = lambda task: "",
        scores: bool = True,
    ) -> None:
        self._scores = scores
        self._what, self._every = what, QUIET_SECONDS if every is None else every
        self._names_all = every is not None
        self.tally, self._alarms, self._score = tally, alarms, score
        self._lock = threading.RLock()  # of the figures
        self._screen = threading.RLock()  # Rich leaves lines behind where two threads write at once
        self._ended = threading.Event()
        self._n_finished = 0
        self._said = time.monotonic()
        self._console = Console(stderr=True)
        self._live = self._display() if _draws(self._console) else None
        self._thread = threading.Thread(target=self._go_on, name="progress", daemon=True)

    def __enter__(self) -> Progress:
        if self._live:
            self._live.start()
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._ended.set()
        self._thread.join()
        if self._live:
            self._draw(self._live)
            self._live.stop()

    # ------------------------------------------------------------------ what happens

    def began(self, task: str) -> None:
        self.tally.began(task)  # without the lock: a signal that speaks may come within, in the same thread

    def stored(self, task: str, n: int, unsure: float = 0.0) -> None:
        with self._lock:
            self.tally.stored(task, n, unsure)

    def ended(self, request: Request, outcome: Outcome) -> None:
        """A request has its outcome."""
        with self._lock:
            self.tally.ended(request, outcome)
        if self._alarms and (line := self._alarms.look(self.tally.tasks[request.task], request)):
            self.say(line)

    def finished(self, task: str, entry: TaskEntry) -> None:
        if entry.state is TaskState.DONE:
            what = ", ".join(filter(None, ("done", self._score(task))))
        elif entry.faults:
            what = f"{counted(sum(entry.faults.values()), 'request')} without an answer"
        else:
            what = f"failed: {entry.error}"
        self.say_task(task, what, shown=self._scores or entry.state is not TaskState.DONE)

    def say_task(self, task: str, what: str, *, shown: bool = True) -> None:
        with self._lock:
            self.tally.finished(task)
            if self._alarms:
                self._alarms.ended(self.tally.tasks[task])
            self._n_finished += 1
            line = f"[{self._n_finished}/{len(self.tally.tasks)}] {task}: {what} ({self._time()})"
        if shown:
            self.say(line)

    def say(self, line: str) -> None:
        """Print a line, above the live display if there is one."""
        self._said = time.monotonic()
        if self._live:
            self._draw(self._live)  # Rich prints a line above the figures that were drawn last
            with self._screen:
                self._console.print(line, highlight=False, markup=False)
        else:
            say(line)

    def say_money(self, budget: Budget) -> None:
        with self._lock:
            money = money_words(self.tally)
        if money:
            self.say(f"cost: {money}")
        if budget.exhausted:
            self.say(LIMIT_REACHED)

    def remind(self) -> None:
        if time.monotonic() - self._said > self._every:
            with self._lock:
                line = self._so_far()
            self.say(line)

    def so_far(self) -> str:
        with self._lock:
            return self._so_far()

    def _go_on(self) -> None:
        """Draw, or remind: a server that does not answer is heard of, too."""
        while not self._ended.wait(_DRAW_SECONDS if self._live else self._every / 60):
            if self._live:
                self._draw(self._live)
            else:
                self.remind()

    # ------------------------------------------------------------------ words

    def _time(self) -> str:
        """Since the start, and what is left, unless the live display shows that."""
        left = "" if self._live else left_words(self.tally.seconds_left())
        return ", ".join(filter(None, (duration(self.tally.seconds), left)))

    def _so_far(self) -> str:
        tally, under_way = self.tally, self.tally.under_way
        named = list(tally.tasks.values()) if self._names_all else under_way[:_NAMED]
        parts = [
            f"{tally.done:,} of {tally.asked:,} {self._what} ({self._time()})",
            speed_words(tally.speed()),
            money_words(tally),
            fault_words(tally),
            alarm_words(self._alarms),
            *(_so_far(task) for task in named),
        ]
        if len(under_way) > len(named):
            parts.append(f"{counted(len(under_way) - len(named), 'more task')} under way")
        return "; ".join(filter(None, parts))

    # ------------------------------------------------------------------ the live display

    def _display(self) -> Live:
        return Live(
            self._view(),
            console=self._console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=sys.stdout.isatty(),  # else what is printed to a file would end up here
        )

    def _draw(self, live: Live) -> None:
        shown = self._view()
        with self._screen:
            live.update(shown, refresh=True)

    def _view(self) -> RenderableType:
        with self._lock:
            return view(self.tally, self._alarms, self._console.size)


def _draws(console: Console) -> bool:
    """Whether a display can be drawn; variables of CI systems make Rich take a pipe for a terminal."""
    return sys.stderr.isatty() and not console.is_dumb_terminal


def _so_far(task: TaskTally) -> str:
    return ", ".join(filter(None, (f"{task.name} {task.done:,}/{task.asked:,}", readable_words([task]))))
