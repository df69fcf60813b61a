"""`medtasks figures`: runs in a suite's published table, by its own conventions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich import box
from rich.table import Table

from medtasks_ext.cli.dimensions import print_departments, print_dimensions
from medtasks_ext.cli.tables import console
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import SUFFIX, paper_datasets, registry
from medtasks_ext.results.medhelm import (
    Price,
    cost_bound,
    group_means,
    minimum_detectable_effect,
    suite_figures,
)
from medtasks_ext.results.published import medhelm_scores
from medtasks_ext.results.run_files import RunResults, read_run

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry


def figures_command(folders: list[str], suite: str, strategy: str, prices: list[str]) -> int:
    """Print a suite's published table with the runs in it; returns the exit code."""
    if suite not in ("medhelm", "mlb"):
        raise MedtasksError(
            f"no published table is known of {suite!r}", where="--suite", remedy="use medhelm or mlb"
        )
    if strategy not in SUFFIX:
        raise MedtasksError(
            f"unknown strategy {strategy!r}", where="--strategy", remedy=f"use {', '.join(SUFFIX)}"
        )
    tasks, runs = registry(), [read_run(Path(folder)) for folder in folders]
    suffix = SUFFIX[strategy]
    _check_rows(runs, suite, suffix, tasks)
    if suite == "mlb":
        labelled = {_label(run, runs): run for run in runs}
        print_dimensions(tasks, labelled, suffix)
        print_departments(tasks, labelled, suffix)
        return 0
    scores = {_label(run, runs): _medhelm(run, tasks, suffix) for run in runs}
    common = sorted(set.intersection(*(set(item) for item in scores.values())))
    if not common:
        raise MedtasksError(
            "no task of medhelm has a score in every run",
            where=", ".join(folders),
            remedy="give runs of the same tasks",
        )
    published = medhelm_scores(tasks)
    _print_table_1(tasks, common, scores, published)
    _print_effects(common, runs, suffix)
    for run, text in zip(runs, prices, strict=False):
        _print_cost(run, _price(text), suffix)
    return 0


def _check_rows(runs: list[RunResults], suite: str, suffix: str, tasks: Registry) -> None:
    for run in runs:
        leaves = [leaf for leaf in tasks.leaves(suite + suffix) if run.score(leaf) is not None]
        if not leaves:
            raise MedtasksError(
                f"no task of {suite} has a score",
                where=run.folder,
                remedy=f"run tasks of `{suite}{suffix}`; open-ended ones get theirs from `medtasks judge`",
            )
        if any(run.tasks[leaf]["loaded"]["origin"] == "sample" for leaf in leaves):
            raise MedtasksError(
                "synthetic sample rows cannot stand beside published scores",
                where=run.folder,
                remedy="run the tasks on their own data",
            )


def _label(run: RunResults, runs: list[RunResults]) -> str:
    same = [other for other in runs if other.model == run.model]
    return run.model if len(same) == 1 else f"{run.model} ({run.folder})"


def _medhelm(run: RunResults, tasks: Registry, suffix: str) -> dict[str, float]:
    """Dataset id -> score, for MedHELM's own datasets: published models have no score on others."""
    found = {}
    for dataset in tasks.datasets.values():
        score = run.score(dataset.id + suffix)
        own = dataset.metadata.benchmark == "medhelm" and dataset.id in paper_datasets()
        if own and score is not None:
            found[dataset.id] = score
    return found


def _print_table_1(
    tasks: Registry,
    common: list[str],
    scores: dict[str, dict[str, float]],
    published: dict[str, dict[str, float]],
) -> None:
    everyone = {**scores, **published}
    lines = suite_figures({model: [item[name] for name in common] for model, item in everyone.items()})
    category = {name: tasks.datasets[name].metadata.category or "" for name in common}
    categories = sorted(set(category.values()))
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        title=f"MedHELM, {len(common)} of 37 benchmarks (those with a score in every run)",
        title_justify="left",
    )
    for name in ("model", "win rate", "s.d.", "macro average", "s.d.", *categories):
        table.add_column(name.replace("_", " "), justify="left" if name == "model" else "right")
    for model, line in sorted(lines.items(), key=lambda item: -item[1].win_rate):
        means = group_means({name: everyone[model][name] for name in common}, category)
        mark = "" if model in scores else " (published)"
        table.add_row(
            model + mark,
            f"{line.win_rate:.3f}",
            f"{line.win_sd:.3f}",
            f"{line.macro_average:.3f}",
            f"{line.macro_sd:.3f}",
            *(f"{means[name]:.3f}" for name in categories),
        )
    console().print(table)
    typer.echo(
        "Published models were run with HELM's prompts and are known to three decimals; "
        "win rates are over all models of this table."
    )


def _print_effects(common: list[str], runs: list[RunResults], suffix: str) -> None:
    if len(runs) < 2:
        return
    typer.echo("\nMinimum detectable effect (80 % power, 5 %, two-sided), mean over pairs of runs ± s.d.:")
    for name in common:
        documents = [run.document_scores(name + suffix) for run in runs]
        shared = sorted(set.intersection(*(set(item) for item in documents)))
        if shared and all(len(item) == len(shared) for item in documents):
            effect = minimum_detectable_effect([[item[key] for key in shared] for item in documents])
            typer.echo(f"  {name}: {effect.mean:.3f} ± {effect.sd:.3f}  (n = {len(shared)})")
        else:
            typer.echo(f"  {name}: not defined (its score is no mean over the same documents)")


def _print_cost(run: RunResults, price: Price, suffix: str) -> None:
    real = bound = 0.0
    unknown = []
    for dataset in registry().datasets.values():
        name = dataset.id + suffix
        if dataset.metadata.benchmark != "medhelm" or name not in run.tasks:
            continue
        item = run.tasks[name]
        if not (tokens := item.get("tokens")):
            unknown.append(name)
            continue
        budget = int(item["config"]["generation_kwargs"]["max_gen_toks"])
        real += price.of(tokens["input"], tokens["output"])
        bound += cost_bound(price, tokens["input"], item["n"], budget)
    typer.echo(
        f"\n{run.model}: {real:.2f} USD for the tokens used,"
        f" at most {bound:.2f} if every answer filled its budget"
    )
    if unknown:
        typer.echo(
            f"  without {len(unknown)} tasks whose tokens could not be counted: {', '.join(unknown[:5])}"
        )


def _price(text: str) -> Price:
    try:
        read, written = (float(part) for part in text.split(","))
    except ValueError:
        raise MedtasksError(
            f"{text!r} is no price", where="--price", remedy="write INPUT,OUTPUT in USD per million tokens"
        ) from None
    return Price(read, written)
