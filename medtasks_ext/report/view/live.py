"""A run under way, as its folder shows it: how far it is, how fast, and what its answers are worth.

Manifest and outcomes are read as the run writes them, each outcome once, and counted by the tally that the
run's own display has. Nothing in the folder is written or locked. Answers are read in samples, once the task
is built; that takes seconds, so a thread of its own does it, and counts are shown before.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtasks_ext.engines.budget import Budget
from medtasks_ext.engines.records import Answer, Fault, Request
from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts.documents import document_key
from medtasks_ext.report.view.runs import GOING_ON
from medtasks_ext.results.error_clusters import Answered, Cluster, error_of
from medtasks_ext.results.experiments import Fault as Problem
from medtasks_ext.run.lock import holder_of
from medtasks_ext.run.store import Follower, Row, outcome_of
from medtasks_ext.runner.tally import READ_FIRST, Tally, TaskTally, readable_share
from medtasks_ext.runs.folder import RunFolder
from medtasks_ext.runs.manifest import Manifest, TaskState

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Registry
    from medtasks_ext.registry.tasks import Dataset
    from medtasks_ext.runner.evaluate import Reader

#: Outcomes between two looks at the clock.
_STEP = 64
_DAMAGED = "the same `medtasks run` command asks again what the line held"


@dataclass
class _Clock:
    now: float

    def __call__(self) -> float:
        return self.now


@dataclass
class _Sampler:
    """Reads a sample of the answers to one task, and says why those that cannot be read cannot."""

    dataset: Dataset
    reader: Reader
    documents: Mapping[str, Mapping[str, Any]]  # key -> as it was asked
    clusters: Counter[Cluster] = field(default_factory=Counter)
    cut: bool = False  # whether the budget of the next answer ran out

    def valid(self, row: Mapping[str, Any], text: str) -> bool:
        parsed = self.reader.read(row, text)
        cut = self.cut or bool(parsed.get("unclosed_reasoning"))
        if error := error_of(self.dataset, Answered(row, parsed, text, None, cut=cut)):
            self.clusters[error.cluster] += 1
        return bool(parsed["valid"])


class _Builder:
    """Builds tasks one after the other, in a thread of its own, so that their answers can be read."""

    def __init__(self, folder: Path, registry: Registry) -> None:
        self._folder, self._registry = folder, registry
        self._wanted: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._named: set[str] = set()
        self._over: set[str] = set()
        self.built: dict[str, _Sampler] = {}
        self.failed: dict[str, str] = {}  # task -> why nothing can read its answers here

    def want(self, task: str) -> None:
        if task in self._named:
            return
        if not self._named:
            threading.Thread(target=self._go_on, name="builder", daemon=True).start()
        self._named.add(task)
        self._wanted.put(task)

    def release(self, task: str) -> None:
        self._over.add(task)
        self.built.pop(task, None)

    def _go_on(self) -> None:
        while True:
            task = self._wanted.get()
            if task in self._over:
                continue
            try:
                self.built[task] = self._build(task)
            except Exception as error:  # texts of rows stay out of messages
                self.failed[task] = error.what if isinstance(error, MedtasksError) else type(error).__name__

    def _build(self, name: str) -> _Sampler:
        from medtasks_ext.runner.evaluate import Reader, build_task
        from medtasks_ext.runner.run import Run

        run = Run(self._folder, self._registry)
        run.load()
        task = build_task(self._registry, name, run.settings_of(name))
        documents = {document_key(document): document for document in task.eval_docs}
        return _Sampler(self._registry.tasks[name][0], Reader(task), documents)


class LiveRun:
    def __init__(self, folder: Path, manifest: Manifest, registry: Registry) -> None:
        self._files, self._registry = RunFolder(folder), registry
        self.manifest = manifest
        self.call = call_of(manifest)
        self._since = _seconds(manifest)
        self._clock, self._budget = _Clock(self._since), Budget()
        self._priced = self._moving = False
        asked = {name: entry.asked or entry.n or 0 for name, entry in manifest.tasks.items()}
        self.tally = Tally(asked, budget=self._budget, clock=self._clock)
        self.problems: list[Problem] = []
        self._builder = _Builder(folder, registry)
        self._samplers: dict[str, _Sampler] = {}
        self._unread: dict[str, deque[tuple[Request, Answer]]] = {}  # of the sample, until they can be read
        self._outcomes = Follower(folder)
        self._going: Iterator[Row] | None = None
        self._answered = set[str]()  # keys, which documents of other tasks may share
        self.complete = False  # whether all that was there has been counted
        self._before(manifest)

    def _before(self, manifest: Manifest) -> None:
        """Tasks that had their end before the call are not read again."""
        self._earlier = set()
        for name, entry in manifest.tasks.items():
            record = self._files.task_file(name)
            if entry.state is TaskState.DONE and record.is_file() and record.stat().st_mtime < self._since:
                self._earlier.add(name)
                self.tally.stored(name, self.tally.tasks[name].asked)
                self.tally.finished(name)

    def look(self, manifest: Manifest, seconds: float) -> None:
        """Count what came since the last look, and go on at the next one after so many seconds."""
        self.manifest = manifest
        end = time.monotonic() + seconds
        if self._going is None:
            self._going = self._outcomes.rows()
        self.complete = False
        for number, row in enumerate(self._going):
            if row["task"] not in self._earlier:
                self._count(row)
            if number % _STEP == _STEP - 1 and time.monotonic() > end:
                break
        else:
            self._going, self.complete = None, True
        while self._outcomes.damaged:
            line = self._outcomes.damaged.pop()
            self.problems.append(Problem(str(self._files.path), f"{line} is damaged", _DAMAGED))
        for name, entry in manifest.tasks.items():
            known = self.tally.tasks.get(name)
            if known and not known.finished and entry.state not in GOING_ON:
                self._finish(name)
        self._read()

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
        request = Request(row["key"], task, row["document"], "", {})
        self.tally.ended(request, entry)
        if isinstance(entry, Fault):
            return
        if self.tally.tasks[task].takes_sample() and task not in self._builder.failed:
            self._unread.setdefault(task, deque(maxlen=2 * READ_FIRST)).append((request, entry))

    def _finish(self, task: str) -> None:
        self.tally.finished(task)
        self._builder.release(task)
        self._samplers.pop(task, None)
        self._unread.pop(task, None)

    def _read(self) -> None:
        for task in self.tally.under_way:
            if task.name in self._registry.tasks:
                self._builder.want(task.name)
        for name, waiting in self._unread.items():
            sampler = self._samplers.get(name) or self._builder.built.get(name)
            if sampler is None:
                continue
            if name not in self._samplers:
                self._samplers[name] = sampler
                self.tally.reads(name, sampler)
            while waiting:
                request, answer = waiting.popleft()
                sampler.cut = answer.finish == "length"
                row = sampler.documents.get(request.document)
                self.tally.read(_with(request, row), answer)

    def figures(self, valid: Mapping[str, tuple[float, int]]) -> Json:
        """No text of any row. `valid`: finished task -> its share of readable answers, and of how many."""
        tally, worker = self.tally, holder_of(self._files.path)
        if worker and self._moving:
            self._clock.now = max(self._clock.now, time.time())
        speed = tally.speed() if self._moving else None
        tasks = list(tally.tasks.values())
        shown = [task for task in tasks if not task.finished]
        sampled = _answers([task for task in tasks if task.name not in valid])
        answers = {
            **_answers(tasks),
            "read": sampled["read"] + sum(n for _, n in valid.values()),
            "readable": sampled["readable"] + round(sum(share * n for share, n in valid.values())),
        }
        clusters = sum((item.clusters for item in self._samplers.values()), Counter())
        return {
            "worker": worker,
            "done": tally.done,
            "asked": tally.asked,
            "seconds": tally.seconds if self._moving else 0.0,
            "left": tally.seconds_left() if worker and self._moving else None,
            "speed": speed and asdict(speed),
            "usd": tally.spent if self._priced else None,
            "faults": [
                {"kind": kind.value, "reason": reason.splitlines()[0] if reason else kind.value, "n": n}
                for (kind, reason), n in tally.reasons.most_common(8)
            ],
            "answers": answers,
            "clusters": [{"cluster": item.value, "n": n} for item, n in clusters.most_common()],
            "tasks": {
                "all": len(tasks),
                "finished": sum(task.finished for task in tasks),
                "to_be_scored": sum(task.complete and bool(task.asked) for task in shown),
                "under_way": len(tally.under_way),
            },
            "under_way": [
                {
                    "task": task.name,
                    "done": task.done,
                    "asked": task.asked,
                    "faults": task.faults,
                    **_answers([task]),
                    "unread": self._builder.failed.get(task.name, ""),
                }
                for task in shown
                if task.begun
            ],
            "counting": not self.complete,
            "problems": [item.record() for item in self.problems],
            "notes": self.manifest.notes,
        }


def call_of(manifest: Manifest) -> tuple[str, int]:
    return manifest.started, len(manifest.sessions)


def _seconds(manifest: Manifest) -> float:
    started = manifest.sessions[-1].started if manifest.sessions else manifest.started
    try:
        return time.mktime(time.strptime(started, "%Y-%m-%dT%H:%M:%S"))
    except ValueError:
        return 0.0


def _answers(tasks: list[TaskTally]) -> Json:
    readable, read = readable_share(tasks)
    return {
        "answers": sum(task.answers for task in tasks),
        "read": read,
        "readable": readable,
        "empty": sum(task.empty for task in tasks),
        "cut": sum(task.cut for task in tasks),
    }


def _with(request: Request, row: Mapping[str, Any] | None) -> Request:
    return Request(request.key, request.task, request.document, "", {}, row=row)
