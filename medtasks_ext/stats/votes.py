"""What experts' votes amount to: win, tie and loss rates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from medtasks_ext.stats.intervals import Interval, of_shares
from medtasks_ext.stats.statistic import Array, ratios

WIN, TIE, LOSS = 1, 0, -1
OUTCOMES = {"win": WIN, "tie": TIE, "loss": LOSS}
#: How the votes of several experts are merged; the paper does not say.
MEAN, MAJORITY = "mean", "majority"
#: what is reported, by which of (win, tie, loss) it counts
RATES = {"win": (1, 0, 0), "tie": (0, 1, 0), "loss": (0, 0, 1), "win_tie": (1, 1, 0)}

#: expert -> document -> WIN, TIE or LOSS of the first run
Votes = dict[str, dict[str, int]]


@dataclass(frozen=True)
class Rate:
    """What one expert, or all together, say about one criterion."""

    by: str  # an expert, `mean` or `majority`
    n: int  # documents
    shares: Mapping[str, float]  # `win`, `tie`, `loss`, `win_tie` -> share of the votes, 0-1
    #: the same -> 95 % percentile interval over documents; None below two documents
    intervals: Mapping[str, Interval | None]
    undecided: int = 0  # documents without a majority, which count as ties (`majority` only)


def rates(votes: Votes, dataset: str) -> list[Rate]:
    """Rates of each expert and, with several experts, of all together.

    `mean` is the share of all votes, which is the mean of the experts' rates where all voted on all
    documents. `majority` takes for each document the outcome that more experts chose than any other,
    and a tie where there is none.

    Args:
        votes: of one criterion.
        dataset: whose resamples are drawn.
    """
    by_rater = [
        _rate(expert, {document: Counter([vote]) for document, vote in votes[expert].items()}, dataset)
        for expert in sorted(votes)
    ]
    if len(votes) < 2:
        return by_rater
    together: dict[str, Counter[int]] = {}
    for by_document in votes.values():
        for document, vote in by_document.items():
            together.setdefault(document, Counter())[vote] += 1
    winners = {document: majority(counts) for document, counts in together.items()}
    decided = {document: Counter([TIE if vote is None else vote]) for document, vote in winners.items()}
    undecided = sum(vote is None for vote in winners.values())
    return [*by_rater, _rate(MEAN, together, dataset), _rate(MAJORITY, decided, dataset, undecided)]


def majority(counts: Mapping[int, int]) -> int | None:
    """The vote that more experts gave than any other, or None."""
    best = max(counts.values())
    first = [vote for vote, count in counts.items() if count == best]
    return first[0] if len(first) == 1 else None


def _rate(by: str, counts: Mapping[str, Mapping[int, int]], dataset: str, undecided: int = 0) -> Rate:
    table = np.array(
        [[counts[document].get(vote, 0) for vote in OUTCOMES.values()] for document in sorted(counts)],
        dtype=float,
    )
    shares = _shares(table.sum(axis=0))
    intervals: dict[str, Interval | None] = dict.fromkeys(RATES)
    if len(table) > 1:
        intervals = {
            name: of_shares(table @ np.array(which), table.sum(axis=1)) for name, which in RATES.items()
        }
    return Rate(by, len(table), {name: float(value) for name, value in shares.items()}, intervals, undecided)


def _shares(sums: Array) -> dict[str, Array]:
    """(..., 3) counts of wins, ties and losses -> each rate, (...)."""
    return {name: ratios(sums @ np.array(which), sums.sum(axis=-1)) for name, which in RATES.items()}
