"""Where things lie in a run's folder."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks_ext.jsonfile import read_json
from medtasks_ext.runs.manifest import FILE
from medtasks_ext.runs.results import read_results, records_of
from medtasks_ext.runs.samples import samples_beside

if TYPE_CHECKING:
    from medtasks_ext.runs.records import TaskRecord

_NO_DATE = re.compile(r"[^\dT.-]")


@dataclass(frozen=True)
class RunFolder:
    path: Path

    @property
    def manifest(self) -> Path:
        """Whose responses the folder holds, and the state of every task; what makes it a run's folder."""
        return self.path / FILE

    @property
    def answers(self) -> Path:
        """Outcomes; those of other machines stand beside it."""
        return self.path / "answers.jsonl"

    @property
    def judgements(self) -> Path:
        return self.path / "judgements"

    @cached_property
    def tasks(self) -> Path:
        """What results of tasks stand on, in a form that is read at once."""
        return self.path / "tasks"

    def resampled_file(self, task: str) -> Path:
        """A task's score on each bootstrap resample."""
        return self.tasks / f"{task}.npy"

    def scores_file(self, task: str) -> Path:
        """What each document contributed to a task's score."""
        return self.tasks / f"{task}.parquet"

    @cached_property
    def results_file(self) -> Path:
        """All finished tasks and their groups, as lm-eval names and writes it; a folder has one."""
        content = read_json(self.manifest)
        started = content.get("started") if isinstance(content, dict) else None
        return self.path / f"results_{_NO_DATE.sub('-', str(started))}.json"

    def samples_file(self, task: str) -> Path:
        return samples_beside(self.results_file, task)

    def judged_file(self, task: str) -> Path:
        """Scores that judges gave the documents of a task."""
        return self.judgements / f"{task}.json"

    @property
    def agreement_file(self) -> Path:
        return self.judgements / "agreement.json"

    def read_tasks(self) -> dict[str, TaskRecord]:
        """The results of the finished tasks; MedtasksError where the file is damaged."""
        return records_of(read_results(self.results_file)) if self.results_file.is_file() else {}
