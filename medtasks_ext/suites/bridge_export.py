"""A run as the folder that the BRIDGE leaderboard takes, in layout and fields of the official `main.py`.

Runs without gold are exported, too: the authors hold it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtasks_ext.atomic import write_text
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry.strategies import asked_strategy, reasons, strategy_title
from medtasks_ext.results import conditions
from medtasks_ext.rows.spec import dataset_spec
from medtasks_ext.runs.conditions import conditions_of
from medtasks_ext.runs.folder import RunFolder, refuse_changed
from medtasks_ext.runs.manifest import Manifest, TaskEntry, TaskState
from medtasks_ext.runs.records import iter_samples

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from medtasks_ext.registry import Dataset, Registry, Suite
    from medtasks_ext.runs.manifest import Choice
    from medtasks_ext.runs.records import Sample, TaskRecord

MODES = {"zero_shot": "direct", "cot": "cot", "five_shot": "direct-5-shot"}
#: conditions that nothing else of an export says
_ADDED = ("generation", "stop", "arguments", "own_template", "system_text")
#: the leaderboard's seed, which names its files; nothing is drawn where answers are the likeliest ones
SEED = 42
_IN_SUITES_WORDS = "asked only with official prompts, as the leaderboard's models were"
_ON_OFFICIAL = "run it on the official files"


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
    results, written, refused = RunFolder(run).read_tasks(), list[Exported](), list[MedtasksError]()
    for name, stored in results.items():
        dataset, strategy = registry.tasks.get(name, (None, ""))
        entry = manifest.tasks.get(name, TaskEntry())
        if entry.state is not TaskState.DONE or dataset is None or dataset.suite.id != suite.id:
            continue
        try:
            asked = conditions.facts(conditions_of(stored, entry.choice.words, run / name))
            unlike = conditions.moving(asked, conditions.facts(conditions.of_the_paper(dataset, strategy)))
            added = [conditions.difference_words(item) for item in unlike if item.field in _ADDED]
            official = dataset_spec(dataset).rows.official_name
            mode = _mode(run, name, strategy, stored, asked)
            for what, remedy in _refusals(entry.choice, stored["loaded"], added, official, own=own_words):
                raise MedtasksError(f"{name} {what}", where=run, remedy=remedy)
            own = "" if stored["loaded"]["instruction"] == "official" else f"not {_IN_SUITES_WORDS}"
            variant = conditions.settings_words(dict(asked["variant"]))
            notes = "; ".join(filter(None, (own, variant and f"the model with {variant}")))
            path = out / "result" / str(official) / model / f"{official}-{mode}.result.json"
            rows = [
                {**_row(sample, str(official), dataset), **({"notes": notes} if notes else {})}
                for sample in iter_samples(RunFolder(run).samples_file(name))
            ]
            write_text(path, json.dumps(rows, ensure_ascii=False, indent=4))
            written.append(Exported(path, len(rows), notes))
        except MedtasksError as error:
            refused.append(error)
    if refused and not written:
        raise refused[0]
    if not written:
        raise MedtasksError(
            f"holds no finished {suite.title} task", where=run, remedy=f"run a task of `{suite.id}` first"
        )
    return written, refused


def _refusals(
    choice: Choice, loaded: Mapping[str, Any], added: Sequence[str], official: str | None, *, own: bool
) -> Iterator[tuple[str, str]]:
    """What the leaderboard does not take, with the remedy."""
    if not choice.whole:
        again = "run it in the same folder without --limit, --samples and --error; only the rest is asked"
        yield f"covers a part of the test rows ({choice.words})", again
    if loaded["origin"] == "sample":
        yield "was run on synthetic sample rows", _ON_OFFICIAL
    if loaded["rebuilt"]:
        what = "was run on rows rebuilt from their source; the leaderboard takes the official test rows"
        yield what, _ON_OFFICIAL
    if loaded["instruction"] != "official" and not own:
        remedy = "run it with --prompts official, or add --parts: each row then says so"
        yield f"was not {_IN_SUITES_WORDS}", remedy
    if added:
        what = "was asked under other conditions than the leaderboard's models: "
        yield what + "; ".join(added), "run it with the task's own settings"
    if official is None:
        what = "is none of the leaderboard's tasks: it was added to the suite"
        yield what, "run tasks of the paper: the leaderboard takes no others"


def _mode(run: Path, name: str, strategy: str, stored: TaskRecord, facts: conditions.Facts) -> str:
    """What the leaderboard calls the way a task was asked: kind of prompt, shots, decoding, seed."""
    config = stored["config"]
    asked = asked_strategy(strategy, int(config.get("num_fewshot") or 0))
    if asked not in MODES or (asked != strategy and reasons(strategy)):
        what = f"{name} was asked {strategy_title(asked)}, which the leaderboard does not take"
        remedy = "run the tasks without --num_fewshot; `…_5shot` is the task with five examples"
        raise MedtasksError(what, where=run, remedy=remedy)
    decoding = conditions.decoding_words(facts["decoding"] or ())
    if decoding != conditions.GREEDY:
        what = f"{name} has sampled answers ({decoding}); the leaderboard takes greedy ones"
        raise MedtasksError(what, where=run, remedy="run it without --gen_kwargs")
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
