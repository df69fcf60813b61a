"""Win rates, averages, detectable effects and costs: MedHELM's table, for `medtasks figures`."""

from __future__ import annotations

from statistics import mean, stdev
from typing import TYPE_CHECKING

import typer

from medtasks_ext.cli.tables import console, new_table
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry.suites import function
from medtasks_ext.results.conditions import may_stand_beside
from medtasks_ext.results.suite_figures import (
    Price,
    cost_bound,
    group_means,
    minimum_detectable_effect,
    suite_figures,
)

if TYPE_CHECKING:
    from medtasks_ext.cli.figures import Figures
    from medtasks_ext.results.experiments import Entry
    from medtasks_ext.results.run_files import RunResults


def print_figures(asked: Figures) -> None:
    """The runs among the models whose scores the paper prints on all of its datasets.

    Raises:
        MedtasksError: the runs have no task in common.
    """
    scores = {label: _scores(asked, run) for label, run in asked.runs.items()}
    ranked = {label: found for label in scores if (found := _alike(asked, label, scores[label]))}
    common = sorted(set.intersection(*(set(item) for item in (ranked or scores).values())))
    if not common:
        raise MedtasksError(
            f"no task of {asked.suite.id} has a score in every run",
            where=", ".join(str(run.folder) for run in asked.runs.values()),
            remedy="give runs of the same tasks",
        )
    beside = {
        label: item for label, item in scores.items() if label not in ranked and set(common) <= set(item)
    }
    _print_table(asked, common, ranked, beside, _published(asked))
    _print_effects(asked, common)
    for run, price in zip(asked.runs.values(), asked.prices, strict=bool(asked.prices)):
        _print_cost(asked, run, price)


def _scores(asked: Figures, run: RunResults) -> dict[str, float]:
    """Dataset id -> score, for the paper's own datasets: published models have no score on others."""
    found = {
        dataset.id: run.score(dataset.id + asked.suffix)
        for dataset in asked.tasks.datasets_of(asked.suite)
        if asked.suite.lists(dataset.key)
    }
    return {name: score for name, score in found.items() if score is not None}


def _alike(asked: Figures, label: str, scores: dict[str, float]) -> dict[str, float]:
    """The scores that can stand among the published ones."""
    items = asked.experiments[label]
    return {name: score for name, score in scores.items() if may_stand_beside(items[name + asked.suffix])}


def _published(asked: Figures) -> dict[str, dict[str, float]]:
    """Model -> dataset id -> score, for the models that the paper ran on all of its datasets."""
    assert asked.suite.published
    entries: list[Entry] = function(asked.suite, asked.suite.published.entries)(asked.tasks, asked.suite)
    tables = {
        entry.model: {
            item.dataset.id: item.score for item in entry.experiments.values() if item.score is not None
        }
        for entry in entries
    }
    most = max(map(len, tables.values()), default=0)
    return {model: item for model, item in tables.items() if len(item) == most}


def _print_table(
    asked: Figures,
    common: list[str],
    ranked: dict[str, dict[str, float]],
    beside: dict[str, dict[str, float]],
    published: dict[str, dict[str, float]],
) -> None:
    """Win rates of the runs that were asked alike and of the published models; other runs below, without."""
    everyone = {**ranked, **published}
    lines = suite_figures({model: [item[name] for name in common] for model, item in everyone.items()})
    axis = asked.suite.main_axes[0]
    category = {name: asked.tasks.datasets[name].values(asked.suite, axis)[0] for name in common}
    categories = sorted(set(category.values()))
    which = "with a score in every run" + (", asked as the published models were" if ranked else "")
    table = new_table(
        ["model"],
        ["win rate", "s.d.", "macro average", "s.d.", *(name.replace("_", " ") for name in categories)],
        f"{asked.suite.title}, {len(common)} of {len(asked.suite.datasets)} benchmarks (those {which})",
        pad_edge=False,
    )

    def add(model: str, item: dict[str, float], *figures: str) -> None:
        means = group_means({name: item[name] for name in common}, category)
        table.add_row(model, *figures, *(f"{means[name]:.3f}" for name in categories))

    for model, line in sorted(lines.items(), key=lambda item: -item[1].win_rate):
        mark = "" if model in ranked else " (published)"
        figures = (line.win_rate, line.win_sd, line.macro_average, line.macro_sd)
        add(model + mark, everyone[model], *(f"{value:.3f}" for value in figures))
    for model, item in beside.items():
        values = [item[name] for name in common]
        sd = stdev(values) if len(values) > 1 else 0.0
        add(f"{model} (asked otherwise)", item, "–", "–", f"{mean(values):.3f}", f"{sd:.3f}")
    console().print(table)
    typer.echo(
        "Published models were run with HELM's prompts and are known to three decimals; "
        "win rates are over the models of this table that have one."
    )


def _print_effects(asked: Figures, common: list[str]) -> None:
    runs = list(asked.runs.values())
    if len(runs) < 2:
        return
    typer.echo("\nMinimum detectable effect (80 % power, 5 %, two-sided), mean over pairs of runs ± s.d.:")
    for name in common:
        documents = [run.document_scores(name + asked.suffix) for run in runs]
        shared = sorted(set.intersection(*(set(item) for item in documents)))
        if shared and all(len(item) == len(shared) for item in documents):
            effect = minimum_detectable_effect([[item[key] for key in shared] for item in documents])
            typer.echo(f"  {name}: {effect.mean:.3f} ± {effect.sd:.3f}  (n = {len(shared)})")
        else:
            typer.echo(f"  {name}: not defined (its score is no mean over the same documents)")


def _print_cost(asked: Figures, run: RunResults, price: Price) -> None:
    real = bound = 0.0
    counted = 0
    unknown = []
    for dataset in asked.tasks.datasets_of(asked.suite):
        name = dataset.id + asked.suffix
        if name not in run.tasks:
            continue
        item = run.tasks[name]
        if not (tokens := item.get("tokens")):
            unknown.append(name)
            continue
        counted += 1
        budget = int(item["config"]["generation_kwargs"]["max_gen_toks"])
        real += price.of(tokens["input"], tokens["output"])
        bound += cost_bound(price, tokens["input"], item["n"], budget)
    if not counted:
        typer.echo(f"\n{run.model}: no cost, since no tokens were counted in its {len(unknown)} tasks")
        return
    typer.echo(
        f"\n{run.model}: {real:.2f} USD for the tokens used,"
        f" at most {bound:.2f} if every answer filled its budget"
    )
    if unknown:
        typer.echo(
            f"  without {len(unknown)} tasks whose tokens could not be counted: {', '.join(unknown[:5])}"
        )
