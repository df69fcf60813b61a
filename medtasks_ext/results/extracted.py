"""What an extraction found, missed and made up, and where that stands in the document.

Answers carry no offsets: an item is its texts. Two items are equal as the metric compares them, whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal, TypeAlias

#: The texts of one item: an entity alone, a code, an event with its attributes.
Item: TypeAlias = tuple[str, ...]
NearKind: TypeAlias = Literal["hierarchy", "boundary", "attribute"]
MarkKind: TypeAlias = Literal["found", "missed", "spurious"]

#: Kinds of answers that are sets of items -> how many of an item's texts name what it is about.
SUBJECTS = {
    "entity_list": 1,
    "spans": 1,
    "label_set": 1,
    "labels": 1,
    "label_list": 1,
    "code_list": 1,
    "codes_in_text": 1,
    "event_lines": 1,
    "attribute_lines": 1,
    "relation_lines": 2,
    "tuples": 1,
}
#: Those whose items are stretches of the document.
IN_TEXT = frozenset({"entity_list", "spans", "event_lines", "attribute_lines", "relation_lines", "tuples"})
#: ICD-10 and its national modifications, with or without the dot; three characters are the category.
_ICD = re.compile(r"[A-Z]\d[0-9A-Z](?:\.?[0-9A-Z]{1,5})?[.*+!]?", re.IGNORECASE)
_CATEGORY = 3
#: Share of words in common, from which one stretch of text is another one with another boundary.
_SHARED = 0.5


@dataclass(frozen=True)
class Items:
    found: tuple[Item, ...]  # of both
    missed: tuple[Item, ...]  # of the gold answer alone
    spurious: tuple[Item, ...]  # of the answer alone


@dataclass(frozen=True)
class NearMiss:
    """A missed item and a spurious one that nearly is it."""

    missed: Item
    spurious: Item
    kind: NearKind


@dataclass(frozen=True)
class Piece:
    """A stretch of a text, and which items it belongs to."""

    text: str
    marks: tuple[MarkKind, ...] = ()


def items_of(kind: str, gold: Any, answer: Any) -> Items | None:
    """None for kinds of answers that are no sets; an answer that could not be read holds no items."""
    if kind not in SUBJECTS or gold is None:
        return None
    wanted, given = (dict.fromkeys(_items(side)) for side in (gold, answer))
    return Items(
        found=tuple(item for item in wanted if item in given),
        missed=tuple(item for item in wanted if item not in given),
        spurious=tuple(item for item in given if item not in wanted),
    )


def _items(side: Any) -> Iterable[Item]:
    for item in side.get("tuples", ()) if isinstance(side, dict) else side or ():
        if isinstance(item, str):
            yield (item,)
        elif item and isinstance(item[0], list):  # a pair, its second entity, the relation
            yield (*map(str, item[0]), *map(_text, item[2:]))
        else:
            yield tuple(map(_text, item))


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def near_misses(kind: str, items: Items) -> list[NearMiss]:
    """Pairs of a missed and a spurious item that nearly agree; an item is in one pair at most.

    Codes of ICD-10 are near with the same category. Other items are near where every text in which they
    differ overlaps (boundary), or where what they are about is the same and something said of it differs
    (attribute).
    """
    left, pairs = list(items.spurious), []
    for missed in items.missed:
        for given in left:
            if near := _near(kind, missed, given):
                pairs.append(NearMiss(missed, given, near))
                left.remove(given)
                break
    return pairs


def _near(kind: str, one: Item, other: Item) -> NearKind | None:
    if kind in ("code_list", "codes_in_text"):
        codes = [item[0].strip() for item in (one, other)]
        both = all(_ICD.fullmatch(code) for code in codes)
        return "hierarchy" if both and len({code[:_CATEGORY].upper() for code in codes}) == 1 else None
    if kind not in IN_TEXT or len(one) != len(other):
        return None
    differ = [place for place, (mine, theirs) in enumerate(zip(one, other, strict=True)) if mine != theirs]
    if all(_overlap(one[place], other[place]) for place in differ):
        return "boundary"
    return "attribute" if all(place >= SUBJECTS[kind] for place in differ) else None


def _overlap(one: str, other: str) -> bool:
    """Whether two stretches of text are parts of each other, or share half of their words."""
    (short, few), (long, many) = sorted((_words(one), _words(other)), key=lambda item: len(item[0]))
    if len(short) < (3 if short.isascii() else 2):
        return False
    return short in long or len(few & many) >= _SHARED * len(few | many)


@lru_cache(maxsize=4096)  # each missed item is compared with each spurious one
def _words(text: str) -> tuple[str, frozenset[str]]:
    folded = text.casefold().strip()
    return folded, frozenset(folded.split())


def marked(text: str, items: Items) -> list[Piece]:
    """A document with its items marked. An item that does not stand in it word for word has no mark.

    Letters are compared without case and white space, since readers of answers fold both.
    """
    folded, places = _folded(text)
    marks: list[tuple[int, int, MarkKind]] = []
    kinds: tuple[tuple[MarkKind, Sequence[Item]], ...] = (
        ("found", items.found),
        ("missed", items.missed),
        ("spurious", items.spurious),
    )
    for kind, group in kinds:
        for part in dict.fromkeys(part for item in group for part in item):
            marks += [(begin, end, kind) for begin, end in _places(part, text, folded, places)]
    return _pieces(text, marks)


@lru_cache(maxsize=256)  # several models answer one document, and name the same items
def _folded(text: str) -> tuple[str, list[int]]:
    """A text without white space and case, and the place of each of its characters in the text."""
    pairs = [
        (letter.lower()[:1], place)
        for place, character in enumerate(text)
        if not character.isspace() and (letter := _narrow(character))
    ]
    return "".join(letter for letter, _ in pairs), [place for _, place in pairs]


def _narrow(character: str) -> str:
    code = ord(character)
    return chr(code - 0xFEE0) if 0xFF01 <= code <= 0xFF5E else character


def _places(part: str, text: str, folded: str, places: list[int]) -> Iterable[tuple[int, int]]:
    needle, _ = _folded(part)
    if len(needle) < (3 if needle.isascii() else 2):
        return
    start = folded.find(needle)
    while start >= 0:
        begin, end = places[start], places[start + len(needle) - 1] + 1
        if not (_joined(text, begin) or _joined(text, end)):
            yield begin, end
        start = folded.find(needle, start + 1)


def _joined(text: str, place: int) -> bool:
    """Whether a place lies within a word of letters that are written with blanks between words."""
    return 0 < place < len(text) and all(
        character.isalnum() and character < "\u0530" for character in text[place - 1 : place + 1]
    )


def _pieces(text: str, marks: Sequence[tuple[int, int, MarkKind]]) -> list[Piece]:
    cuts = sorted({0, len(text), *(place for begin, end, _ in marks for place in (begin, end))})
    pieces = []
    for begin, end in pairwise(cuts):
        kinds = dict.fromkeys(kind for first, last, kind in marks if first <= begin and end <= last)
        pieces.append(Piece(text[begin:end], tuple(kinds)))
    return pieces
