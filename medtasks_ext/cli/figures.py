"""`medtasks figures`: runs in a suite's published table, by its own conventions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from medtasks_ext.cli.words import say
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import SUFFIX, Registry, Suite, registry
from medtasks_ext.registry.strategies import asked_strategy, strategy_title
from medtasks_ext.registry.suites import function
from medtasks_ext.results.conditions import may_stand_beside, unlike_the_paper
from medtasks_ext.results.experiments import Experiment, Fault
from medtasks_ext.results.reading import read_runs
from medtasks_ext.results.run_files import RunResults, read_run
from medtasks_ext.results.suite_figures import Price


@dataclass(frozen=True)
class Figures:
    """What a suite's published table is printed of (`published.figures` of `suite.yaml`)."""

    tasks: Registry
    suite: Suite  # whose table it is
    runs: Mapping[str, RunResults]  # what stands for a run in the table -> the run
    suffix: str  # of the names of tasks, by strategy
    prices: Sequence[Price]  # of the runs, as far as they were given
    #: what stands for a run -> task -> its score with its conditions
    experiments: dict[str, dict[str, Experiment]] = field(default_factory=dict)


def figures(
    folders: Annotated[list[str], typer.Argument(metavar="RUN...", help="Folders of runs.")],
    suite: Annotated[
        str | None, typer.Option("--suite", help="Suite with such a table; by default the first.")
    ] = None,
    strategy: Annotated[
        str, typer.Option("--strategy", help="zero_shot, as published; cot; five_shot.")
    ] = "zero_shot",
    price: Annotated[
        list[str] | None,
        typer.Option("--price", help="INPUT,OUTPUT in USD per million tokens, one for each run."),
    ] = None,
) -> int:
    """Put runs into a suite's published table.

    MedHELM: win rates, averages, detectable effects, costs. MLB: dimensions, and scores by department.

    Example: medtasks figures runs/MODEL --price 0.15,0.60
    """
    tasks = registry()
    printed = {
        name: item.published.figures
        for name, item in tasks.suites.items()
        if item.published and item.published.figures
    }
    chosen = suite or next(iter(printed), "")
    if chosen not in printed:
        raise MedtasksError(
            f"no published table is known of {chosen!r}",
            where="--suite",
            remedy=f"use {' or '.join(printed)}",
        )
    if strategy not in SUFFIX:
        raise MedtasksError(
            f"unknown strategy {strategy!r}", where="--strategy", remedy=f"use {', '.join(SUFFIX)}"
        )
    runs = [read_run(Path(folder)) for folder in folders]
    asked = Figures(
        tasks,
        tasks.suites[chosen],
        {_label(run, runs): run for run in runs},
        SUFFIX[strategy],
        _prices(price or [], runs),
    )
    _check_rows(asked)
    function(asked.suite, printed[chosen])(asked)
    return 0


def _check_rows(asked: Figures) -> None:
    group = asked.suite.id + asked.suffix
    for label, run in asked.runs.items():
        leaves = [leaf for leaf in asked.tasks.leaves(group) if run.score(leaf) is not None]
        if not leaves:
            raise MedtasksError(
                f"no task of {asked.suite.id} has a score",
                where=run.folder,
                remedy=f"run tasks of `{group}`; open-ended ones get theirs from `medtasks judge`",
            )
        if any(run.tasks[leaf]["loaded"]["origin"] == "sample" for leaf in leaves):
            raise MedtasksError(
                "synthetic sample rows cannot stand beside published scores",
                where=run.folder,
                remedy="run the tasks on their own data",
            )
        asked.experiments[label] = _experiments(asked, run, leaves)


def _experiments(asked: Figures, run: RunResults, leaves: list[str]) -> dict[str, Experiment]:
    """The scores with their conditions; what keeps some from standing among the published ones is said.

    Raises:
        MedtasksError: a task was asked with other examples than its strategy has.
    """
    for leaf in leaves:
        _, strategy = asked.tasks.tasks[leaf]
        shots = run.tasks[leaf]["config"].get("num_fewshot")
        if shots is not None and (given := asked_strategy(strategy, int(shots))) != strategy:
            raise MedtasksError(
                f"{leaf} was asked {strategy_title(given)}, which is no {strategy_title(strategy)} score",
                where=run.folder,
                remedy="run it without --num_fewshot; `medtasks report` shows other numbers of examples",
            )
    faults: list[Fault] = []
    [entry] = read_runs(run.folder, asked.tasks, faults)
    for fault in faults:
        say(str(fault))
    items = {leaf: entry.experiments[leaf] for leaf in leaves}
    named: Counter[str] = Counter()
    for item in items.values():
        named.update({reason.partition(":")[0] for reason in unlike_the_paper(item)})
        named.update([] if item.coverage.whole else ["a part of the rows or judgements"])
    if named:
        n = sum(not may_stand_beside(item) for item in items.values())
        reasons = ", ".join(f"{words} in {count}" for words, count in named.items())
        say(
            f"{run.folder}: {n} of {len(leaves)} tasks were asked otherwise than the published models were "
            f"({reasons}): not ranked among these",
        )
    return items


def _label(run: RunResults, runs: list[RunResults]) -> str:
    same = [other for other in runs if other.model == run.model]
    return run.model if len(same) == 1 else f"{run.model} ({run.folder})"


def _price(text: str) -> Price:
    try:
        read, written = (float(part) for part in text.split(","))
        if not (0 <= read < math.inf and 0 <= written < math.inf):
            raise ValueError
    except ValueError:
        raise MedtasksError(
            f"{text!r} is no price", where="--price", remedy="write INPUT,OUTPUT in USD per million tokens"
        ) from None
    return Price(read, written)


def _prices(given: Sequence[str], runs: Sequence[RunResults]) -> list[Price]:
    """A price for each run, or none at all.

    Raises:
        MedtasksError: one is no price, or they are not as many as the runs.
    """
    found = [_price(text) for text in given]
    if found and len(found) != len(runs):
        raise MedtasksError(
            f"{len(found)} prices for {len(runs)} runs",
            where="--price",
            remedy="give one for each run, in the order of the runs",
        )
    return found
