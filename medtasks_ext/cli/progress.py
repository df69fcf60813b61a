"""Progress of a run: a live bar on a terminal, one line per task elsewhere."""

from __future__ import annotations

import sys
import time
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar


class Progress:
    """Counts responses and tasks."""

    def __init__(self, n_tasks: int, n_documents: int) -> None:
        self.n_tasks, self.done, self.started = n_tasks, 0, time.monotonic()
        self.bar = (
            Bar(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
                console=Console(stderr=True),
            )
            if sys.stderr.isatty()
            else None
        )
        self.bar_task = self.bar.add_task("responses", total=n_documents) if self.bar else None

    def __enter__(self) -> Progress:
        if self.bar:
            self.bar.start()
        return self

    def __exit__(self, *_: Any) -> None:
        if self.bar:
            self.bar.stop()

    def advance(self, n: int) -> None:
        """Count n responses."""
        if self.bar and self.bar_task is not None:
            self.bar.advance(self.bar_task, n)

    def task_finished(self, task: str, what: str) -> None:
        """Say that a task is done or failed."""
        self.done += 1
        line = f"[{self.done}/{self.n_tasks}] {task}: {what} ({time.monotonic() - self.started:.0f} s)"
        if self.bar:
            self.bar.console.print(line, highlight=False, markup=False)
        else:
            typer.echo(line, err=True)
