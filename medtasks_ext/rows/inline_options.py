"""Questions whose options stand in their text: both are taken apart by how an option is marked."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TypedDict

from medtasks_ext.privacy import RowValueError

#: How a mark is written in a task file: the labels of the options in braces, in order, one character each.
_LABELS = re.compile(r"\{([^\s{}]{2,})\}")
#: What may stand between two options besides blanks, where options have an end.
_BETWEEN = " \t\r\n,;"


class SplitQuestion(TypedDict):
    """A question and its options, in the order of their labels."""

    question: str
    options: list[str]


def question_and_options(text: str, mark: str, end: str = "") -> SplitQuestion:
    """The question before the first option, and the options.

    A text can be read if its marks, in the order of their labels, can be chosen in one way alone. So a mark
    that occurs in the question or once more in an option does no harm as long as one reading is left.

    Args:
        text: question and options.
        mark: what stands before each option, with all labels in braces: `{ABCDE}) ` finds `A) `, then `B) `.
            What is not in braces is compared to the letter. A line break there (`\\n{ABCD}. `) asks for
            options at the beginnings of lines.
        end: what stands after each option, such as a quotation mark.

    Raises:
        ValueError: fewer than two options, one that is missing or empty, or several ways to read them.
    """
    labels, found = _marks(mark, text)
    chosen = _chosen(labels, found)
    starts = [begin for begin, _, _ in chosen]
    question = text[: starts[0]].strip()
    if not question:
        raise RowValueError("no question stands before its options")
    pieces = zip((stop for _, stop, _ in chosen), [*starts[1:], len(text)], strict=True)
    options = [_option(text[begin:stop], end, labels[place]) for place, (begin, stop) in enumerate(pieces)]
    return {"question": question, "options": options}


@lru_cache(maxsize=64)
def _compiled(mark: str) -> tuple[str, re.Pattern[str], bool]:
    """The labels, a pattern (literals and one class: linear time), and whether a label comes first."""
    parts = _LABELS.split(mark)
    if len(parts) != 3 or len(set(parts[1])) != len(parts[1]):
        raise RowValueError(
            f"the mark {mark!r} does not hold labels of options in braces, as '{{ABCD}}) ' does"
        )
    before, labels, after = parts
    pattern = f"(?=({re.escape(before)}([{re.escape(labels)}]){re.escape(after)}))"
    return labels, re.compile(pattern), not before


def _marks(mark: str, text: str) -> tuple[str, list[tuple[int, int, int]]]:
    """The labels, and all places of marks: begin, end, which label."""
    labels, pattern, label_first = _compiled(mark)
    found = [
        (match.start(1), match.end(1), labels.index(match[2]))
        for match in pattern.finditer(text)
        if not (label_first and match.start() and _ends_a_word(text[match.start() - 1]))
    ]
    return labels, found


def _ends_a_word(before: str) -> bool:
    """Whether a letter or digit stands there that is written without a gap; Chinese texts have none."""
    return before.isdigit() or before.lower() != before.upper()


def _chosen(labels: str, found: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """The marks of the one reading: the first label, the second after it, and so on."""
    ways = [0] * len(
        labels
    )  # to read the labels up to this one, among the marks so far; 2 stands for several
    readings = []
    for _, _, label in found:
        readings.append(1 if label == 0 else ways[label - 1])
        ways[label] = min(2, ways[label] + readings[-1])
    last = max((label for label, n in enumerate(ways) if n), default=-1)
    if last < 1:
        raise RowValueError(
            f"{'one option' if last == 0 else 'no option'} found, where a question has two or more"
        )
    if ways[last] > 1:
        raise RowValueError(f"the options {labels[0]} to {labels[last]} can be read in several ways")
    chosen: list[tuple[int, int, int]] = []
    for item, n in zip(reversed(found), reversed(readings), strict=True):
        if n and item[2] == last - len(chosen):
            chosen.append(item)
    chosen.reverse()
    if beyond := [label for begin, _, label in found if label > last and begin > chosen[0][0]]:
        raise RowValueError(
            f"option {labels[min(beyond)]} stands there, option {labels[last + 1]} before it does not"
        )
    return chosen


def _option(text: str, end: str, label: str) -> str:
    """The text of an option without its end."""
    option = text.strip()
    if end:
        option, found, rest = option.rpartition(end)
        if not found or rest.strip(_BETWEEN):
            raise RowValueError(f"option {label} does not end with {end!r}")
        option = option.strip()
    if not option:
        raise RowValueError(f"option {label} has no text")
    return option
