"""What a finished run says: its model, and the results of its tasks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks_ext.jsonfile import read_json
from medtasks_ext.prompts.documents import document_key
from medtasks_ext.runs.folder import RunFolder
from medtasks_ext.runs.manifest import Manifest, TaskState

if TYPE_CHECKING:
    from medtasks_ext.runs.records import Sample, TaskRecord


@dataclass(frozen=True)
class RunResults:
    folder: Path  # of the run
    model: str  # the name that its user gave the model
    tasks: dict[str, TaskRecord]  # task -> contents of its result file, for finished tasks

    def samples(self, task: str, first: int | None = None) -> list[Sample]:
        """lm-eval's records of the first documents, or of all; judged ones with `score` as (run, value)."""
        samples = RunFolder(self.folder).read_samples(task, first)
        judged = RunFolder(self.folder).judged_file(task)
        if judged.is_file():
            documents = {item["document"]: item for item in read_json(judged)["documents"]}
            for sample in samples:
                item = documents.get(document_key(sample["doc"]), {"score": None})
                if item["score"] is not None:
                    sample["score"] = (item.get("run", ""), item["score"])
        return samples


def read_run(folder: Path) -> RunResults:
    manifest = Manifest.read(folder)
    files = RunFolder(folder)
    tasks = {
        name: files.read_task(name)
        for name, entry in manifest.tasks.items()
        if entry.state is TaskState.DONE and files.task_file(name).is_file()
    }
    return RunResults(folder, manifest.identity.model_name, tasks)
