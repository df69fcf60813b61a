"""Filters of task files besides those of Jinja: objects, masks, entities."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict

from medtasks_ext.privacy import RowValueError, excerpt


def json_objects(items: Any, fields: list[str] | Mapping[str, str]) -> str:
    """A JSON array with an object per line, of the named fields in their order, without repeats.

    Args:
        fields: names; or name -> where the value lies, `object.@value` for a field of a field. Fields that
            an object lacks, and nulls, are left out.

    Raises:
        ValueError: it is no list of objects.
    """
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise RowValueError(f"{excerpt(items)} is no list of objects")
    paths = fields if isinstance(fields, dict) else {name: name for name in fields}
    objects = []
    for item in items:
        values = {name: value for name, path in paths.items() if (value := _at(item, path)) is not None}
        objects.append(json.dumps(values, ensure_ascii=False))
    return "[\n" + ",\n".join(dict.fromkeys(objects)) + "\n]" if objects else "[]"


def _at(item: Any, path: str) -> Any:
    for name in path.split("."):
        item = item.get(name) if isinstance(item, dict) else None
    return item


def renamed(objects: Any, **names: str) -> Any:
    """Objects with keys of other names: `rubrics | renamed(text='criterion', weight='points')`.

    Args:
        objects: a list of objects; anything else is given back as it is, for whoever checks it.
        names: new key -> old key. Other keys stay.
    """
    if not isinstance(objects, list):
        return objects
    return [
        {**item, **{new: item[old] for new, old in names.items() if old in item}}
        if isinstance(item, dict)
        else item
        for item in objects
    ]


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


class Span(TypedDict):
    """An entity; start and end count tokens."""

    type: str
    text: str
    start: int
    end: int


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
    found: list[Span] = []
    goes_on: str | None = None  # the kind that the next token may continue
    for index, tag in enumerate(tags):
        if tag in ("O", ""):
            goes_on = None
            continue
        place, _, kind = tag.partition("-") if scheme == "iob" else ("I", "-", tag)
        start = found.pop()["start"] if found and kind == goes_on and place in ("I", "E") else index
        text = joint.join(tokens[start : index + 1])
        found.append({"type": kind, "text": text, "start": start, "end": index + 1})
        goes_on = None if place in ("E", "S") else kind
    return found
