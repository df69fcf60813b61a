"""What raters' votes amount to: win, tie and loss rates, and how far one rater's agree with others'.

The agreement is the F1 of both answers, as the authors of HealthBench define it (arXiv 2505.08775,
`healthbench_meta_eval.py`): each pair of an answer and a vote counts once. An answer that the rater, or the
others, never gave has no F1; then there is no macro F1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from medtasks_ext.stats.bootstrap import percentile_interval, resampling_weights
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


# ---------------------------------------------------------------------- yes or no


@dataclass(frozen=True)
class VoteF1:
    """A rater's agreement with votes."""

    yes: float | None  # F1 of yes, 0-1
    no: float | None  # F1 of no
    macro: float | None  # mean of both
    pairs: int  # of an answer and a vote


def cells(answer: bool, votes: Sequence[bool]) -> tuple[int, int, int, int]:
    """Pairs of an answer with each vote: both yes, yes against no, no against yes, both no."""
    yes, no = sum(votes), len(votes) - sum(votes)
    return (yes, no, 0, 0) if answer else (0, 0, yes, no)


def f1_of_both(sums: Array) -> Array:
    """(…, 4) sums of `cells` -> (…, 3): F1 of yes, of no, and their mean; NaN where one is not defined."""
    both_yes, only_mine, only_theirs, both_no = np.moveaxis(np.asarray(sums, dtype=float), -1, 0)
    apart = only_mine + only_theirs
    f1s = []
    for hits, mine, theirs in (
        (both_yes, both_yes + only_mine, both_yes + only_theirs),
        (both_no, both_no + only_theirs, both_no + only_mine),
    ):
        total = np.where((mine > 0) & (theirs > 0), 2 * hits + apart, np.nan)
        f1s.append(2 * hits / total)
    return np.stack([*f1s, (f1s[0] + f1s[1]) / 2], axis=-1)


def vote_f1(rows: Sequence[tuple[int, int, int, int]]) -> VoteF1:
    """Agreement over rows of `cells`."""
    table = np.asarray(rows, dtype=float).reshape(-1, 4)
    yes, no, macro = (None if np.isnan(value) else float(value) for value in f1_of_both(table.sum(axis=0)))
    return VoteF1(yes, no, macro, int(table.sum()))


def macro_interval(rows: Sequence[tuple[int, int, int, int]], key: str) -> Interval | None:
    """95 % interval of the macro F1, rows drawn anew; None where it has no value on some resample.

    Args:
        rows: of `cells`, one for each thing that was rated.
        key: of the draws: raters of the same things are drawn alike.
    """
    if len(rows) < 2:
        return None
    values = f1_of_both(resampling_weights(key, len(rows)).astype(float) @ np.asarray(rows, dtype=float))[
        :, 2
    ]
    return None if np.isnan(values).any() else percentile_interval(values)
