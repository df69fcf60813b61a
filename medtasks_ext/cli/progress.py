"""Progress of a run: a live bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from medtasks_ext.runs.manifest import TaskState

if TYPE_CHECKING:
    from medtasks_ext.engines.records import Answer, Fault, Request
    from medtasks_ext.runs.manifest import TaskEntry

#: Seconds between two lines about a task that is not done, where there is no terminal.
QUIET_SECONDS = 600


class Progress:
    """Counts responses and tasks.

    The time that is left follows from the responses of this process. Those that were stored already took
    no time, and a model answers in batches, so neither they nor the last moments say how fast it is.
    """

    def __init__(self, n_tasks: int, n_documents: int) -> None:
        self.n_tasks, self.n_documents = n_tasks, n_documents
        self.tasks_done = self.n_answered = self.skipped = 0
        self.started = self.said = self.last_answer = time.monotonic()
        self.bar = _bar() if sys.stderr.isatty() else None
        self.bar_task = self.bar.add_task("responses", total=n_documents, left="") if self.bar else None

    def __enter__(self) -> Progress:
        if self.bar:
            self.bar.start()
        return self

    def __exit__(self, *_: Any) -> None:
        if self.bar:
            self.bar.stop()

    def answered(self, request: Request, answer: Answer) -> None:
        """Count a response that the model gave."""
        self._advance()

    def faulted(self, request: Request, fault: Fault) -> None:
        """Count a request without an answer."""
        self._advance()

    def stored(self, task: str, n: int) -> None:
        """Count n responses that need not be asked for."""
        self.skipped += n
        self._show(n)

    def finished(self, task: str, entry: TaskEntry) -> None:
        """Say that a task is done or failed."""
        self.say_task(task, _what(entry))

    def say_task(self, task: str, what: str) -> None:
        """Say what became of a task."""
        self.tasks_done += 1
        self._say(f"[{self.tasks_done}/{self.n_tasks}] {task}: {what}")

    def _advance(self, n: int = 1) -> None:
        self.n_answered += n
        self.last_answer = time.monotonic()
        self._show(n)
        if not self.bar and self.last_answer - self.said > QUIET_SECONDS:
            self._say(f"{self._counted:,} of {self.n_documents:,} responses")

    @property
    def _counted(self) -> int:
        return self.n_answered + self.skipped

    def seconds_left(self) -> float | None:
        """At the rate of this process so far; None before its first response, 0 at the end."""
        left = max(0, self.n_documents - self._counted)
        if not self.n_answered:
            return None if left else 0.0
        return left * (self.last_answer - self.started) / self.n_answered

    def _show(self, n: int) -> None:
        if self.bar and self.bar_task is not None:
            self.bar.update(self.bar_task, advance=n, left=_left(self.seconds_left()))

    def _say(self, line: str) -> None:
        self.said = time.monotonic()
        line += f" ({duration(self.said - self.started)}{_left(self.seconds_left(), ', ')})"
        if self.bar:
            self.bar.console.print(line, highlight=False, markup=False)
        else:
            typer.echo(line, err=True)


def _what(entry: TaskEntry) -> str:
    if entry.state in (TaskState.DONE, TaskState.GENERATED):
        return "done"
    if entry.faults:
        return f"{sum(entry.faults.values()):,} requests have no answer"
    return f"failed: {entry.error}"


def _bar() -> Bar:
    return Bar(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
        console=Console(stderr=True),
    )


def _left(seconds: float | None, before: str = "") -> str:
    return f"{before}about {duration(seconds)} left" if seconds else ""


def duration(seconds: float) -> str:
    """A time in two units at most: 45 s, 12 min, 3 h 20 min, 2 d 4 h."""
    minutes, hours = round(seconds / 60), round(seconds / 3600)
    if seconds < 90:
        return f"{seconds:.0f} s"
    if minutes < 90:
        return f"{minutes} min"
    if hours < 48:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{hours // 24} d {hours % 24} h"
