"""Everything that a report says, worked out once from what was read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry.strategies import STRATEGIES, strategy_order
from medtasks_ext.report.axes import titles_of
from medtasks_ext.report.compared import Compared, compared, differences, pair_frame
from medtasks_ext.report.figures import calibration, cost_frame, gap_frame, judgement_frame
from medtasks_ext.report.groups import GroupScore, group_frame, group_scores, groups_of, rank
from medtasks_ext.report.standing import ranks_of, standings
from medtasks_ext.results.experiments import Entry, Fault
from medtasks_ext.results.labels import label_scores, read_labels
from medtasks_ext.results.published import published_entries
from medtasks_ext.results.reading import read_results
from medtasks_ext.results.result_frame import ResultParts, asked_frame, result_parts
from medtasks_ext.stats.bootstrap import RESAMPLES, single_threaded

if TYPE_CHECKING:
    import pyarrow as pa

    from medtasks_ext.registry import Registry
    from medtasks_ext.stats.statistic import Array


@dataclass(frozen=True)
class Report:
    tasks: Registry  # the registry
    strategies: tuple[str, ...]  # that were asked for
    entries: list[Entry]  # those that were read, then published ones
    draws: dict[int, Array]  # `id` of an experiment -> its score on each resample, (resamples,)
    comparisons: list[Compared]  # of entries on a suite with one strategy
    differences: list[str]  # what to know before two figures are compared, a sentence each
    faults: list[Fault]  # what was left out, or must be known
    # the frames, whose columns `medtasks_ext.results.frames` has
    groups: pa.Table  # a row per entry, strategy and group
    asked: pa.Table  # a row per name that a run was asked, and entry
    standings: pa.Table  # a row per entry, suite and strategy: where it stands among published models
    pairs: pa.Table  # a row per suite, strategy and two entries with scores of documents
    labels: pa.Table  # a row per entry, suite, strategy and label of documents
    judgements: pa.Table  # a row per judged task, judges and measure
    calibration: pa.Table  # a row per task that was asked by likelihood
    costs: pa.Table  # a row per entry
    gaps: pa.Table  # a row per task without a score, of entries that were read

    @cached_property
    def results(self) -> ResultParts:
        return result_parts(self.entries, self.tasks)

    @property
    def sample(self) -> bool:
        return any(entry.sample for entry in self.entries)

    @property
    def own(self) -> list[Entry]:
        return [entry for entry in self.entries if entry.kind != "published"]


def gather(
    paths: Sequence[Path],
    tasks: Registry,
    strategies: Sequence[str] | None = None,
    published: str | None = None,
    by: Sequence[Path] = (),
    *,
    under_way: bool = False,
) -> Report:
    """Read runs, and work out what a report says of them.

    Args:
        strategies: only these; by default the built ones, and what else was asked.
        published: suite whose published models stand beside them, `all` or `none`; by default those of the
            suites in which the runs have scores on real rows.
        by: files of studies that label documents.
        under_way: a run goes on, so that there may be no result yet.

    Raises:
        MedtasksError: nothing is left, or published scores were asked for beside synthetic rows alone.
    """
    labels = read_labels(by, tasks)
    results = read_results(paths, tasks)
    faults = list(results.faults)
    asked = {item.strategy for entry in results.entries for item in entry.experiments.values()}
    every = sorted({*STRATEGIES, *asked}, key=strategy_order)
    strategies = every if strategies is None else strategies
    own = _of_strategies(parted(results.entries), strategies)
    goes_on = "the command that made the run goes on with it"
    empty = (entry for entry in results.entries if not entry.experiments)
    faults += [Fault(", ".join(map(str, entry.folders)), "no task is finished", goes_on) for entry in empty]
    if not paths and published in (None, "none"):
        raise MedtasksError(
            "no runs are named", remedy="name a run; or see only published models: --published all"
        )
    if paths and not own and not under_way:
        raise MedtasksError(
            "no task of the registry was finished"
            + ("" if set(strategies) >= asked else f" with {' or '.join(strategies)}"),
            where=", ".join(map(str, paths)),
            remedy="; ".join(str(item).splitlines()[0] for item in faults[:3]) or "finish the run first",
        )
    entries = [*own, *_of_strategies(_published(own, tasks, published), strategies)]
    draws = _draws(entries, faults)
    with single_threaded():  # small products: threads would only wait for each other
        comparisons = compared(entries, draws, tasks, strategies)
        groups, places = _groups(entries, tasks, strategies), standings(entries, tasks, strategies)
        ranks_of(groups, places)
        by_label, more = label_scores(own, labels, tasks)
    faults += more
    return Report(
        tasks=tasks,
        strategies=tuple(strategies),
        entries=entries,
        draws=draws,
        groups=group_frame(groups, titles_of((row.group.axis, row.group.value) for row in groups)),
        asked=asked_frame(entries, tasks),
        standings=places,
        comparisons=comparisons,
        pairs=pair_frame(comparisons, entries),
        costs=cost_frame(entries),
        gaps=gap_frame(own, tasks, strategies),
        judgements=judgement_frame(own, faults),
        differences=differences(entries, comparisons),
        calibration=calibration(own, faults),
        faults=faults,
        labels=by_label,
    )


def parted(entries: Sequence[Entry]) -> list[Entry]:
    """An entry is on synthetic rows or on real ones, never on both."""
    found = []
    for entry in entries:
        kinds = {item.sample for item in entry.experiments.values()}
        for sample in sorted(kinds):
            some = {name: item for name, item in entry.experiments.items() if item.sample is sample}
            label = f"{entry.label} (sample rows)" if sample and len(kinds) > 1 else entry.label
            found.append(entry.part(some, label))
    return found


def _of_strategies(entries: Sequence[Entry], strategies: Sequence[str]) -> list[Entry]:
    found = []
    for entry in entries:
        some = {name: item for name, item in entry.experiments.items() if item.strategy in strategies}
        if some or (entry.groups and "zero_shot" in strategies):
            found.append(entry.part(some))
    return found


def _published(own: Sequence[Entry], tasks: Registry, wanted: str | None) -> list[Entry]:
    suites: set[str] = {
        suite.id
        for entry in own
        if not entry.sample
        for item in entry.experiments.values()
        if item.score is not None
        for suite in tasks.suites_of(item.dataset)
    }
    known = [name for name, suite in tasks.suites.items() if suite.published]
    if wanted not in (None, "all", "none", *known):
        raise MedtasksError(
            f"no published scores are known of {wanted!r}",
            where="--published",
            remedy=f"use {', '.join(known)}, all or none",
        )
    if wanted not in (None, "none") and own and all(entry.sample for entry in own):
        raise MedtasksError(
            "synthetic sample rows cannot stand beside published scores",
            where="--published",
            remedy="run the tasks on their own data",
        )
    named: dict[str | None, set[str]] = {None: suites, "none": set(), "all": {*known}}
    chosen = named[wanted] if wanted in named else {str(wanted)}
    if not chosen:
        return []
    return [entry for entry in published_entries(tasks) if entry.paper in chosen]


def _draws(entries: Sequence[Entry], faults: list[Fault]) -> dict[int, Array]:
    """`id` of an experiment -> its score on each resample, where it has a score and can be resampled."""
    found = {}
    for entry, name, item in ((one, *pair) for one in entries for pair in one.experiments.items()):
        values = item.read_resampled() if item.score is not None else None
        if values is None:
            continue
        if values.shape == (RESAMPLES,) and np.isfinite(values).all():
            found[id(item)] = values
        else:
            what = "its resampled scores are damaged: no comparison"
            faults.append(Fault(f"{entry.label}, {name}", what, "medtasks rescore RUN"))
    return found


def _groups(entries: Sequence[Entry], tasks: Registry, strategies: Sequence[str]) -> list[GroupScore]:
    groups, rows = groups_of(tasks), list[GroupScore]()
    of_paper = {
        name: tuple(
            one for one in groups if one.axis == "suite" or (one.suite == name and one.axis in suite.groups)
        )
        for name, suite in tasks.suites.items()
    }
    for entry in entries:
        some = of_paper[entry.paper] if entry.kind == "published" else groups
        for strategy in strategies:
            rows += group_scores(entry, strategy, some)
    rank(rows)
    return rows
