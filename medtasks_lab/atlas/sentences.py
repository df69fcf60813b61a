"""What one sees in a picture, said in words that follow from its figures alone.

A sentence of each form names the highest and the lowest, the spread and what is missing. It calls nothing
better: for some figures less is. Columns of a matrix may be other measures, so none are averaged: what counts
is in how many of them a line is highest. Own runs are named and take no part.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from medtasks_ext.stats.agreement import spearman

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

#: so many names of equal lines are listed
_NAMED = 3
#: from so many lines on, the middle half is said
_MANY = 8


@dataclass(frozen=True)
class Series:
    """One column of figures, in the order of the lines.

    Attributes:
        name: of the column.
        values: line -> figure.
        ends: line -> ends of its interval.
        spreads: line -> its standard deviation.
    """

    name: str
    values: Mapping[str, float]
    ends: Mapping[str, tuple[float, float]]
    spreads: Mapping[str, float]


@dataclass(frozen=True)
class Group:
    """Points of one kind: name -> (where along the picture as people read it, as a number, height)."""

    name: str
    points: Mapping[str, tuple[str, float, float]]


def of_series(series: Sequence[Series], noun: str, digits: int) -> str:
    """Of dots and bars: each series by itself, and which is highest in how many lines.

    Args:
        series: at least one, each with a figure.
        noun: what the lines are, in the plural.
        digits: decimals of a figure.
    """
    words = _Words(noun, digits)
    lines = dict.fromkeys(name for one in series for name in one.values)
    alone = len(series) == 1
    said = [
        ("" if alone else f"{one.name}: ")
        + "; ".join([*words.ranked(one.values, brief=not alone), *words.certain(one)])
        for one in series
    ]
    if not alone:
        whole = [name for name in lines if all(name in one.values for one in series)]
        said += words.won({one.name: one.values for one in series}, whole, f"for {{}} of {len(whole)} {noun}")
    said += words.around_zero(series)
    gaps = [f"{n} in {one.name}" for one in series if (n := len(lines) - len(one.values))]
    said += [f"{_capital(noun)} without a figure: {', '.join(gaps)}"] if gaps else []
    return _joined(said)


def of_matrix(
    lines: Mapping[str, Mapping[str, float]], columns: Sequence[str], average: str, noun: str, digits: int
) -> str:
    """Of a heat map.

    Args:
        lines: line -> column -> figure.
        columns: that are drawn.
        average: the column that is the mean over the others; empty where none is.
        noun: what the lines are, in the plural.
        digits: decimals of a figure.
    """
    words, parts = _Words(noun, digits), [name for name in columns if name != average]
    said = []
    if average:
        means = {name: line[average] for name, line in lines.items() if average in line}
        said += [f"{_capital(average)}: {'; '.join(words.ranked(means))}"]
    by_line = {
        name: {column: line[column] for column in parts if column in line} for name, line in lines.items()
    }
    said += words.won(by_line, parts, f"in {{}} of {len(parts)} columns")
    medians = {
        column: float(np.median([line[column] for line in lines.values() if column in line]))
        for column in parts
    }
    if len(parts) > 1 and len(lines) > 1:
        high, low = max(medians, key=lambda name: medians[name]), min(medians, key=lambda name: medians[name])
        said.append(
            f"Medians of the columns: from {words.number(medians[low])} ({low}) to "
            f"{words.number(medians[high])} ({high})"
        )
    every = {f"{name} in {column}": v for name, line in by_line.items() for column, v in line.items()}
    said += [f"Single figures: {'; '.join(words.ends(every))}"]
    if gaps := len(lines) * len(columns) - sum(
        column in line for line in lines.values() for column in columns
    ):
        said.append(f"{gaps} of {len(lines) * len(columns)} cells have no figure")
    return _joined(said)


def of_points(
    groups: Sequence[Group],
    front: Sequence[str],
    x: str,
    noun: str,
    digits: int,
    *,
    n_without: int,
) -> str:
    """Of a scatter.

    Args:
        groups: at least one, each with points.
        front: those that nothing with as little of `x` beats, from the least on; may be empty.
        x: what stands along the picture.
        noun: what the points are, in the plural.
        digits: decimals of a height.
        n_without: how many have a height and no place along the picture.
    """
    words = _Words(noun, digits)
    every = {name: point for group in groups for name, point in group.points.items()}
    heights = {name: height for name, (_, _, height) in every.items()}
    said = [
        "; ".join(
            words.ranked(heights, where={name: f"{x}: {place}" for name, (place, _, _) in every.items()})
        )
    ]
    along = spearman([place for _, place, _ in every.values()], [height for _, _, height in every.values()])
    if along is not None and len(every) > 2:
        said.append(f"Rank correlation with {x}: {along:.2f} over {len(every)} {noun}")
    if len(groups) > 1:
        medians = [float(np.median([height for *_, height in group.points.values()])) for group in groups]
        said.append(
            "Medians: "
            + ", ".join(
                f"{group.name} {words.number(median)} ({len(group.points)})"
                for group, median in zip(groups, medians, strict=True)
            )
        )
    if front:
        said.append(
            f"The line joins the {len(front)} {noun} that no other at the same place or further left "
            f"exceeds, from {front[0]} to {front[-1]}"
        )
    said += [f"{n_without} {noun} without {x} are not drawn"] if n_without else []
    return _joined(said)


@dataclass(frozen=True)
class _Words:
    noun: str
    digits: int

    def number(self, value: float) -> str:
        return f"{value:,.{self.digits}f}"

    def ranked(
        self, values: Mapping[str, float], where: Mapping[str, str] | None = None, *, brief: bool = False
    ) -> list[str]:
        """Highest, how far ahead of the next, lowest, and the middle."""
        high, *rest = self.ends(values, where)
        shown = sorted({round(value, self.digits) for value in values.values()}, reverse=True)
        tops = sum(round(value, self.digits) == shown[0] for value in values.values())
        said = [high]
        if len(shown) > 1 and tops == 1 and not brief:
            said.append(f"{self.number(shown[0] - shown[1])} above {self._at(values, shown[1])}")
        said += rest
        if len(values) >= _MANY:
            first, middle, third = np.percentile([*values.values()], [25, 50, 75])
            said.append(f"median of {len(values)} {self.noun} {self.number(middle)}")
            if not brief:
                said.append(f"middle half {self.number(first)} to {self.number(third)}")
        return said

    def ends(self, values: Mapping[str, float], where: Mapping[str, str] | None = None) -> list[str]:
        """The highest and the lowest, one line where all are equal."""
        high, low = (round(end(values.values()), self.digits) for end in (max, min))
        said = [f"highest {self.number(high)}, {self._at(values, high, where)}"]
        return said if high == low else [*said, f"lowest {self.number(low)}, {self._at(values, low, where)}"]

    def _at(self, values: Mapping[str, float], figure: float, where: Mapping[str, str] | None = None) -> str:
        found = [name for name, value in values.items() if round(value, self.digits) == figure]
        if len(found) > _NAMED:
            return f"{len(found)} {self.noun}"
        return " and ".join(f"{name} ({where[name]})" if where else name for name in found)

    def won(self, lines: Mapping[str, Mapping[str, float]], over: Sequence[str], of: str) -> Iterator[str]:
        """Which line is highest in most places; nothing of fewer than two lines or places.

        Args:
            lines: line -> place -> figure.
            over: the places.
            of: in how many, with room for the number.
        """
        if len(lines) < 2 or len(over) < 2:
            return
        wins = dict.fromkeys(lines, 0)
        for place in over:
            at = {name: round(line[place], self.digits) for name, line in lines.items() if place in line}
            for name, value in at.items():
                wins[name] += value == max(at.values())
        most = max(wins.values())
        first = [name for name, n in wins.items() if n == most]
        named = " and ".join(first) if len(first) <= _NAMED else f"{len(first)} {self.noun}"
        each = "each " if len(first) > 1 else ""
        yield f"Most often highest: {named}, {each}{of.format(most)}"

    def certain(self, series: Series) -> Iterator[str]:
        """Whether intervals or standard deviations tell the highest from the others."""
        first, *others = sorted(series.values, key=lambda name: -series.values[name])
        if first in series.ends:
            low, high = series.ends[first]
            known = [series.ends[name] for name in others if name in series.ends]
            n = sum(start <= high and low <= end for start, end in known)
            yield f"the interval of the highest overlaps with {n} of {len(known)} others"
        elif first in series.spreads and others:
            least = series.values[first] - series.spreads[first]
            n = sum(series.values[name] >= least for name in others)
            yield f"within one standard deviation below the highest: {n} of {len(others)} others"

    def around_zero(self, series: Sequence[Series]) -> Iterator[str]:
        """How many are above zero, where some figures are below."""
        if not any(value < 0 for one in series for value in one.values.values()):
            return
        parts = [
            f"{sum(value > 0 for value in one.values.values())} of {len(one.values)}"
            + (f" in {one.name}" if len(series) > 1 else "")
            for one in series
        ]
        yield f"Above zero: {', '.join(parts)}"


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def _joined(said: Sequence[str]) -> str:
    return " ".join(f"{_capital(words).removesuffix('.')}." for words in said if words)
