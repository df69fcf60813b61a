"""Stratified samples with a target mix of difficulty levels (MLB, section 3.5).

The paper's steps: a preliminary set by coverage, the gap between its mix and the target, extra draws for
what is under-represented, and swaps until the mix fits. Here each extra draw is paired with the question
that makes room for it, so a swap; swaps are chosen so that coverage suffers least, and of these the fewest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry.row_labels import LEVELS, Level
from medtasks_ext.rows.files import read_rows
from medtasks_ext.rows.sources import find_origin, forced_origin, load_rows
from medtasks_ext.rows.spec import dataset_spec
from medtasks_ext.seed import SEED, random_rank

if TYPE_CHECKING:
    from medtasks_ext.registry import Dataset
    from medtasks_ext.rows.row import Row
    from medtasks_lab.studies.difficulty import Grading


RATIO = "3:5:2"
Cell = tuple[str, "Level"]
_Part = TypeVar("_Part", bound=str)


class PoolItem(NamedTuple):
    """A question that can be drawn: its id, level and stratum."""

    id: str
    level: Level
    stratum: str = ""


class Count(NamedTuple):
    """Questions of one level or stratum: in the pool, aimed at, after the first step, and drawn."""

    pool: int
    wanted: int
    preliminary: int
    drawn: int


@dataclass(frozen=True)
class DrawnSample:
    """What was drawn."""

    ids: list[str]  # of the questions, sorted
    #: level -> counts; `wanted` is the ratio's share, whether the pool allows it or not
    levels: dict[Level, Count]
    strata: dict[str, Count]  # stratum -> counts; `wanted` is the share of the pool
    swapped: int  # questions of the preliminary set that gave way to others


def parse_ratio(text: str) -> dict[Level, Fraction]:
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
            f"{text!r} is no ratio", where="--ratio", remedy=f"write HARD:MEDIUM:EASY, for example {RATIO}"
        ) from None
    return dict(zip(LEVELS, parts, strict=True))


def apportioned(n: int, weights: Mapping[_Part, int] | Mapping[_Part, Fraction]) -> dict[_Part, int]:
    """n split in proportion to weights by the largest remainder; equal remainders go in the order of keys.

    Sums to n. No part differs from its exact share by 1 or more, so none with weight 0 gets anything.
    """
    total = sum(weights.values())
    shares = {name: Fraction(n * weight) / total for name, weight in weights.items()}
    parts = {name: int(share) for name, share in shares.items()}
    left = n - sum(parts.values())
    for name in sorted(shares, key=lambda name: parts[name] - shares[name])[:left]:
        parts[name] += 1
    return parts


def feasible_levels(n: int, ratio: Mapping[Level, Fraction], pool: Mapping[Level, int]) -> dict[Level, int]:
    """How many questions of each level come closest to the ratio with what the pool has.

    A level that is short gives all that it has; the others share the rest by their part of the ratio.
    """
    fixed: dict[Level, int] = {}
    while True:
        open_levels = {level: weight for level, weight in ratio.items() if level not in fixed}
        parts = apportioned(n - sum(fixed.values()), open_levels)
        short = {level: pool[level] for level in open_levels if parts[level] > pool[level]}
        if not short:
            return {level: fixed.get(level, parts.get(level, 0)) for level in LEVELS}
        fixed.update(short)


def draw(
    pool: Iterable[PoolItem], size: int, ratio: Mapping[Level, Fraction], seed: int = SEED
) -> DrawnSample:
    """Draw a stratified sample.

    The mix of levels comes first: it is exact wherever the pool has enough of each level. Within that, the
    strata are as close to their share of the pool as can be (sum of absolute differences), and within that
    as few questions as possible differ from the preliminary set.

    Args:
        pool: distinct questions, in any order; the order has no influence.
        size: questions to draw.
        ratio: shares of the levels.
        seed: decides which questions of a stratum and level are drawn.

    Raises:
        MedtasksError: the pool has too few questions at the levels that the ratio asks for.
    """
    items = sorted(pool)
    by_level = Counter(item.level for item in items)
    enough = sum(by_level[level] for level in LEVELS if ratio[level])
    if not 0 < size <= enough:
        raise MedtasksError(
            f"{size} questions cannot be drawn: the pool has {enough} at the levels of the ratio",
            where="--size",
            remedy=f"ask for 1 to {enough}, or change --ratio",
        )
    order = sorted(items, key=lambda item: random_rank(seed, item.id))
    strata = Counter(item.stratum for item in items)
    coverage = apportioned(size, {name: strata[name] for name in sorted(strata)})
    preliminary: Counter[Cell] = Counter()
    taken: Counter[str] = Counter()
    for item in order:
        if taken[item.stratum] < coverage[item.stratum]:
            taken[item.stratum] += 1
            preliminary[item.stratum, item.level] += 1
    wanted = feasible_levels(size, ratio, by_level)
    table = _Balance(Counter((item.stratum, item.level) for item in items), preliminary, coverage, wanted)
    table.balance()
    left, chosen = Counter(table.drawn), []
    for item in order:  # the first of each cell: what a swap adds comes next in the same random order
        if left[item.stratum, item.level]:
            left[item.stratum, item.level] -= 1
            chosen.append(item)
    return _described(items, chosen, preliminary, coverage, apportioned(size, ratio))


def _described(
    items: Sequence[PoolItem],
    chosen: Sequence[PoolItem],
    preliminary: Counter[Cell],
    coverage: Mapping[str, int],
    ideal: Mapping[Level, int],
) -> DrawnSample:
    pool_level, pool_stratum = (Counter(item[place] for item in items) for place in (1, 2))
    level, stratum = (Counter(item[place] for item in chosen) for place in (1, 2))
    cells = Counter((item.stratum, item.level) for item in chosen)
    first: Counter[str] = Counter()
    for (_, name), n in preliminary.items():
        first[name] += n
    return DrawnSample(
        ids=sorted(item.id for item in chosen),
        levels={name: Count(pool_level[name], ideal[name], first[name], level[name]) for name in LEVELS},
        strata={
            name: Count(pool_stratum[name], coverage[name], coverage[name], stratum[name])
            for name in sorted(pool_stratum)
        },
        swapped=(preliminary - cells).total(),
    )


# ---------------------------------------------------------------------- swaps

#: Harm to coverage outweighs any number of further swaps.
_COVERAGE = 1 << 32
_ANY_STRATUM = "any stratum"
Node = tuple[str, str]


class _Balance:
    """Swaps until the levels fit.

    A chain of swaps is a path in a graph with a node per level and stratum, from a level that has too many
    to one that has too few: level -> stratum takes a question of that level out of the stratum, stratum ->
    level puts one in, and stratum -> any stratum -> stratum moves a place between strata. All costs are
    convex, so always taking the cheapest path (successive shortest paths) ends in the cheapest table.
    """

    def __init__(
        self,
        pool: Counter[Cell],
        preliminary: Counter[Cell],
        coverage: Mapping[str, int],
        wanted: Mapping[Level, int],
    ) -> None:
        self.pool, self.preliminary, self.coverage, self.wanted = pool, preliminary, coverage, wanted
        self.drawn = Counter(preliminary)  # (stratum, level) -> number of questions drawn
        self.in_stratum = Counter(coverage)
        self.pool_of_level = {level: sum(pool[name, level] for name in coverage) for level in LEVELS}

    def gap(self, level: Level) -> int:
        """How many questions of a level are missing; negative where there are too many."""
        return self.wanted[level] - sum(self.drawn[name, level] for name in self.coverage)

    def balance(self) -> None:
        """Swap until there is no gap."""
        while any(self.gap(level) for level in LEVELS):
            for start, end in self._cheapest_path():
                self._move(start, end)

    def _cheapest_path(self) -> list[tuple[Node, Node]]:
        """Bellman-Ford; of paths that cost the same the first one found, so edges come in order of need."""
        gaps = {level: self.gap(level) for level in LEVELS}
        edges = list(self._edges(max(gaps, key=lambda level: gaps[level])))
        cost: dict[Node, int] = {("level", level): 0 for level in LEVELS if gaps[level] < 0}
        before: dict[Node, Node] = {}
        changed = True
        while changed:
            changed = False
            for start, end, price in edges:
                if start in cost and (end not in cost or cost[start] + price < cost[end]):
                    cost[end], before[end], changed = cost[start] + price, start, True
        reached = [level for level in LEVELS if gaps[level] > 0 and ("level", level) in cost]
        node: Node = ("level", min(reached, key=lambda level: (cost["level", level], -gaps[level])))
        path: list[tuple[Node, Node]] = []
        while node in before:
            path.append((before[node], node))
            node = before[node]
        return path

    def _edges(self, needed: Level) -> Iterator[tuple[Node, Node, int]]:
        hub: Node = (_ANY_STRATUM, "")
        for name in self._most_in_need(needed):
            stratum: Node = ("stratum", name)
            for level in LEVELS:
                n, before = self.drawn[name, level], self.preliminary[name, level]
                if n > 0:
                    yield ("level", level), stratum, 1 if n <= before else -1
                if n < self.pool[name, level]:
                    yield stratum, ("level", level), 1 if n >= before else -1
            surplus = self.in_stratum[name] - self.coverage[name]
            yield stratum, hub, -_COVERAGE if surplus > 0 else _COVERAGE
            yield hub, stratum, -_COVERAGE if surplus < 0 else _COVERAGE

    def _most_in_need(self, level: Level) -> list[str]:
        """Strata by how much of a level they lack, measured by their share of the pool at that level."""

        def surplus(name: str) -> int:
            share = self.wanted[level] * self.pool[name, level]
            return self.drawn[name, level] * self.pool_of_level[level] - share

        return sorted(self.coverage, key=lambda name: (surplus(name), name))

    def _move(self, start: Node, end: Node) -> None:
        (kind, name), (other_kind, other) = start, end
        if kind == "level":
            self.drawn[other, name] -= 1  # type: ignore[index]
        elif other_kind == "level":
            self.drawn[name, other] += 1  # type: ignore[index]
        elif kind == "stratum":
            self.in_stratum[name] -= 1
        else:
            self.in_stratum[other] += 1


# ---------------------------------------------------------------------- where strata come from


#: The label that documents carry themselves (MLB's 64 secondary departments).
DEPARTMENT = "department"
#: Stratum of questions for which the column is empty.
NONE = "(none)"


def strata_of(grading: Grading, dataset: Dataset, column: str, file: Path | None = None) -> dict[str, str]:
    """Question id -> stratum.

    Where a cell holds several values (departments), the first counts, since strata must not overlap.

    Args:
        grading: whose questions are to be drawn.
        dataset: of its task; its rows are read, unless a file is given or documents carry the label.
        column: for example `risk_type`.
        file: rows with columns `id` and that one.

    Raises:
        MedtasksError: the rows are not at hand, lack the column, or lack a question.
    """
    if column == DEPARTMENT and file is None and any(item.department for item in grading.questions):
        return {item.id: _stratum(item.department) for item in grading.questions}
    rows, where = (read_rows(file), str(file)) if file else _own_rows(grading, dataset)
    other = "name a file with the columns id and that one: --rows FILE"
    if file and not all("id" in row for row in rows):
        raise MedtasksError("a row has no id", where=where, remedy="every row needs the columns id and --by")
    if not any(column in row for row in rows):
        names = ", ".join(dict.fromkeys(name for row in rows for name in row))
        raise MedtasksError(f"no column {column!r}; there is: {names}", where=where, remedy=other)
    by_question = {
        str(row.get("id", place)): _stratum(row.get(column)) for place, row in enumerate(rows, start=1)
    }
    missing = [item.id for item in grading.questions if item.id not in by_question]
    if missing:
        raise MedtasksError(
            f"{len(missing)} of {len(grading.questions)} questions of {grading.task} are not there "
            f"(first: id {missing[0]})",
            where=where,
            remedy="use the rows that the panel was run on"
            if file is None
            else "add a row for each question",
        )
    return by_question


def _own_rows(grading: Grading, dataset: Dataset) -> tuple[Sequence[Row], str]:
    spec = dataset_spec(dataset)
    if any(schema.each or "id" in schema.fields for schema in spec.rows.schemas):
        raise MedtasksError(
            f"the questions of {grading.task} have ids that its rows do not have",
            where="--by",
            remedy="name a file with the columns id and that one: --rows FILE",
        )
    origin = find_origin(dataset, spec.rows, forced_origin(grading.origin))
    if origin is None:
        raise MedtasksError(
            f"the rows of {grading.task} ({grading.origin}) are not at hand",
            where="--by",
            remedy="set MEDTASKS_DATA_DIR as for the panel's runs, or name a file: --rows FILE",
        )
    rows = load_rows(dataset, spec.rows, origin)
    return rows.test, rows.where


def _stratum(value: Any) -> str:
    values = value if isinstance(value, list) else [value]
    return next((text for item in values if item is not None and (text := str(item).strip())), NONE)
