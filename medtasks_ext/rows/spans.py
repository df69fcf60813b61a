"""Entities from tags on single words or characters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

from medtasks_ext.privacy import RowValueError


class Span(TypedDict):
    """An entity; start and end count tokens."""

    type: str
    text: str
    start: int
    end: int


@dataclass
class _Open:
    kind: str
    start: int
    end: int
    closed: bool = False  # whether no further token may belong to it


def spans(tokens: Sequence[str], tags: Sequence[str], *, scheme: str = "iob", joint: str = " ") -> list[Span]:
    """The entities that tags mark, in order.

    Args:
        tokens: words or characters.
        tags: one per token. Scheme `iob` reads `B-X` and `S-X` as a beginning, `I-X` and `E-X` as a
            continuation (or a beginning, where no X goes before); scheme `plain` reads a run of one
            tag as one entity. `O` and an empty tag are outside.
        joint: what stands between tokens.

    Raises:
        ValueError: not one tag per token.
    """
    if len(tokens) != len(tags):
        raise RowValueError(f"{len(tokens)} tokens have {len(tags)} tags")
    found: list[_Open] = []
    for index, tag in enumerate(tags):
        place, _, kind = tag.partition("-") if scheme == "iob" else ("I", "-", tag)
        if tag in ("O", ""):
            continue
        last = found[-1] if found else None
        if last and not last.closed and last.end == index and last.kind == kind and place in ("I", "E"):
            found[-1].end = index + 1
        else:
            found.append(_Open(kind, index, index + 1))
        found[-1].closed = place in ("E", "S")
    return [
        Span(type=one.kind, text=joint.join(tokens[one.start : one.end]), start=one.start, end=one.end)
        for one in found
    ]
