"""Stratified samples with a target mix of difficulty levels (MLB, section 3.5).

The paper's steps: a preliminary set by coverage, the gap between its mix and the target, extra draws for
what is under-represented, and swaps until the mix fits. Here they are one whole-number programme: the mix
comes first, then the strata's shares of the pool, then as few swaps as possible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry.row_labels import LEVELS
from medtasks_ext.seed import random_rank


def parse_ratio(text: str) -> list[Fraction]:
    """`3:5:2` -> shares of hard, medium and easy."""
    try:
        parts = [Fraction(part.strip()) for part in text.split(":")]
        if len(parts) == len(LEVELS) and min(parts) >= 0 and any(parts):
            return parts
    except (ValueError, ZeroDivisionError):
        pass
    raise MedtasksError(f"{text!r} is no ratio", where="--ratio", remedy="write HARD:MEDIUM:EASY: 3:5:2")


def apportioned(n: int, weights: Sequence[int | Fraction]) -> list[int]:
    """n split in proportion to weights by the largest remainder; equal remainders go in their order."""
    shares = [Fraction(n * weight) / sum(weights) for weight in weights]
    parts = [int(share) for share in shares]
    most = sorted(range(len(parts)), key=lambda place: parts[place] - shares[place])
    for place in most[: n - sum(parts)]:
        parts[place] += 1
    return parts


def feasible(n: int, ratio: Sequence[Fraction], pool: Sequence[int]) -> list[int]:
    """Numbers of each level that come closest to the ratio; one that is short gives all that it has."""
    fixed: dict[int, int] = {}
    while True:
        weights = [0 if place in fixed else weight for place, weight in enumerate(ratio)]
        parts = apportioned(n - sum(fixed.values()), weights)
        if not (short := {place: pool[place] for place, part in enumerate(parts) if part > pool[place]}):
            return [fixed.get(place, part) for place, part in enumerate(parts)]
        fixed |= short


def draw(
    levels: Mapping[str, str], strata: Mapping[str, str], size: int, ratio: Sequence[Fraction], seed: int
) -> tuple[list[str], dict[str, list[dict[str, Any]]]]:
    """Ids of drawn questions, sorted; what was in the pool, wanted and drawn, by level and stratum.

    Args:
        levels, strata: question -> its level, its stratum.
    """
    from scipy.optimize import LinearConstraint, milp

    names = sorted({strata[name] for name in levels})
    order = sorted(levels, key=lambda name: random_rank(seed, name))
    places = {name: (names.index(strata[name]), LEVELS.index(levels[name])) for name in order}
    pool = np.zeros((len(names), len(LEVELS)), dtype=int)
    np.add.at(pool, tuple(zip(*places.values(), strict=True)), 1)
    enough = int(pool.sum(axis=0) @ [share > 0 for share in ratio])
    if not 0 < size <= enough:
        what = f"{size} questions cannot be drawn: the pool has {enough} at the levels of the ratio"
        raise MedtasksError(what, where="--size", remedy=f"ask for 1 to {enough}, or change --ratio")
    coverage, first = apportioned(size, pool.sum(axis=1).tolist()), np.zeros_like(pool)
    for stratum, level in places.values():
        first[stratum, level] += first[stratum].sum() < coverage[stratum]
    # unknowns: what stays of the preliminary set, what is added, what strata have above their share
    s, k = pool.shape
    of_level, of_stratum = np.kron(np.ones(s), np.eye(k)), np.kron(np.eye(s), np.ones(k))
    sums = np.block([[of_level, of_level, np.zeros((k, s))], [of_stratum, of_stratum, -np.eye(s)]])
    wanted = feasible(size, ratio, pool.sum(axis=0).tolist())
    limits = LinearConstraint(sums, [*wanted, *[-np.inf] * s], [*wanted, *coverage])
    cost = np.repeat([-1.0, 0.0, size + 1.0], [s * k, s * k, s])  # coverage outweighs all swaps
    bounds = (0, np.concatenate([first.ravel(), (pool - first).ravel(), np.full(s, np.inf)]))
    solved = milp(cost, constraints=limits, integrality=np.ones_like(cost), bounds=bounds)
    drawn = np.rint(solved.x[: 2 * s * k]).astype(int).reshape(2, s, k).sum(axis=0)
    left, chosen = drawn.copy(), []
    for name, place in places.items():  # the first of each cell: swaps add what comes next in this order
        if left[place]:
            left[place] -= 1
            chosen.append(name)

    def table(name: str, values: Sequence[str], aim: list[int], axis: int) -> list[dict[str, Any]]:
        parts = zip(values, pool.sum(axis).tolist(), aim, drawn.sum(axis).tolist(), strict=True)
        return [dict(zip((name, "pool", "wanted", "drawn"), row, strict=True)) for row in parts]

    of = {"levels": table("level", LEVELS, apportioned(size, ratio), 0)}
    return sorted(chosen), {**of, "strata": table("stratum", names, coverage, 1)}


def strata_of(
    levels: Mapping[str, Any], rows: Sequence[Mapping[str, Any]] | None, column: str
) -> dict[str, str]:
    """Question -> stratum: the first value of a column of rows with ids, or of the questions themselves."""
    found = {}
    for row in levels["questions"] if rows is None else rows:
        values = row[column] if isinstance(row.get(column), list) else [row.get(column)]
        found[str(row.get("id"))] = next((str(one) for one in values if one not in (None, "")), "(none)")
    missing = sum(row["id"] not in found for row in levels["questions"])
    if missing or set(found.values()) == {"(none)"}:
        what = f"{missing} of its questions have no row" if missing else f"no {column} is known of it"
        remedy = "name a file with the columns id and --by: --rows FILE"
        raise MedtasksError(what, where=levels["task"], remedy=remedy)
    return found
