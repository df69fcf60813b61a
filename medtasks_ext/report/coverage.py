"""Tasks of the registry without a score, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from medtasks_ext.report.privacy import is_open

if TYPE_CHECKING:
    from collections.abc import Sequence

    from medtasks_ext.registry import Registry
    from medtasks_ext.registry.tasks import Dataset
    from medtasks_ext.results.experiments import Entry, Experiment

State = Literal["missing", "failed", "waiting", "not asked", "without gold", "not judged"]

_LENGTH = 200
NOT_ASKED = "was not among the tasks of the run"
_WAITING = "the run was interrupted before; the same command goes on"
_UNREADABLE = "its results are damaged, see the faults"


@dataclass(frozen=True)
class Gap:
    """A task without a score."""

    entry: Entry
    dataset: Dataset
    strategy: str
    state: State
    reason: str


def gaps(entry: Entry, tasks: Registry, strategies: Sequence[str]) -> list[Gap]:
    """An entry's tasks without a score, in the registry's order; twins of datasets are no tasks of a suite."""
    found = []
    for dataset in tasks.datasets.values():
        if dataset.metadata.twin_of:
            continue
        for strategy in strategies:
            item = entry.experiments.get(dataset.task(strategy))
            if item is None or item.score is None:
                state, reason = _without_score(item) if item else _without_result(entry, dataset, strategy)
                found.append(Gap(entry, dataset, strategy, state, reason))
    return found


def _without_score(item: Experiment) -> tuple[State, str]:
    if item.dataset.config["dataset_kwargs"]["medtasks_dataset"].get("judge"):
        return "not judged", "its answers wait for `medtasks judge`"
    return "without gold", "its rows have no gold answers"


def _without_result(entry: Entry, dataset: Dataset, strategy: str) -> tuple[State, str]:
    stored: dict[str, Any] = (entry.manifest.get("tasks") or {}).get(dataset.task(strategy)) or {}
    match stored.get("state"):
        case "missing":
            return "missing", _first_line(stored.get("error"), "its data is missing")
        case "failed" if is_open(dataset, sample=entry.sample):
            return "failed", _first_line(stored.get("error"), "failed")
        case "failed":  # a message may quote a row
            return "failed", "failed; run.json of the run has the message"
        case "waiting":
            return "waiting", _WAITING
        case "done":
            return "failed", _UNREADABLE
    return "not asked", NOT_ASKED


def _first_line(text: object, otherwise: str) -> str:
    lines = str(text or "").strip().splitlines()
    return lines[0][:_LENGTH] if lines else otherwise
