"""One of a closed list of names, in any script and with the words of any language."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

import regex

from medtasks_ext.answers.tolerant.folding import plain
from medtasks_ext.answers.tolerant.phrases import UNSPACED, Phrases, inflected, read_plainly, word
from medtasks_ext.answers.tolerant.reply import NOTHING, Extraction, Reply
from medtasks_ext.answers.tolerant.signs import emphasised, ends_member, last_sentence, members

_MARKS = r"[\s*_`\"'“”‘’«»「」『』\[\](){}<>$\\#•>–—:¡¿\-]"
_JOINT = regex.compile(r"[\s,/|&*_`\"'’」』)\]\-–—~〜]*")
#: between a verb of being that is also a name and the name that is said
_SET_OFF = regex.compile(r"\s*[:*_`\"'“‘「『«]+\s*")
_LEADING = regex.compile(rf"{_MARKS}*")
_LINE_END = regex.compile(r"[*_`\"'.。!,\s]*(?:\n|$)")
_ONE_LINE_END = regex.compile(r"[*_`\"'”’」』»)\].!]*[^\S\n]*(?:\n|$)")
_CLAUSE_STOP = regex.compile(r"[,、;:]")
_MARKED = regex.compile(r"[\s*_`\"'”’」』»)\].。!]+")
_LONG_UNSPACED = regex.compile(rf"[{UNSPACED}]{{2,}}")
#: mentions that are looked at, from the last one on: a model in a loop writes thousands
_MOST = 400
_HEADED = regex.compile(r"(?:^|\n)[^:\n]{1,40}:[\s*_`\"'“‘「『«(\[]*")


class _Named(NamedTuple):
    """A name at a place; None where it is not clear which."""

    name: str | None
    start: int
    end: int


def _ends_line(text: str, place: int) -> bool:
    return bool(_ONE_LINE_END.match(text, place))


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
            rf"(?![{UNSPACED}\p{{Hangul}}])|(?<=\p{{Han}}|\p{{Katakana}}|ー)(?=\p{{Hiragana}})"
            rf"|{self.phrases.skipped.pattern}|{self.phrases.either.pattern}"
        )

    @cached_property
    def _inflected(self) -> dict[str, regex.Pattern[str]]:
        """Name -> it with other endings, where these are no other name's."""
        return inflected(self.names)

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

        reached = [
            item
            for item in self.phrases.reached(text, at)
            if not self.phrases.is_set_aside(text, item.what.start, item.what.end)
        ]
        if chosen := self.phrases.chosen(text, reached):
            return said(chosen.what, "announced")
        if marked := self._marked(text):
            return marked
        leading = _LEADING.match(text)
        first = self._at(text, leading.end() if leading else 0)
        if first and self.phrases.is_set_aside(text, first.start, first.end):
            first = None
        weak = [item for item in reached if item.sort < 3]
        if first and (not weak or _LINE_END.match(text, first.end)):
            return said(first, "the reply begins with it")
        if weak:
            return said(weak[-1].what, "said to be the answer")
        named: dict[str | None, _Named] = {}
        for match in deque(self._name.finditer(text), maxlen=_MOST):
            item = self._at(text, match.start())
            if item and not self.phrases.is_set_aside(text, item.start, item.end):
                named[item.name] = item
        if len(named) > 1:
            begin = last_sentence(text)
            stops = [match.end() for match in _CLAUSE_STOP.finditer(text, begin, len(text) - 1)]
            stops += [match.end() for match in self.phrases.but.finditer(text, begin)]
            for place in (begin, *sorted(stops)[-1:]):
                last = {name: item for name, item in named.items() if item.start >= place}
                ends = [item for item in last.values() if self._ends(text, item)]
                if len(last) == 1 and None not in last and ends:
                    return said(ends[0], "the reply ends with it")
            return Extraction(None, None, "ambiguous: several names")
        if named:
            return said(next(iter(named.values())), "the only name")
        others = {
            name: match.span()
            for name, pattern in self._inflected.items()
            for match in pattern.finditer(text)
            if not self.phrases.is_set_aside(text, *match.span())
        }
        why = "the only name, with another ending"
        if not others:  # a noun follows without a blank, as in `轻度贫血`
            why = "the only name"
            others = {
                plain(match[0]): match.span()
                for match in self._name.finditer(text)
                if _LONG_UNSPACED.fullmatch(match[0]) and not self.phrases.is_set_aside(text, *match.span())
            }
        if len({self.names[name] for name in others}) != 1:
            return NOTHING
        name, span = next(iter(others.items()))
        return Extraction(self.names[name], span, why)

    def _ends(self, text: str, item: _Named) -> bool:
        """Whether nothing but words that say nothing follows a name."""
        return self.phrases.past_skipped(text, item.end, _MARKED) >= len(text)

    def _marked(self, text: str) -> Extraction | None:
        """The one name that is a member of an object, stands behind a heading, or is set in bold."""
        signs: tuple[tuple[str, list[_Named]], ...] = (
            ("a member of JSON", self._whole(text, members(text), ends_member)),
            ("behind a colon", self._whole(text, self._headed(text), _ends_line)),
            (
                "set in bold",
                [
                    item
                    for stretch in emphasised(text)
                    if (item := self._at(text, stretch.start)) and stretch.is_filled(text, item.end)
                ],
            ),
        )
        for why, items in signs:
            names = {item.name for item in items}
            if len(names) == 1 and None not in names:
                return Extraction(items[-1].name, (items[-1].start, items[-1].end), why)
        return None

    def _whole(self, text: str, places: Iterable[int], ends: Callable[[str, int], bool]) -> list[_Named]:
        return [item for place in places if (item := self._at(text, place)) and ends(text, item.end)]

    @staticmethod
    def _headed(text: str) -> Iterator[int]:
        """Behind the colons of lines that are a heading and what it heads."""
        return (match.end() for match in _HEADED.finditer(text))

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
