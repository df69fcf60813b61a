"""Results of any origin as lines of a leaderboard: runs, and output of plain `lm_eval`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks_ext.errors import MedtasksError
from medtasks_ext.results.condition_words import difference_words
from medtasks_ext.results.experiments import Entry, Fault, label_entries, unlike_runs, unlike_tasks
from medtasks_ext.results.reading import read_runs

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry


@dataclass
class Results:
    entries: list[Entry] = field(default_factory=list)  # lines of a leaderboard, published ones last
    faults: list[Fault] = field(default_factory=list)  # what was left out, or must be known


def read_results(paths: Iterable[Path], tasks: Registry) -> Results:
    """Read runs, of whatever kind each path holds.

    Runs of one model under the same conditions become one entry; where they disagree about a task, both stay,
    as entries of their own.
    """
    results = Results()
    read: list[Entry] = []
    for path in paths:
        if runs := runs_below(path):
            read.extend(entry for run in runs for entry in _read_if_it_can(run, tasks, results.faults))
        else:
            read.extend(read_runs(path, tasks, results.faults))
    results.entries = _joined(read, results.faults)
    label_entries(results.entries)
    return results


def runs_below(path: Path) -> list[Path]:
    """None where the folder is a run itself."""
    if not path.is_dir() or (path / "run.json").is_file():
        return []
    return sorted(file.parent for file in path.glob("*/run.json"))


def _read_if_it_can(run: Path, tasks: Registry, faults: list[Fault]) -> list[Entry]:
    try:
        return read_runs(run, tasks, faults)
    except MedtasksError as error:
        faults.append(Fault(str(run), error.what, error.remedy))
        return []


def _joined(entries: Sequence[Entry], faults: list[Fault]) -> list[Entry]:
    joined: list[Entry] = []
    for entry in entries:
        for known in joined:
            if known.model != entry.model or unlike_runs(known, entry):
                continue
            if conflict := _disagreement(known, entry):
                faults.append(conflict)
                continue
            known.experiments = {**entry.experiments, **known.experiments}
            known.folders += tuple(item for item in entry.folders if item not in known.folders)
            known.notes = tuple(dict.fromkeys([*known.notes, *entry.notes]))
            break
        else:
            joined.append(entry)
    return joined


def _disagreement(one: Entry, other: Entry) -> Fault | None:
    shared = [name for name in one.experiments if name in other.experiments]
    other_conditions = unlike_tasks(other, one)
    unlike = [
        name
        for name in shared
        if name in other_conditions or one.experiments[name].metrics != other.experiments[name].metrics
    ]
    if not unlike:
        return None
    first = next(iter(other_conditions), unlike[0])
    why = (
        "; ".join(map(difference_words, other_conditions.get(first, ())))
        or "although model and conditions are the same"
    )
    return Fault(
        ", ".join(map(str, other.folders)),
        f"disagrees with {', '.join(map(str, one.folders))} about {len(unlike)} of {len(shared)} tasks that "
        f"both hold (first: {first}), {why}; both are shown",
        "leave one of the two runs out",
        skipped=False,
    )
