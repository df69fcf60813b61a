"""What is known of a task while its requests are answered."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

from lm_eval.api.task import Task

from medtasks_ext.engines.records import FaultKind
from medtasks_ext.runner.run import loaded_record
from medtasks_ext.runs.manifest import TaskEntry, TaskState
from medtasks_ext.runs.outcomes import OutcomeLog


class Work:
    """One task and what is known of its outcomes.

    Attributes:
        under_way: requests that were built and have no outcome yet.
        fed: whether all of its requests are built.
    """

    def __init__(self, name: str, log: OutcomeLog) -> None:
        self.name, self.log = name, log
        self.under_way, self.fed = 0, False
        self.generated = 0  # answers that came
        self.faults: Counter[tuple[FaultKind, str]] = Counter()  # requests without an answer, by cause
        self.began: float | None = None  # when the first request was taken, in seconds of the process's clock

    @property
    def complete(self) -> bool:
        """Whether every request has its outcome."""
        return self.fed and not self.under_way

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
    """One task of a run on its way through the stream."""

    def __init__(self, task: Task, places: Sequence[int], log: OutcomeLog) -> None:
        super().__init__(task.task_name, log)
        self.task, self.places = task, places
        self.public = loaded_record(task)["origin"] != "local"
        self.error: TaskEntry | None = None  # what ended the building of requests

    @property
    def budget(self) -> int:
        """Tokens that an answer may have."""
        return int((self.task.config.generation_kwargs or {}).get("max_gen_toks") or 0)

    def entry(self, state: TaskState) -> TaskEntry:
        """What the manifest says of the task now; failed, if its requests could not all be built."""
        entry = super().entry(state)
        if self.error is None:
            return entry
        return entry.model_copy(
            update={name: getattr(self.error, name) for name in ("state", "error", "traceback")}
        )
