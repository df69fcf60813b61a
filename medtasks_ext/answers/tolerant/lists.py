"""Items of a list in any form, and records of named fields that are not written as one line each."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from medtasks_ext.answers.tolerant.json_text import values
from medtasks_ext.answers.tolerant.markers import after_last_marker, fenced
from medtasks_ext.answers.tolerant.reply import Reply

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from medtasks_ext.answers.tolerant.reply import Reply, Span


#: items that are read; a model in a loop writes any number
MOST_ITEMS = 2_000
_BULLET = re.compile(
    r"\A[\s>]{0,8}(?:(?:\*{1,3}(?=\s)|[-+•·–—▪●◦]{1,3}|#{1,6}|\(?\d{1,3}[.)、]|\d{1,2}\s?[:：])\s*)(?=\S)"
)
_HEADING = re.compile(r"[:：][\s*_]*\Z")
# what stands in bold before its explanation
_TERM = re.compile(r"\*\*([^*\n]{1,200}?):?\*\*\s{0,3}(?:[:：(–—-]|$)")
_REMARK = re.compile(
    r"\W*(?:note|explanation|rationale|reason(?:ing)?|justification|i hope|let me know|please|disclaimer)\b",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?。]\W{0,3}\Z")
_EDGES = " \t\r\n*_`\"'“”‘’«»<>#"


class ListItems(NamedTuple):
    """Items of a list.

    Attributes:
        items: without bullets and marks around them, as they stand in the response.
        span: of the list in the response.
        bullets: whether each has a bullet or a number, or is an item of an array.
    """

    items: list[str]
    span: Span
    bullets: bool


def items_of(response: str, reply: Reply) -> ListItems:
    """The list that a reply holds: the last array of texts, or what follows the last announcement, line
    by line.

    Lines that end with a colon are headings. Where lines have bullets, those without are no items.
    """
    begin, end = after_last_marker(reply)
    for value in reversed(values(response, reply)) if "[" in reply.text or "{" in reply.text else ():
        texts = _texts(value.value)
        if texts is not None and value.span[1] > begin:
            return ListItems(texts, value.span, bullets=True)
    block = fenced(reply.text, reply.begin, reply.end)
    if block and block[1] > begin:
        begin, end = max(begin, block[0]), block[1]
    lines_read: list[tuple[bool, str]] = []
    for line in response[begin:end].split("\n", MOST_ITEMS)[:MOST_ITEMS]:
        bare = line.strip(_EDGES)
        if not bare or _HEADING.search(line) or bare.startswith("```"):
            continue
        bullet = _BULLET.match(line)
        item = line[bullet.end() :] if bullet else line
        if _REMARK.match(item) or (
            not bullet and lines_read and _SENTENCE_END.search(bare) and len(bare.split(None, 5)) > 4
        ):
            continue
        if term := _TERM.match(item):
            item = term[1]
        lines_read.append((bool(bullet), item.strip(_EDGES)))
    bulleted = [item for bullet, item in lines_read if bullet]
    items = (
        bulleted if len(bulleted) > 1 or (bulleted and lines_read[0][0]) else [item for _, item in lines_read]
    )
    return ListItems(
        [item for item in items if item], (begin, end), bullets=bool(bulleted) and items is bulleted
    )


def _texts(value: object) -> list[str] | None:
    """The texts of an array, or of the one array in an object; None where there are none."""
    if isinstance(value, dict):
        arrays = [item for item in value.values() if isinstance(item, list)]
        value = [item for array in arrays for item in array] if arrays else None
    if not isinstance(value, list):
        return None
    if value and all(isinstance(item, dict) for item in value):
        value = [next((text for text in item.values() if isinstance(text, str)), None) for item in value]
    texts = [item.strip() for item in value if isinstance(item, str)]
    if len(texts) < len(value) or any("\n" in text for text in texts):
        return None
    return [text for text in texts if text][:MOST_ITEMS]


_RULE = re.compile(r"[\s|:+-]+")
_MARKS = " \t*`\"'_"


def as_lines(text: str, fields: Sequence[str]) -> str:
    """The records as lines `field: value, field: value`; empty where there are none.

    Args:
        text: in small letters.
        fields: their names in small letters.
    """
    objects = [*_objects(text, fields)] if "{" in text else []
    return "\n".join(objects or (_rows(text, fields) if "|" in text else ()))


def _objects(text: str, fields: Sequence[str]) -> Iterator[str]:
    waiting = [found.value for found in reversed(values(text, Reply(text, 0, len(text), False)))]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting.extend(reversed(value))
        elif isinstance(value, dict):
            said = {str(key).strip().lower(): item for key, item in value.items()}
            if any(field in said for field in fields):
                yield _line(fields, [_text(said.get(field)) for field in fields])
            else:
                waiting.extend(reversed(value.values()))


def _text(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    return "" if value is None or isinstance(value, dict) else " ".join(str(value).split())


def _rows(text: str, fields: Sequence[str]) -> Iterator[str]:
    """Rows of tables whose heads name at least two of the fields."""
    columns: list[str] = []
    for line in text.split("\n"):
        cells = [cell.strip(_MARKS) for cell in line.strip().strip("|").split("|")]
        if sum(cell in fields for cell in cells) > 1:
            columns = cells
        elif _RULE.fullmatch(line):
            continue
        elif len(cells) == len(columns):
            yield _line(columns, cells)
        else:
            columns = []


def _line(fields: Sequence[str], texts: Sequence[str]) -> str:
    return ", ".join(f"{field}: {text}" for field, text in zip(fields, texts, strict=True) if text)


@lru_cache(maxsize=128)
def _field_patterns(fields: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """A field at the beginning of a line, and anywhere."""
    names = "|".join(map(re.escape, sorted(fields, key=len, reverse=True)))
    colon = r"[\s*_`\"']{0,4}:"
    begin = r"(?:[\s>*+•–—-]{0,8}|\s{0,8}(?:\d{1,3}[.)]|#+)\s{0,4})[*_`\"']{0,4}"
    return re.compile(rf"{begin}({names}){colon}"), re.compile(rf"(?:{names}){colon}")


def joined(text: str, fields: tuple[str, ...]) -> str:
    """The text with records of one line for each field put on one line.

    A record ends where one of its fields comes again. A text in which one line has two fields stays.
    """
    at_begin, anywhere = _field_patterns(fields)
    lines: list[str] = []
    open_fields: set[str] = set()
    together = False
    for line in text.split("\n"):
        match = at_begin.match(line)
        if not match:
            lines.append(line)
            open_fields = open_fields if not line.strip() else set()
            continue
        if anywhere.search(line, match.end()):
            return text
        if open_fields and match[1] not in open_fields:
            while not lines[-1].strip():
                lines.pop()
            lines[-1] = f"{lines[-1].rstrip(' ,;')}, {line[match.start(1) :]}"
            together = True
        else:
            lines.append(line)
            open_fields = set()
        open_fields.add(match[1])
    return "\n".join(lines) if together else text
