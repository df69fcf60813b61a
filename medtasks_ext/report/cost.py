"""What answers and their judging cost: counted tokens times prices, a bound, or what a paper prints."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from pydantic import ValidationError

from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import read_json
from medtasks_ext.judge.cost import JudgingCost, jury_bound
from medtasks_ext.judge.jury import HUMAN, Jury
from medtasks_ext.registry import suites
from medtasks_ext.registry.suites import function
from medtasks_ext.results.frames import table_of
from medtasks_ext.results.prices import Price, prices
from medtasks_ext.runs.folder import RunFolder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa

    from medtasks_ext.jsonfile import Json
    from medtasks_ext.results.experiments import Entry, Experiment


@dataclass(frozen=True)
class JuryCost:
    spent: JudgingCost  # in fact
    bound: float | None  # US dollars, of those tasks for which it can be said; None of none
    tasks: int  # that were judged by models
    bounded: int  # of them, those in the bound
    unrecorded: int  # tasks judged by a version that kept no cost


def cost_frame(entries: Sequence[Entry]) -> pa.Table:
    """Counted tokens times a price of model_configs, or a published total."""
    known = prices()
    rows = [{**_NOTHING, **_owner(entry), **_cost(entry, known.get(entry.model))} for entry in entries]
    return table_of("costs", rows)


_NOTHING = dict.fromkeys(("input_tokens", "output_tokens", "usd", "usd_batch", "usd_bound", "jury"))


def _owner(entry: Entry) -> Json:
    tasks = len(entry.experiments)
    return {"entry": entry.label, "model": entry.model, "kind": entry.kind, "tasks": tasks, "counted": 0}


def _cost(entry: Entry, price: Price | None) -> Json:
    if entry.kind == "published":
        return _published(entry)
    judging = jury_cost(entry.folders, entry.experiments.values())
    jury = {"jury": judging and asdict(judging)}
    counted = [item for item in entry.experiments.values() if item.tokens]
    if not counted:
        return {"price": "tokens were not counted", **jury}
    tokens = [sum(item.tokens[side] for item in counted if item.tokens) for side in ("input", "output")]
    costs = {"counted": len(counted), "input_tokens": tokens[0], "output_tokens": tokens[1], **jury}
    some = f"tokens counted in {len(counted)} of {len(entry.experiments)} tasks"
    if price is None:
        return {**costs, "price": f"{some}; no price in model_configs"}
    rule = (
        f"{some} × {price.input:g} USD per million input and {price.output:g} per million output tokens "
        "(model_configs); judges not included"
    )
    usd = price.of(tokens[0], tokens[1])
    of_usd = {"usd": usd, "usd_batch": price.in_batch(usd), "usd_bound": benchmark_bound(price, counted)}
    return {**costs, "price": rule, **of_usd}


def _published(entry: Entry) -> Json:
    suite = suites().get(entry.paper)
    if suite and suite.published and suite.published.costs:
        usd, rule = function(suite, suite.published.costs)(suite).get(entry.model, (None, ""))
        if usd is not None:
            return {"usd": usd, "price": rule, "usd_bound": usd}
    return {"price": "no cost is published"}


def benchmark_bound(price: Price, counted: Iterable[Experiment]) -> float | None:
    """US dollars of tasks with counted tokens, if every answer filled its budget; None if that is unknown."""
    total = 0.0
    for item in counted:
        if item.tokens:
            if (budget := _answer_budget(item)) is None:
                return None
            total += price.of(item.tokens["input"], item.n * budget)
    return total


def _answer_budget(item: Experiment) -> int | None:
    budget = item.config.get("generation_kwargs", {}).get("max_gen_toks")
    return None if budget is None else int(budget)


def jury_cost(folders: Iterable[Path], experiments: Iterable[Experiment]) -> JuryCost | None:
    """None where no model judged one."""
    places = [RunFolder(path) for path in folders if RunFolder(path).judgements.is_dir()]
    lines = [line for item in experiments if "judged" in item.metrics for line in _of_task(places, item)]
    if not lines:
        return None
    spent, bounds = JudgingCost(), [bound for _, bound in lines if bound is not None]
    for one, _ in lines:
        spent = spent + one if one else spent
    bound = sum(bounds) if bounds else None
    unrecorded = sum(one is None for one, _ in lines)
    return JuryCost(spent, bound, len(lines), len(bounds), unrecorded)


def _of_task(
    places: Iterable[RunFolder], item: Experiment
) -> Iterator[tuple[JudgingCost | None, float | None]]:
    """The first folder that knows the task says its cost and bound."""
    path = next((path for place in places if (path := place.judged_file(item.task)).is_file()), None)
    if path is None:
        return
    try:
        stored = read_json(path)
        jury = Jury(judges=stored["judges"], adjudicator=stored.get("adjudicator", HUMAN))
        spent = JudgingCost(**stored["cost"]) if "cost" in stored else None
    except (MedtasksError, ValidationError, KeyError, TypeError):  # `report.judged` names a damaged file
        return
    budget, bound = _answer_budget(item), None
    if item.tokens and budget is not None:
        bound = jury_bound(jury, item.tokens["input"], item.n, budget)
    yield spent, bound
