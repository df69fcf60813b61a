"""Where a list or a text of an answer stands in a reply, and its items, with the words of any language."""

from __future__ import annotations

import regex

from medtasks_ext.answers.tolerant.folding import folded, plain
from medtasks_ext.answers.tolerant.phrases import Phrases, word
from medtasks_ext.answers.tolerant.reply import Reply, Span

#: before an announcement in its line, and between it and what it announces
_HEAD = r"[\s*_#>\-•]*"
_TAIL = r"[\s*_]*[:=][\s*_]*"
#: between items, in any script
_SEPARATOR = regex.compile(r"[\n,;,，、；،؛፣፤|•·]+|\s[-–—]\s")
#: words of an announcement before its noun, such as `the final`
_LEAD_WORDS = 4
EDGES = " \t\r\n*_`\"'“”‘’«»「」『』[](){}<>#.。।።,，、;；،፣፤:!-–—•·"


def _heading(phrases: Phrases, others: tuple[str, ...]) -> regex.Pattern[str]:
    """A line, or the beginning of one, that says that the answer follows."""
    nouns = "|".join(word(noun, inside=False) for noun in (*phrases.words.answer, *others))
    filler = rf"(?:(?:{phrases.skipped.pattern}|{phrases.right.pattern})[\s*_]*){{0,{_LEAD_WORDS}}}"
    return regex.compile(
        rf"(?:^|\n){_HEAD}{filler}(?:{nouns})[\s*_]*{filler}(?:{_TAIL}|[ \t*_]*(?=\n))", regex.IGNORECASE
    )


def announced(reply: Reply, phrases: Phrases, *, others: tuple[str, ...] = ()) -> Span:
    """What follows the last line of a reply that announces an answer; without one the reply.

    Args:
        reply: to be read.
        phrases: of its language.
        others: words that announce besides those of the language.
    """
    form = folded(reply.part)
    matches = [
        match for match in _heading(phrases, others).finditer(form.text) if form.text[match.end() :].strip()
    ]
    begin = reply.begin + form.places[matches[-1].end()] if matches else reply.begin
    return begin, reply.end


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
