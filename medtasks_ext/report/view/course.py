"""Several runs in the order in which they were named, as of checkpoints: scores, and what got worse.

Scores are the roll-up of each run, and changes the comparison of each run with the one before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtasks_ext.errors import MedtasksError, some
from medtasks_ext.registry.strategies import SUFFIX, strategy_order
from medtasks_ext.results.changes import suite_groups
from medtasks_ext.results.compared import compare_results
from medtasks_ext.results.conditions import Facts, comparable
from medtasks_ext.results.entries import Results
from medtasks_ext.results.experiments import Entry, Fault
from medtasks_ext.results.reading import read_runs
from medtasks_ext.results.rollup import group_row
from medtasks_ext.stats.permutation import EQUAL

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Registry

#: Documents of a step that are listed, those that lost most first.
MOST = 200


def course(places: Sequence[str], labels: Sequence[str], registry: Registry) -> Json:
    """Scores of groups over runs, and, from each run to the next, documents that were right and are not."""
    faults: list[Fault] = []
    entries = [_entry(place, label, registry, faults) for place, label in zip(places, labels, strict=True)]
    steps = [
        _step(number, before, after, registry) for number, (before, after) in enumerate(pairwise(entries))
    ]
    if unlike := _under_other_conditions(entries):
        what = f"asked under other conditions in some run, and in no curve: {some(unlike)}"
        faults.append(Fault("course", what, "`medtasks compare` says in what two runs differ", skipped=False))
    return {
        "runs": list(labels),
        "sample": any(entry.sample for entry in entries if entry),
        "groups": _groups(entries, registry, frozenset(unlike)),
        "steps": steps,
        "faults": [item.record() for item in faults],
    }


def _entry(place: str, label: str, registry: Registry, faults: list[Fault]) -> Entry | None:
    try:
        found = read_runs(Path(place), registry, faults)
    except MedtasksError as error:
        faults.append(Fault(place, error.what, error.remedy))
        return None
    for entry in found:
        entry.label = label
    return found[0] if found else None


def _under_other_conditions(entries: Sequence[Entry | None]) -> list[str]:
    asked: dict[str, list[Facts]] = {}
    for entry in filter(None, entries):
        for name, item in entry.experiments.items():
            if item.score is not None:
                asked.setdefault(name, []).append(item.facts)
    return sorted(
        name
        for name, found in asked.items()
        if any(comparable(one, other).grade == "other" for one, other in combinations(found, 2))
    )


def _groups(entries: Sequence[Entry | None], registry: Registry, unlike: frozenset[str]) -> list[Json]:
    suites = suite_groups(registry)
    suffixes = tuple(filter(None, SUFFIX.values()))
    names = sorted(
        (name for name in registry.groups if not name.endswith(suffixes)), key=lambda name: name not in suites
    )
    strategies = {item.strategy for entry in entries if entry for item in entry.experiments.values()}
    found: dict[tuple[Any, ...], Json] = {}
    for strategy in sorted(strategies, key=strategy_order):
        for name in names:
            rows = [
                group_row(entry, registry, name, strategy) if entry else None
                for entry in _alike(entries, registry, name, strategy, unlike)
            ]
            if not any(row and row.score is not None for row in rows):
                continue
            points = [
                {
                    "score": row.score,
                    "low": row.interval.low if row.interval else None,
                    "high": row.interval.high if row.interval else None,
                    "tasks": row.n_scored,
                    "of": row.n_tasks,
                }
                if row and row.score is not None
                else None
                for row in rows
            ]
            same = (strategy, *(point and (point["score"], point["tasks"]) for point in points))
            found.setdefault(same, {"name": next(row.name for row in rows if row), "points": points})
    return list(found.values())


def _alike(
    entries: Sequence[Entry | None], registry: Registry, group: str, strategy: str, unlike: frozenset[str]
) -> list[Entry | None]:
    """The runs that have any score of a group, on the tasks that all of these were asked alike.

    Means over other tasks would make a curve of the tasks, not of the model.
    """
    datasets = [registry.tasks[name][0] for name in registry.leaves(group)]
    names = {dataset.task(strategy) for dataset in datasets if dataset.has(strategy)} - unlike
    scored = [
        {name for name in names & entry.experiments.keys() if entry.experiments[name].score is not None}
        if entry
        else set[str]()
        for entry in entries
    ]
    shared = set.intersection(*filter(None, scored)) if any(scored) else set()
    return [
        entry.part({name: entry.experiments[name] for name in shared}) if entry and own else None
        for entry, own in zip(entries, scored, strict=True)
    ]


def _step(number: int, before: Entry | None, after: Entry | None, registry: Registry) -> Json:
    step = {"before": number, "after": number + 1, "groups": [], "regressed": [], "n_regressed": 0, "why": ""}
    if before is None or after is None:
        return {**step, "why": "one of the two cannot be read"}
    try:
        compared = compare_results(Results([before, after]), registry)
    except MedtasksError as error:
        return {**step, "why": error.what}
    worse = [
        {**row, "dataset": registry.tasks[row["task"]][0].id}
        for row in compared.flipped.to_pylist()
        if row["before"] >= 1 - EQUAL and row["after"] < row["before"]
    ]
    worse.sort(key=lambda row: row["after"] - row["before"])
    kept = ("name", "before", "after", "difference", "interval_low", "interval_high", "p_holm", "tasks", "of")
    groups = [{name: row[name] for name in kept} for row in compared.groups.to_pylist()]
    return {**step, "groups": groups, "regressed": worse[:MOST], "n_regressed": len(worse)}
