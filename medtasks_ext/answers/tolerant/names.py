"""One of a closed list of names, in any script and with the words of any language."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import regex

from medtasks_ext.answers.tolerant.folding import folded, plain
from medtasks_ext.answers.tolerant.markers import end_of_answer
from medtasks_ext.answers.tolerant.phrases import UNSPACED, Phrases, word
from medtasks_ext.answers.tolerant.reply import LONGEST, NOTHING, Found, Reply

_MARKS = r"[\s*_`\"'“”‘’«»「」『』\[\](){}<>$\\#•>–—:¡¿\-]"
_JOINT = regex.compile(r"[\s,/|&*_`\"'’」』)\]\-–—~〜]*")


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
        return regex.compile(rf"(?![{UNSPACED}\p{{Hangul}}])|{self.phrases.skipped.pattern}|{self.phrases.either.pattern}")

    def read(self, reply: Reply) -> Found:
        """The name.

        Signs in their order: a box or an announcement with a colon; the name with which the reply begins;
        another announcement; the one name that the reply has at all.
        """
        begin, end = reply.begin, end_of_answer(reply)
        begin = begin if end - begin <= LONGEST else end - LONGEST
        if begin >= end:
            return Found(None, None, "the reply is empty")
        form = folded(reply.text[begin:end])
        found = self._found(form.text)
        if found.span is None:
            return found
        return found._replace(span=(begin + form.places[found.span[0]], begin + form.places[found.span[1]]))

    def _found(self, text: str) -> Found:
        def at(place: int, _colon: bool) -> tuple[str | None, int, int] | None:
            return self._at(text, place)

        def said(item: object, why: str) -> Found:
            name, start, end = item  # type: ignore[misc]
            return Found(name, (start, end), why if name else "ambiguous: two names")

        reached = self.phrases.reached(text, at)
        if item := self.phrases.chosen(text, reached):
            return said(item.what, "announced")
        place = regex.compile(rf"{_MARKS}*").match(text).end()  # type: ignore[union-attr]
        first = self._at(text, place)
        weak = [item for item in reached if item.sort < 3]
        if first and (not weak or regex.compile(r"[*_`\"'.。!,\s]*(?:\n|$)").match(text, first[2])):
            return said(first, "the reply begins with it")
        if weak:
            return said(weak[-1].what, "said to be the answer")
        named = {}
        for match in self._name.finditer(text):
            if item := self._at(text, match.start()):
                named[item[0]] = item
        if len(named) > 1:
            return Found(None, None, "ambiguous: several names")
        return next((said(item, "the only name") for item in named.values()), NOTHING)

    def _at(self, text: str, place: int) -> tuple[str | None, int, int] | None:
        """(name, start, end) at a place; None for the name where another one is joined to it."""
        match = self._name.match(text, place)
        if not match or not self._behind.match(text, match.end()):
            return None
        name = self.names[plain(match[0])]
        end = match.end()
        between = _JOINT.match(text, end).end()  # type: ignore[union-attr]
        joint = self.phrases.either.match(text, between) or self.phrases.joins.match(text, between)
        behind = _JOINT.match(text, joint.end()).end() if joint else between  # type: ignore[union-attr]
        other = self._name.match(text, behind) if behind > end else None
        if other and self.names[plain(other[0])] != name and (joint or "," not in text[end:behind]):
            return None, place, other.end()
        return name, place, end
