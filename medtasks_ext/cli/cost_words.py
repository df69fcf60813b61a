"""Costs in words: of answers, and of judging them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from medtasks_ext.cli.words import counted
from medtasks_ext.judge.cost import JudgingCost

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json


def answers_words(row: Json) -> str:
    """What answers cost, and as a batch, by a row of `costs`; nothing where no price is known."""
    if row["usd"] is None:
        return ""
    batch = row["usd_batch"]
    return f"{row['usd']:,.2f} USD{'' if batch is None else f' ({batch:,.2f} as a batch)'}: "


def jury_words(jury: Json) -> str:
    """What judging cost: `jury` of the frame `costs`."""
    spent = JudgingCost(**jury)
    if not spent.replies:
        words = "cost not recorded"
    elif spent.usd is None:
        words = f"cost not known, {counted(spent.replies, 'judgement')} by judges without a price"
    else:
        words = f"{spent.usd:,.2f} USD for {counted(spent.replies - spent.unpriced, 'judgement')}"
        words += f", without {spent.unpriced:,} by judges without a price" if spent.unpriced else ""
        words += f", tokens of {spent.estimated:,} not counted" if spent.estimated else ""
    return words + unsure_words(spent.unsure)


def unsure_words(usd: float) -> str:
    """What requests may have cost whose reply never came; nothing where there are none."""
    return f", and up to {usd:,.2f} for requests whose reply never came" if usd else ""
