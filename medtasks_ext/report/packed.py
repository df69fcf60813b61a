"""Columns of the page's data in little room: what repeats, or grows evenly, is written once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise
from operator import ne
from typing import Any

#: A column is packed where that takes a third of its values at most; the page unpacks it.
_WORTH = 3


def packed(values: Sequence[Any]) -> Sequence[Any] | dict[str, list[Any]]:
    """A column as the page's data holds it; `unpacked` of `page/data.js` is the way back.

    Returns:
        The values; or `runs`, each value followed by how often it stands in a row; or `steps`, the same of
        the differences from one whole number to the next, from 0 on; or `words`, each value once, and `at`,
        the places of the column's values in these.
    """
    if not values:
        return values
    most = len(values) // _WORTH
    if _length_of_runs(values) <= most:
        return {"runs": _runs(values)}
    if all(type(value) is int for value in values):
        steps = [other - one for one, other in pairwise([0, *values])]
        if _length_of_runs(steps) <= most:
            return {"steps": _runs(steps)}
    place = {value: number for number, value in enumerate(dict.fromkeys(values))}
    if len(place) <= most and _length(place) > len(str(len(place))):
        return {"words": [*place], "at": [place[value] for value in values]}
    return values


def _runs(values: Iterable[Any]) -> list[Any]:
    return [item for value, same in groupby(values) for item in (value, sum(1 for _ in same))]


def _length_of_runs(values: Sequence[Any]) -> int:
    """How long `_runs` of some values is."""
    return 2 * (1 + int(sum(map(ne, values, values[1:]))))


def _length(words: Iterable[Any]) -> float:
    """Mean number of characters of values as JSON."""
    sizes = [len(json.dumps(word, ensure_ascii=False)) for word in words]
    return sum(sizes) / len(sizes)
