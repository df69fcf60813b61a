"""What a run's progress looks like on a terminal, and the words of its figures."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.console import Group
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from medtasks_ext.cli.cost_words import unsure_words
from medtasks_ext.cli.words import aligned, counted, duration
from medtasks_ext.runner.tally import NOW_SECONDS, Speed, Tally, TaskTally, readable_share

if TYPE_CHECKING:
    from rich.console import ConsoleDimensions, RenderableType

    from medtasks_ext.runner.alarms import Alarms

#: Tasks under way that have a line each, and lines of the terminal that are left to other things.
MAX_TASKS, _OTHER_LINES = 8, 12
_MAX_BAR = 60
#: Columns left free: a terminal that shows Ctrl-C as ^C would go to another line, and the display astray.
_ECHO = 3
_DAY = 24 * 3600
#: What comes less often in a second is counted by the minute: a figure of 0.0 says nothing.
_SLOW = 0.1


def view(tally: Tally, alarms: Alarms | None, size: ConsoleDimensions) -> RenderableType:
    width, n_lines = size.width - _ECHO, max(1, min(MAX_TASKS, size.height - _OTHER_LINES))
    # without a speed while scores are computed: it would fall, though nothing is asked any more
    speed = speed_words(tally.speed()) if tally.done < tally.asked else ""
    going = (left_words(tally.seconds_left(), clock=True), speed)
    words = [
        (states_words(tally.tasks.values()), ""),
        ("; ".join(filter(None, going)), ""),
        (money_words(tally), ""),
        (fault_words(tally), "red"),
        (alarm_words(alarms), "yellow"),
    ]
    return Group(
        *(_line(line, width) for line in _task_lines(tally.under_way, width, n_lines)),
        _bar(tally, width),
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
        (f"{sum(task.done for task in group):,}/{sum(task.asked for task in group):,}", readable_words(group))
        for _, group in rows
    ]
    taken = sum(max(map(len, column)) for column in zip(*figures, strict=True))
    names = [_short(name, max(12, width - taken - 4)) for name, _ in rows]
    return aligned([(name, *cells) for name, cells in zip(names, figures, strict=True)], right=[1])


def _short(name: str, room: int) -> str:
    end = room // 3
    return name if len(name) <= room else f"{name[: room - end - 1]}…{name[-end:]}"


def _bar(tally: Tally, width: int) -> RenderableType:
    done, asked = tally.done, tally.asked
    figures = f"{done:,}/{asked:,}  {done / asked if asked else 1:.0%}  {duration(tally.seconds)}"
    row = Table.grid(padding=(0, 2, 0, 0))
    bar = ProgressBar(total=asked or 1, completed=done, width=max(4, min(_MAX_BAR, width - len(figures) - 2)))
    row.add_row(bar, Text(figures, no_wrap=True))
    return row


# ---------------------------------------------------------------------- words


def readable_words(tasks: Iterable[TaskTally]) -> str:
    readable, read = readable_share(tasks)
    return f"{readable / read:.0%} of {read:,} readable" if read else ""


def states_words(tasks: Iterable[TaskTally]) -> str:
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
    since = _figure(speed.since_start * factor)
    if speed.silent > NOW_SECONDS:
        return f"no answer for {duration(speed.silent)}; {since} {speed.of}/{unit} since the start"
    return f"{_figure(speed.now * factor)} {speed.of}/{unit} ({since} since the start)"


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


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
    return f"{counted(n, 'request')} without an answer" + (
        f": {why}" if most == n else f", mostly ({most:,}): {why}"
    )


def alarm_words(alarms: Alarms | None) -> str:
    counts = alarms.counts() if alarms else {}
    said = ", ".join(f"{kind.value} in {counted(n, 'task')}" for kind, n in counts.items())
    return f"most answers {said}" if said else ""
