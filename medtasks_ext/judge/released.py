"""Verdicts as the code of a suite reads them, where its judges write no single JSON object.

The rules are the suite's, lax as they are: nothing shows whether a verdict is the judge's own. A reply in
which the rule finds nothing to read is no verdict here, though a suite may count it as the lowest rating.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from medtasks_ext.judge.reply import UnreadableError, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from medtasks_ext.registry.official import OfficialJury

_LONGEST = 200_000
_MOST_BRACES = 2_000  # that are tried as the beginning of an object


def read_released(reply: str, jury: OfficialJury, axes: Iterable[str], rating: str) -> Verdict:
    """The verdict in a reply, by the rule of a released jury.

    Args:
        reply: what the judge wrote.
        jury: what it was asked, and how replies are read.
        axes: that it rates.
        rating: the field of a verdict that holds what is said of an axis.

    Raises:
        UnreadableError: the rule finds nothing to read.
    """
    text = reply[-_LONGEST:]
    if jury.form == "yes":
        lower = text.lower()
        return {axis: {rating: "yes" in lower and "no" not in lower} for axis in axes}
    names = {axis: jury.fields.get(axis, axis) for axis in axes}
    found = _tags(text, names.values()) if jury.form == "tags" else _last_object(text)
    if not found:
        raise UnreadableError("no tag of a verdict" if jury.form == "tags" else "no JSON object in the reply")
    return {
        axis: {rating: _said(found.get(name), inverted=axis in jury.inverted)} for axis, name in names.items()
    }


def _tags(text: str, names: Iterable[str]) -> dict[str, object]:
    """Name -> what stands in the first tag of that name."""
    found = {}
    for name in names:
        tag = re.escape(name)
        if match := re.search(rf"<{tag}>\s*(.*?)\s*</{tag}>", text, re.DOTALL):
            found[name] = match[1]
    return found


def _last_object(text: str) -> dict[str, object]:
    """The shortest object that ends with the last brace; empty where there is none."""
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
