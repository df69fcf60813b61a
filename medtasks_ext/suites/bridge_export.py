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

from medtasks_ext.atomic import write_text
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry.strategies import asked_strategy, reasons, strategy_title
from medtasks_ext.results.condition_words import GREEDY, decoding_words, difference_words, settings_words
from medtasks_ext.results.conditions import Facts, comparable, facts, of_the_paper
from medtasks_ext.rows.spec import dataset_spec
from medtasks_ext.runs.conditions import conditions_of
from medtasks_ext.runs.folder import RunFolder
from medtasks_ext.runs.manifest import Manifest, TaskState
from medtasks_ext.runs.samples import iter_samples
from medtasks_ext.runs.sums import refuse_changed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from medtasks_ext.registry import Dataset, Registry, Suite
    from medtasks_ext.runs.choice import Choice
    from medtasks_ext.runs.records import Sample, TaskRecord

MODES = {"zero_shot": "direct", "cot": "cot", "five_shot": "direct-5-shot"}
#: conditions that nothing else of an export says
_ADDED = ("generation", "stop", "arguments", "own_template", "system_text")
#: the leaderboard's seed, which names its files; nothing is drawn where answers are the likeliest ones
SEED = 42
_IN_SUITES_WORDS = "asked in the suite's own words alone, as the leaderboard's models were"


@dataclass(frozen=True)
class Exported:
    path: Path  # where it lies
    n: int  # rows
    notes: str  # what differs from how the leaderboard's models were asked, as its rows say; mostly empty


def export_run(
    run: Path, out: Path, registry: Registry, suite: Suite, *, own_words: bool = False
) -> tuple[list[Exported], list[MedtasksError]]:
    """The written files, and why other tasks of the run were left out; MedtasksError where all were.

    `own_words`: write what was asked in other words, too; each row says so.
    """
    manifest = Manifest.read(run)
    refuse_changed(run)
    model = manifest.identity.model_name.rstrip("/").rpartition("/")[2]
    written, refused = [], []
    for name, entry in manifest.tasks.items():
        dataset, strategy = registry.tasks.get(name, (None, ""))
        if entry.state is not TaskState.DONE or dataset is None or dataset.suite.id != suite.id:
            continue
        try:
            stored = RunFolder(run).read_task(name)
            asked = facts(conditions_of(stored, entry.choice.words, run / name))
            mode = _mode(run, name, strategy, stored, asked)
            _check_rows(run, name, entry.choice, stored, own_words=own_words)
            _check_settings(run, name, asked, facts(of_the_paper(dataset, strategy)))
            notes = _notes(stored["loaded"], asked)
            written.append(_export_task(run, out, name, dataset, model, mode, notes))
        except MedtasksError as error:
            refused.append(error)
    if refused and not written:
        raise refused[0]
    if not written:
        raise MedtasksError(
            f"holds no finished {suite.title} task", where=run, remedy=f"run a task of `{suite.id}` first"
        )
    return written, refused


def _check_rows(run: Path, name: str, choice: Choice, stored: TaskRecord, *, own_words: bool) -> None:
    loaded = stored["loaded"]
    if not choice.whole:
        raise MedtasksError(
            f"{name} covers a part of the test rows ({choice.words})",
            where=run,
            remedy="run it in the same folder without --limit, --samples and --error; only the rest is asked",
        )
    if loaded["origin"] == "sample":
        raise MedtasksError(
            f"{name} was run on synthetic sample rows", where=run, remedy="run it on the official files"
        )
    if loaded["rebuilt"]:
        raise MedtasksError(
            f"{name} was run on rows rebuilt from their source; the leaderboard takes the official test rows",
            where=run,
            remedy="run it on the official files",
        )
    if loaded["instruction"] != "official" and not own_words:
        raise MedtasksError(
            f"{name} was not {_IN_SUITES_WORDS}",
            where=run,
            remedy="run it with --prompts official, or export with --own-words: each row then says so",
        )


def _check_settings(run: Path, name: str, asked: Facts, of_paper: Facts) -> None:
    """Refuse what was added to how the leaderboard asks: settings of generation, texts, templates."""
    if unlike := [item for item in comparable(asked, of_paper).moving if item.field in _ADDED]:
        raise MedtasksError(
            f"{name} was asked under other conditions than the leaderboard's models: "
            f"{'; '.join(map(difference_words, unlike))}",
            where=run,
            remedy="run it with the task's own settings",
        )


def _notes(loaded: Mapping[str, Any], asked: Facts) -> str:
    words = "" if loaded["instruction"] == "official" else f"not {_IN_SUITES_WORDS}"
    variant = settings_words(dict(asked.variant))
    return "; ".join(filter(None, (words, variant and f"the model with {variant}")))


def _export_task(
    run: Path, out: Path, name: str, dataset: Dataset, model: str, mode: str, notes: str
) -> Exported:
    official = dataset_spec(dataset).rows.official_name
    if official is None:
        raise MedtasksError(
            f"{name} is none of the leaderboard's tasks: it was added to the suite",
            where=run,
            remedy="run tasks of the paper: the leaderboard takes no others",
        )
    path = out / "result" / official / model / f"{official}-{mode}.result.json"
    rows = [
        {**_row(sample, official, dataset), **({"notes": notes} if notes else {})}
        for sample in iter_samples(RunFolder(run).samples_file(name))
    ]
    write_text(path, json.dumps(rows, ensure_ascii=False, indent=4))
    return Exported(path, len(rows), notes)


def _mode(run: Path, name: str, strategy: str, stored: TaskRecord, conditions: Facts) -> str:
    """What the leaderboard calls the way a task was asked: kind of prompt, shots, decoding, seed."""
    config = stored["config"]
    asked = asked_strategy(strategy, int(config.get("num_fewshot") or 0))
    if asked not in MODES or (asked != strategy and reasons(strategy)):
        raise MedtasksError(
            f"{name} was asked {strategy_title(asked)}, which the leaderboard does not take",
            where=run,
            remedy="run the tasks without --num_fewshot; `…_5shot` is the task with five examples",
        )
    decoding = decoding_words(conditions.decoding or ())
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
