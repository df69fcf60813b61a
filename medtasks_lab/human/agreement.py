"""How far experts agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from medtasks_ext.stats.agreement import kappa

if TYPE_CHECKING:
    from medtasks_ext.stats.statistic import Array


class Agreement(NamedTuple):
    """How far some experts agree about some subjects."""

    measure: str  # `fleiss_kappa` or `cohen_kappa`
    between: tuple[str, ...]  # the experts
    value: float | None  # None where it is undefined: all votes are the same, or there are none
    observed: float | None  # share of the pairs of votes on a subject that are equal
    n: int  # subjects on which all of them voted


def fleiss_kappa(counts: Sequence[Sequence[int]] | Array) -> tuple[float | None, float | None]:
    """Fleiss' kappa and the observed agreement (Fleiss 1971, equations 3, 5 and 7).

    Args:
        counts: (subjects, categories), how many raters chose a category; the same number of raters, at
            least two, for every subject.

    Returns:
        (kappa, mean share of agreeing pairs). Kappa is None where all votes fall into one category;
        both are None without subjects.

    Raises:
        ValueError: the number of raters varies, or is below two.
    """
    table = np.asarray(counts, dtype=float)
    if not len(table):
        return None, None
    raters = table.sum(axis=1)
    if raters[0] < 2 or (raters != raters[0]).any():
        raise ValueError("every subject needs the same number of raters, at least two")
    n = raters[0]
    observed = float(((table**2).sum(axis=1) - n).mean() / (n * (n - 1)))
    shares = table.sum(axis=0) / table.sum()
    expected = float((shares**2).sum())
    if np.count_nonzero(shares) < 2:
        return None, observed
    return (observed - expected) / (1 - expected), observed


def agreements(votes: Mapping[str, Mapping[str, int]], scale: Sequence[int]) -> list[Agreement]:
    """Fleiss' kappa of all experts, and Cohen's of each pair.

    Args:
        votes: expert -> subject -> category.
        scale: all categories.
    """
    experts = sorted(votes)
    if len(experts) < 2:
        return []
    shared = sorted(set.intersection(*(set(votes[expert]) for expert in experts)))
    place = {category: column for column, category in enumerate(scale)}
    counts = np.zeros((len(shared), len(scale)), dtype=int)
    for row, subject in enumerate(shared):
        for expert in experts:
            counts[row, place[votes[expert][subject]]] += 1
    value, observed = fleiss_kappa(counts)
    found = [Agreement("fleiss_kappa", tuple(experts), value, observed, len(shared))]
    for one, other in combinations(experts, 2):
        both = sorted(set(votes[one]) & set(votes[other]))
        first, second = ([votes[expert][subject] for subject in both] for expert in (one, other))
        equal = sum(a == b for a, b in zip(first, second, strict=True))
        found.append(
            Agreement(
                "cohen_kappa",
                (one, other),
                kappa(first, second, scale),
                equal / len(both) if both else None,
                len(both),
            )
        )
    return found
