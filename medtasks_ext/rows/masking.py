"""Entities of a text replaced by a mask, as relation extraction shows them."""

from __future__ import annotations

from collections.abc import Iterable

from medtasks_ext.privacy import RowValueError, excerpt


def masked(text: str, offsets: Iterable[str], name: str) -> str:
    """The text with the mask `@NAME$` in the place of each entity.

    Args:
        text: the sentence.
        offsets: of each entity, `first-last` with both characters included; an entity in several pieces
            (`10-16;25-28`) is masked from its first to its last character.
        name: of the mask. Entities that overlap become one `@NAME-NAME$`, as in BLUE's files.

    Raises:
        ValueError: an offset is no pair of numbers, or lies outside the text.
    """
    spans: list[tuple[int, int, int]] = []  # first, last, number of entities
    for begin, end in sorted(_span(offset) for offset in offsets):
        if not 0 <= begin <= end < len(text):
            raise RowValueError(f"{begin}-{end} lies outside the text of {len(text)} characters")
        if spans and begin <= spans[-1][1]:
            first, last, count = spans.pop()
            spans.append((first, max(last, end), count + 1))
        else:
            spans.append((begin, end, 1))
    for begin, end, count in reversed(spans):
        text = f"{text[:begin]}@{'-'.join([name] * count)}${text[end + 1 :]}"
    return text


def _span(offset: str) -> tuple[int, int]:
    pieces = [tuple(map(int, piece.split("-"))) for piece in offset.split(";")]
    if any(len(piece) != 2 for piece in pieces):
        raise RowValueError(f"{excerpt(offset)} is no offset of the form first-last")
    return min(piece[0] for piece in pieces), max(piece[1] for piece in pieces)
