"""What has been judged in a run's folder, over all of its tasks: what is there, what failed, what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from medtasks_ext.engines.records import Answer, Fault, FaultKind
from medtasks_ext.judge.cost import JudgingCost
from medtasks_ext.runs.chain import Seal, sealed_head
from medtasks_ext.runs.folder import RunFolder
from medtasks_ext.runs.outcomes import (
    About,
    Binding,
    Intent,
    Judgement,
    OutcomeLog,
    Stored,
    Wording,
    judged_files,
)
from medtasks_ext.runs.sent import SentLog

#: What came back for a request to a judge.
Reply: TypeAlias = Judgement | Fault


class JudgementStore:
    def __init__(self, folder: Path) -> None:
        self.folder = RunFolder(folder).judgements
        self.sent = SentLog(folder)  # which hosts got text of which tasks
        self.by_key: dict[str, Judgement] = {}  # what was judged
        self.last: dict[str, Fault] = {}  # key of a request without a verdict -> why the last try gave none
        self.refused: set[str] = set()  # keys of requests in a batch that the server did not take
        self.read_before: set[str] = set()  # the server's numbers of replies in a batch that hold no verdict
        self.replies: dict[tuple[str, str], list[Reply]] = {}  # (task, judge) -> those that were charged here
        self.served: dict[tuple[str, str], set[str]] = {}  # (task, judge) -> other models that answered
        self.wording: dict[str, Wording] = {}  # task -> whose words its judges were asked in last
        self.changed: list[str] = []  # tasks whose files do not hold any more what was sealed
        self._logs: dict[str, OutcomeLog] = {}
        self._bound: Binding | None = None

    def open(self, *, sealed: Mapping[str, Seal] | None = None, bound: Binding | None = None) -> None:
        """Read what is there.

        Args:
            sealed: task -> the state of its file when a call ended.
        """
        seals, self._bound = sealed or {}, bound
        for task in judged_files(self.folder):
            log = self._logs[task] = OutcomeLog(self.folder, task, binding=bound)
            for stored in log.read():
                self._remember(task, stored)
        self.changed = [
            task for task, seal in seals.items() if not sealed_head(self.folder / f"{task}.jsonl", seal)
        ]

    def _remember(self, task: str, stored: Stored) -> None:
        key, about, entry = stored.key, stored.about, stored.entry
        if about is None or isinstance(entry, Intent | Answer):
            return
        self.wording[task] = about.wording
        if isinstance(entry, Judgement):
            self.by_key[key] = entry
            self.last.pop(key, None)
            if entry.served:
                self.served.setdefault((task, about.judge), set()).add(entry.served)
        else:
            if key not in self.by_key:
                self.last[key] = entry
            if entry.kind is FaultKind.REFUSED:
                self.refused.add(key)
            if entry.request_id:
                self.read_before.add(entry.request_id)
        if entry.usage is not None:
            self.replies.setdefault((task, about.judge), []).append(entry)

    def add(
        self,
        task: str,
        key: str,
        document: str,
        about: About,
        entry: Reply | Intent,
        settles: float | None = None,
    ) -> None:
        """`settles`: US dollars of the intent that it settles."""
        if task not in self._logs:
            self._logs[task] = OutcomeLog(self.folder, task, binding=self._bound)
        self._remember(task, self._logs[task].add(key, document, entry, about=about, settles=settles))

    def why_not(self, key: str, unasked: str) -> str:
        """Why a request has no verdict; `unasked` is said of one that nobody was asked."""
        return self.last[key].reason if key in self.last else unasked

    @property
    def unreadable(self) -> set[str]:
        return {key for key, fault in self.last.items() if fault.kind is FaultKind.UNREADABLE}

    def replies_of(self, judge: str) -> list[Reply]:
        return [reply for (_, name), some in self.replies.items() if name == judge for reply in some]

    def served_about(self, task: str) -> dict[str, list[str]]:
        """Judge -> other models than the one asked for that answered about a task, as servers call them."""
        return {judge: sorted(names) for (name, judge), names in sorted(self.served.items()) if name == task}

    def spent(self, task: str) -> JudgingCost:
        replies = (reply for (name, _), some in self.replies.items() if name == task for reply in some)
        return JudgingCost.of(replies, self._logs[task].unsure if task in self._logs else 0.0)

    @property
    def unsure(self) -> float:
        """US dollars at most of requests that were sent and never settled."""
        return sum(log.unsure for log in self._logs.values())

    @property
    def seals(self) -> dict[str, Seal]:
        return {task: log.seal for task, log in self._logs.items() if log.seal.lines}

    def sync(self) -> None:
        """Makes everything added survive a power cut; a killed process loses nothing anyway."""
        for log in list(self._logs.values()):
            log.sync()

    def close(self) -> None:
        for log in self._logs.values():
            log.close()
