"""Where a list or a text of an answer stands in a reply, and its items, with the words of any language."""

from __future__ import annotations

import regex

from medtasks_ext.answers.tolerant.folding import folded, plain
from medtasks_ext.answers.tolerant.phrases import Phrases, word
from medtasks_ext.answers.tolerant.reply import Reply, Span

#: where a line begins, with blank ones before it: a run of marks is read once, in one way
_HEAD = regex.compile(r"(?:^|\n)[\s*_#>\-•]*+")
_MARKS = r"[\s*_]*"
#: between items, in any script
_SEPARATOR = regex.compile(r"[\n,;,，、；،؛፣፤|•·]+|\s[-–—]\s")
#: words of an announcement before its noun, such as `the final`
_LEAD_WORDS = 4
EDGES = " \t\r\n*_`\"'“”‘’«»「」『』[](){}<>#.。।።,，、;；،፣፤:!-–—•·"


def _heading(phrases: Phrases, others: tuple[str, ...]) -> regex.Pattern[str]:
    """What says, at the beginning of a line, that the answer follows."""
    nouns = "|".join(word(noun, inside=False) for noun in (*phrases.words.answer, *others))
    filler, most = f"(?:{phrases.skipped.pattern}|{phrases.right.pattern})", _LEAD_WORDS
    return regex.compile(
        rf"(?:{filler}{_MARKS}){{0,{most}}}(?:{nouns})(?:{_MARKS}+{filler}){{0,{most}}}"
        rf"(?:{_MARKS}+[:=]{_MARKS}|{_MARKS}(?=\n))",
        regex.IGNORECASE,
    )


def announced(reply: Reply, phrases: Phrases, *, others: tuple[str, ...] = ()) -> Span:
    """What follows the last line of a reply that announces an answer; without one the reply.

    Args:
        reply: to be read.
        phrases: of its language.
        others: words that announce besides those of the language.
    """
    form, heading = folded(reply.part), _heading(phrases, others)
    last, place, end = 0, 0, len(form.text.rstrip())
    while place < end and (head := _HEAD.search(form.text, place)):
        match = heading.match(form.text, head.end())
        place = match.end() if match else max(head.end(), 1)
        last = place if match and place < end else last
    return reply.begin + form.places[last] if last else reply.begin, reply.end


def pieces_of(text: str, phrases: Phrases, *, whole: str = "") -> list[str]:
    """The items of a text that is a list: at line ends, commas and the like, and at joining words.

    Args:
        text: the list.
        phrases: of its language.
        whole: in plain form, the text in which items that hold a separator stand as a whole.
    """
    pieces: list[str] = []
    for line in text.split("\n"):
        _parted(line, whole, phrases, pieces)
    return [item for item in pieces if item]


def _parted(item: str, whole: str, phrases: Phrases, pieces: list[str]) -> None:
    """Add an item; if it does not stand in the whole text, its parts."""
    bare = item.strip(EDGES)
    if whole and squeezed(bare) in whole:
        pieces.append(bare)
        return
    parts = [part for part in _SEPARATOR.split(item) if part.strip(EDGES)]
    if len(parts) > 1:
        for part in parts:
            _parted(part, whole, phrases, pieces)
        return
    form = folded(bare)
    for match in phrases.joins.finditer(form.text):
        begin, end = match.span()
        if begin and end > begin:
            first, last = form.span(begin, end)
            one, other = bare[:first].strip(EDGES), bare[last:].strip(EDGES)
            if one and other and (not whole or (squeezed(one) in whole and squeezed(other) in whole)):
                pieces.append(one)
                _parted(other, whole, phrases, pieces)
                return
    pieces.append(bare)


def squeezed(text: str) -> str:
    """The plain form of a text without blanks, as mentions are compared: texts may be tokenised."""
    return plain(text).replace(" ", "")
