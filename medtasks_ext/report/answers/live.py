"""A run under way, as its folder shows it: how far it is, how fast, and what it costs.

Manifest and outcomes are read as the run writes them, each outcome once, and counted by the tally that the
run's own display has. Nothing in the folder is written or locked.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks_ext.engines import Request
from medtasks_ext.run.charge import Budget
from medtasks_ext.run.lock import holder_of
from medtasks_ext.run.store import Follower, Row, outcome_of
from medtasks_ext.runner.tally import Tally, TaskTally
from medtasks_ext.runs.folder import RunFolder
from medtasks_ext.runs.manifest import Manifest, TaskState

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json

#: States of tasks that have no end yet.
_GOING_ON = (TaskState.WAITING, TaskState.ANSWERED)
_DAMAGED = "is damaged → the same `medtasks run` command asks again what the line held"
_REASONS = 8


@dataclass
class _Clock:
    now: float

    def __call__(self) -> float:
        return self.now


class LiveRun:
    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self._files, self.call = RunFolder(folder), call_of(manifest)
        self._since = _seconds(manifest)
        self._clock, self._budget = _Clock(self._since), Budget()
        self._priced = self._moving = False
        asked = {name: entry.asked or entry.n or 0 for name, entry in manifest.tasks.items()}
        self.tally = Tally(asked, budget=self._budget, clock=self._clock)
        self._outcomes = Follower(folder)
        self._answered = set[str]()  # keys, which documents of other tasks may share
        self._earlier = set[str]()  # tasks that had their end before the call
        for name, entry in manifest.tasks.items():
            record = self._files.scores_file(name)
            if entry.state is TaskState.DONE and record.is_file() and record.stat().st_mtime < self._since:
                self._earlier.add(name)
                self.tally.stored(name, self.tally.tasks[name].asked)
                self.tally.finished(name)

    def figures(self, manifest: Manifest) -> Json:
        """What is known by now; no text of any row."""
        for row in self._outcomes.rows():
            if row["task"] not in self._earlier:
                self._count(row)
        for name, entry in manifest.tasks.items():
            if (known := self.tally.tasks.get(name)) is None:
                continue
            known.asked = max(known.asked, entry.asked or 0)  # it stands there once the rows are loaded
            if not known.finished and entry.state not in _GOING_ON:
                self.tally.finished(name)
        tally, worker = self.tally, holder_of(self._files.path)
        if worker and self._moving:
            self._clock.now = max(self._clock.now, time.time())
        tasks = list(tally.tasks.values())
        shown = [task for task in tasks if not task.finished]
        speed = tally.speed() if self._moving else None
        return {
            "label": manifest.identity.model_name,
            "worker": worker,
            "done": tally.done,
            "asked": tally.asked,
            "left": tally.seconds_left() if worker and self._moving else None,
            "speed": speed and asdict(speed),
            "usd": tally.spent if self._priced else None,
            "faults": [
                {"reason": reason.splitlines()[0] if reason else kind.value, "n": n}
                for (kind, reason), n in tally.reasons.most_common(_REASONS)
            ],
            "answers": _answers(tasks),
            "finished": sum(task.finished for task in tasks),
            "tasks": len(tasks),
            "under_way": [
                {"task": task.name, "done": task.done, "asked": task.asked, "faults": task.faults}
                | _answers([task])
                for task in shown
                if task.begun
            ],
            "notes": [*manifest.notes, *(f"{line} {_DAMAGED}" for line in self._outcomes.damaged)],
        }

    def _count(self, row: Row) -> None:
        at, task, kind = row["at"], row["task"], row["outcome"]
        shared = kind == "question" and row["key"] in self._answered
        if kind == "answer":
            self._answered.add(row["key"])
        if shared or (kind == "answer" and at < self._since):
            if task in self.tally.tasks:
                self.tally.stored(task, 1)
            return
        if at < self._since or kind not in ("answer", "fault"):
            return
        entry = outcome_of(row)
        if not self._moving:
            self._moving = True
            self._clock.now = max(self._since, at - (getattr(entry, "seconds", None) or 0.0))
            self.tally.begin()
        self._clock.now = max(self._clock.now, at)
        if entry.cost is not None:
            self._priced = True
            self._budget.settle(0.0, spent=entry.cost)
        self.tally.ended(Request(row["key"], task, row["document"], "", {}), entry)


def is_under_way(manifest: Manifest) -> bool:
    return any(entry.state in _GOING_ON for entry in manifest.tasks.values())


def call_of(manifest: Manifest) -> tuple[str, int]:
    return manifest.started, len(manifest.sessions)


def _seconds(manifest: Manifest) -> float:
    started = manifest.sessions[-1].started if manifest.sessions else manifest.started
    try:
        return time.mktime(time.strptime(started, "%Y-%m-%dT%H:%M:%S"))
    except ValueError:
        return 0.0


def _answers(tasks: Sequence[TaskTally]) -> Json:
    names = ("answers", "empty", "cut")
    return {name: sum(getattr(task, name) for task in tasks) for name in names}
