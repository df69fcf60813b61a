"""What is known of a task while its requests are answered."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

from medtasks_ext.engines.records import FaultKind
from medtasks_ext.harness import Task
from medtasks_ext.runner.run import loaded_record
from medtasks_ext.runs.manifest import TaskEntry, TaskState
from medtasks_ext.runs.outcomes import OutcomeLog


class Work:
    """One task and what is known of its outcomes."""

    def __init__(self, name: str, log: OutcomeLog) -> None:
        self.name, self.log = name, log
        self.generated = 0  # answers that came
        self.faults: Counter[tuple[FaultKind, str]] = Counter()  # requests without an answer, by cause
        self.began: float | None = None  # when the first request was taken, in seconds of the process's clock

    def entry(self, state: TaskState) -> TaskEntry:
        """What the manifest says of the task now."""
        (_, reason), _ = self.faults.most_common(1)[0] if self.faults else ((None, ""), 0)
        kinds = Counter[str]()
        for (kind, _), n in self.faults.items():
            kinds[kind.value] += n
        return TaskEntry(
            state=state,
            generated=self.generated,
            seconds=None if self.began is None else round(time.monotonic() - self.began, 1),
            faults=dict(kinds),
            reason=reason,
            sealed={self.log.path.name: self.log.seal} if self.log.seal.lines else {},
        )


class RunWork(Work):
    """One task of a run on its way to a score."""

    def __init__(self, task: Task, places: Sequence[int], log: OutcomeLog) -> None:
        super().__init__(task.task_name, log)
        self.task: Task | None = task  # until it is scored: its documents are not needed any more
        self.places = places
        self.public = loaded_record(task)["origin"] != "local"

    @property
    def budget(self) -> int:
        """Tokens that an answer may have."""
        assert self.task is not None
        return int((self.task.config.generation_kwargs or {}).get("max_gen_toks") or 0)
