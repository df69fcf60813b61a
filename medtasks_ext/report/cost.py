"""What the answers cost: counted tokens times the price of the model, or what a paper prints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from medtasks_ext.registry import suites
from medtasks_ext.registry.suites import function
from medtasks_ext.results.prices import prices
from medtasks_ext.results.suite_figures import Price

if TYPE_CHECKING:
    from medtasks_ext.results.experiments import Entry, Experiment


@dataclass(frozen=True)
class Cost:
    """What is known of an entry's tokens and cost."""

    #: input and output tokens of the tasks where they were counted; None where of none
    tokens: dict[str, int] | None
    counted: int  # how many tasks those are
    price: Price | None  # of the model; None if it is not known
    usd: float | None  # of these tokens, judges' work not included; None if tokens or price are not known
    rule: str  # in words

    def of(self, item: Experiment) -> float | None:
        """US dollars of one task."""
        if self.price is None or not item.tokens:
            return None
        return self.price.of(item.tokens["input"], item.tokens["output"])


def costs(entry: Entry) -> Cost:
    """The cost of an entry: tokens that were counted times a bundled price, or a published total."""
    if entry.kind == "published":
        return _published(entry)
    counted = [item for item in entry.experiments.values() if item.tokens]
    if not counted:
        return Cost(None, 0, None, None, "tokens were not counted")
    tokens = {side: sum(item.tokens[side] for item in counted if item.tokens) for side in ("input", "output")}
    some = f"tokens counted in {len(counted)} of {len(entry.experiments)} tasks"
    price = prices().get(entry.model)
    if price is None:
        return Cost(tokens, len(counted), None, None, f"{some}; no price in model_configs")
    rule = (
        f"{some} × {price.input:g} USD per million input and {price.output:g} per million output tokens "
        "(model_configs); judges not included"
    )
    return Cost(tokens, len(counted), price, price.of(tokens["input"], tokens["output"]), rule)


def _published(entry: Entry) -> Cost:
    suite = suites().get(entry.settings["published"])
    if suite and suite.published and suite.published.costs:
        usd, rule = function(suite, suite.published.costs)(suite).get(entry.model, (None, ""))
        if usd is not None:
            return Cost(None, 0, None, usd, rule)
    return Cost(None, 0, None, None, "no cost is published")
