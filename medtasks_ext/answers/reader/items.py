"""Items of a list in any form: JSON, a table, lines with bullets or without, or one line with marks between.

JSON is read strictly first, then by json-repair, whose time grows faster than the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import json_repair
import regex

from medtasks_ext.answers.formats import Span
from medtasks_ext.answers.reader.announce import part_announced
from medtasks_ext.answers.reader.words import Reply, Words, plain, reply_of, tokens_of
from medtasks_ext.jsonfile import JsonError, parse_json

#: items that are read; a model in a loop writes any number
MOST_ITEMS = 2_000
EDGES = " \t\r\n*_`\"'“”‘’«»「」『』【】[](){}<>#$|.。।,，、;；،:!！-–—•·"
_MARKS = " \t\r\n*_`\"'“”‘’«»「」<>#"
_BULLET = regex.compile(
    r"\A[\s>]{0,8}(?:(?:\*{1,3}(?=\s)|[-+•·–—▪●◦・]{1,3}|#{1,6}|\(?\p{N}{1,3}[.)、](?!\d)|\p{N}{1,2}\s?[:：](?=\s))\s*)(?=\S)"
)
_HEADING = regex.compile(r"[:：][\s*_]*\Z")
# what stands in bold before its explanation
_TERM = regex.compile(r"\*\*([^*\n]{1,200}?)[:：]?\*\*\s{0,3}(?:[:：(–—-]|$)")
_END = regex.compile(r"[.!?。！？।]\W{0,3}\Z")
#: the strongest first: a weaker one may stand in an item
_SEPARATORS = [
    regex.compile(mark)
    for mark in (
        r"[;；؛፤|]|】\s*(?=【)",
        r"[，、،፣•·]|,(?!\d)|(?<!\d),",
        r"\s[-–—]\s",
        r",",
    )  # the last one is of `5,5`
]
#: words from which a line that ends as a sentence does is one, and characters in scripts without blanks
_WORDS, _CHARACTERS = 4, 8
#: of a table, the line under its head; a heading before a list; what parts an item from what explains it
_RULE = regex.compile(r"[\s|:-]*-[\s|:-]*")
_TITLE_LINE = regex.compile(r"\s*(?:【[^】]*】|\*\*[^*]+\*\*|#{1,6}\s.*)\s*")
_TITLE = regex.compile(r"\A【([^】]*)】[:：]?(?=\s*[^\s【,，、;；.。])")
_EXPLAINED = regex.compile(r"[:：](?!\d)|\s[-–—]\s|[(（【\[]")
#: parts of a line that a label with such marks in it may have
_MOST_PARTS = 4
_LONGEST_DENIAL = 80  # characters of an explanation in which a denial is looked for
#: of an array, without which it is read as a line
_QUOTES = frozenset("\"'“")
#: whether a text is an item: a label, or words of the prompt
Known = Callable[[str], bool]


class Items(NamedTuple):
    """Items of a list."""

    items: list[str]  # without bullets and marks around them, as they stand in the response
    span: Span  # of the list in the response
    bullets: bool  # whether each has a bullet or a number, or is an item of an array
    array: bool = False  # whether they are those of an array or a table, which are whole
    unclear: bool = False  # whether it does not say which of its columns has the items


def items_of(response: str, reply: Reply, words: Words, known: Known | None = None) -> Items:
    """The list of a reply: the last array of texts, or what follows the last announcement, line by line.

    Lines that end with a colon are headings. Where lines have bullets, those without are no items. Sentences
    are none, nor is what ends as one behind a blank line: a refusal is no list. With `known`, rows of a table
    and of objects count by the column of which all texts are known.
    """
    begin, end = part_announced(reply, words)
    for value, span in reversed(values(response, reply)) if "[" in reply.text or "{" in reply.text else ():
        if span[1] <= begin or (known and not set(response[slice(*span)]) & _QUOTES):
            continue
        if known and (rows := _rows(value)):
            return _column(rows, span, words, known)
        if (texts := _texts(value)) is not None:
            return Items(texts, span, bullets=True, array=True)
    block = fenced(reply.text, reply.begin, reply.end)
    if block and block[1] > begin:
        begin, end = max(begin, block[0]), block[1]
    lines = response[begin:end].split("\n", MOST_ITEMS)[:MOST_ITEMS]
    said = [line.strip() for line in lines if line.strip(_MARKS)]
    # of a table, lines begin with a bar, or all of several have one
    table = [line for line in said if line.startswith("|")]
    table = table or (said if len(said) > 1 and all("|" in line for line in said) else [])
    if known and table:
        below = next((i + 1 for i, line in enumerate(table) if _RULE.fullmatch(line)), 0)
        cells = [[cell.strip(_MARKS) for cell in line.strip("|").split("|")] for line in table[below:]]
        return _column(cells, (begin, end), words, known)
    read: list[tuple[bool, str]] = []
    apart = False
    for line in lines:
        bare = line.strip(_MARKS)
        apart = bool(read) and (apart or not bare)
        if not bare or _HEADING.search(line) or bare.startswith("```"):
            continue
        if known and _TITLE_LINE.fullmatch(line) and not known(bare):
            continue
        bullet = _BULLET.match(line)
        item = line[bullet.end() :] if bullet else line
        if not bullet and _END.search(bare) and (apart or _is_long(bare)):
            continue
        if (term := _TERM.match(item)) and (not known or known(term[1])):
            if known and _denies(item[term.end() :], words):
                continue
            item = term[1]
        read.append((bool(bullet), item.strip(_MARKS)))
    bulleted = [item for bullet, item in read if bullet]
    only = len(bulleted) > 1 or (bulleted and read[0][0])
    items = [item for item in (bulleted if only else [item for _, item in read]) if item]
    return Items(items, (begin, end), bullets=bool(only))


def _rows(value: Any) -> list[list[Any]] | None:
    if isinstance(value, dict):
        lists = [item for item in value.values() if isinstance(item, list)]
        return _rows([item for each in lists for item in each]) if lists else list(map(list, value.items()))
    rows = [list(item.values()) for item in value if isinstance(item, dict)]
    return rows if value and len(rows) == len(value) else None


def _column(rows: Sequence[Sequence[Any]], span: Span, words: Words, known: Known) -> Items:
    """The one column of which all texts are known, without the rows that deny their item."""
    found, denies = [], cache(lambda cell: _denies(cell, words))
    for place in range(max(map(len, rows), default=0)):
        cells = [row[place] if place < len(row) else None for row in rows]
        pieces = [pieces_of(cell, words, known) if isinstance(cell, str) else [] for cell in cells]
        if all(pieces) and all(known(piece) for cell in pieces for piece in cell):
            denied = (any(denies(str(cell)) for cell in row if cell != row[place]) for row in rows)
            kept = zip(pieces, denied, strict=True)
            found.append([piece for cell, no in kept if not no for piece in cell])
    items = found[0] if len(found) == 1 else []
    return Items(items[:MOST_ITEMS], span, bullets=True, array=True, unclear=len(found) != 1)


def _denies(text: str, words: Words) -> bool:
    """Whether what explains an item says that it is none."""
    said, tokens = plain(text.strip(EDGES)), tokens_of(text[:_LONGEST_DENIAL].strip(EDGES))
    no = {plain(word) for word in (*words.no, *words.none)} | {"false", "0", "✗", "✘", "❌", "absent"}
    return said in no or bool(tokens and "not" in words.at(tokens, 0)[0])


def _explained(item: str, words: Words, known: Known | None, *, closed: bool) -> list[str] | None:
    """The texts of an item, without a heading and what explains them; None where that is not clear."""
    if not known or known(item):
        return [item] if known else pieces_of(item, words)
    item = _TITLE.sub(r"\1: ", item)
    mark = _EXPLAINED.search(item, 1)
    if mark and mark[0] in ":：":
        head, rest = item[: mark.start()], item[mark.end() :]
        pieces = pieces_of(rest, words, known, closed=closed)
        listed = len(pieces) > 1 and all(map(known, pieces))
        if listed or not known(head):
            if not closed and known(rest) and len(pieces_of(rest, words)) > 1:
                return None  # one mention, or several that stand so in the prompt
            item = rest
        elif not (any(map(known, pieces)) or _EXPLAINED.search(rest)):
            return [] if _denies(rest, words) else [head]
    found: list[str] = []
    for piece in pieces_of(item, words, known, closed=closed, dashes=False):
        mark = _EXPLAINED.search(piece, 1)
        if known(piece) or not mark:
            found.append(piece)
            continue
        head, rest = piece[: mark.start()], piece[mark.end() :]
        parts = pieces_of(piece, words, known, closed=closed)
        if len(parts) > 2 and all(map(known, parts)):  # dashes between them
            found += parts
        elif known(head) == known(rest):
            return None
        elif not known(head):
            found.append(rest)
        elif not _denies(rest, words):
            found.append(head)
    return found


def pieces_listed(
    response: str, words: Words, known: Known | None, *, closed: bool = False
) -> tuple[list[str] | None, Items]:
    """The items of a reply, each alone, and its list; no items where it is not clear which they are."""
    listed = items_of(response, reply_of(response), words, known)
    if listed.array:
        return None if listed.unclear else listed.items, listed
    pieces: list[str] = []
    for item in listed.items:
        if (found := _explained(item, words, known, closed=closed)) is None:
            return None, listed
        pieces += found
    return pieces, listed


def _is_long(text: str) -> bool:
    return len(text.split(None, _WORDS)) >= _WORDS or (
        len(text) >= _CHARACTERS
        and bool(regex.search(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}]", text))
    )


def is_prose(item: str, listed: Items, words: Words) -> bool:
    """Whether the one line of a list is a sentence about items: it has a verb of being, or as many words."""
    classes = [words.at([token], 0)[0] for token in tokens_of(item)]
    verb = any("is" in of for of in classes[1:]) or bool(classes and "not" in classes[0])
    return len(listed.items) == 1 and not listed.bullets and (verb or _is_long(item))


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


_FENCE = regex.compile(r"```[^\S\n]{0,4}([\w+-]{0,20})[^\S\n]*\n([^`]*+(?:`(?!``)[^`]*+)*+)(?:```|\Z)")


def fenced(text: str, begin: int, end: int) -> Span | None:
    """The last block between fences, which may be open at the end."""
    blocks = list(_FENCE.finditer(text, begin, end))
    return blocks[-1].span(2) if blocks else None


def unfenced(text: str) -> str:
    """The inside of a text that is one fenced block; other texts as they are, without blanks around."""
    match = _FENCE.fullmatch(text.strip())
    return (match[2] if match else text).strip()


def says_none(text: str, words: Words, *more: str) -> bool:
    """Whether a text is a word for nothing."""
    said = plain(text.strip(EDGES))
    return said in {plain(word) for word in (*words.none, *more)} or text.strip() in ("-", "[]", "{}", "—")


def pieces_of(
    text: str, words: Words, known: Known | None = None, *, closed: bool = False, dashes: bool = True
) -> list[str]:
    """The items of a line, at marks and joining words, but where a text with these is known as a whole.

    `dashes`: these are marks. `closed`: all that is known is an item; parts that are one are joined.
    """
    found: list[str] = []
    waiting = [text]
    marks = _SEPARATORS if dashes else [*_SEPARATORS[:2], *_SEPARATORS[3:]]
    while waiting:
        item = waiting.pop()
        bare = item.strip(EDGES)
        if known and known(item):
            found.append(item.strip())
            continue
        split = (_split(item, mark, words, known if closed else None) for mark in marks)
        parts = _joined(bare, words, known, closed=True) if closed else []
        parts = parts or next((parts for parts in split if len(parts) > 1), [])
        if parts := parts or _joined(bare, words, known):
            waiting.extend(reversed(parts))
        else:
            found.append(bare)
    return [item for item in found if item]


def _split(text: str, mark: regex.Pattern[str], words: Words, known: Known | None) -> list[str]:
    """The parts of a text between marks; neighbours that are known together are one."""
    ends = [(match.start(), match.end()) for match in mark.finditer(text)]
    begins, stops = [0, *(end for _, end in ends)], [*(start for start, _ in ends), len(text)]
    parts: list[str] = []
    place = 0
    while place < len(begins):
        last = min(place + _MOST_PARTS, len(begins)) - 1 if known else place
        while known and last > place and not known(text[begins[place] : stops[last]].strip(EDGES)):
            last -= 1
        part = text[begins[place] : stops[last]]
        joint = words.joins.match(f" {part.lstrip()}") if parts else None  # `, and the last`
        parts.append(part.lstrip()[joint.end() - 1 :] if joint and joint[0][-1] == " " else part)
        place = last + 1
    return [part for part in parts if part.strip(EDGES)]


def _joined(text: str, words: Words, known: Known | None, *, closed: bool = False) -> list[str]:
    """The two items of `one and other`; none where they are one."""
    for match in words.joins.finditer(text):
        one, other = text[: match.start()].strip(EDGES), text[match.end() :].strip(EDGES)
        if one and other and (not known or (known(other) and (closed or known(one)))):
            return [one, other]
    return []


#: characters in a reply that are repaired, nesting of them, and values that are read or tried in vain
MAX_REPAIRED, MAX_NESTED, MAX_VALUES, MAX_FALSE_STARTS = 10_000, 20, 5_000, 50

_OPENS = re.compile(r"[\[{]")
_BRACKET = re.compile(r'"(?:[^"\\\n]|\\.)*"|[\[\]{}]')


def values(response: str, reply: Reply) -> list[tuple[Any, Span]]:
    """All arrays and objects of a reply that are inside no other one, in their order, each with its place."""
    found: list[tuple[Any, Span]] = []
    place, false_starts, repaired = reply.begin, 0, 0
    for begin, (end, depth, closed) in sorted(_brackets(reply.text, reply.begin, reply.end).items()):
        if begin < place or len(found) == MAX_VALUES or false_starts == MAX_FALSE_STARTS:
            continue
        try:
            value = parse_json(response[begin:end])
        except JsonError:
            value = None
        if value is None and depth <= MAX_NESTED and repaired + end - begin <= MAX_REPAIRED:
            repaired += end - begin
            value = json_repair.loads(reply.text[begin:end], skip_json_loads=True)
            if isinstance(value, list) and not closed:  # of an array that breaks off, its objects are whole
                value = [item for item in value if isinstance(item, dict)]
            if not isinstance(value, dict if reply.text[begin] == "{" else list):
                value = None
            value = value or None
        if value is None:
            false_starts += 1
        else:
            found.append((value, (begin, end)))
            place = end
    return found


def _brackets(text: str, begin: int, end: int) -> dict[int, tuple[int, int, bool]]:
    """Opening bracket outside of texts -> where its value ends, how deep it is, whether it is closed."""
    found: dict[int, tuple[int, int, bool]] = {}
    opened: list[tuple[int, int]] = []  # where, and how deep so far
    place = begin
    while opened or place < end:
        mark = (_BRACKET if opened else _OPENS).search(text, place, end)
        place = mark.end() if mark else end
        if mark and mark[0] in "[{":
            opened.append((mark.start(), 1))
        elif opened and (not mark or mark[0] in "]}"):
            start, depth = opened.pop()
            found[start] = place, depth, bool(mark)
            if opened:
                outer, deepest = opened.pop()
                opened.append((outer, max(deepest, depth + 1)))
    return found
