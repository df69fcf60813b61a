"""Progress of a run: one line that stays below what is said on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from medtasks_ext.cli.words import counted, duration, say, unsure_words
from medtasks_ext.engines import Outcome, Request
from medtasks_ext.runner.tally import Alarms, Tally
from medtasks_ext.runs.manifest import TaskEntry, TaskState

#: What is said where `--max-cost` ended a call.
LIMIT_REACHED = "✗ --max-cost is reached; a higher one continues"
#: Seconds between two lines about tasks that are not done, where there is no terminal.
QUIET_SECONDS = 600.0
#: Seconds without an outcome after which that is said.
SILENT_SECONDS = 60.0
#: Tasks under way that the line names.
_NAMED = 3
#: Seconds between two drawings of the line.
_DRAW_SECONDS = 0.5
#: Columns left free: a terminal that shows Ctrl-C as ^C would go to another line, and the display astray.
_ECHO = 3


class Progress:
    """Shows a tally as it grows, and says what becomes of tasks.

    Threads that build requests and keep outcomes call, and one of its own draws. A signal may speak within
    any of them. `every`: seconds between two lines about all that is asked, where there is no terminal.
    `alarms`: None where no answers are meant to be read.
    """

    def __init__(
        self,
        tally: Tally,
        *,
        what: str = "responses",
        every: float = QUIET_SECONDS,
        alarms: Alarms | None = None,
        score: Callable[[str], str] = lambda task: "",
        scores: bool = True,
    ) -> None:
        self._what, self._every, self._scores = what, every, scores
        self.tally, self._alarms, self._score = tally, alarms, score
        self._lock = threading.RLock()  # of the figures
        self._screen = threading.RLock()  # Rich leaves lines behind where two threads write at once
        self._ended = threading.Event()
        self._n_finished = 0
        self._said = time.monotonic()
        self._live: Live | None = None
        self._console = Console(stderr=True)
        # variables of CI systems make Rich take a pipe for a terminal
        if sys.stderr.isatty() and not self._console.is_dumb_terminal:
            to_screen = sys.stdout.isatty()  # else what is printed to a file would end up here
            self._live = Live(
                console=self._console, auto_refresh=False, transient=True, redirect_stdout=to_screen
            )
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
            self._live.stop()

    # ------------------------------------------------------------------ what happens

    def stored(self, task: str, n: int) -> None:
        with self._lock:
            self.tally.stored(task, n)

    def ended(self, request: Request, outcome: Outcome) -> None:
        """A request has its outcome."""
        with self._lock:
            self.tally.ended(request, outcome)
        if self._alarms and (line := self._alarms.look(self.tally.tasks[request.task], request)):
            self.say(line)

    def finished(self, task: str, entry: TaskEntry) -> None:
        done = entry.state is TaskState.DONE
        if done:
            what = ", ".join(filter(None, ("done", self._score(task))))
        elif entry.faults:
            what = f"{counted(sum(entry.faults.values()), 'request')} without an answer"
        else:
            what = f"failed: {entry.error}"
        with self._lock:
            self.tally.finished(task)
            self._n_finished += 1
            line = f"[{self._n_finished}/{len(self.tally.tasks)}] {task}: {what} ({self._time()})"
        if self._scores or not done:
            self.say(line)

    def say(self, line: str) -> None:
        """Print a line, above the one that stays if there is one."""
        self._said = time.monotonic()
        if self._live:
            with self._screen:
                self._console.print(line, highlight=False, markup=False)
        else:
            say(line)

    def remind(self) -> None:
        if time.monotonic() - self._said > self._every:
            self.say(self.so_far())

    def so_far(self) -> str:
        """All that is asked, in one line."""
        with self._lock:
            tally, under_way = self.tally, self.tally.under_way
            parts = [f"{tally.done:,} of {tally.asked:,} {self._what} ({self._time()})"]
            # without a speed while scores are computed: it would fall, though nothing is asked any more
            parts += [_speed_words(tally) if tally.done < tally.asked else "", money_words(tally)]
            if n := sum(tally.reasons.values()):
                ((kind, reason), most), *_ = tally.reasons.most_common(1)
                mostly = "" if most == n else f", mostly ({most:,})"
                why = (reason or kind.value).splitlines()[0]
                parts.append(f"{counted(n, 'request')} without an answer{mostly}: {why}")
            for task in under_way[:_NAMED]:
                read = f", {task.readable / task.read:.0%} of {task.read:,} readable" if task.read else ""
                parts.append(f"{task.name} {task.done:,}/{task.asked:,}{read}")
            if (more := len(under_way) - _NAMED) > 0:
                parts.append(f"{counted(more, 'more task')} under way")
        return "; ".join(filter(None, parts))

    def _time(self) -> str:
        """Since the start, and what is left."""
        left, seconds = self.tally.seconds_left(), duration(time.monotonic() - self.tally.started)
        return f"{seconds}, about {duration(left)} left" if left and left >= 1 else seconds

    def _go_on(self) -> None:
        """Draw, or remind: a server that does not answer is heard of, too."""
        while not self._ended.wait(_DRAW_SECONDS if self._live else self._every / 60):
            if self._live is None:
                self.remind()
                continue
            line = Text(self.so_far())  # before the screen is locked, so that nobody waits for both
            line.truncate(self._console.width - _ECHO, overflow="ellipsis")
            with self._screen:
                self._live.update(line, refresh=True)


def _speed_words(tally: Tally) -> str:
    seconds, answers, tokens = tally.lately()
    if not answers or not seconds:
        return "no answer yet"
    if (silent := time.monotonic() - tally.last) > SILENT_SECONDS:
        return f"no answer for {duration(silent)}"
    of, speed = ("tokens", tokens / seconds) if tokens else ("answers", answers / seconds)
    # what comes less often is counted by the minute: a figure of 0.0 says nothing
    unit, come = ("s", speed) if speed >= 0.1 else ("min", speed * 60)
    return f"{come:,.{int(come < 10)}f} {of}/{unit}"


def money_words(tally: Tally) -> str:
    if tally.budget is None:
        return ""
    words = f"{tally.budget.spent - tally.spent_before:,.2f} USD in this call"
    if tally.uncounted:
        nobody = f"{counted(tally.uncounted, 'answer')} whose tokens nobody counts"
        words = f"{words}, with the highest cost of {nobody}"
    return words + unsure_words(tally.budget.unsure)
