"""Progress of a run: a live display on a terminal, plain lines elsewhere, and the words of its figures."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group
from rich.constrain import Constrain
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from medtasks_ext.cli.words import counted, duration, say, unsure_words
from medtasks_ext.runner.tally import NOW_SECONDS, Speed, Tally, TaskTally
from medtasks_ext.runs.manifest import TaskEntry, TaskState

if TYPE_CHECKING:
    from rich.console import ConsoleDimensions, RenderableType

    from medtasks_ext.engines import Outcome, Request
    from medtasks_ext.run.charge import Budget
    from medtasks_ext.runner.tally import Alarms

#: What is said where `--max-cost` ended a call.
LIMIT_REACHED = "✗ --max-cost is reached; a higher one continues"
#: Seconds between two lines about tasks that are not done, where there is no terminal.
QUIET_SECONDS = 600.0
#: Tasks under way that such a line names.
_NAMED = 3
#: Seconds between two drawings of the live display.
_DRAW_SECONDS = 0.5
#: Tasks under way that have a line each, and lines of the terminal that are left to other things.
MAX_TASKS, _OTHER_LINES = 8, 12
_MAX_BAR = 60
#: Columns left free: a terminal that shows Ctrl-C as ^C would go to another line, and the display astray.
_ECHO = 3
#: What comes less often in a second is counted by the minute: a figure of 0.0 says nothing.
_SLOW = 0.1


class Progress:
    """Shows a tally as it grows, and says what becomes of tasks.

    Threads that build requests and keep outcomes call, and one of its own draws. The figures are made into
    lines before the screen is locked, so that nobody waits for both. A signal may speak within any of them.
    `every`: seconds between two lines about all that is asked, where there is no terminal. `alarms`: None
    where no answers are meant to be read.
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
        self._console = Console(stderr=True)
        self._live: Live | None = None
        # variables of CI systems make Rich take a pipe for a terminal
        if sys.stderr.isatty() and not self._console.is_dumb_terminal:
            self._live = Live(
                self._view(),
                console=self._console,
                auto_refresh=False,
                transient=True,
                redirect_stdout=sys.stdout.isatty(),  # else what is printed to a file would end up here
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
            self.say(self.so_far())

    def so_far(self) -> str:
        """All that is asked, in one line."""
        with self._lock:
            tally, under_way = self.tally, self.tally.under_way
            parts = [f"{tally.done:,} of {tally.asked:,} {self._what} ({self._time()})"]
            parts += [words for words, _ in _figures(tally, self._alarms)]
            for task in under_way[:_NAMED]:
                shares = (f"{task.name} {task.done:,}/{task.asked:,}", readable_words([task]))
                parts.append(", ".join(filter(None, shares)))
            if (more := len(under_way) - _NAMED) > 0:
                parts.append(f"{counted(more, 'more task')} under way")
        return "; ".join(filter(None, parts))

    def _time(self) -> str:
        """Since the start, and what is left, unless the live display shows that."""
        left = "" if self._live else _left(self.tally)
        return ", ".join(filter(None, (duration(self.tally.seconds), left)))

    # ------------------------------------------------------------------ the live display

    def _go_on(self) -> None:
        """Draw, or remind: a server that does not answer is heard of, too."""
        while not self._ended.wait(_DRAW_SECONDS if self._live else self._every / 60):
            if self._live:
                self._draw(self._live)
            else:
                self.remind()

    def _draw(self, live: Live) -> None:
        shown = self._view()
        with self._screen:
            live.update(shown, refresh=True)

    def _view(self) -> RenderableType:
        with self._lock:
            return view(self.tally, self._alarms, self._console.size)


def view(tally: Tally, alarms: Alarms | None, size: ConsoleDimensions) -> RenderableType:
    """The live display: a line for each task under way, a bar, and figures."""
    tasks, bar = Table.grid(padding=(0, 2, 0, 0)), Table.grid(padding=(0, 2, 0, 0))
    tasks.add_column(overflow="ellipsis")
    tasks.add_column(justify="right", no_wrap=True)
    tasks.add_column(no_wrap=True)
    under_way, most = tally.under_way, max(1, min(MAX_TASKS, size.height - _OTHER_LINES))
    rows = [(task.name, [task]) for task in under_way[:most]]
    if rest := under_way[most:]:
        rows.append((f"and {len(rest)} more", rest))
    for name, some in rows:
        of = f"{sum(task.done for task in some):,}/{sum(task.asked for task in some):,}"
        tasks.add_row(Text(name), of, readable_words(some))
    bar.add_column(max_width=_MAX_BAR)
    bar.add_column(no_wrap=True)
    share = tally.done / tally.asked if tally.asked else 1
    figures = f"{tally.done:,}/{tally.asked:,}  {share:.0%}  {duration(tally.seconds)}"
    bar.add_row(ProgressBar(total=tally.asked or 1, completed=tally.done), figures)
    finished = sum(task.finished for task in tally.tasks.values())
    states = f"{finished:,} of {counted(len(tally.tasks), 'task')} done, {len(under_way):,} under way"
    lines = [(states, ""), (_left(tally), ""), *_figures(tally, alarms)]
    words = [Text(line, style, no_wrap=True, overflow="ellipsis") for line, style in lines if line]
    return Constrain(Group(tasks, bar, *words), size.width - _ECHO)


# ---------------------------------------------------------------------- words


def _figures(tally: Tally, alarms: Alarms | None) -> list[tuple[str, str]]:
    """Speed, cost, faults and alarms in words, each with its style."""
    # without a speed while scores are computed: it would fall, though nothing is asked any more
    speed = speed_words(tally.speed()) if tally.done < tally.asked else ""
    counts = alarms.counts() if alarms else {}
    said = ", ".join(f"{kind.value} in {counted(n, 'task')}" for kind, n in counts.items())
    return [
        (speed, ""),
        (money_words(tally), ""),
        (fault_words(tally), "red"),
        (f"most answers {said}" if said else "", "yellow"),
    ]


def say_unpriced(budget: Budget) -> None:
    """Name answers of earlier calls that a limit cannot count."""
    if budget.unpriced:
        say(
            f"note: {counted(budget.unpriced, 'answer')} of earlier calls have no recorded cost, and too "
            "little is kept to say what they may have cost: they are not in what --max-cost limits"
        )


def readable_words(tasks: Iterable[TaskTally]) -> str:
    known = list(tasks)
    readable, read = sum(task.readable for task in known), sum(task.read for task in known)
    return f"{readable / read:.0%} of {read:,} readable" if read else ""


def _left(tally: Tally) -> str:
    seconds = tally.seconds_left()
    return f"about {duration(seconds)} left" if seconds and seconds >= 1 else ""


def speed_words(speed: Speed | None) -> str:
    if speed is None:
        return "no answer yet"
    if speed.silent > NOW_SECONDS:
        return f"no answer for {duration(speed.silent)}"
    unit, come = ("s", speed.now) if speed.now >= _SLOW else ("min", speed.now * 60)
    return f"{come:,.{int(come < 10)}f} {speed.of}/{unit}"


def money_words(tally: Tally) -> str:
    if tally.spent is None:
        return ""
    words = f"{tally.spent:,.2f} USD in this call"
    if tally.uncounted:
        nobody = f"{counted(tally.uncounted, 'answer')} whose tokens nobody counts"
        words = f"{words}, with the highest cost of {nobody}"
    return words + unsure_words(tally.unsure)


def fault_words(tally: Tally) -> str:
    if not tally.reasons:
        return ""
    n = sum(tally.reasons.values())
    (kind, reason), most = tally.reasons.most_common(1)[0]
    why = (reason or kind.value).splitlines()[0]
    share = "" if most == n else f", mostly ({most:,})"
    return f"{counted(n, 'request')} without an answer{share}: {why}"
