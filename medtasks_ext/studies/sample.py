"""Stratified samples with a target mix of difficulty levels (MLB, section 3.5).

The paper's steps: a preliminary set by coverage, the gap between its mix and the target, extra draws for
what is under-represented, and swaps until the mix fits. Here they are one whole-number programme: the mix
comes first, then the strata's shares of the pool, then as few swaps as possible.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry.row_labels import LEVELS
from medtasks_ext.seed import random_rank

#: Harm to coverage outweighs any number of swaps.
_COVERAGE = 1000.0


def parse_ratio(text: str) -> list[Fraction]:
    """`3:5:2` -> shares of hard, medium and easy.

    Raises:
        MedtasksError: it is not three numbers, one is negative, or all are zero.
    """
    try:
        parts = [Fraction(part.strip()) for part in text.split(":")]
        if len(parts) != len(LEVELS) or min(parts) < 0 or not any(parts):
            raise ValueError
    except (ValueError, ZeroDivisionError):
        raise MedtasksError(
            f"{text!r} is no ratio", where="--ratio", remedy="write HARD:MEDIUM:EASY: 3:5:2"
        ) from None
    return parts


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
        free = [place for place in range(len(ratio)) if place not in fixed]
        parts = dict(
            zip(free, apportioned(n - sum(fixed.values()), [ratio[place] for place in free]), strict=True)
        )
        short = {place: pool[place] for place in free if parts[place] > pool[place]}
        if not short:
            return [fixed.get(place, parts.get(place, 0)) for place in range(len(ratio))]
        fixed |= short


def draw(
    levels: Mapping[str, str], strata: Mapping[str, str], size: int, ratio: Sequence[Fraction], seed: int
) -> tuple[list[str], dict[str, list[dict[str, Any]]]]:
    """Ids of the drawn questions, sorted; and what was in the pool, wanted and drawn, by level and stratum.

    Args:
        levels: question -> level.
        strata: question -> stratum.
        seed: decides which questions of a stratum and level are drawn.

    Raises:
        MedtasksError: the pool has too few questions at the levels that the ratio asks for.
    """
    from scipy.optimize import LinearConstraint, milp

    names = sorted({strata[name] for name in levels})
    order = sorted(levels, key=lambda name: random_rank(seed, name))
    pool = np.zeros((len(names), len(LEVELS)), dtype=int)
    places = {name: (names.index(strata[name]), LEVELS.index(levels[name])) for name in order}
    for place in places.values():
        pool[place] += 1
    enough = int(sum(n for n, share in zip(pool.sum(axis=0), ratio, strict=True) if share))
    if not 0 < size <= enough:
        raise MedtasksError(
            f"{size} questions cannot be drawn: the pool has {enough} at the levels of the ratio",
            where="--size",
            remedy=f"ask for 1 to {enough}, or change --ratio",
        )
    coverage = apportioned(size, [int(n) for n in pool.sum(axis=1)])
    preliminary = np.zeros_like(pool)
    for stratum, level in places.values():
        if preliminary[stratum].sum() < coverage[stratum]:
            preliminary[stratum, level] += 1
    wanted = feasible(size, ratio, [int(n) for n in pool.sum(axis=0)])
    # unknowns: numbers drawn, each one's distance from the preliminary one, each stratum's from its share
    s, k = pool.shape
    each, whole, flat = np.eye(s * k), np.kron(np.eye(s), np.ones(k)), preliminary.ravel()
    of_level, none = np.kron(np.ones(s), np.eye(k)), np.zeros
    rows = np.vstack([
        np.hstack([of_level, none((k, s * k + s))]),
        np.hstack([each, each, none((s * k, s))]), np.hstack([-each, each, none((s * k, s))]),
        np.hstack([whole, none((s, s * k)), np.eye(s)]), np.hstack([-whole, none((s, s * k)), np.eye(s)]),
    ])  # fmt: skip
    least = np.concatenate([wanted, flat, -flat, coverage, -np.array(coverage)])
    most = np.concatenate([wanted, np.full(2 * s * k + 2 * s, np.inf)])
    cost = np.concatenate([none(s * k), np.ones(s * k), np.full(s, _COVERAGE)])
    bound = np.concatenate([pool.ravel(), np.full(s * k + s, np.inf)])
    solved = milp(cost, constraints=LinearConstraint(rows, least, most), integrality=np.ones_like(cost),
                  bounds=(0, bound))  # fmt: skip
    drawn = np.rint(solved.x[: s * k]).astype(int).reshape(s, k)
    left, chosen = drawn.copy(), []
    for (
        name,
        place,
    ) in places.items():  # the first of each cell: what a swap adds comes next in the same order
        if left[place]:
            left[place] -= 1
            chosen.append(name)
    ideal = apportioned(size, ratio)
    report: dict[str, list[dict[str, Any]]] = {
        "levels": [
            {
                "level": level,
                "pool": int(pool[:, n].sum()),
                "wanted": ideal[n],
                "drawn": int(drawn[:, n].sum()),
            }
            for n, level in enumerate(LEVELS)
        ],
        "strata": [
            {"stratum": name, "pool": int(pool[n].sum()), "wanted": coverage[n], "drawn": int(drawn[n].sum())}
            for n, name in enumerate(names)
        ],
    }
    return sorted(chosen), report


def strata_of(
    levels: Mapping[str, Any], rows: Sequence[Mapping[str, Any]] | None, column: str
) -> dict[str, str]:
    """Question -> stratum: the first value of a column of rows with ids, or of the questions themselves.

    Raises:
        MedtasksError: a question has no row, or no row has the column.
    """
    known = levels["questions"] if rows is None else rows
    found = {}
    for row in known:
        values = row.get(column)
        values = values if isinstance(values, list) else [values]
        found[str(row.get("id"))] = next(
            (str(value) for value in values if value not in (None, "")), "(none)"
        )
    missing = [row["id"] for row in levels["questions"] if row["id"] not in found]
    if missing or not any(column in row for row in known) or set(found.values()) == {"(none)"}:
        what = f"{len(missing)} of its questions have no row" if missing else f"no {column} is known of it"
        raise MedtasksError(
            what, where=levels["task"], remedy="name a file with the columns id and --by: --rows FILE"
        )
    return found


def counted(levels: Mapping[str, Any]) -> Counter[str]:
    """Level -> questions."""
    return Counter(row["level"] for row in levels["questions"])
