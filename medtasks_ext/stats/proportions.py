"""Intervals of proportions."""

from __future__ import annotations

from math import sqrt

from medtasks_ext.stats.bootstrap import Interval

_Z = 1.959963984540054  # 95 %


def matched_difference(first_alone: int, second_alone: int, n: int) -> Interval:
    """95 % interval of the difference of two proportions of the same n units.

    Half a unit is added to each cell of the table of both outcomes (Agresti and Min, Statistics in Medicine
    24 (2005) 729-740). Unlike the bootstrap's, the interval has a width where no unit differs.

    Args:
        first_alone: units with the first outcome and without the second one.
        second_alone: units with the second one alone.
        n: units, at least 1.
    """
    one, other, total = first_alone + 0.5, second_alone + 0.5, n + 2
    difference = (one - other) / total
    half = _Z * sqrt(one + other - (one - other) ** 2 / total) / total
    return Interval(max(difference - half, -1.0), min(difference + half, 1.0))
