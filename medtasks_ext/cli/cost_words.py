"""Costs in words: of answers, and of judging them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from medtasks_ext.cli.words import counted

if TYPE_CHECKING:
    from medtasks_ext.judge.cost import JuryBound
    from medtasks_ext.report.cost import Cost, JuryCost

#: What the bound of a jury's cost is.
JURY_RULE = (
    "each judge reads prompt and a full answer and fills its reply; rubric and gold are not counted, as in "
    "MedHELM's published costs"
)


def answers_words(cost: Cost) -> str:
    """What answers cost, as a batch and at most; nothing where no price is known."""
    if cost.usd is None:
        return ""
    batch = "" if cost.batch is None else f" ({cost.batch:,.2f} as a batch)"
    most = "" if cost.bound is None else f", at most {cost.bound:,.2f} if every answer fills its budget"
    return f"{cost.usd:,.2f} USD{batch}{most}: "


def jury_words(jury: JuryCost) -> str:
    """What judging cost in fact, and what it costs at most."""
    spent = jury.spent
    if not spent.replies:
        words = "cost not recorded"
    elif spent.usd is None:
        words = f"cost not known, {counted(spent.replies, 'judgement')} by judges without a price"
    else:
        words = f"{spent.usd:,.2f} USD for {counted(spent.replies - spent.unpriced, 'judgement')}"
        words += f", without {spent.unpriced:,} by judges without a price" if spent.unpriced else ""
        words += f", tokens of {spent.estimated:,} not counted" if spent.estimated else ""
    if spent.unsure:
        words += f", and up to {spent.unsure:,.2f} for requests whose reply never came"
    if spent.replies and jury.unrecorded:
        words += f", not recorded in {counted(jury.unrecorded, 'task')}"
    if jury.bound is None:
        return f"{words}; no bound: tokens of the answers, or prices of judges, are not known"
    of = "" if jury.bounded == jury.tasks else f" for {jury.bounded} of {jury.tasks} tasks"
    return f"{words}; {bound_words(jury.bound)}{of} ({JURY_RULE})"


def bound_words(bound: JuryBound) -> str:
    """The bound of a jury's cost, and of the same in batches."""
    batch = "" if bound.batch is None else f", in batches {bound.batch:,.2f}"
    return f"at most {bound.usd:,.2f} USD{batch}"
