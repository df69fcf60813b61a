"""Items of a list in any form: an array, lines with bullets or without, or one line with marks between."""

from __future__ import annotations

from typing import NamedTuple

import regex

from medtasks_ext.answers.reader.announce import part_announced
from medtasks_ext.answers.reader.json_text import values
from medtasks_ext.answers.reader.reply import Reply, Span
from medtasks_ext.answers.reader.words import Words, plain, squeezed

#: items that are read; a model in a loop writes any number
MOST_ITEMS = 2_000
EDGES = " \t\r\n*_`\"'“”‘’«»「」『』[](){}<>#$|.。।,，、;；،:!！-–—•·"
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
    for mark in (r"[;；؛፤|]", r"[，、،፣•·]|,(?!\d)|(?<!\d),", r"\s[-–—]\s", r",")  # the last one is of `5,5`
]
#: words from which a line that ends as a sentence does is one, and characters in scripts without blanks
_WORDS, _CHARACTERS = 4, 8


class Items(NamedTuple):
    """Items of a list.

    Attributes:
        items: without bullets and marks around them, as they stand in the response.
        span: of the list in the response.
        bullets: whether each has a bullet or a number, or is an item of an array.
        array: whether they are those of an array, which are whole.
    """

    items: list[str]
    span: Span
    bullets: bool
    array: bool = False


def items_of(response: str, reply: Reply, words: Words) -> Items:
    """The list that a reply holds: the last array of texts, or what follows the last announcement, line by
    line.

    Lines that end with a colon are headings. Where lines have bullets, those without are no items. Sentences
    are none, nor is what ends as one behind a blank line: a refusal is no list.
    """
    begin, end = part_announced(reply, words)
    for value in reversed(values(response, reply)) if "[" in reply.text or "{" in reply.text else ():
        texts = _texts(value.value)
        if texts is not None and value.span[1] > begin:
            return Items(texts, value.span, bullets=True, array=True)
    block = fenced(reply.text, reply.begin, reply.end)
    if block and block[1] > begin:
        begin, end = max(begin, block[0]), block[1]
    read: list[tuple[bool, str]] = []
    apart = False
    for line in response[begin:end].split("\n", MOST_ITEMS)[:MOST_ITEMS]:
        bare = line.strip(_MARKS)
        apart = bool(read) and (apart or not bare)
        if not bare or _HEADING.search(line) or bare.startswith("```"):
            continue
        bullet = _BULLET.match(line)
        item = line[bullet.end() :] if bullet else line
        if not bullet and (_is_sentence(bare) or (apart and _END.search(bare))):
            continue
        if term := _TERM.match(item):
            item = term[1]
        read.append((bool(bullet), item.strip(_MARKS)))
    bulleted = [item for bullet, item in read if bullet]
    only = len(bulleted) > 1 or (bulleted and read[0][0])
    items = [item for item in (bulleted if only else [item for _, item in read]) if item]
    return Items(items, (begin, end), bullets=bool(only))


def _is_sentence(text: str) -> bool:
    """Whether a line ends as a sentence does and is long enough for one."""
    return bool(_END.search(text)) and (
        len(text.split(None, _WORDS)) >= _WORDS
        or (
            len(text) >= _CHARACTERS
            and bool(regex.search(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}]", text))
        )
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


_FENCE = regex.compile(r"```[^\S\n]{0,4}([\w+-]{0,20})[^\S\n]*\n([^`]*+(?:`(?!``)[^`]*+)*+)(?:```|\Z)")


def fenced(text: str, begin: int, end: int) -> Span | None:
    """The last block between fences, which may be open at the end."""
    span = None
    for match in _FENCE.finditer(text, begin, end):
        span = match.span(2)
    return span


def unfenced(text: str) -> str:
    """The inside of a text that is one fenced block; other texts as they are, without blanks around."""
    text = text.strip()
    match = _FENCE.fullmatch(text)
    return match[2].strip() if match else text


def says_none(text: str, words: Words, *more: str) -> bool:
    """Whether a text is a word for nothing."""
    said = plain(text.strip(EDGES))
    return said in {plain(word) for word in (*words.none, *more)} or text.strip() in ("-", "[]", "{}", "—")


def pieces_of(text: str, words: Words, *, whole: str = "") -> list[str]:
    """The items of a line: at marks between them and at a word that joins the last two, but where an item
    with such a mark or word stands so in `whole`, a squeezed text."""
    found: list[str] = []
    waiting = [text]
    while waiting:
        item = waiting.pop()
        bare = item.strip(EDGES)
        if whole and squeezed(bare) in whole:
            found.append(bare)
            continue
        split = ([part for part in mark.split(item) if part.strip(EDGES)] for mark in _SEPARATORS)
        if parts := next((parts for parts in split if len(parts) > 1), []):
            waiting.extend(reversed(parts))
        elif both := _joined(bare, words, whole):
            waiting.extend(reversed(both))
        else:
            found.append(bare)
    return [item for item in found if item]


def _joined(text: str, words: Words, whole: str) -> list[str]:
    """The two items of `one and other`; none where they are one."""
    for match in words.joins.finditer(text):
        one, other = text[: match.start()].strip(EDGES), text[match.end() :].strip(EDGES)
        if one and other and (not whole or (squeezed(one) in whole and squeezed(other) in whole)):
            return [one, other]
    return []
