"""Progress of a run: a live display on a terminal, plain lines elsewhere, and the words of its figures."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from medtasks_ext.cli.words import aligned, counted, duration, say, shortened, unsure_words
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
QUIET_SECONDS = 600
#: Tasks under way that such a line names.
_NAMED = 3
#: Seconds between two drawings of the live display.
_DRAW_SECONDS = 0.5
#: Tasks under way that have a line each, and lines of the terminal that are left to other things.
MAX_TASKS, _OTHER_LINES = 8, 12
_MAX_BAR = 60
#: Columns left free: a terminal that shows Ctrl-C as ^C would go to another line, and the display astray.
_ECHO = 3
_DAY = 24 * 3600
#: What comes less often in a second is counted by the minute: a figure of 0.0 says nothing.
_SLOW = 0.1


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
            named = list(tally.tasks.values()) if self._names_all else under_way[:_NAMED]
            parts = [
                f"{tally.done:,} of {tally.asked:,} {self._what} ({self._time()})",
                speed_words(tally.speed()),
                money_words(tally),
                fault_words(tally),
                alarm_words(self._alarms),
            ]
            for task in named:
                shares = (f"{task.name} {task.done:,}/{task.asked:,}", readable_words([task]))
                parts.append(", ".join(filter(None, shares)))
            if len(under_way) > len(named):
                parts.append(f"{counted(len(under_way) - len(named), 'more task')} under way")
        return "; ".join(filter(None, parts))

    def _time(self) -> str:
        """Since the start, and what is left, unless the live display shows that."""
        left = "" if self._live else left_words(self.tally.seconds_left())
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
    width, n_lines = size.width - _ECHO, max(1, min(MAX_TASKS, size.height - _OTHER_LINES))
    # without a speed while scores are computed: it would fall, though nothing is asked any more
    speed = speed_words(tally.speed()) if tally.done < tally.asked else ""
    going = (left_words(tally.seconds_left(), clock=True), speed)
    words = [
        (_states_words(tally.tasks.values()), ""),
        ("; ".join(filter(None, going)), ""),
        (money_words(tally), ""),
        (fault_words(tally), "red"),
        (alarm_words(alarms), "yellow"),
    ]
    figures = f"{tally.done:,}/{tally.asked:,}  {tally.done / tally.asked if tally.asked else 1:.0%}"
    figures += f"  {duration(tally.seconds)}"
    bar = Table.grid(padding=(0, 2, 0, 0))
    room = max(4, min(_MAX_BAR, width - len(figures) - 2))
    bar.add_row(
        ProgressBar(total=tally.asked or 1, completed=tally.done, width=room), Text(figures, no_wrap=True)
    )
    return Group(
        *(_line(line, width) for line in _task_lines(tally.under_way, width, n_lines)),
        bar,
        *(_line(line, width, style) for line, style in words if line),
    )


def _line(words: str, width: int, style: str = "") -> Text:
    line = Text(words, style, no_wrap=True)
    line.truncate(width, overflow="ellipsis")
    return line


def _task_lines(tasks: Sequence[TaskTally], width: int, n_lines: int) -> list[str]:
    shown = tasks if len(tasks) <= n_lines else tasks[: n_lines - 1]
    rows = [(task.name, [task]) for task in shown]
    if rest := tasks[len(shown) :]:
        rows.append((f"and {counted(len(rest), 'more task')}", list(rest)))
    figures = [
        (
            f"{sum(task.done for task in group):,}/{sum(task.asked for task in group):,}",
            readable_words(group),
        )
        for _, group in rows
    ]
    taken = sum(max(map(len, column)) for column in zip(*figures, strict=True))
    names = [shortened(name, max(12, width - taken - 4)) for name, _ in rows]
    return aligned([(name, *cells) for name, cells in zip(names, figures, strict=True)], right=[1])


# ---------------------------------------------------------------------- words


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


def _states_words(tasks: Iterable[TaskTally]) -> str:
    known = list(tasks)
    finished = sum(task.finished for task in known)
    scoring = sum(task.complete and not task.finished for task in known)
    under_way = sum(task.under_way for task in known)
    waiting = len(known) - finished - scoring - under_way
    parts = [f"{finished:,} of {counted(len(known), 'task')} done"]
    for n, what in ((under_way, "under way"), (scoring, "to be scored"), (waiting, "not begun")):
        parts += [f"{n:,} {what}"] if n else []
    return ", ".join(parts)


def left_words(seconds: float | None, *, clock: bool = False) -> str:
    if not seconds or seconds < 1:
        return ""
    words = f"about {duration(seconds)} left"
    if not clock:
        return words
    form = "%H:%M" if seconds < _DAY / 2 else "%a %H:%M" if seconds < 6 * _DAY else "%d %b"
    return f"{words}, until {time.strftime(form, time.localtime(time.time() + seconds))}"


def speed_words(speed: Speed | None) -> str:
    if speed is None:
        return "no answer yet"
    unit, factor = ("s", 1) if speed.since_start >= _SLOW else ("min", 60)
    now, since = (
        f"{value:,.0f}" if value >= 10 else f"{value:.1f}"
        for value in (speed.now * factor, speed.since_start * factor)
    )
    if speed.silent > NOW_SECONDS:
        return f"no answer for {duration(speed.silent)}; {since} {speed.of}/{unit} since the start"
    return f"{now} {speed.of}/{unit} ({since} since the start)"


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


def alarm_words(alarms: Alarms | None) -> str:
    counts = alarms.counts() if alarms else {}
    said = ", ".join(f"{kind.value} in {counted(n, 'task')}" for kind, n in counts.items())
    return f"most answers {said}" if said else ""
