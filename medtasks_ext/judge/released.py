"""Verdicts as the code of a suite reads them, where its judges write no single JSON object.

The rules are the suite's, lax as they are: they take a verdict that the judge quotes for the judge's own.
So where an answer holds a verdict in the form that is read, none in its favour counts; one against it does,
or an answer could prevent it. A reply in which the rule finds nothing to read is no verdict here, though a
suite may count it as the lowest rating.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from medtasks_ext.answers.normalise import tagged
from medtasks_ext.judge.reply import UnreadableError, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from medtasks_ext.registry.official import OfficialJury

_LONGEST = 200_000
_MOST_BRACES = 2_000  # that are tried as the beginning of an object


def read_released(reply: str, jury: OfficialJury, axes: Iterable[str], rating: str, *, rated: str) -> Verdict:
    """The verdict in a reply, by the rule of a released jury.

    Raises:
        UnreadableError: the rule finds nothing to read, or a verdict in favour of an answer that holds one.
    """
    text = reply[-_LONGEST:]
    names = {axis: jury.fields.get(axis, axis) for axis in axes}
    verdict = _verdict(text, jury, names, rating)
    held = _unescaped(rated)
    if any(verdict[axis][rating] and _may_be_quoted(text, held, name, jury) for axis, name in names.items()):
        raise UnreadableError("the answer itself holds a verdict of this form")
    return verdict


def _verdict(
    text: str, jury: OfficialJury, names: Mapping[str, str], rating: str
) -> dict[str, dict[str, bool]]:
    if jury.form == "yes":
        lower = text.lower()
        return {axis: {rating: "yes" in lower and "no" not in lower} for axis in names}
    found = _tags(text, names.values()) if jury.form == "tags" else _last_object(text)
    if not found:
        raise UnreadableError("no tag of a verdict" if jury.form == "tags" else "no JSON object in the reply")
    return {
        axis: {rating: _said(found.get(name), inverted=axis in jury.inverted)} for axis, name in names.items()
    }


def _may_be_quoted(reply: str, rated: str, name: str, jury: OfficialJury) -> bool:
    if jury.form == "tags":
        return f"<{name}>" in rated
    if jury.form == "object":
        return f'"{name}"' in rated
    return "yes" in rated.lower() and re.sub(r"\W|_", "", reply).lower() != "yes"


def _unescaped(text: str) -> str:
    return re.sub(r"\\u([0-9a-fA-F]{4})", lambda found: chr(int(found[1], 16)), text)


def _tags(text: str, names: Iterable[str]) -> dict[str, object]:
    spans = {name: next(tagged(text, name), None) for name in names}
    return {name: text[slice(*span)] for name, span in spans.items() if span}


def _last_object(text: str) -> dict[str, object]:
    """The shortest object that ends with the last brace."""
    end = text.rfind("}") + 1
    begin = end
    for _ in range(_MOST_BRACES):
        begin = text.rfind("{", 0, begin)
        if begin < 0:
            break
        try:
            value = json.loads(text[begin:end])
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            return value or {"": None}
    return {}


def _said(value: object, *, inverted: bool) -> bool:
    """Whether a value counts for the answer; what is not said never does."""
    if value is None:
        return False
    if isinstance(value, str):
        lower = value.strip().lower()
        value = "true" in lower and "false" not in lower
    return bool(value) != inverted
