"""What an extraction found, missed and made up, and where that stands in the document.

Answers carry no offsets: an item is its texts. Two items are equal as the metric compares them, whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from medtasks_ext.answers.reasoning import without_reasoning

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry.tasks import Dataset

#: The texts of one item: an entity alone, a code, an event with its attributes.
Item: TypeAlias = tuple[str, ...]
MarkKind: TypeAlias = Literal["found", "missed", "spurious"]

#: Kinds of answers that are sets of items which are stretches of the document.
IN_TEXT = frozenset({"entity_list", "spans", "event_lines", "attribute_lines", "relation_lines", "tuples"})
#: Those, and other sets.
_SETS = IN_TEXT | {"label_set", "labels", "label_list", "code_list", "codes_in_text"}


@dataclass(frozen=True)
class Items:
    found: tuple[Item, ...]  # of both
    missed: tuple[Item, ...]  # of the gold answer alone
    spurious: tuple[Item, ...]  # of the answer alone


class Cluster(str, Enum):
    """Kinds of errors, in the order in which they are looked for; each says what it means, for people."""

    meaning: str

    def __new__(cls, value: str, meaning: str) -> Cluster:
        member = str.__new__(cls, value)
        member._value_, member.meaning = value, meaning
        return member

    EMPTY = "empty", "The response holds no text, or only a reasoning trace."
    TRUNCATED = "truncated", "The budget ran out before an answer could be read, or within the reasoning."
    REFUSAL = "refusal", "No answer could be read, and the reply declines to give one."
    OUTSIDE = "label outside the list", "The reply names a label or letter that the task does not have."
    FORMAT = "format", "There is a reply, and no answer could be read in it."
    OTHER = "another answer", "An answer was read, and it is not the gold one."


def items_of(kind: str, gold: Any, answer: Any) -> Items | None:
    """None for kinds of answers that are no sets; an answer that could not be read holds no items."""
    if kind not in _SETS or gold is None:
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


def marked(text: str, items: Items) -> list[Json]:
    """A document in pieces, `text` and `marks` of each. An item that does not stand in it has no mark.

    Letters are compared without case and white space, since readers of answers fold both.
    """
    folded, places = _folded(text)
    marks: list[tuple[int, int, MarkKind]] = []
    kinds: tuple[MarkKind, ...] = ("found", "missed", "spurious")
    for kind in kinds:
        for part in dict.fromkeys(part for item in getattr(items, kind) for part in item):
            marks += [(begin, end, kind) for begin, end in _places(part, text, folded, places)]
    cuts = sorted({0, len(text), *(place for begin, end, _ in marks for place in (begin, end))})
    return [
        {
            "text": text[begin:end],
            "marks": tuple(dict.fromkeys(kind for first, last, kind in marks if first <= begin < last)),
        }
        for begin, end in pairwise(cuts)
    ]


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


#: Kinds of answers that are one of a closed list, or letters.
_LABELS = frozenset(
    {"label", "label_word", "relation_label", "category", "label_set", "labels", "label_list"}
)
_LETTERS = frozenset(
    {"exact_letter", "verified_letter", "option_letter", "marked_letters", "choice", "choices"}
)
#: Kinds whose answer is running text: a score below 1 is no error by itself.
TEXTS = frozenset({"text", "free_text", "prose", "passages"})
#: A label is short: longer last lines are no try at one.
_SHORT, _FEW_WORDS = 60, 6
_LETTER = re.compile(r"\W*[A-Za-z]\W*")
_REFUSES = re.compile(
    r"\bI(?:['’]m| am)? (?:sorry|unable to|cannot|can['’]t|not able to|won['’]t)\b|\bas an AI\b"
    r"|(?:无法|不能|抱歉|对不起).{0,20}(?:回答|提供|诊断|判断|协助|处理)|作为.{0,8}(?:AI|人工智能)"
    r"|\blo siento\b|\bno puedo\b|\bcomo (?:una? )?(?:modelo|IA)\b|\bdésolée?\b|\bje ne peux pas\b"
    r"|\bes tut mir leid\b|\bich kann (?:\w+ ){0,3}nicht\b|\bals KI\b|\bdesculpe\b|\bnão posso\b"
    r"|\bbeklager\b|\bjeg kan ikke\b|申し訳|できません|お答えでき|извините|не могу|к сожалению",
    re.IGNORECASE,
)
_REFUSED_IN = 300  # characters, from the beginning
_GOOD = 0.5  # score that judges give an answer which is right to decline


def error_of(
    dataset: Dataset,
    document: Mapping[str, Any],
    parsed: Mapping[str, Any],
    response: str,
    score: float | None,
    *,
    cut: bool,
) -> tuple[Cluster, str] | None:
    """Why an answer is not right, and what was seen; None where it is, or nothing says that it is not.

    Running text and judged answers have graded scores: of them only what is empty, cut, a refusal or in
    another language is an error here.

    Args:
        document: as it was asked.
        parsed: both readings (`answers.formats`); empty where nothing was read.
        score: of the document alone; None where it has none.
        cut: whether its budget ran out, or a reasoning trace never ended.
    """
    kind = str(dataset.config["answer"]["kind"])
    readable = bool(parsed.get("valid", True))
    wrong = kind not in TEXTS and score is not None and score < 1 - 1e-9
    if readable and not wrong and kind not in TEXTS:
        return None
    reply = without_reasoning(response).strip()
    if not response.strip() or (not reply and not cut):
        return Cluster.EMPTY, ""
    unread = not readable or kind in TEXTS
    if cut and (unread or not reply):
        return Cluster.TRUNCATED, ""
    refusal = _REFUSES.search(reply[:_REFUSED_IN]) if unread else None
    # to decline may be right: the gold answer does, or judges have not marked the answer down
    declines = bool(_REFUSES.search(str(document.get("target", ""))))
    kept = bool(dataset.family.judge) and (score is None or score >= _GOOD)
    if refusal and not (declines or kept):
        return Cluster.REFUSAL, f"“{refusal[0]}”"
    if readable and kind in TEXTS:
        return None
    if not readable:
        outside = _unknown_label(kind, reply)
        return (Cluster.OUTSIDE, f"“{outside}”") if outside else (Cluster.FORMAT, "")
    return _wrong(dataset, kind, document.get("gold"), parsed.get("answer"))


def _unknown_label(kind: str, reply: str) -> str:
    """What stands where a label should; nothing where the reply is no try at one."""
    last = reply.splitlines()[-1].strip() if reply else ""
    if kind in _LETTERS:
        return last if _LETTER.fullmatch(last) else ""
    value = re.split("[:：]", last)[-1].strip(" \"'“”*.<>。")
    short = len(value) <= _SHORT and len(value.split()) <= _FEW_WORDS
    return value if kind in _LABELS and short else ""


def _wrong(dataset: Dataset, kind: str, gold: Any, answer: Any) -> tuple[Cluster, str]:
    labels = dataset.config["answer"].get("labels")
    if kind == "label_list" and labels and isinstance(answer, list):
        known = {str(label).casefold() for label in [*labels, *(gold or [])]}
        if strange := [label for label in answer if str(label).casefold() not in known]:
            return Cluster.OUTSIDE, f"“{strange[0][:_SHORT]}”"
    return Cluster.OTHER, ""
