"""One of a closed list of names, in any script and with the words of any language."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

import regex

from medtasks_ext.answers.tolerant.folding import plain
from medtasks_ext.answers.tolerant.phrases import UNSPACED, Phrases, read_plainly, word
from medtasks_ext.answers.tolerant.reply import NOTHING, Extraction, Reply

_MARKS = r"[\s*_`\"'“”‘’«»「」『』\[\](){}<>$\\#•>–—:¡¿\-]"
_JOINT = regex.compile(r"[\s,/|&*_`\"'’」』)\]\-–—~〜]*")
#: between a verb of being that is also a name and the name that is said
_SET_OFF = regex.compile(r"\s*[:*_`\"'“‘「『«]+\s*")
_LEADING = regex.compile(rf"{_MARKS}*")
_LINE_END = regex.compile(r"[*_`\"'.。!,\s]*(?:\n|$)")


class _Named(NamedTuple):
    """A name at a place; None where it is not clear which."""

    name: str | None
    start: int
    end: int


def _past(text: str, place: int) -> int:
    match = _JOINT.match(text, place)
    return match.end() if match else place


class NameReader:
    """Reads which name a reply gives.

    Args:
        names: spelling -> name; spellings in any form.
        phrases: of the reply's language.
    """

    def __init__(self, names: Mapping[str, str], phrases: Phrases) -> None:
        self.names = {plain(spelling): name for spelling, name in names.items()}
        self.phrases = phrases

    @cached_property
    def _name(self) -> regex.Pattern[str]:
        ordered = sorted(self.names, key=len, reverse=True)
        return regex.compile("|".join(map(word, ordered)))

    @cached_property
    def _behind(self) -> regex.Pattern[str]:
        """What may follow a name of a script without blanks: no letter, or a word that says nothing."""
        return regex.compile(
            rf"(?![{UNSPACED}\p{{Hangul}}])|{self.phrases.skipped.pattern}|{self.phrases.either.pattern}"
        )

    def read(self, reply: Reply) -> Extraction:
        """The name.

        Signs in their order: a box or an announcement with a colon; the name with which the reply begins;
        another announcement; the one name that the reply has at all.
        """
        return read_plainly(reply, lambda _, form: self._found(form.text))

    def _found(self, text: str) -> Extraction:
        def at(place: int, _colon: bool) -> _Named | None:
            return self._at(text, place)

        def said(item: _Named, why: str) -> Extraction:
            return Extraction(item.name, (item.start, item.end), why if item.name else "ambiguous: two names")

        reached = self.phrases.reached(text, at)
        if chosen := self.phrases.chosen(text, reached):
            return said(chosen.what, "announced")
        leading = _LEADING.match(text)
        first = self._at(text, leading.end() if leading else 0)
        weak = [item for item in reached if item.sort < 3]
        if first and (not weak or _LINE_END.match(text, first.end)):
            return said(first, "the reply begins with it")
        if weak:
            return said(weak[-1].what, "said to be the answer")
        named: dict[str | None, _Named] = {}
        for match in self._name.finditer(text):
            if item := self._at(text, match.start()):
                named[item.name] = item
        if len(named) > 1:
            return Extraction(None, None, "ambiguous: several names")
        return next((said(item, "the only name") for item in named.values()), NOTHING)

    def _at(self, text: str, place: int) -> _Named | None:
        """The name at a place; without it where another one is joined to it."""
        match = self._name.match(text, place)
        if not match or not self._behind.match(text, match.end()):
            return None
        name, end = self.names[plain(match[0])], match.end()
        apart = _SET_OFF.match(text, end)
        if apart and self._name.match(text, apart.end()) and self.phrases.skipped.fullmatch(match[0]):
            return None  # a verb of being, as in `答案是：否`
        between = _past(text, end)
        joint = self.phrases.either.match(text, between) or self.phrases.joins.match(text, between)
        behind = _past(text, joint.end()) if joint else between
        other = self._name.match(text, behind) if behind > end else None
        if other and self.names[plain(other[0])] != name and (joint or "," not in text[end:behind]):
            return _Named(None, place, other.end())
        return _Named(name, place, end)
