"""Where a reply announces its answer, whatever the shape of the answer is.

An announcement is an unbroken run of words of `marks.yaml` that has a word for an answer (or one for an
option that is called right) and a verb of being, a colon, a dash or a line end; or the answer and such a run
behind it. The last one counts; of two that differ none does, unless words of correction stand between them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, NamedTuple

import regex

from medtasks_ext.answers.formats import Reading, Span, reading
from medtasks_ext.answers.reader.words import (
    COMMON,
    NOTHING,
    UNCLOSED,
    Reply,
    Token,
    Words,
    key_of,
    plain,
    reply_of,
    tokens_of,
    words_of,
)  # fmt: skip

_RUN = frozenset({"answer", "verb", "option", "right", "is", "filler"})
_BOX = frozenset({"answer"})  # what a box begins
_ENDS = frozenset(".!?。…।؟")
#: set what follows apart from the words before it
_APART = frozenset(":=≈→–—->]")
_COMMAS = frozenset(",;、،؛")
_CLAUSE_ENDS = _ENDS | _COMMAS | frozenset(":–—")
#: marks that are not passed
_HARD = _CLAUSE_ENDS | frozenset("=≈→-/&+~%·・○×❌✗✘✖☒")
_DASHES = "-–—"
#: words of a run, what a line end counts for in it, and words from a denied answer to the one that is meant
_MOST, _LINE, _NEAR = 24, 8, 8
#: answers that are joined
_LONGEST_GROUP = 40
#: a question that a model asks itself after it has answered
_NEXT = regex.compile(r"\n[*#\s]{0,12}(?:[Qq]uestion|[Uu]ser|[Hh]uman|题目|问题|Q)\s*\d{0,3}[*]*\s*:")
#: of a response, in characters: a model in a loop writes more, and no next question is looked for behind it
_LONGEST = 20_000
_HAN, _KANA = regex.compile(r"\p{Han}"), regex.compile(r"[\p{Hiragana}\p{Hangul}]")
#: of what labels are said to mean, in tokens
_SHORT = 16
_SEVERAL = "ambiguous: several answers"
_EITHER = "ambiguous: one or the other"


class Found(NamedTuple):
    """An answer at a token."""

    value: Any  # what it is; a tuple of values that are written together
    end: int  # the token behind it
    loose: bool = False  # whether it counts only behind a mark and before the end of its clause: `d` for D
    word: bool = False  # whether the end of its clause, or a word of `marks.yaml`, must stand behind it
    text: bool = False  # whether it is the text of an option

    @property
    def values(self) -> tuple[Any, ...]:
        return self.value if isinstance(self.value, tuple) else (self.value,)


#: tokens and a place -> the answer there
Finder = Callable[[Sequence[Token], int], "Found | None"]


class Said(NamedTuple):
    """An announcement, or answers that are joined: its values (none: not clear which) and its tokens."""

    values: tuple[Any, ...]
    begin: int
    end: int
    why: str = ""


@dataclass(frozen=True)
class Reader:
    """Finds the announced answer of a reply."""

    find: Finder
    words: Words
    #: plain form -> the answer of a reply that is this and nothing else, marks at its ends included
    whole: Mapping[str, Any] = field(default_factory=dict)
    most: int = 0  # how many there are to choose from where several may be right: a tuple is then read
    opens: bool = False  # whether an answer may open the reply, before a mark, as `yes` does
    numbers: bool = False  # whether answers are numbers: what is called right beside one is another thing

    def read(self, response: str) -> Reading:
        """The one answer, or the tuple of several."""
        text, begin, end, unclosed = reply_of(response)
        if (whole := self.whole.get(plain(text[begin:end]))) is not None:
            return reading(whole, (begin, end), "the whole reply")
        asked = _NEXT.search(text, begin, min(end, begin + _LONGEST))
        if asked and text[begin : asked.start()].strip():
            end = asked.start()
        tokens = tokens_of(text, begin, end)
        # the words of Chinese for a reply with its characters, whatever the language of the task is
        chinese = ["zh"] if any(_HAN.match(token.text) for token in tokens) else []
        looked: _Reading | None = None
        for words in dict.fromkeys((self.words, *map(words_of, [COMMON, *chinese]))):
            looked = _Reading(tokens, self, words, looked)
            if said := looked.counts():
                break
        else:
            return UNCLOSED if unclosed else NOTHING
        span = (tokens[said.begin].begin, tokens[max(said.begin, said.end - 1)].end)
        if not said.values:
            return Reading(None, False, span, said.why)
        return reading(said.values if self.most else said.values[0], span, said.why)


@dataclass
class _Run:
    """An unbroken run of words that may announce."""

    void: bool = False  # whether it is denied, or part of a condition
    heading: bool = False  # whether it begins its line
    numbers: bool = False  # as in `Reader`
    seen: frozenset[str] = frozenset()  # classes of its words
    size: int = 0  # how many they are
    verb: bool = False  # whether a verb for choosing ends it
    apart: bool = False  # whether a mark sets the answer apart from it

    def add(self, classes: frozenset[str]) -> None:
        passes = bool(classes & {"filler", "option"})
        self.seen, self.size = self.seen | classes, self.size + 1
        self.verb, self.apart = "verb" in classes or (self.verb and passes), self.apart and passes

    @property
    def noun(self) -> bool:
        return "answer" in self.seen

    @property
    def named(self) -> bool:
        """Whether it has a word for an answer, or one for an option that is called right."""
        return self.noun or (not self.numbers and "right" in self.seen and bool(self.seen & {"option", "is"}))

    @property
    def announces(self) -> bool:
        return self.size <= _MOST and (self.verb or (self.named and (self.apart or "is" in self.seen)))


class _Reading:
    def __init__(self, tokens: Sequence[Token], reader: Reader, words: Words, first: _Reading | None) -> None:
        self._tokens, self._reader, self._words, self._boxes = tokens, reader, words, first is None
        self._end = len(tokens)
        find = partial(reader.find, tokens)
        self._find = cache(lambda place: find(place) if place < self._end else None)
        self._classes, self._denial = cache(partial(words.at, tokens)), cache(self._is_denial)
        # place -> the first one from it on where a line or a sentence ends, and that no mark of dress has
        looks = (lambda at: tokens[at].kind == "line", self._ends_sentence, lambda at: not self._is_soft(at))
        self._ends: list[list[int]] = first._ends if first else [self._next(look) for look in looks]
        self._line_end, self._sentence_ends, self._soft_ends = self._ends
        self._refused = 0  # where the answers end that no announcement follows
        self._waits: list[int] = []
        self._taken = -1  # the last place of a word that takes an answer back
        self._lists: set[Any] = set()  # answers with which lists of the options begin
        self._key: Said | None = None
        named = (i for i in range(self._end - 1, -1, -1) if self._classes(i)[0] & {"answer", "right"})
        self._last_named = next(named, -1)

    def _text(self, place: int) -> str:
        return self._tokens[place].text if place < self._end else "\n"

    def _is_soft(self, place: int) -> bool:
        """Whether a token is passed: emphasis, quotes, brackets, TeX, pictures."""
        token = self._tokens[place]
        return token.kind == "tex" or (token.kind == "mark" and token.text not in _HARD)

    def _pass(self, place: int, more: str = "") -> int:
        place = self._soft_ends[min(place, self._end)]
        while more and place < self._end and self._text(place) in more:
            place = self._soft_ends[place + 1]
        return place

    def _ends_here(self, place: int) -> bool:
        return self._text(self._pass(place)) in _CLAUSE_ENDS | {"\n"}

    def _line_ends(self, place: int) -> bool:
        return self._text(self._pass(place, ".")) == "\n"

    def _begins_line(self, place: int) -> bool:
        while place and (self._is_soft(place - 1) or self._text(place - 1) in _DASHES):
            place -= 1
        return not place or self._text(place - 1) == "\n"

    def _ends_sentence(self, place: int) -> bool:
        """Whether a line or a sentence ends at a token: not at the full stop of `E.coli`."""
        token, following = self._tokens[place], self._tokens[place + 1 : place + 2]
        if token.text == "." and following and following[0].begin == token.end:
            return not following[0].is_word
        return token.kind == "line" or token.text in _ENDS

    def _next(self, is_end: Callable[[int], bool]) -> list[int]:
        ends = [self._end] * (self._end + 2)
        for place in range(self._end - 1, -1, -1):
            ends[place] = place if is_end(place) else ends[place + 1]
        return ends

    def _at(self, place: int, *, apart: bool) -> Found | None:
        found = self._find(place)
        if not found or (
            found.loose and not (apart and self._ends_here(found.end)) and not self._has_bracket(found.end)
        ):
            return None
        if found.word:
            following = self._pass(found.end)
            if not self._ends_here(following) and not self._classes(following)[0]:
                return None
            # `是` is a verb of being before another label
            other = self._find(following)
            if other and other.word and "is" in self._classes(place)[0]:
                return self._at(following, apart=apart)
        return found

    def _has_bracket(self, end: int) -> bool:
        """Whether one closes behind a small label: `b) text`, not `a) text b) text` or `(see b)`."""
        if self._text(end) != ")" or self._tokens[end].begin > self._tokens[end - 1].end:
            return False
        before = [token.text for token in self._tokens[max(0, end - 1 - _NEAR) : end - 1]]
        others = range(end + 1, min(self._line_end[end], end + _LONGEST_GROUP))
        several = any(self._text(place + 1) == ")" and self._find(place) for place in others)
        return "(" not in before and not several

    def _group(self, place: int, *, apart: bool) -> Said | None:
        """The answer at a token, and those joined to it or on lines below; no values where these are all."""
        joined: list[tuple[Found, int, bool]] = []  # with the place behind, and a comma before
        found, comma, alternative, either = self._at(place, apart=apart), False, False, False
        while found and len(joined) < _LONGEST_GROUP:
            joined.append((found, self._behind(found), comma))
            either |= alternative
            found, comma, alternative = self._joint(joined[-1][1], apart=apart)
        if not joined:
            return None
        # behind a comma something else may be said of another answer: `B, A is wrong`
        while not self._may_close(joined[-1][1]) and (
            commas := [i for i, one in enumerate(joined) if one[2]]
        ):
            del joined[commas[-1] :]
        size, end = len(joined), joined[-1][1]
        if self._reader.most and self._begins_line(place) and self._line_ends(end):
            while (item := self._below(joined[-1][1])) and item[1] and len(joined) < _LONGEST_GROUP:
                joined.append((item[0], self._behind(item[0]), False))
        distinct = tuple(dict.fromkeys(value for found, *_ in joined for value in found.values))
        if size < len(joined) and len(distinct) == self._reader.most:
            distinct = ()
        return Said(distinct, place, joined[-1][1], _EITHER if either and len(distinct) > 1 else "")

    def _may_close(self, place: int) -> bool:
        """Whether a group may end here: not before a word that says something of its last answer."""
        if self._ends_here(place):
            return True
        classes, behind = self._classes(self._pass(place))
        if "option" in classes:
            classes, _ = self._classes(self._pass(behind))
        # in Japanese and Korean a denial behind the last one is of all
        return bool(self._reader.most) and ("not" not in classes or bool(_KANA.match(self._text(place))))

    def _joint(self, begin: int, *, apart: bool) -> tuple[Found | None, bool, bool]:
        """The next answer of a group, whether a comma stands before it, and whether it is an alternative."""
        place, comma, alternative, joined = begin, False, False, False
        while place < self._end:
            text, (classes, end) = self._tokens[place].text, self._classes(place)
            if (joined or self._reader.most) and self._at(place, apart=comma):
                found = self._at(place, apart=apart and comma) if place > begin else None
                return found, comma, alternative
            if text in _COMMAS:
                comma = joined = True
            elif text in "/&+~-–—·・" or classes & {"and", "or"}:
                alternative |= text in "/~-–" or ("or" in classes and "and" not in classes)
                joined = True
            elif not (self._is_soft(place) or "option" in classes or (joined and "filler" in classes)):
                break
            place = end
        return None, comma, alternative

    def _beside(self, found: Found) -> Found | None:
        """The text behind a label, or the label behind a text: `B) text`."""
        other = self._find(self._pass(found.end, f".:{_DASHES}"))
        return other if other and other.text != found.text else None

    def _behind(self, found: Found) -> int:
        """The token behind an answer and its own text or label."""
        other = self._beside(found)
        return other.end if other and other.value == found.value else found.end

    def _below(self, place: int) -> tuple[Found, bool] | None:
        """The answer with which the next line that is not blank begins, and whether it is all of the line."""
        place = self._pass(self._line_end[min(place, self._end)], f"\n{_DASHES}")
        found = self._at(place, apart=True)
        if not found:
            return None
        alone = self._line_ends(self._behind(found))
        return (found, alone) if alone or not (found.text or found.word) else None

    def _is_listed(self, place: int, group: Said) -> bool:
        """Whether an answer begins a list: lines begin with it and others, or the next label stands below."""
        item = self._below(group.end)
        if not item or set(item[0].values) & set(group.values):
            return False
        near = self._text(self._line_end[group.end] + 1) != "\n"
        if self._begins_line(place):
            return near or item[1]
        follows = isinstance(item[0].value, int) and item[0].value == group.values[-1] + 1
        if follows and (group.end > place + 1 or self._text(group.end) in ".:)"):
            return item[1] or bool(self._reader.most and near and self._text(item[0].end) in ".:)")
        return item[1] and bool(self._reader.most) and near

    def _lists_options(self, place: int, values: Sequence[Any]) -> bool:
        """Whether another line is another answer, or the next one begins with it where several are asked."""
        near = bool(self._reader.most) and self._text(place + 1) != "\n"
        while place < self._end:
            item = self._below(place)
            if item and (item[1] or near) and not set(item[0].values) & set(values):
                return True
            place, near = self._line_end[place + 1], False
        return False

    def counts(self) -> Said | None:
        """The announcement that counts; one without values where it is not clear which; None without any."""
        if whole := self._whole(0, self._end):
            return whole
        said = self._said() or list(filter(None, [self._opening()]))
        if not said:
            return self._key
        current, unclear = said[0], not said[0].values
        for following in said[1:]:
            if following.values != current.values or not following.values:
                wait = bisect_left(self._waits, current.end)
                waits = wait < len(self._waits) and self._waits[wait] <= following.begin
                denied = self._denial(self._sentence_ends[current.end])
                unclear = not following.values or not (waits or denied)
            current = following
        if unclear:
            return current._replace(values=(), why=_SEVERAL if current.values else current.why)
        if self._taken >= current.end or self._denial(self._sentence_ends[current.end]):
            return current._replace(values=(), why="the answer is taken back")
        return current

    def _is_denial(self, place: int) -> bool:
        """Whether the next sentence denies what stands before it: `No, that is not right.`"""
        while place < self._end and (self._ends_sentence(place) or self._is_soft(place)):
            place += 1
        words: list[frozenset[str]] = []
        while place < self._end and not self._ends_sentence(place) and self._text(place) not in ";:–—":
            classes, end = self._classes(place)
            if "because" in classes:
                break
            if classes and len(words) < _NEAR:
                words.append(classes)
            elif not (self._is_soft(place) or self._text(place) in _COMMAS):
                return False
            place = end
        if words and "not" in words[0]:
            words = words[1:]
        denied = any("not" in classes for classes in words)
        return denied and "that" in words[0] and bool(words[-1] & {"not", "right"})

    def _whole(self, place: int, end: int) -> Said | None:
        """The answer that a stretch is, whatever words for an answer stand around it."""
        size, label, named, other = 0, False, False, False
        while place < end and size < _MOST:
            if group := self._group(place, apart=True):
                if group.end <= end and self._is_rest(group.end, end):
                    if other or (label and not named):  # `A no.`
                        return Said((), place, group.end, _SEVERAL)
                    return self._of(group, "the whole reply")
                if self._reader.most:
                    break
                label, other = True, named  # or a word that is written as one, as the first of `A resposta`
            classes, following = self._classes(place)
            named |= bool(classes & {"answer", "verb", "option", "right"})
            if self._is_soft(place) or self._text(place) in ":=-–—" or classes & _RUN:
                place, size = following, size + 1
            else:
                break
        return None

    def _is_rest(self, place: int, end: int) -> bool:
        while place < end:
            classes, following = self._classes(place)
            is_mark = self._is_soft(place) or self._text(place) in ".。!:"
            if not (is_mark or classes & {"is", "filler", "option"}):
                return False
            place = following
        return True

    def _of(self, group: Said, why: str) -> Said:
        found = self._find(group.begin)
        other = self._beside(found) if found else None
        # a label and the text of another option behind it: `B) text of C`
        differs = found and other and other.value != found.value and self._ends_here(other.end)
        several = not self._reader.most and len(group.values) > 1
        if group.why or not group.values or several or differs:
            return group._replace(values=(), why=group.why or _SEVERAL)
        return group._replace(why=why)

    def _opening(self) -> Said | None:
        """A first line that is the answer, or an answer that opens the reply."""
        begin = self._pass(0, "\n")  # under a fence
        line, opens = self._line_end[begin], self._reader.opens
        said = self._whole(begin, line)
        found = self._at(said.begin if said else begin, apart=True)
        alone = said and found and (opens or not found.text) and not self._lists_options(line, said.values)
        if said and (alone or not said.values):
            return said._replace(why="the first line")
        found = self._at(begin, apart=True)
        if not found or self._lists_options(line, found.values):
            return None
        behind = self._behind(found)
        if line == self._end <= found.end + _SHORT and not found.word and self._text(found.end) in ".):*":
            until = line  # `B. Ceftriaxone 1 g`
        elif not found.text and behind > found.end and self._ends_here(behind):
            item = self._below(behind)  # `A. fever — no`, and the other options so on lines below
            listed = item and item[0].value != found.value and self._behind(item[0]) > item[0].end
            until = self._end if listed else found.end
        elif opens and self._ends_here(found.end):
            until = self._sentence_ends[found.end]
        else:
            return None
        rest = range(found.end, until)
        others = (self._find(place) for place in rest)
        if any(other and other.value != found.value for other in others) or (
            not opens and any(self._classes(place)[0] & {"not", "if", "or"} for place in rest)
        ):
            return None
        if opens and any("refuse" in self._classes(place)[0] for place in range(found.end, line)):
            return None  # `No, I cannot answer this.`
        return self._of(Said(found.values, begin, behind), "the reply opens with it")

    def _said(self) -> list[Said]:
        said: list[Said] = []
        run: _Run | None = None
        denied = conditional = False
        line_begins = sentence_begins = True
        place, under = 0, -1
        while place < self._end:
            token = self._tokens[place]
            ready = run and (run.announces or self._is_named_alone(run, place))
            if run and ready and (group := self._group(place, apart=run.apart)):
                announced = self._announced(run, place, group)
                said += [announced] if announced else []
                conditional = conditional and not run.void
                place, run = announced.end if announced else group.end, None
                line_begins = sentence_begins = False
            elif token.kind == "box" and self._boxes:
                void = denied or conditional or bool(run and run.void) or under == place
                run = _Run(void=void, seen=_BOX, apart=True)
                place += 1
            elif token.kind == "line":
                if run and (run.apart or (run.heading and run.noun)):
                    run.apart, run.size = True, _LINE
                else:
                    run = None
                denied = conditional = False
                line_begins = sentence_begins = True
                place += 1
            elif token.kind in ("mark", "tex", "box"):
                if self._ends_sentence(place):
                    run, denied, conditional, sentence_begins = None, False, False, True
                elif token.text in _COMMAS:
                    run, denied = run if run and run.named and not run.void else None, False
                elif token.text in _APART:
                    if denied and token.text == ":":  # `the other options are not the answer:`
                        under = self._pass(self._pass(place + 1) + 1)
                    denied = denied and token.text == "]"
                    if run:
                        run.apart = run.named
                place += 1
            else:
                classes, end = self._classes(place)
                if "but" in classes:
                    denied, run = False, None if run and (run.void or not classes & _RUN) else run
                blocked = denied or conditional or (run and run.announces)
                if found := None if blocked else self._as_subject(place, run):
                    said.append(found)
                    run, end = None, found.end
                elif classes & {"wait", "rather"} and not (run and run.announces):
                    self._waits.append(place)
                    behind = bool(said) and self._pass(said[-1].end, f",;:{_DASHES}") == place
                    # it stands apart (`wait,`, not `wait for`) or is more than one word
                    apart = end > place + 1 or self._ends_here(end) or self._classes(end)[0] & {"wait", "not"}
                    if "wait" in classes and (sentence_begins or behind) and apart:
                        self._taken = place
                    run = None
                elif "if" in classes:
                    conditional, run = True, None
                elif "not" in classes:
                    if sentence_begins and self._text(end) in ",:":
                        self._waits.append(place)
                    elif run and run.named and not run.void and (meant := self._meant(place)):
                        said.append(meant)
                        end = meant.end
                    denied, run = True, None
                elif classes & _RUN:
                    if run is None:
                        run = _Run(denied or conditional, line_begins, self._reader.numbers)
                    run.void |= denied
                    run.add(classes)
                else:
                    run = None
                line_begins = sentence_begins = False
                place = end
        return said

    def _is_named_alone(self, run: _Run, place: int) -> bool:
        """Whether an answer that is called right ends its sentence: `правильный ответ Б.`"""
        found = self._find(place) if run.seen >= {"answer", "right"} else None
        if not found or found.loose:
            return False
        return self._text(self._pass(found.end)) in _ENDS | {"\n"}

    def _announced(self, run: _Run, place: int, group: Said) -> Said | None:
        """That of a group behind a run; None where it is denied, asked, conditional, or begins a list."""
        if not group.values:
            return None
        if self._is_key(group):
            self._key = Said((), place, group.end, "the labels are explained")
            return None
        asked = self._text(self._sentence_ends[group.end]) in "?؟"
        if run.void or asked or (run.apart and self._is_article(place, group.end)):
            return None
        begins = self._text(group.end) in ".:)" and not self._line_ends(group.end)
        if self._is_listed(place, group) or (begins and group.values[0] in self._lists):  # once more, and cut
            self._lists.add(group.values[0])
            return None
        following = self._pass(group.end)
        classes, behind = self._classes(following)
        if "not" in classes and "but" not in classes and self._find(self._pass(behind)):  # `B not A`
            classes = frozenset()
        for _ in range(_NEAR):
            if "not" in classes or not classes & {"is", "filler"}:
                break
            following = self._pass(behind)
            classes, behind = self._classes(following)
        if "not" in classes or "if" in classes:
            return self._meant(following) if "not" in classes else None
        return self._of(group, "announced")

    def _is_key(self, group: Said) -> bool:
        """Whether the labels are explained: `A for yes, B for no`."""
        begin = self._pass(group.end)
        ends = self._text(begin) in _ENDS | _COMMAS | {"\n"}
        if ends or self._reader.most or self._classes(begin)[0] & {"is", "not"}:
            return False
        means, comma = key_of(self._text(begin)), False
        for index in range(begin + 1, min(self._end, begin + _SHORT)):
            token = self._tokens[index]
            if token.text in _ENDS and self._ends_sentence(index):
                return False
            found = self._find(index) if comma else None
            if found and not set(found.values) & set(group.values):
                following = self._pass(found.end)
                return key_of(self._text(following)) == means
            comma = token.text in _COMMAS or token.kind == "line" or "and" in self._classes(index)[0]
        return False

    def _is_article(self, place: int, end: int) -> bool:
        """Whether a label that is a word of the language begins a sentence: `Answer: A patient with`."""
        found = self._find(place)
        classes, following = self._classes(place)
        if not found or found.text or found.word or end > found.end or not classes:
            return False
        goes_on = following < self._end and self._tokens[following].is_word
        return goes_on and not self._classes(following)[0] & {"is", "because", "and", "or", "not", "if"}

    def _meant(self, place: int) -> Said | None:
        """The answer behind a denied one: `not D but A`, `aではなくd`."""
        turned = False
        for _ in range(_NEAR * 2):
            if place >= self._end or self._ends_sentence(place):
                return None
            classes, end = self._classes(place)
            found, box = self._find(place), self._tokens[place].kind == "box"
            if turned and (group := self._group(place, apart=False)):
                return self._of(group, "announced")
            if "but" in classes:
                turned = True
            elif turned and not (classes & _RUN or box or ("not" not in classes and self._is_soft(place))):
                turned = self._text(place) == ","
            elif found:
                end = self._behind(found)
            place = end
        return None

    def _as_subject(self, place: int, before: _Run | None) -> Said | None:
        """An answer before its announcement: `B is the correct answer`, `ist B die richtige Antwort`."""
        found = self._find(place) if self._refused <= place < self._last_named else None
        if not found or found.loose or not (group := self._group(place, apart=False)):
            return None
        run, following = _Run(seen=before.seen & {"is"} if before else frozenset()), self._pass(group.end)
        if self._text(following) in "–—":
            run.seen, following = run.seen | {"is"}, following + 1
        while following < self._end and run.size < _NEAR:
            classes, behind = self._classes(following)
            if not self._is_soft(following):
                if not classes & _RUN or ("is" not in run.seen and not classes & {"is", "filler"}):
                    break
                run.add(classes)
            following = behind
        named = run.noun
        if "right" in run.seen:
            named |= "option" in run.seen and not self._reader.numbers
            named |= bool(before and before.seen & {"answer", "option"} and self._ends_here(following))
        classes, _ = self._classes(following)
        asked = self._text(self._sentence_ends[following]) in "?؟"
        if asked or classes & {"not", "if"} or not (named and "is" in run.seen):
            self._refused = group.end
            return None
        return self._of(group, "said to be the answer")._replace(end=following)


def part_announced(reply: Reply, words: Words) -> Span:
    """What follows the last line that announces an answer, for lists and texts; else the reply.

    A word for an answer announces with a colon behind it, or as a heading of its own line.
    """
    tokens = tokens_of(reply.text, reply.begin, reply.end)
    begin, place = reply.begin, 0
    run: _Run | None = _Run()  # None: other words stand on the line
    while place < len(tokens):
        token, end = tokens[place], place + 1
        if run and run.noun and run.apart and not (token.kind == "line" or token.text in "*_`#"):
            begin, run = token.begin, _Run()
        if token.kind == "line":
            run = run if run and run.noun else _Run()
            run.apart = run.noun
        elif token.kind == "box":
            run = _Run(seen=_BOX, apart=True)
        elif token.kind in ("mark", "tex"):
            if run and token.text in ":=":
                run.apart = run.noun
            elif run and token.text not in "*_`#>[]":
                run = _Run()
        else:
            classes, end = words.at(tokens, place)
            following = tokens[place + 1].text if place + 1 < len(tokens) else ""
            if run and classes & _RUN:
                run.add(classes)
            elif not (run and not run.size and token.kind == "number" and following in ".)、"):  # a bullet
                run = None
        place = end
    return begin, reply.end
