"""What has been judged in a run's folder, over all of its tasks: what is there, what failed, what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from medtasks_ext.engines.records import FaultKind
from medtasks_ext.judge.cost import Spent
from medtasks_ext.runs.chain import Seal, sealed_head
from medtasks_ext.runs.folder import RunFolder
from medtasks_ext.runs.judgements import (
    About,
    Failure,
    Intent,
    Judgement,
    JudgementLog,
    Said,
    Usage,
    Wording,
    judged_files,
)
from medtasks_ext.runs.sent import SentLog


class JudgementStore:
    """The judgements of one run folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = RunFolder(folder).judgements
        self.sent = SentLog(folder)  # which hosts got text of which tasks
        self.by_key: dict[str, Judgement] = {}  # what was judged
        self.failed: dict[str, str] = {}  # key -> why the last try gave no verdict
        self.unreadable: set[str] = set()  # keys of requests whose last reply holds no verdict
        self.refused: set[str] = set()  # keys of requests in a batch that the server did not take
        self.read_before: set[str] = set()  # the server's numbers of replies in a batch that hold no verdict
        self.usage: dict[tuple[str, str], list[Usage]] = {}  # (task, judge) -> what its replies took
        self.served: dict[tuple[str, str], set[str]] = {}  # (task, judge) -> other models that answered
        self.wording: dict[str, Wording] = {}  # task -> whose words its judges were asked in last
        self.changed: list[str] = []  # tasks whose files do not hold any more what was sealed
        self._logs: dict[str, JudgementLog] = {}

    def open(self, *, write: bool = True, sealed: Mapping[str, Seal] | None = None) -> None:
        """Read what is there.

        Args:
            write: the process holds the folder's lease: files of an older version are written anew.
            sealed: task -> the state of its file when a call ended.

        Raises:
            MedtasksError: a line is damaged, or the disk takes nothing.
        """
        seals = sealed or {}
        for task in judged_files(self.folder):
            log = self._logs[task] = JudgementLog(self.folder, task, chained=task in seals)
            said = list(log.read())
            if log.is_old and write:
                log.renew(said)
            for item in said:
                self._remember(task, item)
                self.wording[task] = item.about.wording
        self.changed = [
            task for task, seal in seals.items() if not sealed_head(self.folder / f"{task}.jsonl", seal)
        ]

    def _remember(self, task: str, said: Said) -> None:
        about, entry = said.about, said.entry
        if isinstance(entry, Judgement):
            self.by_key[about.key] = entry
            self.failed.pop(about.key, None)
            self.unreadable.discard(about.key)
            if entry.served:
                self.served.setdefault((task, about.judge), set()).add(entry.served)
        elif isinstance(entry, Failure):
            if about.key not in self.by_key:
                self.failed[about.key] = entry.reason
                (self.unreadable.add if entry.kind == "no_verdict" else self.unreadable.discard)(about.key)
            if entry.kind is FaultKind.REFUSED:
                self.refused.add(about.key)
            if entry.request_id:
                self.read_before.add(entry.request_id)
        else:
            return
        if entry.usage is not None:
            self.usage.setdefault((task, about.judge), []).append(entry.usage)

    def add(self, task: str, about: About, entry: Judgement | Failure | Intent) -> None:
        """Append a line to a task's file.

        Raises:
            MedtasksError: the disk does not take it.
        """
        if task not in self._logs:
            self._logs[task] = JudgementLog(self.folder, task)
        self._remember(task, self._logs[task].add(about, entry))

    def usage_of(self, judge: str) -> list[Usage]:
        """What a judge's replies took, over all tasks."""
        return [usage for (_, name), some in self.usage.items() if name == judge for usage in some]

    def served_about(self, task: str) -> dict[str, list[str]]:
        """Judge -> other models than the one asked for that answered about a task, as servers call them."""
        return {judge: sorted(names) for (name, judge), names in sorted(self.served.items()) if name == task}

    def spent(self, task: str) -> Spent:
        """What the replies about a task cost."""
        usages = (usage for (name, _), some in self.usage.items() if name == task for usage in some)
        return Spent.of(usages, self._logs[task].unsure if task in self._logs else 0.0)

    @property
    def unsure(self) -> float:
        """US dollars at most of requests that were sent and never settled."""
        return sum(log.unsure for log in self._logs.values())

    @property
    def seals(self) -> dict[str, Seal]:
        """Task -> the state of its file, for the manifest."""
        return {task: log.seal for task, log in self._logs.items() if log.seal.lines}

    def sync(self) -> None:
        """Make everything added so far survive a power cut; a killed process loses nothing anyway."""
        for log in list(self._logs.values()):
            log.sync()

    def close(self) -> None:
        """Sync and close."""
        for log in self._logs.values():
            log.close()
