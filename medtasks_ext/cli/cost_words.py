"""Costs in words: of answers, and of judging them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from medtasks_ext.cli.words import counted
from medtasks_ext.judge.cost import JudgingCost

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json

#: What the bound of a jury's cost is.
JURY_RULE = (
    "each judge reads prompt and a full answer and fills its reply; rubric and gold are not counted, as in "
    "MedHELM's published costs"
)


def answers_words(row: Json) -> str:
    """What answers cost, as a batch and at most, by a row of `costs`; nothing where no price is known."""
    usd, batch, bound = (row[name] for name in ("usd", "usd_batch", "usd_bound"))
    if usd is None:
        return ""
    words = "" if batch is None else f" ({batch:,.2f} as a batch)"
    words += "" if bound is None else f", at most {bound:,.2f} if every answer fills its budget"
    return f"{usd:,.2f} USD{words}: "


def jury_words(jury: Json) -> str:
    """What judging cost in fact, and what it costs at most: `jury` of the frame `costs`."""
    spent = JudgingCost(**jury["spent"])
    if not spent.replies:
        words = "cost not recorded"
    elif spent.usd is None:
        words = f"cost not known, {counted(spent.replies, 'judgement')} by judges without a price"
    else:
        words = f"{spent.usd:,.2f} USD for {counted(spent.replies - spent.unpriced, 'judgement')}"
        words += f", without {spent.unpriced:,} by judges without a price" if spent.unpriced else ""
        words += f", tokens of {spent.estimated:,} not counted" if spent.estimated else ""
    words += unsure_words(spent.unsure)
    if spent.replies and jury["unrecorded"]:
        words += f", not recorded in {counted(jury['unrecorded'], 'task')}"
    if jury["bound"] is None:
        return f"{words}; no bound: tokens of the answers, or prices of judges, are not known"
    of = "" if jury["bounded"] == jury["tasks"] else f" for {jury['bounded']} of {jury['tasks']} tasks"
    return f"{words}; {bound_words(jury['bound'])}{of} ({JURY_RULE})"


def unsure_words(usd: float) -> str:
    """What requests may have cost whose reply never came; nothing where there are none."""
    return f", and up to {usd:,.2f} for requests whose reply never came" if usd else ""


def bound_words(usd: float) -> str:
    return f"at most {usd:,.2f} USD"
