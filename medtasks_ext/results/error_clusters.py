"""What an extraction found, missed and made up, and why an answer is not right.

Answers carry no offsets: an item is its texts. Two items are equal as the metric compares them, whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, TypeAlias

from medtasks_ext.answers.reasoning import without_reasoning

#: The texts of one item: an entity alone, a code, an event with its attributes.
Item: TypeAlias = tuple[str, ...]
#: Kinds of answers that are sets of items.
_SETS = frozenset(
    {"entity_list", "spans", "event_lines", "attribute_lines", "relation_lines", "tuples"}
    | {"label_set", "labels", "label_list", "code_list", "codes_in_text"}
)


EMPTY, TRUNCATED, REFUSAL, FORMAT = "empty", "truncated", "refusal", "format"
OTHER = "another answer"
#: Kind of errors -> what it means, in the order in which they are looked for.
CLUSTERS = {
    EMPTY: "The response holds no text, or only a reasoning trace.",
    TRUNCATED: "The budget ran out before an answer could be read, or within the reasoning.",
    REFUSAL: "No answer could be read, and the reply declines to give one.",
    FORMAT: "There is a reply, and no answer could be read in it.",
    OTHER: "An answer was read, and it is not the gold one.",
}


def items_of(kind: str, gold: Any, answer: Any) -> dict[str, list[Item]] | None:
    """What is `found`, of the gold answer alone `missed`, and of the answer alone `spurious`.

    None for kinds of answers that are no sets; an answer that could not be read holds no items.
    """
    if kind not in _SETS or gold is None:
        return None
    wanted, given = (dict.fromkeys(_items(side)) for side in (gold, answer))
    return {
        "found": [item for item in wanted if item in given],
        "missed": [item for item in wanted if item not in given],
        "spurious": [item for item in given if item not in wanted],
    }


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


#: Kinds whose answer is running text: a score below 1 is no error by itself.
TEXTS = frozenset({"text", "free_text", "prose", "passages"})
_REFUSES = re.compile(
    r"\bI(?:['’]m| am)? (?:sorry|unable to|cannot|can['’]t|not able to|won['’]t)\b|\bas an AI\b"
    r"|(?:无法|不能|抱歉|对不起).{0,20}(?:回答|提供|诊断|判断|协助|处理)|作为.{0,8}(?:AI|人工智能)"
    r"|\blo siento\b|\bno puedo\b|\bcomo (?:una? )?(?:modelo|IA)\b|\bdésolée?\b|\bje ne peux pas\b"
    r"|\bes tut mir leid\b|\bich kann (?:\w+ ){0,3}nicht\b|\bals KI\b|\bdesculpe\b|\bnão posso\b"
    r"|\bbeklager\b|\bjeg kan ikke\b|申し訳|できません|お答えでき|извините|не могу|к сожалению",
    re.IGNORECASE,
)
_REFUSED_IN = 300  # characters, from the beginning


def error_of(kind: str, response: str, score: float | None, *, readable: bool, cut: bool) -> str | None:
    """Why an answer is not right; None where it is, or nothing says that it is not.

    Running text has graded scores: of it only what is empty or cut is an error here.

    Args:
        kind: of the task's answers.
        score: of the document alone; None where it has none.
        cut: whether its budget ran out, or a reasoning trace never ended.
    """
    reply, graded = without_reasoning(response).strip(), kind in TEXTS
    wrong = not graded and score is not None and score < 1 - 1e-9
    if readable and not wrong and not graded:
        return None
    if not response.strip() or (not reply and not cut):
        return EMPTY
    if cut and (graded or not readable or not reply):
        return TRUNCATED
    if not readable:
        return REFUSAL if _REFUSES.search(reply[:_REFUSED_IN]) else FORMAT
    return None if graded else OTHER
