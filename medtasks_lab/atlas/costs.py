"""Costs of benchmarks and juries: as printed, recomputed from published tokens, and of own runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from medtasks_ext.report.cost import benchmark_bound, jury_cost
from medtasks_ext.results.prices import JUDGE_OUTPUT_TOKENS, JudgePrice, Price
from medtasks_ext.results.published import published
from medtasks_ext.results.suite_figures import jury_cost_bound
from medtasks_lab.atlas.cells import Cell, printed_figures
from medtasks_lab.atlas.own_runs import experiments_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from medtasks_ext.report.cost import JuryCost
    from medtasks_ext.results.experiments import Entry, Experiment
    from medtasks_lab.atlas.cells import Data
    from medtasks_lab.atlas.spec import Item

#: Columns of bounds, in which every answer and every reply of a judge fills its budget.
BENCHMARKS, JURY, TOTAL = "benchmarks", "jury", "total"


def costs(item: Item, data: Data) -> Iterator[Cell]:
    """Published bounds, and bounds and real costs of own runs.

    A printed jury cost is recomputed from the tokens that judges read and wrote and their prices, a printed
    total as benchmarks + jury.
    """
    printed = printed_figures(item.printed)
    recomputed = _jury_costs(item, data)
    for (row, column), value in printed.items():
        if column == TOTAL:
            again: float | None = sum(_number(printed[row, name]) for name in (BENCHMARKS, JURY))
        else:
            again = recomputed.get(row) if column == JURY else None
        yield Cell(row, column, value, again)
    for entry in data.entries:
        yield from _own_costs(entry, data)


def _number(value: float | str) -> float:
    assert isinstance(value, float)
    return value


def _jury_costs(item: Item, data: Data) -> dict[str, float]:
    """Model -> what judging its answers costs at most, of models whose judges' tokens are printed."""
    if not item.judges or item.printed is None:
        return {}
    models = {row["model"]: row for row in published(f"{data.suite.id}_models.csv")}
    judges = [JudgePrice(_price(models[name])) for name in item.judges]
    found = {}
    for row in published(item.printed.file):
        if all(row[name] == value for name, value in item.printed.where.items()):
            n = int(row["judged_documents"])
            read = int(row["jury_tokens"]) - n * JUDGE_OUTPUT_TOKENS
            found[row[item.printed.row]] = jury_cost_bound(judges, read, n, 0)
    return found


def _price(row: dict[str, str]) -> Price:
    return Price(*(float(row[f"price_{side}_usd_per_mtok_printed"]) for side in ("in", "out")))


def _own_costs(entry: Entry, data: Data) -> Iterator[Cell]:
    price, done = data.prices.get(entry.label), list(experiments_of(entry, data).values())
    counted = [one for one in done if one.tokens]
    jury = jury_cost(entry.folders, done)
    bound = used = None
    note = "no price" if price is None else _counted(counted, done)
    if price is not None and counted:
        bound = benchmark_bound(price, counted)
        used = sum(price.of(one.tokens["input"], one.tokens["output"]) for one in counted if one.tokens)
    yield Cell(entry.label, BENCHMARKS, None, bound, own=True, note=note)
    yield Cell(entry.label, "used", None, used, own=True, note="" if used is None else note)
    if jury is None:
        yield Cell(entry.label, TOTAL, None, bound, own=True, note="nothing judged")
        return
    most = jury.bound.usd if jury.bound else None
    yield Cell(entry.label, JURY, None, most, own=True, note=_bounded(jury))
    yield Cell(entry.label, "jury used", None, jury.spent.usd, own=True, note=_spent(jury))
    total = None if bound is None or most is None else bound + most
    notes = [note, _bounded(jury)] if total is not None else []
    yield Cell(entry.label, TOTAL, None, total, own=True, note="; ".join(filter(None, notes)))


def _counted(counted: Sequence[Experiment], done: Sequence[Experiment]) -> str:
    return "" if len(counted) == len(done) else f"tokens counted in {len(counted)} of {len(done)} tasks"


def _bounded(jury: JuryCost) -> str:
    if jury.bounded == jury.tasks:
        return ""
    return f"tokens and prices known of {jury.bounded} of {jury.tasks} judged tasks"


def _spent(jury: JuryCost) -> str:
    spent = jury.spent
    return ", ".join(
        [f"not recorded in {jury.unrecorded} of {jury.tasks} tasks"] * bool(jury.unrecorded)
        + [f"{spent.unpriced} of {spent.replies} replies without a price"] * bool(spent.unpriced)
        + [f"tokens of {spent.estimated} replies not counted"] * bool(spent.estimated)
    )
