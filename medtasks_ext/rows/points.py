"""Scoring points that come with a row: what an answer must hold, each met or not, with its weight."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from medtasks_ext.errors import MedtasksError, RowError
from medtasks_ext.privacy import RowValueError, excerpt
from medtasks_ext.rows.expressions import Expression
from medtasks_ext.rows.row import Point

if TYPE_CHECKING:
    from medtasks_ext.rows.row import Faults, ReadRow
    from medtasks_ext.rows.spec import Judging

#: An id stands in prompts and is a key of a verdict.
_ID = re.compile(r"[\w.-]{1,64}")
_LARGEST = 1e9  # a weight beyond it is a slip
_SHOWN = 3  # faults that a message spells out
_REMEDY = (
    "mend the scoring points of these rows: each has a text and a weight above 0; where a row has a total, "
    "its weights add up to it (docs/judges.md)"
)
_REMEDY_PENALTIES = (
    "mend the criteria of these rows: each has a text and a weight, above 0 for what an answer should have "
    "and below 0 for what it should not; at least one is above 0 (docs/judges.md)"
)


class PointsError(RowValueError):
    """Points that cannot be scored; the message says why."""


def read_points(value: Any, total: Any = None, *, penalties: bool = False) -> list[Point]:
    """The scoring points of a row: {id, text, weight}, `tags` if there are some; else PointsError.

    `value`: list of {text, weight} with positive weights, negative ones with `penalties`; `id` and `tags` are
    optional (ids are then p1, p2, ... by place), other keys are left out. `total`: what the weights must add
    up to; None: whatever they add up to is the whole.
    """
    if not isinstance(value, list) or not value:
        raise PointsError("no scoring points")
    points = [_point(item, place, penalties=penalties) for place, item in enumerate(value, start=1)]
    if all(point["weight"] < 0 for point in points):
        raise PointsError("no point has a positive weight")
    ids = [point["id"] for point in points]
    if repeated := [name for name in ids if ids.count(name) > 1]:
        raise PointsError(f"two points have the id {repeated[0]}")
    if total is None:
        return points
    if not _is_positive(total):
        raise PointsError(f"the total of the weights is {excerpt(total)}")
    if not math.isclose(whole := math.fsum(point["weight"] for point in points), total, rel_tol=1e-9):
        raise PointsError(f"the weights add up to {whole:g}, not to {total:g}")
    return points


def with_points(rows: list[ReadRow], judging: Judging | None, faults: Faults, file: Path) -> list[ReadRow]:
    if judging is None or judging.points is None:
        return rows
    points = Expression(judging.points, file, "judge.points")
    total = Expression(judging.total or "none", file, "judge.total")
    remedy = _REMEDY_PENALTIES if judging.penalties else _REMEDY
    faulty: dict[str, RowError] = {}
    for row in rows:
        try:
            given, whole = points.of_row_or_none(row.fields), total.of_row_or_none(row.fields)
            row.points = read_points(given, whole, penalties=judging.penalties)
        except PointsError as error:
            what = f"{row.named}: {error}"
            fault = RowError(what, row=row.place, column="points", where=row.where, remedy=remedy)
            faulty[row.place] = fault
    if faulty and not faults.check:
        shown = [fault.what for fault in faulty.values()]
        more = f"; and {len(shown) - _SHOWN} more rows" if len(shown) > _SHOWN else ""
        raise MedtasksError("; ".join(shown[:_SHOWN]) + more, where=rows[0].where, remedy=remedy)
    for fault in faulty.values():
        faults.add(fault)
    return [row for row in rows if row.place not in faulty]


def _point(item: Any, place: int, *, penalties: bool) -> Point:
    if not isinstance(item, dict):
        raise PointsError(f"point {place} is no object")
    name, text, weight = str(item.get("id", f"p{place}")), item.get("text"), item.get("weight")
    if not _ID.fullmatch(name):
        raise PointsError(f"the id of point {place} is {excerpt(name, 80)} (letters, digits, _ . -)")
    if not isinstance(text, str) or not text.strip():
        raise PointsError(f"point {place} has no text")
    if not (_is_positive(weight) or (penalties and _is_number(weight) and _is_positive(-weight))):
        raise PointsError(f"the weight of point {place} is {excerpt(weight)}")
    point: Point = {"id": name, "text": text.strip(), "weight": weight}
    if tags := item.get("tags"):
        if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
            raise PointsError(f"the tags of point {place} are no list of texts")
        point["tags"] = list(dict.fromkeys(tags))
    return point


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_positive(value: Any) -> TypeGuard[float]:
    return _is_number(value) and 0 < value < _LARGEST
