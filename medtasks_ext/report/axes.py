"""The axes of reports: their titles, and those of their values."""

from __future__ import annotations

from collections.abc import Iterable

from medtasks_ext.registry import registry, suites
from medtasks_ext.report.groups import ALL, AVERAGE

#: axis -> title, for those that all suites have; in the order of display
_SHARED = {
    ALL: "all tasks",
    "suite": "suite",
    "language": "language",
    "specialties": "specialty",
    "stage": "clinical stage",
    "task_type": "kind of task",
    "document_types": "kind of document",
    "access": "access to the data",
}


def axis_titles() -> dict[str, str]:
    """Axis -> title, in the order of display; an axis of single suites names them."""
    own, known = {}, suites()
    for axis in dict.fromkeys(axis for suite in known.values() for axis in suite.axes):
        having = [suite for suite in known.values() if axis in suite.axes]
        own[axis] = f"{having[0].title_of(axis)} ({', '.join(suite.title for suite in having)})"
    return {**_SHARED, **own}


def title(axis: str, value: str) -> str:
    if axis == ALL:
        return "all tasks (plain mean)"
    if axis == "access":
        return value
    if value == AVERAGE:
        return "Average of these"
    return registry().titles.get(axis, {}).get(value) or value.replace("_", " ").capitalize()


def titles_of(pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    return {pair: title(*pair) for pair in {*pairs}}


def order(axis: str, value: str) -> tuple[int, str]:
    """For sorting values as the vocabulary and the suites list them, others by name."""
    known = [*registry().titles.get(axis, ()), *(["", AVERAGE] if value == AVERAGE else [])]
    return (known.index(value) if value in known else len(known), value)
