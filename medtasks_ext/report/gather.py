"""Everything that a report says, worked out once from what was read."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from itertools import compress, product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import Json, read_json
from medtasks_ext.registry import Registry, suites
from medtasks_ext.registry.columns import grouped_tasks
from medtasks_ext.registry.strategies import STRATEGIES, strategy_order
from medtasks_ext.registry.suites import function
from medtasks_ext.report.compared import compared, differences, pair_frame
from medtasks_ext.report.groups import group_scores, groups_of, rank
from medtasks_ext.report.standing import ranks_of, standings
from medtasks_ext.results.experiments import Entry, Experiment, Fault, is_open
from medtasks_ext.results.frames import table_of
from medtasks_ext.results.labels import Labels, label_scores, read_labels
from medtasks_ext.results.prices import Price, prices
from medtasks_ext.results.published import published_entries
from medtasks_ext.results.reading import read_results
from medtasks_ext.results.result_frame import ResultParts, asked_frame, result_parts
from medtasks_ext.runs.folder import RunFolder
from medtasks_ext.runs.manifest import TaskState
from medtasks_ext.stats.bootstrap import RESAMPLES, single_threaded

if TYPE_CHECKING:
    import pyarrow as pa

    from medtasks_ext.registry import Registry
    from medtasks_ext.registry.tasks import Dataset
    from medtasks_ext.stats.statistic import Array


class Report:
    """What was read, published models beside it, and what is worked out of them.

    Attributes:
        entries: those that were read, then published ones.
        draws: `id` of an experiment -> its score on each resample, (resamples,).
        comparisons: of entries on a suite with one strategy (`compared`).
        group_rows: a row per entry, strategy and group (`group_scores`).
        differences: what to know before two figures are compared, a sentence each.
        faults: what was left out, or must be known.
        asked, standings, pairs, labels, costs, gaps: frames of `medtasks_ext.results.frames`.
    """

    def __init__(
        self,
        tasks: Registry,
        strategies: Sequence[str],
        entries: list[Entry],
        labels: Sequence[Labels],
        faults: list[Fault],
    ) -> None:
        self.tasks, self.strategies, self.entries = tasks, tuple(strategies), entries
        self.draws = _draws(entries, faults)
        with single_threaded():  # small products: threads would only wait for each other
            self.comparisons = compared(entries, self.draws, tasks, strategies)
            self.group_rows = _groups(entries, tasks, strategies)
            self.standings = standings(entries, tasks, strategies)
            rank(self.group_rows)
            ranks_of(self.group_rows, self.standings)
            self.labels, more = label_scores(self.own, labels, tasks)
        self.faults = [*faults, *more]
        self.asked = asked_frame(entries, tasks)
        self.pairs = pair_frame(self.comparisons, entries)
        self.costs = cost_frame(entries)
        self.gaps = gap_frame(self.own, tasks, strategies)
        self.differences = differences(entries, self.comparisons)

    @cached_property
    def results(self) -> ResultParts:
        return result_parts(self.entries, self.tasks)

    @cached_property
    def groups(self) -> pa.Table:
        return table_of("groups", self.group_rows)

    @property
    def sample(self) -> bool:
        return any(entry.sample for entry in self.entries)

    @property
    def own(self) -> list[Entry]:
        return [entry for entry in self.entries if entry.kind != "published"]


def gather(
    paths: Sequence[Path],
    tasks: Registry,
    published: str | None = None,
    by: Sequence[Path] = (),
    *,
    under_way: bool = False,
) -> Report:
    """Read runs, and work out what a report says of them.

    Args:
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
    strategies = sorted({*STRATEGIES, *asked}, key=strategy_order)
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
            "no task of the registry was finished",
            where=", ".join(map(str, paths)),
            remedy="; ".join(str(item).splitlines()[0] for item in faults[:3]) or "finish the run first",
        )
    entries = [*own, *_of_strategies(_published(own, tasks, published), strategies)]
    return Report(tasks, strategies, entries, labels, faults)


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
        if some or entry.groups:
            found.append(entry.part(some))
    return found


def _published(own: Sequence[Entry], tasks: Registry, wanted: str | None) -> list[Entry]:
    known = [name for name, suite in tasks.suites.items() if suite.published]
    chosen = {"all": [*known], "none": [], **{name: [name] for name in known}}
    if wanted is None:
        real = (item for entry in own if not entry.sample for item in entry.experiments.values())
        names = {item.dataset.suite.id for item in real if item.score is not None}
    elif wanted not in chosen:
        what, remedy = f"no published scores are known of {wanted!r}", f"use {', '.join(known)}, all or none"
        raise MedtasksError(what, where="--published", remedy=remedy)
    elif chosen[wanted] and own and all(entry.sample for entry in own):
        what = "synthetic sample rows cannot stand beside published scores"
        raise MedtasksError(what, where="--published", remedy="run the tasks on their own data")
    else:
        names = {*chosen[wanted]}
    return [entry for entry in published_entries(tasks) if entry.paper in names] if names else []


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


def _groups(entries: Sequence[Entry], tasks: Registry, strategies: Sequence[str]) -> list[Json]:
    every = groups_of(tasks)
    of = {"": every}  # of a paper its suite's own groups, and the suites
    for name, suite in tasks.suites.items():
        inside = (one.axis == "suite" or (one.suite == name and one.axis in suite.groups) for one in every)
        of[name] = tuple(compress(every, inside))
    pairs = product(entries, strategies)
    return [row for entry, strategy in pairs for row in group_scores(entry, strategy, of[entry.paper])]


# Frames beside the scores: what answers cost, and which tasks have no score.

#: Figures of what judging cost that are added up.
_COUNTS = ("unsure", "replies", "unpriced", "estimated")


def cost_frame(entries: Sequence[Entry]) -> pa.Table:
    """Counted tokens times a price of model_configs, or a published total."""
    known = prices()
    rows = []
    for entry in entries:
        row: Json = {"entry": entry.label, "model": entry.model, "kind": entry.kind}
        row |= {"tasks": len(entry.experiments), "counted": 0, "price": "tokens were not counted"}
        row |= dict.fromkeys(("input_tokens", "output_tokens", "usd"))
        more = _published_cost(entry) if entry.kind == "published" else _cost(entry, known.get(entry.model))
        rows.append(row | more | _jury_cost(entry))
    return table_of("costs", rows)


def _cost(entry: Entry, price: Price | None) -> Json:
    counted = [item.tokens for item in entry.experiments.values() if item.tokens]
    if not counted:
        return {}
    given, made = (sum(tokens[side] for tokens in counted) for side in ("input", "output"))
    rule = f"tokens counted in {len(counted)} of {len(entry.experiments)} tasks"
    rule += "" if price else "; no price in model_configs"
    if price:
        rule += f" × {price.input:g} USD per million input and {price.output:g} per million output tokens "
        rule += "(model_configs); judges not included"
    tokens = {"counted": len(counted), "input_tokens": given, "output_tokens": made}
    return {**tokens, "price": rule, "usd": price and price.of(given, made)}


def _jury_cost(entry: Entry) -> Json:
    """What judging cost; of each task the first folder that knows it counts."""
    places, costs = [RunFolder(path) for path in entry.folders], list[Json]()
    for item in entry.experiments.values():
        paths = [place.judged_file(item.task) for place in places] if "judged" in item.metrics else []
        if path := next((path for path in paths if path.is_file()), None):
            with suppress(MedtasksError, KeyError, TypeError):  # a damaged file says nothing of cost
                cost = read_json(path)["cost"]
                costs.append({key: cost[key] for key in ("usd", *_COUNTS)})
    usd = [cost["usd"] for cost in costs if cost["usd"] is not None]
    counts = {key: sum(cost[key] for cost in costs) if costs else None for key in _COUNTS}
    return {f"jury_{key}": value for key, value in {"usd": sum(usd) if usd else None, **counts}.items()}


def _published_cost(entry: Entry) -> Json:
    suite = suites().get(entry.paper)
    named = suite.published.costs if suite and suite.published else None
    costs = function(suite, named)(suite) if suite and named else {}
    usd, rule = costs.get(entry.model, (None, "no cost is published"))
    return {"usd": usd, "price": rule}


def gap_frame(entries: Sequence[Entry], tasks: Registry, strategies: Sequence[str]) -> pa.Table:
    """The frame `gaps`, each entry's in the registry's order; controls and drafts belong to no suite."""
    found = []
    for entry in entries:
        # with another number of examples, which is another strategy, a task has another name
        asked = {str(item.config.get("task", item.task)) for item in entry.experiments.values()}
        for dataset, suite, strategy, name in grouped_tasks(tasks, strategies):
            item = entry.experiments.get(name)
            if item is None:
                why = None if name in asked else _without_result(entry, dataset, name)
            else:
                why = _without_score(item) if item.score is None else None
            if why:
                of = {"suite": suite, "dataset": dataset.id, "task": name, "strategy": strategy}
                found.append({"entry": entry.label, **of, "state": why[0], "reason": why[1]})
    return table_of("gaps", found)


def _without_score(item: Experiment) -> tuple[str, str]:
    if item.dataset.blocks.get("judge"):
        return "not judged", "its answers wait for `medtasks judge`"
    if item.loaded.get("n_without_gold") == item.loaded.get("n_test", item.n):
        return "without gold", "its rows have no gold answers"
    return "not computed", (
        "NLTK's Punkt data was not on the machine that scored: python -m nltk.downloader punkt_tab, "
        "then medtasks rescore RUN"
    )


def _without_result(entry: Entry, dataset: Dataset, name: str) -> tuple[str, str] | None:
    """State and reason; None of a task that was not asked."""
    task = (entry.manifest.get("tasks") or {}).get(name) or {}
    state, error = task.get("state"), str(task.get("error") or "")
    if state in (TaskState.MISSING, TaskState.FAILED):
        # what an error says of rows that are not open may quote them; where they go does not
        shown = is_open(dataset, sample=entry.sample) or error.startswith(f"{dataset.id} (")
        first = (error.strip().splitlines() or ["no message"])[0][:200]
        return state, first if shown else f"{state}; run.json of the run has the message"
    if state in (TaskState.WAITING, TaskState.INCOMPLETE):
        return "waiting", "the run was interrupted before; the same command goes on"
    return ("failed", "its results are damaged, see the faults") if state == TaskState.DONE else None
