"""Where a reply announces its answer, whatever the shape of the answer is.

An answer counts if it is announced, or if it is the whole reply. An announcement is an unbroken run of words
of `marks.yaml` that has a word for an answer (or a word for an option that is called right) and, between or
before those, a verb of being, a colon, a dash or a line end under a heading; or the answer followed by such
a run (`B is the correct answer`). Denials, other options and conditions before it in its clause announce
nothing. Words of correction take earlier announcements back; two that differ without such words are none.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import cache, cached_property, partial
from typing import Any, NamedTuple

import regex

from medtasks_ext.answers.reader.reply import NOTHING, UNCLOSED, Extraction, Reply, Span, until_question
from medtasks_ext.answers.reader.words import COMMON, Token, Words, tokens_of, words_of

_RUN = frozenset({"answer", "verb", "option", "right", "is", "filler"})
_ENDS = frozenset(".!?。…।؟")
#: marks that set what follows apart from the words before it
_APART = frozenset(":=≈→–—->]")
_COMMAS = frozenset(",;、،؛")
_CLAUSE_ENDS = _ENDS | _COMMAS | frozenset(":–—")
#: marks that are not passed
_HARD = _CLAUSE_ENDS | frozenset("=≈→-/&+~%·・○×❌✗✘✖☒")
#: words of a run, what a line end counts for in it, and words between a denied answer and the one that is
#: meant
_MOST, _LINE, _NEAR = 24, 8, 8
#: answers that are joined
_LONGEST_GROUP = 40
_HAN = regex.compile(r"\p{Han}")
#: of a reply that is a label and the words of its option, in tokens
_SHORT = 16


class Found(NamedTuple):
    """An answer at a token.

    Attributes:
        value: what it is; a tuple of values that are written together.
        end: the token behind it.
        loose: whether it counts only behind a mark and before the end of its clause: `d` for D.
        word: whether it is a word that needs the end of its clause, or a word of `marks.yaml`, behind it.
        text: whether it is the text of an option.
    """

    value: Any
    end: int
    loose: bool = False
    word: bool = False
    text: bool = False


#: tokens and a place -> the answer there
Finder = Callable[[Sequence[Token], int], "Found | None"]


class Said(NamedTuple):
    """An announcement: its values (None: not clear which) and its tokens."""

    values: tuple[Any, ...] | None
    begin: int
    end: int
    why: str


class Reader:
    """Finds the announced answer of a reply.

    Args:
        find: what is an answer at a place.
        words: of the language.
        several: whether an answer may have more than one value; it is then a tuple of them.
        opens: whether an answer may open the reply, before a mark, as `yes` does.
        subject: whether an answer may stand before its announcement (`B is the correct answer`), and whether
            what is called right is one (`correct is B`): not of numbers.
    """

    def __init__(
        self, find: Finder, words: Words, *, several: bool = False, opens: bool = False, subject: bool = True
    ) -> None:
        self._find, self._words, self._several = find, words, several
        self._opens, self._subject = opens, subject

    def read(self, reply: Reply) -> Extraction:
        """The one answer, or the tuple of several."""
        if reply.unclosed:
            return UNCLOSED
        if reply.begin >= reply.end:
            return Extraction(None, None, "the reply is empty")
        reply = until_question(reply)
        tokens = tokens_of(reply.text, reply.begin, reply.end)
        said = self.said(tokens)
        if said is None:
            return NOTHING
        span: Span = (tokens[said.begin].begin, tokens[max(said.begin, said.end - 1)].end)
        if said.values is None:
            return Extraction(None, span, said.why)
        return Extraction(said.values if self._several else said.values[0], span, said.why)

    def said(self, tokens: Sequence[Token]) -> Said | None:
        """The announcement that counts; None without any."""
        # the words of Chinese for a reply with its characters, whatever the language of the task is
        chinese = ["zh"] if any(_HAN.match(token.text) for token in tokens) else []
        for words in dict.fromkeys((self._words, *map(words_of, (COMMON, *chinese)))):
            reading = _Reading(tokens, partial(self._find, tokens), words, self._several)
            if said := reading.counts(opens=self._opens, subject=self._subject):
                return said
        return None


class _Run:
    """An unbroken run of words that may announce."""

    def __init__(
        self, *, denied: bool = False, conditional: bool = False, heading: bool = False, nouns: bool = False
    ) -> None:
        self.denied, self.conditional, self.heading, self.nouns = denied, conditional, heading, nouns
        self.noun = self.verb = self.option = self.right = self.joined = self.apart = False
        self.size = 0

    def add(self, classes: frozenset[str]) -> None:
        self.size += 1
        self.noun |= "answer" in classes
        self.verb = "verb" in classes or (self.verb and bool(classes & {"filler", "option"}))
        self.option |= "option" in classes
        self.right |= "right" in classes
        self.joined |= "is" in classes
        if not classes & {"filler", "option"}:
            self.apart = False

    @property
    def named(self) -> bool:
        """Whether it has a word for an answer, or for an option that is called right."""
        return self.noun or (not self.nouns and self.right and (self.option or self.joined))

    @property
    def announces(self) -> bool:
        """Whether an answer that follows is announced."""
        return self.size <= _MOST and (self.verb or (self.named and (self.joined or self.apart)))


class _Reading:
    """One reading of one reply."""

    def __init__(
        self, tokens: Sequence[Token], find: Callable[[int], Found | None], words: Words, several: bool
    ) -> None:
        self._tokens, self._words, self._several = tokens, words, several
        self._end = len(tokens)
        self._find = cache(lambda place: find(place) if place < self._end else None)
        self._classes = cache(self._classes_at)
        self._refused = 0  # where the answers end that no announcement follows
        self._waits: list[int] = []
        self._taken = -1  # the last place of a word that takes an answer back
        self._key: Said | None = None

    # ------------------------------------------------------------------ what stands at a token

    def _is_soft(self, place: int) -> bool:
        """Whether a token is passed: emphasis, quotes, brackets, TeX, pictures."""
        token = self._tokens[place]
        return token.kind == "tex" or (token.kind == "mark" and token.text not in _HARD)

    def _pass(self, place: int, more: str = "") -> int:
        place = self._soft_ends[min(place, self._end)]
        while more and place < self._end and self._tokens[place].text in more:
            place = self._soft_ends[place + 1]
        return place

    def _classes_at(self, place: int) -> tuple[frozenset[str], int]:
        if place >= self._end or self._tokens[place].kind not in ("word", "number"):
            return frozenset(), place + 1
        classes, end = self._words.at(self._tokens, place)
        return classes, max(end, place + 1)

    def _ends_here(self, place: int) -> bool:
        """Whether a sentence, a clause or a line ends at a token."""
        place = self._pass(place)
        if place >= self._end or self._tokens[place].kind == "line":
            return True
        return self._tokens[place].text in _CLAUSE_ENDS

    def _at(self, place: int, *, apart: bool) -> Found | None:
        """The answer at a token."""
        found = self._find(place)
        if not found or (found.loose and not (apart and self._ends_here(found.end))):
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

    # ------------------------------------------------------------------ one answer, or several that are
    # joined

    def _group(self, place: int, *, apart: bool) -> tuple[tuple[Any, ...], int, bool] | None:
        """Values joined by marks and words, where they end, and whether they are alternatives."""
        first = self._at(place, apart=apart)
        if first is None:
            return None
        values, either = [first], False
        ends, commas = [self._behind(first)], [False]
        listed = self._several and self._begins_line(place)
        while len(values) < _LONGEST_GROUP:
            joint, comma, alternative = self._joint(ends[-1], listed=listed)
            found = self._at(joint, apart=apart and comma) if joint > ends[-1] else None
            if found is None:
                break
            either |= alternative
            values.append(found)
            ends.append(self._behind(found))
            commas.append(comma)
        # behind a comma something else may be said of another answer: `B, A is wrong`
        while len(values) > 1 and any(commas) and not self._may_close(ends[-1]):
            last = max(index for index, comma in enumerate(commas) if comma)
            del values[last:], ends[last:], commas[last:]
        distinct = tuple(dict.fromkeys(value for found in values for value in _values(found)))
        return distinct, ends[-1], either and len(distinct) > 1

    def _may_close(self, place: int) -> bool:
        """Whether a group may end here: not before a word that says something of its last answer."""
        if self._ends_here(place):
            return True
        classes, behind = self._classes(self._pass(place))
        if "option" in classes:
            classes, _ = self._classes(self._pass(behind))
        return self._several and "not" not in classes

    def _begins_line(self, place: int) -> bool:
        while place and (self._is_soft(place - 1) or self._tokens[place - 1].text in "-–—"):
            place -= 1
        return not place or self._tokens[place - 1].kind == "line"

    def _joint(self, place: int, *, listed: bool) -> tuple[int, bool, bool]:
        """Where the next answer of a group may begin, whether a comma stands before it, and whether the two
        are alternatives; the place itself where nothing joins.

        Args:
            place: behind an answer.
            listed: whether answers stand on lines of their own.
        """
        begin, comma, alternative, joined = place, False, False, False
        while place < self._end:
            text, (classes, end) = self._tokens[place].text, self._classes(place)
            if (joined or self._several) and self._at(place, apart=comma):
                joined = True
                break
            if text in _COMMAS:
                comma = joined = True
                place += 1
            elif self._tokens[place].kind == "line" and listed and (item := self._listed(place)):
                comma = joined = True
                place = item
                break
            elif not joined and classes & {"option"}:
                place = end
            elif text in "/&+~-–—·・" or classes & {"and", "or"}:
                alternative |= text in "/~-–" or ("or" in classes and "and" not in classes)
                joined, place = True, end
            elif self._is_soft(place) or (joined and classes & {"filler", "option"}):
                place = end
            else:
                break
        return (place if joined else begin), comma, alternative

    def _listed(self, place: int) -> int | None:
        """Where a label stands that begins the next line and has nothing but its text on it."""
        while place < self._end and (
            self._tokens[place].kind == "line" or self._is_soft(place) or self._tokens[place].text in "-–—"
        ):
            place += 1
        found = self._at(place, apart=True)
        return place if found and not found.text and self._line_ends(self._behind(found)) else None

    def _behind(self, found: Found) -> int:
        """The token behind an answer and its own text, or its own label behind its text: `B) text`."""
        following = self._pass(found.end, ".:–—-")
        other = self._find(following)
        return other.end if other and other.value == found.value and other.text != found.text else found.end

    def _contradicts(self, place: int) -> bool:
        """Whether the text of another option stands alone behind a label: `B) text of C`."""
        found = self._find(place)
        following = self._pass(found.end, ".:–—-") if found else self._end
        other = self._find(following)
        return bool(
            found
            and other
            and other.value != found.value
            and other.text != found.text
            and self._ends_here(other.end)
        )

    def _line_ends(self, place: int) -> bool:
        place = self._pass(place, ".")
        return place >= self._end or self._tokens[place].kind == "line"

    # ------------------------------------------------------------------ announcements

    def counts(self, *, opens: bool, subject: bool) -> Said | None:
        """The announcement that counts; one without values where it is not clear which; None without any."""
        if whole := self._whole(0, self._end):
            return whole
        said = self._said(subject=subject)
        if not said:
            opening = self._opening(opens=opens)
            return self._taken_back(opening) if opening else self._key
        current, unclear = said[0], said[0].values is None
        for following in said[1:]:
            if following.values != current.values or following.values is None:
                wait = bisect_left(self._waits, current.end)
                waits = wait < len(self._waits) and self._waits[wait] <= following.begin
                unclear = following.values is None or not (waits or self._denies(current.end))
            current = following
        if unclear:
            return Said(None, current.begin, current.end, "ambiguous: several answers")
        return self._taken_back(current)

    def _taken_back(self, said: Said) -> Said:
        """An announcement, without its values where words of correction or a denial of it stand behind it."""
        if self._taken >= said.end or self._denies(said.end):
            return Said(None, said.begin, said.end, "the answer is taken back")
        return said

    def _denies(self, place: int) -> bool:
        """Whether the next sentence denies what stands before it: `No, that is not right.`"""
        place = self._sentence_ends[place]
        while place < self._end and (self._ends_sentence(place) or self._is_soft(place)):
            place += 1
        words: list[frozenset[str]] = []
        while place < self._end and not self._ends_sentence(place) and self._tokens[place].text not in ";:–—":
            classes, end = self._classes(place)
            if "because" in classes:
                break
            if classes and len(words) < _NEAR:
                words.append(classes)
            elif not (self._is_soft(place) or self._tokens[place].text in _COMMAS):
                return False
            place = end
        if words and "not" in words[0]:
            words = words[1:]
        denied = any("not" in classes for classes in words)
        return denied and "that" in words[0] and bool(words[-1] & {"not", "right"})

    @cached_property
    def _sentence_ends(self) -> list[int]:
        return self._next(self._ends_sentence)

    @cached_property
    def _soft_ends(self) -> list[int]:
        return self._next(lambda place: not self._is_soft(place))

    @cached_property
    def _last_named(self) -> int:
        named = (i for i in range(self._end - 1, -1, -1) if self._classes(i)[0] & {"answer", "right"})
        return next(named, -1)

    @cached_property
    def _line_end(self) -> list[int]:
        return self._next(lambda place: self._tokens[place].kind == "line")

    def _next(self, is_end: Callable[[int], bool]) -> list[int]:
        """Place -> the first place from it on that is an end, or the end of all."""
        ends = [self._end] * (self._end + 2)
        for place in range(self._end - 1, -1, -1):
            ends[place] = place if is_end(place) else ends[place + 1]
        return ends

    def _ends_sentence(self, place: int) -> bool:
        token = self._tokens[place]
        return token.kind == "line" or (token.text in _ENDS and not self._inside_word(place))

    def _whole(self, place: int, end: int) -> Said | None:
        """The answer that a stretch is, whatever words for an answer stand around it."""
        size, label, named = 0, False, False
        while place < end and size < _MOST:
            if group := self._group(place, apart=True):
                values, behind, _ = group
                if behind <= end and self._is_rest(behind, end):
                    values = () if label and not named else values  # `A no.`
                    return self._of(values, place, behind, "the whole reply")
                if self._several:
                    break
                label = True  # or a word that is written as one
            classes, following = self._classes(place)
            named |= bool(classes & {"answer", "verb", "option", "right"})
            if self._is_soft(place) or self._tokens[place].text in ":=-–—" or classes & _RUN:
                place, size = following, size + 1
            else:
                break
        return None

    def _is_rest(self, place: int, end: int) -> bool:
        """Whether nothing follows that says more."""
        while place < end:
            classes, following = self._classes(place)
            token = self._tokens[place]
            if not (self._is_soft(place) or token.text in ".。!！:" or classes & {"is", "filler", "option"}):
                return False
            place = following
        return True

    def _of(self, values: tuple[Any, ...], begin: int, end: int, why: str) -> Said:
        if not values or (len(values) > 1 and not self._several) or self._contradicts(begin):
            return Said(None, begin, end, "ambiguous: several answers")
        return Said(values, begin, end, why)

    def _opening(self, *, opens: bool) -> Said | None:
        """A first line that is the answer, or an answer that opens the reply."""
        begin = self._pass(0)
        while begin < self._end and self._tokens[begin].kind == "line":  # under a fence
            begin = self._pass(begin + 1)
        line = next((i for i in range(begin, self._end) if self._tokens[i].kind == "line"), self._end)
        if said := self._whole(begin, line):
            found = self._at(said.begin, apart=True)
            lists = found and self._lists_options(line, said.values or ())
            if said.values is None or (found and (opens or not found.text) and not lists):
                return said._replace(why="the first line")
        found = self._at(begin, apart=True) if begin < line else None
        if (
            found
            and not found.text
            and (behind := self._behind(found)) > found.end
            and self._ends_here(behind)
            and not self._lists_options(line, _values(found))
        ):
            return self._of(_values(found), begin, behind, "the reply opens with it")
        if found and line == self._end and self._is_short_line(found):
            return self._of(_values(found), begin, found.end, "the reply opens with it")
        found = found if opens and found and not self._lists_options(line, _values(found)) else None
        if found and begin < line and self._ends_here(found.end):
            for place in range(found.end, line):
                if self._tokens[place].text in _ENDS:
                    break
                other = self._find(place)
                if other and other.value != found.value:
                    return None
            return self._of(_values(found), begin, found.end, "the reply opens with it")
        return None

    def _is_short_line(self, found: Found) -> bool:
        """Whether a reply is one label, a mark and a few words, none of which names another option."""
        end = found.end
        while end < self._end and self._tokens[end].text in "*)]_":
            end += 1
        marked = found.end < self._end and (end > found.end or self._tokens[end].text in ".:")
        rest = range(found.end, self._end)
        sentences = sum(self._tokens[i].text in _ENDS and not self._inside_word(i) for i in rest)
        others = (self._find(i) for i in rest)
        return (
            marked
            and not found.text
            and not found.word
            and len(rest) <= _SHORT
            and sentences <= 2
            and not any(other and other.value != found.value for other in others)
            and not any(self._classes(i)[0] & {"not", "if", "or"} for i in rest)
        )

    def _lists_options(self, place: int, values: Sequence[Any]) -> bool:
        """Whether another line begins with another label (where one is asked for: and its text), as a list of
        the options does."""
        for index in range(place, self._end):
            if self._tokens[index].kind == "line":
                begin = self._pass(index + 1, "-–—")
                found = self._find(begin)
                other = found and not found.text and not set(_values(found)) & set(values)
                if (
                    found
                    and other
                    and (self._several or self._line_ends(found.end) or self._behind(found) > found.end)
                ):
                    return True
        return False

    def _said(self, *, subject: bool) -> list[Said]:
        """All announcements, in their order."""
        said: list[Said] = []
        run: _Run | None = None
        denied = conditional = False
        line_begins = sentence_begins = True
        place = 0
        while place < self._end:
            token = self._tokens[place]
            if (
                run
                and (run.announces or self._is_named_alone(run, place))
                and (group := self._group(place, apart=run.apart))
            ):
                announced = self._announced(run, place, group)
                said += [announced] if announced else []
                conditional = conditional and not run.conditional
                place, run, line_begins, sentence_begins = group[1], None, False, False
                if announced:
                    place = announced.end
            elif token.kind == "box":
                run = _Run()
                run.noun = run.apart = True
                place += 1
            elif token.kind == "line":
                if run and (run.apart or (run.heading and run.noun)):
                    run.apart, run.size = True, _LINE
                else:
                    run = None
                denied = conditional = False
                line_begins = sentence_begins = True
                place += 1
            elif token.kind in ("mark", "tex"):
                if token.text in _ENDS and not self._inside_word(place):
                    run, denied, conditional, sentence_begins = None, False, False, True
                elif token.text in _COMMAS:
                    run, denied = run if run and run.named else None, False
                elif token.text in _APART:
                    denied = denied and token.text == "]"
                    if run:
                        run.apart = run.named
                place += 1
            else:
                classes, end = self._classes(place)
                found = None
                if "but" in classes:
                    denied, run = False, None if run and (run.denied or not classes & _RUN) else run
                if subject and not (denied or conditional or (run and run.announces)):
                    found = self._as_subject(place, joined=bool(run and run.joined))
                if found:
                    said.append(found)
                    run, end = None, found.end
                elif classes & {"wait", "rather"} and not (run and run.announces):
                    self._waits.append(place)
                    behind = bool(said) and self._pass(said[-1].end, ",;:–—-") == place
                    if "wait" in classes and (sentence_begins or behind) and self._corrects(place, end):
                        self._taken = place
                    run = None
                elif "if" in classes:
                    conditional, run = True, None
                elif "not" in classes:
                    if sentence_begins and end < self._end and self._tokens[end].text in ",:":
                        self._waits.append(place)
                    elif (
                        run
                        and run.named
                        and not (run.denied or run.conditional)
                        and (meant := self._meant(place))
                    ):
                        said.append(meant)
                        end = meant.end
                    denied, run = True, None
                elif classes & _RUN:
                    if run is None:
                        run = _Run(
                            denied=denied, conditional=conditional, heading=line_begins, nouns=not subject
                        )
                    run.denied |= denied
                    run.add(classes)
                else:
                    run = None
                line_begins = sentence_begins = False
                place = end
        return said

    def _corrects(self, place: int, end: int) -> bool:
        """Whether a word of correction stands apart (`wait,`, not `wait for`) or is more than one word."""
        return end > place + 1 or self._ends_here(end) or bool(self._classes(end)[0] & {"wait", "not"})

    def _is_named_alone(self, run: _Run, place: int) -> bool:
        """Whether an answer that is called right ends its sentence: `правильный ответ Б.`"""
        if not (run.noun and run.right):
            return False
        found = self._find(place)
        end = self._pass(found.end) if found and not found.loose else -1
        if end > 0 and "is" in self._classes(end)[0]:
            end = self._pass(self._classes(end)[1])
        return end == self._end or (
            end > 0 and (self._tokens[end].kind == "line" or self._tokens[end].text in _ENDS)
        )

    def _inside_word(self, place: int) -> bool:
        """Whether a full stop has no blank behind it: `E.coli`."""
        token, following = self._tokens[place], self._tokens[place + 1 : place + 2]
        return bool(
            token.text == "."
            and following
            and following[0].begin == token.end
            and following[0].kind in ("word", "number")
        )

    def _announced(self, run: _Run, place: int, group: tuple[tuple[Any, ...], int, bool]) -> Said | None:
        """The announcement of a group behind a run; None where it is denied, asked, or a condition."""
        values, end, either = group
        if self._is_key(end, values):
            self._key = Said(None, place, end, "the labels are explained")
            return None
        if run.denied or run.conditional or (run.apart and self._is_article(place, end)):
            return None
        if self._several and self._goes_on(place, end, values):
            return Said(None, place, end, "ambiguous: other labels on the next lines")
        if self._is_listed(place, end, values):
            return None
        following = self._pass(end)
        classes, behind = self._classes(following)
        if "if" in classes or (following < self._end and self._tokens[following].text in "?？"):
            return None
        if "not" in classes and "but" not in classes and self._find(self._pass(behind)):  # `B not A`
            classes = frozenset()
        for _ in range(_NEAR):
            if "not" in classes or not classes & {"is", "filler"}:
                break
            following = self._pass(behind)
            classes, behind = self._classes(following)
        if "not" in classes or "if" in classes:
            return self._meant(following) if "not" in classes else None
        if either:
            return Said(None, place, end, "ambiguous: one or the other")
        return self._of(values, place, end, "announced")

    def _is_listed(self, place: int, end: int, values: Sequence[Any]) -> bool:
        """Whether the options are listed: the next line begins with another label, and this one with its own;
        or the next line is the text of the option that follows."""
        begins, line = self._begins_line(place), self._line_end[end]
        found = self._find(self._pass(line + 1, "-–—"))
        if not found or found.text or found.word or set(_values(found)) & set(values):
            return False
        behind = self._behind(found)
        follows = isinstance(found.value, int) and found.value == values[-1] + 1
        return begins or (follows and end > place + 1 and behind > found.end and self._line_ends(behind))

    def _goes_on(self, place: int, end: int, values: Sequence[Any]) -> bool:
        """Whether the next line has another label, alone or with its text, or the next label behind one with
        its text: more answers, or all options begun again.
        """
        line = self._line_end[end]
        if line < self._end and self._listed(line) is not None:
            return True
        following = self._find(self._pass(line + 1, "-–—"))
        has_text = place + 2 < line and self._tokens[place + 1].text in ".:)"
        return bool(has_text and following and not following.text and following.value == values[-1] + 1)

    def _is_key(self, place: int, values: Sequence[Any]) -> bool:
        """Whether the labels are explained: `A for yes, B for no`."""
        begin = self._pass(place)
        if self._several or begin >= self._end or self._classes(begin)[0] & {"is", "not"}:
            return False
        means, comma = self._tokens[begin].key, False
        if means in ".,;" or self._tokens[begin].kind == "line":
            return False
        for index in range(begin + 1, min(self._end, begin + _SHORT)):
            token = self._tokens[index]
            if token.text in _ENDS and not self._inside_word(index):
                return False
            found = self._find(index) if comma else None
            if found and not set(_values(found)) & set(values):
                following = self._pass(found.end)
                return following < self._end and self._tokens[following].key == means
            comma = token.text in _COMMAS or token.kind == "line" or "and" in self._classes(index)[0]
        return False

    def _is_article(self, place: int, end: int) -> bool:
        """Whether a label that is a word of the language begins a sentence: `Answer: A patient with`."""
        found = self._find(place)
        classes, following = self._classes(place)
        if not found or found.text or found.word or end > found.end or not classes:
            return False
        if following >= self._end or self._tokens[following].kind not in ("word", "number"):
            return False
        return not self._classes(following)[0] & {"is", "because", "and", "or", "not", "if"}

    def _meant(self, place: int) -> Said | None:
        """The answer behind a denied one: `not D but A`, `aではなくd`."""
        turned = False
        for _ in range(_NEAR * 2):
            if place >= self._end or self._tokens[place].kind == "line" or self._tokens[place].text in _ENDS:
                return None
            classes, end = self._classes(place)
            if turned and (group := self._group(place, apart=False)):
                return self._of(group[0], place, group[1], "announced")
            if "but" in classes:
                turned = True
            elif turned and not (classes & _RUN or ("not" not in classes and self._is_soft(place))):
                turned = turned and self._tokens[place].text in ","
            elif "or" in classes and "and" not in classes and not classes & _RUN:
                return None
            place = end
        return None

    def _as_subject(self, place: int, *, joined: bool) -> Said | None:
        """An answer before its announcement: `B is the correct answer`, `ist B die richtige Antwort`."""
        found = self._find(place) if self._refused <= place < self._last_named else None
        if not found or found.loose or not (group := self._group(place, apart=False)):
            return None
        values, end, either = group
        run, following = _Run(), self._pass(end)
        run.joined = joined
        if following < self._end and self._tokens[following].text in "–—":
            run.joined, following = True, following + 1
        while following < self._end and run.size < _NEAR:
            classes, behind = self._classes(following)
            if self._is_soft(following):
                following = behind
                continue
            if not classes & _RUN or (not run.joined and not classes & {"is", "filler"}):
                break
            run.add(classes)
            following = behind
        classes, _ = self._classes(following)
        asked = following < self._end and self._tokens[following].text in "?？"
        if asked or classes & {"not", "if"} or not (run.joined and (run.noun or (run.right and run.option))):
            self._refused = end
            return None
        if either:
            return Said(None, place, end, "ambiguous: one or the other")
        return self._of(values, place, following, "said to be the answer")


def part_announced(reply: Reply, words: Words) -> Span:
    """What follows the last line of a reply that announces an answer, for lists and texts; else the reply.

    A word for an answer announces with a colon behind it, or as a heading of its own line.
    """
    tokens = tokens_of(reply.text, reply.begin, reply.end)
    begin, run, heading, place = reply.begin, None, True, 0
    while place < len(tokens):
        token = tokens[place]
        if token.kind == "line":
            if run and run.noun and not run.apart:
                run.apart = True
            heading = heading or run is None
            run, heading = (run if run and run.apart else None), True
            place += 1
            continue
        if run and run.noun and run.apart and token.text not in "*_`#":
            begin, run = token.begin, None
        classes, end = (
            words.at(tokens, place) if token.kind in ("word", "number") else (frozenset(), place + 1)
        )
        if token.kind == "box":
            run = _Run()
            run.noun = run.apart = True
        elif token.kind in ("mark", "tex"):
            if token.text in ":=" and run:
                run.apart = run.noun
            elif token.text not in "*_`#>[]":
                run = None
        elif token.kind == "number" and heading and not run and (bullet := tokens[place + 1 : place + 2]):
            heading = bullet[0].text in ".)、"
        elif classes & _RUN and heading:
            run = run or _Run()
            run.add(classes)
        else:
            run, heading = None, False
        place = max(end, place + 1)
    return begin, reply.end


def _values(found: Found) -> tuple[Any, ...]:
    return found.value if isinstance(found.value, tuple) else (found.value,)
