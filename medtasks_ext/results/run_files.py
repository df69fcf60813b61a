"""What a finished run says: its model, and the results of its tasks."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import read_json
from medtasks_ext.prompts.documents import document_key
from medtasks_ext.runs.folder import RunFolder
from medtasks_ext.runs.manifest import Manifest, TaskState

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class RunResults:
    """One run folder.

    Attributes:
        folder: of the run.
        model: the name that its user gave the model.
        tasks: task -> contents of its result file, for finished tasks.
    """

    folder: Path
    model: str
    tasks: dict[str, dict[str, Any]]

    def score(self, task: str) -> float | None:
        """The task's score, or None where it has none."""
        return self.tasks.get(task, {}).get("metrics", {}).get("score")

    def samples(self, task: str, first: int | None = None) -> list[dict[str, Any]]:
        """lm-eval's records of the task's documents; judged ones with `score` as (run, value).

        Args:
            task: its name.
            first: how many, from the first on; all by default.

        Raises:
            MedtasksError: a file is missing or damaged.
        """
        path = self.folder / f"samples_{task}.jsonl"
        try:
            with path.open("rb") as lines:  # bytes: a text may hold other line separators than \n
                samples = [json.loads(line) for line in islice(lines, first)]
        except FileNotFoundError:
            raise MedtasksError("no such file", where=path, remedy="run the task again") from None
        except ValueError as error:
            raise MedtasksError(f"damaged ({error})", where=path, remedy="`medtasks rescore RUN`") from None
        judged = self.folder / "judgements" / f"{task}.json"
        if judged.is_file():
            documents = {item["document"]: item for item in read_json(judged)["documents"]}
            for sample in samples:
                item = documents.get(document_key(sample["doc"]), {"score": None})
                if item["score"] is not None:
                    sample["score"] = (item.get("run", ""), item["score"])
        return samples

    def document_scores(self, task: str) -> dict[str, float]:
        """Document -> score, for tasks whose score is a mean over documents; else nothing."""
        scores: dict[str, float] = {}
        for sample in self.samples(task):
            value = sample.get("score")
            if isinstance(value, (list, tuple)) and len(value) == 2 and isinstance(value[1], (int, float)):
                value = value[1]  # (run, value)
            if isinstance(value, (int, float)):
                scores[document_key(sample["doc"])] = float(value)
        return scores


def read_run(folder: Path) -> RunResults:
    """Read a run folder.

    Raises:
        MedtasksError: it is no run folder, or a file of it is damaged.
    """
    manifest = Manifest.read(folder)
    if manifest.identity.shard:
        raise MedtasksError(
            "is one shard of a run", where=folder, remedy="medtasks merge SHARD... -o RUN, then take RUN"
        )
    files = RunFolder(folder)
    tasks = {
        name: files.read_task(name)
        for name, entry in manifest.tasks.items()
        if entry.state is TaskState.DONE and files.task_file(name).is_file()
    }
    model, arguments = manifest.identity.model["model"], manifest.identity.model["model_args"]
    name = str(arguments.get("pretrained") or arguments.get("model") or model)
    return RunResults(folder, name, tasks)
