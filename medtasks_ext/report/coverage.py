"""Tasks of the registry without a score, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from medtasks_ext.registry.columns import grouped_tasks
from medtasks_ext.report.privacy import is_open
from medtasks_ext.results.frames import table_of
from medtasks_ext.runs.manifest import TaskState

if TYPE_CHECKING:
    import pyarrow as pa

    from medtasks_ext.registry import Registry
    from medtasks_ext.registry.tasks import Dataset
    from medtasks_ext.results.experiments import Entry, Experiment

State = Literal["missing", "failed", "waiting", "not asked", "without gold", "not judged", "not computed"]

_LENGTH = 200


def gap_frame(entries: Sequence[Entry], tasks: Registry, strategies: Sequence[str]) -> pa.Table:
    """The frame `gaps`, each entry's in the registry's order; controls and drafts belong to no suite."""
    found = []
    for entry in entries:
        for dataset, suite, strategy, name in grouped_tasks(tasks, strategies):
            item = entry.experiments.get(name)
            if item is None or item.score is None:
                state, reason = _without_score(item) if item else _without_result(entry, dataset, name)
                of = {"suite": suite, "dataset": dataset.id, "task": name}
                found.append(
                    {"entry": entry.label, **of, "strategy": strategy, "state": state, "reason": reason}
                )
    return table_of("gaps", found)


def _without_score(item: Experiment) -> tuple[State, str]:
    if item.dataset.blocks.get("judge"):
        return "not judged", "its answers wait for `medtasks judge`"
    if item.loaded.get("n_without_gold") == item.loaded.get("n_test", item.n):
        return "without gold", "its rows have no gold answers"
    return "not computed", (
        "NLTK's Punkt data was not on the machine that scored: python -m nltk.downloader punkt_tab, "
        "then medtasks rescore RUN"
    )


def _without_result(entry: Entry, dataset: Dataset, name: str) -> tuple[State, str]:
    task = (entry.manifest.get("tasks") or {}).get(name) or {}
    state, error = task.get("state"), str(task.get("error") or "")
    if state in (TaskState.MISSING, TaskState.FAILED):
        # what an error says of rows that are not open may quote them; where they go does not
        shown = is_open(dataset, sample=entry.sample) or error.startswith(f"{dataset.id} (")
        return state, _first_line(error) if shown else f"{state}; run.json of the run has the message"
    if state in (TaskState.WAITING, TaskState.INCOMPLETE, TaskState.ANSWERED):
        return "waiting", "the run was interrupted before; the same command goes on"
    if state == TaskState.DONE:
        return "failed", "its results are damaged, see the faults"
    return "not asked", "was not among the tasks of the run"


def _first_line(text: str) -> str:
    return (text.strip().splitlines() or ["no message"])[0][:_LENGTH]
