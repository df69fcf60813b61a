"""What answers and their judging cost: counted tokens times prices, or what a paper prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import read_json
from medtasks_ext.judge.store import JudgingCost
from medtasks_ext.registry import suites
from medtasks_ext.registry.suites import function
from medtasks_ext.results.frames import table_of
from medtasks_ext.results.prices import Price, prices
from medtasks_ext.runs.folder import RunFolder

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    import pyarrow as pa

    from medtasks_ext.jsonfile import Json
    from medtasks_ext.results.experiments import Entry, Experiment


def cost_frame(entries: Sequence[Entry]) -> pa.Table:
    """Counted tokens times a price of model_configs, or a published total."""
    known = prices()
    rows = [{**_NOTHING, **_owner(entry), **_cost(entry, known.get(entry.model))} for entry in entries]
    return table_of("costs", rows)


_NOTHING = dict.fromkeys(("input_tokens", "output_tokens", "usd", "usd_batch", "jury"))


def _owner(entry: Entry) -> Json:
    tasks = len(entry.experiments)
    return {"entry": entry.label, "model": entry.model, "kind": entry.kind, "tasks": tasks, "counted": 0}


def _cost(entry: Entry, price: Price | None) -> Json:
    if entry.kind == "published":
        return _published(entry)
    judging = jury_cost(entry.folders, entry.experiments.values())
    jury = {"jury": judging and judging.record()}
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
    return {**costs, "price": rule, "usd": usd, "usd_batch": price.in_batch(usd)}


def _published(entry: Entry) -> Json:
    suite = suites().get(entry.paper)
    if suite and suite.published and suite.published.costs:
        usd, rule = function(suite, suite.published.costs)(suite).get(entry.model, (None, ""))
        if usd is not None:
            return {"usd": usd, "price": rule}
    return {"price": "no cost is published"}


def jury_cost(folders: Iterable[Path], experiments: Iterable[Experiment]) -> JudgingCost | None:
    """None where no model judged one; of each task the first folder that knows it counts."""
    places, spent = [RunFolder(path) for path in folders], None
    for item in experiments:
        paths = [place.judged_file(item.task) for place in places] if "judged" in item.metrics else []
        if path := next((path for path in paths if path.is_file()), None):
            try:
                cost = JudgingCost(**read_json(path)["cost"])
            except (MedtasksError, KeyError, TypeError):  # `report.judged` names a damaged file
                continue
            spent = spent + cost if spent else cost
    return spent
