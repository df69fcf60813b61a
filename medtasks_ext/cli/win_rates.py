"""Win rates, averages, detectable effects and costs: MedHELM's table, for `medtasks figures`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from medtasks_ext.cli.tables import console, new_table
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry.suites import function
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
    common = sorted(set.intersection(*(set(item) for item in scores.values())))
    if not common:
        raise MedtasksError(
            f"no task of {asked.suite.id} has a score in every run",
            where=", ".join(str(run.folder) for run in asked.runs.values()),
            remedy="give runs of the same tasks",
        )
    _print_table(asked, common, scores, _published(asked))
    _print_effects(asked, common)
    for run, price in zip(asked.runs.values(), asked.prices, strict=False):
        _print_cost(asked, run, price)


def _scores(asked: Figures, run: RunResults) -> dict[str, float]:
    """Dataset id -> score, for the paper's own datasets: published models have no score on others."""
    found = {
        dataset.id: run.score(dataset.id + asked.suffix)
        for dataset in asked.tasks.datasets_of(asked.suite)
        if asked.suite.lists(dataset.key)
    }
    return {name: score for name, score in found.items() if score is not None}


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
    scores: dict[str, dict[str, float]],
    published: dict[str, dict[str, float]],
) -> None:
    everyone = {**scores, **published}
    lines = suite_figures({model: [item[name] for name in common] for model, item in everyone.items()})
    axis = asked.suite.main_axes[0]
    category = {name: asked.tasks.datasets[name].values(asked.suite, axis)[0] for name in common}
    categories = sorted(set(category.values()))
    table = new_table(
        ["model"],
        ["win rate", "s.d.", "macro average", "s.d.", *(name.replace("_", " ") for name in categories)],
        f"{asked.suite.title}, {len(common)} of {len(asked.suite.datasets)} benchmarks"
        " (those with a score in every run)",
        pad_edge=False,
    )
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
    unknown = []
    for dataset in asked.tasks.datasets_of(asked.suite):
        name = dataset.id + asked.suffix
        if name not in run.tasks:
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
