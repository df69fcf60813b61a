"""Stratified samples with a target mix of difficulty levels (MLB, section 3.5).

The paper's steps: a preliminary set by coverage, the gap between its mix and the target, extra draws for
what is under-represented, and swaps until the mix fits. Here they are one whole-number programme: the mix
comes first, then the strata's shares of the pool, then as few swaps as possible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import read_json
from medtasks_ext.process import SEED, random_rank
from medtasks_ext.registry.blocks import LEVELS
from medtasks_ext.studies.departments import DEPARTMENT
from medtasks_ext.studies.said import study

#: Shares of hard, medium and easy.
RATIO: Sequence[int] = study("sample")["ratio"]


def apportioned(n: int, weights: Sequence[int]) -> list[int]:
    """n split in proportion to weights by the largest remainder; equal remainders go in their order."""
    shares = [Fraction(n * weight) / sum(weights) for weight in weights]
    parts = [int(share) for share in shares]
    most = sorted(range(len(parts)), key=lambda place: parts[place] - shares[place])
    for place in most[: n - sum(parts)]:
        parts[place] += 1
    return parts


def feasible(n: int, pool: Sequence[int]) -> list[int]:
    """Numbers of each level that come closest to the ratio; one that is short gives all that it has."""
    fixed: dict[int, int] = {}
    while True:
        weights = [0 if place in fixed else weight for place, weight in enumerate(RATIO)]
        parts = apportioned(n - sum(fixed.values()), weights)
        if not (short := {place: pool[place] for place, part in enumerate(parts) if part > pool[place]}):
            return [fixed.get(place, part) for place, part in enumerate(parts)]
        fixed |= short


def draw(
    levels: Mapping[str, str], strata: Mapping[str, str] | None, size: int
) -> tuple[set[str], list[dict[str, Any]]]:
    """Questions that are drawn of those with a level, a stratum; figures of each level and stratum."""
    from scipy.optimize import LinearConstraint, milp

    of_one = strata or dict.fromkeys(levels, "")
    names = sorted({of_one[name] for name in levels})
    order = sorted(levels, key=lambda name: random_rank(SEED, name))
    places = {name: (names.index(of_one[name]), LEVELS.index(levels[name])) for name in order}
    pool = np.zeros((len(names), len(LEVELS)), dtype=int)
    np.add.at(pool, tuple(zip(*places.values(), strict=True)), 1)
    if size > len(levels):
        what = f"{size} questions cannot be drawn: the pool has {len(levels)}"
        raise MedtasksError(what, where="--size", remedy="ask for fewer")
    coverage, first = apportioned(size, pool.sum(axis=1).tolist()), np.zeros_like(pool)
    for stratum, level in places.values():
        first[stratum, level] += first[stratum].sum() < coverage[stratum]
    # unknowns: what stays of the preliminary set, what is added, what strata have above their share
    s, k = pool.shape
    of_level, of_stratum = np.kron(np.ones(s), np.eye(k)), np.kron(np.eye(s), np.ones(k))
    sums = np.block([[of_level, of_level, np.zeros((k, s))], [of_stratum, of_stratum, -np.eye(s)]])
    wanted = feasible(size, pool.sum(axis=0).tolist())
    limits = LinearConstraint(sums, [*wanted, *[-np.inf] * s], [*wanted, *coverage])
    cost = np.repeat([-1.0, 0.0, size + 1.0], [s * k, s * k, s])  # coverage outweighs all swaps
    bounds = (0, np.concatenate([first.ravel(), (pool - first).ravel(), np.full(s, np.inf)]))
    solved = milp(cost, constraints=limits, integrality=np.ones_like(cost), bounds=bounds)
    drawn = np.rint(solved.x[: 2 * s * k]).astype(int).reshape(2, s, k).sum(axis=0)
    left, chosen = drawn.copy(), set[str]()
    for name, place in places.items():  # the first of each cell: swaps add what comes next in this order
        if left[place]:
            left[place] -= 1
            chosen.add(name)
    frame, sides = [], [("level", LEVELS, apportioned(size, RATIO)), (DEPARTMENT, names, coverage)]
    for axis, (of, named, aim) in enumerate(sides if strata else sides[:1]):
        figures = zip(named, pool.sum(axis).tolist(), aim, drawn.sum(axis).tolist(), strict=True)
        frame += [{"of": of, "name": a, "pool": b, "wanted": c, "drawn": d} for a, b, c, d in figures]
    return chosen, frame


def strata_of(levels: Mapping[str, Any], by: str) -> dict[str, str]:
    """Question -> its first department: of the rows (`department`), or of a file of `study departments`."""
    named = levels if by == DEPARTMENT else read_json(Path(by))
    try:
        found = {row["id"]: (row[DEPARTMENT] or ["(none)"])[0] for row in named["questions"]}
    except (KeyError, TypeError):
        found = {}
    missing = sum(row["id"] not in found for row in levels["questions"])
    if missing or set(found.values()) == {"(none)"}:
        what = f"{missing} of its questions have no row" if missing else "its rows name no departments"
        remedy = "name a file of `medtasks study departments`: --by FILE"
        raise MedtasksError(what, where=levels["task"], remedy=remedy)
    return found
