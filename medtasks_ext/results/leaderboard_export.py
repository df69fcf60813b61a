"""A run as the folder that the BRIDGE leaderboard takes (`leaderboard` of the suite's `suite.yaml`).

    OUT/result/TASK/MODEL/TASK-MODE-DECODING-SEED.result.json

The layout and the fields are those that the official `main.py` writes: the row of the test file
and the response as `pred`. Runs without gold are exported, too: the authors hold it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry.strategies import asked_strategy, reasons, strategy_title
from medtasks_ext.results.conditions import GREEDY, decoding_words
from medtasks_ext.runs.folder import RunFolder
from medtasks_ext.runs.manifest import Manifest, TaskState
from medtasks_ext.runs.samples import iter_samples

if TYPE_CHECKING:
    from medtasks_ext.registry import Dataset, Registry, Suite
    from medtasks_ext.runs.records import Sample, TaskRecord

MODES = {"zero_shot": "direct", "cot": "cot", "five_shot": "direct-5-shot"}
#: the leaderboard's seed, which names its files; nothing is drawn where answers are the likeliest ones
SEED = 42


@dataclass(frozen=True)
class Exported:
    """One written file."""

    path: Path  # where it lies
    n: int  # rows
    unlike: list[str]  # what differs from how the leaderboard's models were asked, in words


def export_run(run: Path, out: Path, registry: Registry, suite: Suite) -> list[Exported]:
    """Write all tasks of the suite that a run holds.

    Args:
        run: folder of a run.
        out: where the folder `result` goes.
        registry: for the official names of the tasks.
        suite: whose tasks are written.

    Returns:
        The written files.

    Raises:
        MedtasksError: no run, no finished task of the suite, sample rows, or a task that was cut short.
    """
    manifest = Manifest.read_whole(run)
    model = manifest.identity.model_name.rstrip("/").rpartition("/")[2]
    written = []
    for name, entry in manifest.tasks.items():
        dataset, strategy = registry.tasks.get(name, (None, ""))
        if entry.state is not TaskState.DONE or dataset is None or dataset.suite.id != suite.id:
            continue
        if not entry.choice.whole:
            raise MedtasksError(
                f"{name} covers a part of the test rows ({entry.choice.words})",
                where=run,
                remedy="run it in the same folder without --limit and --samples; only the rest is asked",
            )
        written.append(_export_task(run, out, name, dataset, strategy, model))
    if not written:
        raise MedtasksError(
            f"holds no finished {suite.title} task", where=run, remedy=f"run a task of `{suite.id}` first"
        )
    return written


def _export_task(run: Path, out: Path, name: str, dataset: Dataset, strategy: str, model: str) -> Exported:
    files = RunFolder(run)
    stored = files.read_task(name)
    loaded = stored["loaded"]
    mode = _mode(run, name, strategy, stored)
    if loaded["origin"] == "sample":
        raise MedtasksError(
            f"{name} was run on synthetic sample rows", where=run, remedy="run it on the official files"
        )
    official = dataset.blocks["rows"]["official_name"]
    path = out / "result" / official / model / f"{official}-{mode}.result.json"
    rows = [_row(sample, official, dataset) for sample in iter_samples(files.samples_file(name))]
    unlike = ["rows rebuilt from the source: not the official test rows"] if loaded["rebuilt"] else []
    if loaded["instruction"] != "official":
        unlike.append("not asked in the suite's own words alone, as the leaderboard's models were")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rows, ensure_ascii=False, indent=4), encoding="utf-8")
    return Exported(path, len(rows), unlike)


def _mode(run: Path, name: str, strategy: str, stored: TaskRecord) -> str:
    """What the leaderboard calls the way in which the task was asked: kind of prompt, shots, decoding, seed.

    Raises:
        MedtasksError: the leaderboard has no name for it.
    """
    config = stored["config"]
    asked = asked_strategy(strategy, int(config.get("num_fewshot") or 0))
    if asked not in MODES or (asked != strategy and reasons(strategy)):
        raise MedtasksError(
            f"{name} was asked {strategy_title(asked)}, which the leaderboard does not take",
            where=run,
            remedy="run the tasks without --num_fewshot; `…_5shot` is the task with five examples",
        )
    decoding = decoding_words(config.get("generation_kwargs") or {}) or GREEDY
    if decoding != GREEDY:
        raise MedtasksError(
            f"{name} has sampled answers ({decoding}); the leaderboard takes greedy ones",
            where=run,
            remedy="run it without --gen_kwargs",
        )
    return f"{MODES[asked]}-{decoding}-{SEED}"


def _row(sample: Sample, official: str, dataset: Dataset) -> dict[str, Any]:
    document = sample["doc"]
    return {
        "task": official,
        "language": dataset.metadata.language,
        "task type": dataset.metadata.task_type,
        "id": document["id"],
        "split": "test",
        "instruction": document["system"],
        "input": document["prompt"],
        "output": document["target"],
        "pred": sample["resps"][0][0],
    }
