"""Where things lie in a run's folder."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import read_json, write_json, write_lines
from medtasks_ext.runs.manifest import FILE
from medtasks_ext.runs.samples import read_samples

if TYPE_CHECKING:
    from medtasks_ext.runs.records import Sample, TaskRecord


_DOCUMENTS = 1 << 31  # of a task at most; more is a number that somebody made up


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
        """Results of tasks, and what they stand on."""
        return self.path / "tasks"

    def task_file(self, task: str) -> Path:
        return self.tasks / f"{task}.json"

    def resampled_file(self, task: str) -> Path:
        """A task's score on each bootstrap resample."""
        return self.tasks / f"{task}.npy"

    def scores_file(self, task: str) -> Path:
        """What each document contributed to a task's score."""
        return self.tasks / f"{task}.parquet"

    def samples_file(self, task: str) -> Path:
        return self.path / f"samples_{task}.jsonl"

    @property
    def results_file(self) -> Path:
        return self.path / "results.json"

    def judged_file(self, task: str) -> Path:
        """Scores that judges gave the documents of a task."""
        return self.judgements / f"{task}.json"

    @property
    def agreement_file(self) -> Path:
        return self.judgements / "agreement.json"

    def read_task(self, task: str) -> TaskRecord:
        record: TaskRecord = read_json(self.task_file(task))
        kinds = {"metrics": dict, "loaded": dict, "n": int}
        if not (
            isinstance(record, dict)
            and all(isinstance(record.get(key), kind) for key, kind in kinds.items())
            and 0 <= record["n"] <= _DOCUMENTS
        ):
            raise MedtasksError(
                "is no result of a task", where=self.task_file(task), remedy="medtasks rescore RUN"
            )
        return record

    def write_task(self, task: str, record: TaskRecord) -> None:
        write_json(self.task_file(task), record)

    def read_samples(self, task: str, first: int | None = None) -> list[Sample]:
        return read_samples(self.samples_file(task), first)

    def write_samples(self, task: str, samples: Iterable[Sample]) -> None:
        write_lines(self.samples_file(task), samples)
