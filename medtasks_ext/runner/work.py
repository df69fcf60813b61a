"""What is known of a task of a run while its requests are answered."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

from medtasks_ext.harness import Task
from medtasks_ext.run.asker import Job
from medtasks_ext.runner.requests import AskedPrompt
from medtasks_ext.runner.run import loaded_record
from medtasks_ext.runs.manifest import TaskEntry, TaskState


class Work:
    """One task of a run on its way to a score."""

    def __init__(self, task: Task, places: Sequence[int]) -> None:
        self.name, self.places = task.task_name, places
        self.task: Task | None = task  # until it is scored: its documents are not needed any more
        self.public = loaded_record(task)["origin"] != "local"
        self.asked: dict[str, AskedPrompt] = {}  # document -> its request
        self.job = Job()  # what the task waits for
        self.generated = 0  # answers that came to its own requests
        self.known = 0  # answers that were there before, as far as they were shown
        self.began: float | None = None  # when the first request was taken, in seconds of the process's clock

    @property
    def budget(self) -> int:
        """Tokens that an answer may have."""
        assert self.task is not None
        return int((self.task.config.generation_kwargs or {}).get("max_gen_toks") or 0)

    def entry(self, state: TaskState) -> TaskEntry:
        """What the manifest says of the task now."""
        reasons = Counter(fault.in_words for fault in self.job.faults).most_common(1)
        return TaskEntry(
            state=state,
            generated=self.generated,
            seconds=None if self.began is None else round(time.monotonic() - self.began, 1),
            faults=dict(Counter(fault.kind.value for fault in self.job.faults)),
            reason=reasons[0][0] if reasons else "",
        )

    def forget(self) -> None:
        """Free what is not needed once the task has its end."""
        self.task, self.asked, self.job = None, {}, Job()
