"""Options by their labels or texts, in any script and with the words of any language."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice, pairwise
from string import ascii_lowercase
from typing import NamedTuple

import regex

from medtasks_ext.answers.tolerant.folding import Folded, plain
from medtasks_ext.answers.tolerant.phrases import (
    SET_APART,
    UNSPACED,
    Phrases,
    any_of,
    inflected,
    read_plainly,
    word,
)
from medtasks_ext.answers.tolerant.reply import NOTHING, Extraction, Reply
from medtasks_ext.answers.tolerant.signs import CROSS, TICK, emphasised, ends_member, last_sentence, members

_MARKS = r"[\s*_`\"'“”‘’«»「」\[\](){}<>$\\#•·>–—\-]"
_LEADING = regex.compile(rf"{_MARKS}*")
_TRAILING = regex.compile(rf"{_MARKS}*+[.。!]*+{_MARKS}*+$")
#: the same, read from the end
_ENDING = regex.compile(rf"(?r){_MARKS}*+[.。!]*+{_MARKS}*+")
#: letters that accents make words of their own, and no labels
_ACCENTED = frozenset("ÀÁÂÄÈÉÊËÌÍÎÏÒÓÔÖÙÚÛÜàáâäèéêëìíîïòóôöùúûü")
#: letters of other alphabets that look like Latin ones
_LIKE_LATIN = {"а": "a", "в": "b", "с": "c", "е": "e", "α": "a", "β": "b", "ε": "e"}
_CLOSING = regex.compile(r"[*_`\"'”’»」\])}>$\\]{0,8}")
#: behind a letter that stands alone
_ALONE = regex.compile(r"[*_`\"'”’»」\])}>$\\.。,:;!]{0,8}[^\S\n]*(?:\n|$)|[*_`\"'»」]{0,4}[).\]:,;](?!\S)")
#: a letter that begins a sentence
_SENTENCE_START = regex.compile(r"(?:^|[.!?:\n。])[\s*_`\"'“«(\[]*$")
#: a label with which a reply ends
_LAST = regex.compile(r"(?:[:：→—–=-]|\n)[\s*_`\"'“«(\[]*$")
#: behind a label with which a reply begins
_AFTER_LABEL = regex.compile(r"[*_`\"'”’»」\])}>$\\]{0,8}[^\S\n]*(?:$|[\n.。:;,、)\]\-–—]|\()")
#: a list of numbers goes on
_NEXT_NUMBER = regex.compile(r"\s*[,、;/&·・+]\s*\d(?![\d.,])")
_PAST_LABEL = regex.compile(r"[\s*_`\"'”’»」\])}>:.、,–—\-(\[]{0,8}")
_BY_TEXT = regex.compile(r"[*_`\"'.,:;)\s\-–—(]|$")
_LINE_END = regex.compile(r"[*_`\"'”’»」\])}>$\\.。!\s]*(?:\n|$)")
_TO_A_WORD = regex.compile(r"[^\S\n]+(?=\p{L})")
#: mentions of labels, and of one option's text, that are looked at
_MOST = 400
_SENTENCE = regex.compile(r"[.。!?\n;]")
_SENTENCE_PART = regex.compile(r"[.!?](?=\s)|[。;]|\n")
#: a blank parts clauses in scripts that set no blank between words
_CLAUSE_STOP = regex.compile(r"[,、.。!?\n;]|(?<=[\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}])[^\S\n]")
_UNSPACED_STOP = regex.compile(r"(?<=[\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}])[^\S\n]")
#: words that say nothing, before a label with which a reply ends, that make it the answer
_SEVERAL_WORDS = 3
_SEPARATORS = r"[\s,;、/&+·・|*_`\"'“”‘’«»「」\[\](){}<>$\\.:\-–—]"
_SEPARATOR = regex.compile(_SEPARATORS)


class _Listed(NamedTuple):
    """Options that are named at one place.

    Attributes:
        places: of the options, from 0.
        start: of the first.
        end: of the last.
        either: whether they are alternatives.
    """

    places: tuple[int, ...]
    start: int
    end: int
    either: bool = False


#: between an option and the word or mark that calls it right or wrong, and behind such a word
_BESIDE = regex.compile(r"[*_)\]`\"'.]{0,6}[^\S\n]*(?:[:=|→–—-]+[^\S\n]*)?[*_(\[`\"']{0,6}")
_VERDICT_END = regex.compile(
    r"[*_)\]`\"']{0,6}(?:[^\S\n]*(?:[,、;:.。|/\n(–—-]|$)|[^\S\n]+(?=[*_(\[]*\p{L}[).:]))"
)
#: of a part of an option that stands for it: letters, and signs of a script without blanks
_FEWEST_LETTERS, _FEWEST_SIGNS = 8, 3
_TICKED, _CROSSED = (regex.compile(rf"{mark.pattern}[ *_`\"'(\-•.)]*$") for mark in (TICK, CROSS))
#: options that a table calls right or wrong, at least
_FEWEST_TOLD = 2
#: the end of a line that heads others, with the marks of the next one
_HEADING = regex.compile(r":[*_]{0,3}[^\S\n]*\n\s*[-*•_(]*[^\S\n]*[*_(]*")
_PARTICLE = regex.compile(r"\p{Hangul}")
_PARAGRAPH = regex.compile(r"[*_ \t.,;:]{0,8}\n\s*\n")
_CLAUSE_END = regex.compile(r"[,;:.—]|\s[-–]\s")
_LAST_CLAUSE = regex.compile(r"[,;][^\S\n]*(?=[^,;.\n]{0,40}\Z)")
#: the number of an item of a list
_ENUMERATED = regex.compile(r"\d{1,2}[.)][^\S\n]+[*_]*")
#: a remark on an option
_REMARK = regex.compile(r"[^\S\n]*\([^()\n]{0,120}\)(?=[^\S\n]*(?:[,;&+、]|\p{L}))")
_LINE_BEGIN = regex.compile(r"\n[\s*_(\"'\[•#-]*$")
#: in place of an option that is called wrong
_DENIED = -1
_OWN_LABEL, _CLOSED_LABEL = regex.compile(r"[*_]{0,3}[^\S\n]?[*_]{0,3}\("), regex.compile(r"\)[*_]{0,3}")
#: behind an option's text that is said by itself
_SAID_ALONE = regex.compile(r"[*_\"')]{0,4}[.。!](?=\s|$)")
_NUMBERED = regex.compile(r"\s*\d{1,2}(?![\d.,]\d)")
#: signs of an option that may be a label
_SHORT = 3
#: words of terms that end with a letter, as in `vitamin D`
_TERM = regex.compile(
    r"(?:v[iy]tamin\p{L}*|витамин\p{L}*|h?epatit\p{L}*|гепатит\p{L}*|influen\p{L}*|gripp?e?|грипп\p{L}*|typ[eu]?|tipo|тип\p{L}?"
    r"|gr[uo]u?pp?[eo]?|групп\p{L}|class?e?|klasse|clase|класс\p{L}?|stage|stadi\p{L}*|stade|grad[eo]?|fa[ck]tor|protein\p{L}*|child)$"
)
_LINE_START = regex.compile(r"(?:^|\n)[\s*_(\"'\[•#-]*$")
_NEXT_LINE = regex.compile(r"\n[^\S\n]*[*_(\"'\[•#-]*[^\S\n]*")
_CLAUSE_BEGIN = regex.compile(r"[,、;:][\s*_(\"']*$")
_COMMA = regex.compile(r"[*_\"')]{0,4}[,;]?[^\S\n]*[–—(-]?[^\S\n]*")
_BLANKS = regex.compile(r"[*_`\"'(\s]+")


class OptionReader:
    """Reads which of a question's options a reply names.

    Args:
        labels: as the question has them, in the order of the options.
        options: their texts; empty where the question has none.
        phrases: of the reply's language.
    """

    def __init__(self, labels: Sequence[str], options: Sequence[str], phrases: Phrases) -> None:
        self.labels, self.options, self.phrases = labels, options, phrases
        self.size = len(options) or len(labels)
        self.cased = all(label.isupper() or not label.isalpha() for label in labels[: self.size])
        self.numbered = any(plain(label).isdecimal() for label in labels[: self.size])
        self.single = all(len(plain(label)) == 1 for label in labels[: self.size])

    # ------------------------------------------------------------------ patterns

    @cached_property
    def forms(self) -> dict[str, int]:
        """Plain form -> place of the option: the labels, and letters or numbers that stand for places."""
        own = {plain(label): place for place, label in enumerate(self.labels[: self.size])}
        latin = any(form in ascii_lowercase for form in own)
        if latin:
            own = {
                **{like: own[form] for like, form in _LIKE_LATIN.items() if form in own and like not in own},
                **own,
            }
        series = self.phrases.words.labels if latin else ascii_lowercase
        others = dict(zip(map(plain, series), range(self.size), strict=False))
        if not any(form.isdecimal() for form in own):
            others |= {str(place + 1): place for place in range(self.size)}
        return {**others, **own}

    @cached_property
    def label(self) -> regex.Pattern[str]:
        """A label, of which nothing belongs to a word or number."""
        ordered = sorted(self.forms, key=len, reverse=True)
        return regex.compile("|".join(regex.escape(form) + self._behind(form) for form in ordered))

    def _behind(self, form: str) -> str:
        last = form[-1]
        if last.isdecimal():
            return r"(?![\d\p{Latin}]|[.,]\d|\s?%)"
        if regex.match(r"[\p{Latin}\p{Greek}\p{Cyrillic}]", last):
            run = f"(?!-[{''.join(map(regex.escape, self.forms))}](?![\\p{{L}}\\d]))"
            letter = r"[\p{Latin}\p{Greek}\p{Cyrillic}\p{M}\d_]"
            turkish = r"'(?![dt][iu]r\b)\p{L}"  # `B'dir` is B
            return rf"(?!{letter}|{turkish}|{run}-[\p{{L}}\d]|[.,]\d)"
        for script in ("Han", "Hiragana", "Katakana", "Thai", "Arabic", "Devanagari"):
            if regex.match(rf"\p{{{script}}}", last):
                return rf"(?![\p{{{script}}}\p{{M}}])"
        return r"(?![\p{M}])" if regex.match(r"\p{Hangul}", last) else r"(?![\p{L}\p{M}])"

    @cached_property
    def mention(self) -> regex.Pattern[str]:
        """A label anywhere in a text."""
        beside = rf"|(?<=[{UNSPACED}\p{{Hangul}}])"
        forms, apart = sorted(self.forms, key=len, reverse=True), r"(?<![\p{L}\p{M}])"
        labels = (
            rf"(?:{apart}{beside if form.isascii() else ''}){regex.escape(form)}{self._behind(form)}"
            for form in forms
        )
        return regex.compile(rf"(?<![.\-'\d°]|\d[.,])(?:{'|'.join(labels)})")

    @cached_property
    def run(self) -> regex.Pattern[str]:
        """Labels of one letter without anything between them."""
        letters = "".join(map(regex.escape, (form for form in self.forms if not form.isdecimal())))
        letters = letters or "".join(form for form in self.forms if form.isdecimal())
        behind = r"\p{L}" if regex.search(rf"[{UNSPACED}]", letters) else SET_APART
        return regex.compile(rf"[{letters}]{{2,26}}(?!{behind}|[\p{{M}}\d])")

    @cached_property
    def texts(self) -> list[tuple[regex.Pattern[str], int]]:
        """The options' texts, longer ones first."""
        known = [(plain(text).strip(" ."), place) for place, text in enumerate(self.options)]
        ordered = sorted((item for item in known if item[0]), key=lambda item: -len(item[0]))
        return [(regex.compile(word(text)), place) for text, place in ordered]

    # ------------------------------------------------------------------ reading

    def read(self, reply: Reply, *, several: bool) -> Extraction:
        """The places of the chosen options, in rising order.

        Signs in their order: a box or an announcement with a colon; the label or text with which the reply
        begins; another announcement; the labels that are called right; the one option that is named at all.
        """
        return read_plainly(
            reply, lambda original, form: _Reading(self, original, form, several=several).found()
        )


class _Reading:
    """One reply."""

    def __init__(self, reader: OptionReader, original: str, form: Folded, *, several: bool) -> None:
        self.reader, self.phrases, self.several = reader, reader.phrases, several
        self.original, self.text, self.places = original, form.text, form.places

    def found(self) -> Extraction:
        """What the reply names, with the place in its plain form."""
        reached = [
            item
            for item in self.phrases.reached(self.text, self._listed)
            if not self.phrases.is_set_aside(self.text, item.what.start, item.what.end)
            and (self.several or not self._heads_options(item.what))
        ]
        if self.several and (left := self._all_but()):
            return left
        announced, table = self.phrases.chosen(self.text, reached), self._table()
        if table and (announced is None or table.span is None or announced.start < table.span[1]):
            return table
        if announced:
            return self._said(announced.what, "announced")
        if member := self._member():
            return member
        if not self.several and (other := self._after_neither()):
            return other
        if not any(item.sort < 3 for item in reached) and self._none_of_these():
            return Extraction(None, None, "none of these")
        if first := self._at_start():
            said = [item for item in reached if item.sort < 3 and item.what.places != first.places]
            if not said or self._alone(first):
                return self._said(first, "the reply begins with it")
        weak = [item for item in reached if item.sort < 3]
        if weak:
            return self._said(weak[-1].what, "said to be the answer")
        verdicts = self._verdicts()
        if right := self._called_right(verdicts):
            return right
        if self.several and self._all_of_these():
            return Extraction(list(range(self.reader.size)), None, "all of these")
        if reached:
            return self._said(reached[-1].what, "called right")
        return (
            self._headed_lines()
            or self._last()
            or self._bold()
            or self._behind_so()
            or self._only(verdicts)
            or self._only_list()
            or self._named_in_words()
            or self._in_first_sentence()
            or self._concluding()
            or self._by_part()
            or NOTHING
        )

    def _said(self, listed: _Listed, why: str) -> Extraction:
        span = (listed.start, listed.end)
        if listed.either or (len(listed.places) > 1 and not self.several):
            return Extraction(None, span, "ambiguous: several options")
        return Extraction(sorted(set(listed.places)), span, why)

    # ------------------------------------------------------------------ options at a place

    def _listed(self, place: int, colon: bool) -> _Listed | None:
        """The options that are named from a place on."""
        if self.several and (whole := self._all_at(place)):
            return whole
        if self.several and (run := self._run_at(place)):
            return run
        if self.several and (lines := self._lines_at(place)):
            return lines
        first = self._one_at(place, colon=colon)
        if first is None:
            return None
        chosen, (number, end) = [first[0]], first
        either = False
        while len(chosen) < 2 * self.reader.size and (more := self._next(end, number)):
            if ";" in self.text[end : more[1]] and self.phrases.joins.search(self.text, first[1], end):
                break  # another list: `A and B; C, D and E are not`
            if more[0] == _DENIED:
                if self.phrases.joins.search(self.text, first[1], end):
                    break
                return None  # `A, C, D are wrong`
            chosen.append(more[0])
            either |= more[2]
            number, end = more[:2]
        if len(chosen) > 1 and not self.several and len(set(chosen)) == 1:
            chosen = chosen[:1]
        return _Listed(tuple(dict.fromkeys(chosen)), place, end, either)

    def _lines_at(self, place: int) -> _Listed | None:
        """Options that begin a line each, with what explains them, and none that is denied."""
        if not _LINE_START.search(self.text[max(0, place - 12) : place]):
            return None
        chosen: list[int] = []
        begin = end = place
        explained = False
        while place < len(self.text) and (option := self._one_at(place)):
            stop = self.text.find("\n", option[1])
            stop = stop if stop >= 0 else len(self.text)
            rest = self.text[option[1] : stop]
            if self._denies(option[1], stop) or self.reader.mention.search(rest):
                return None
            explained |= bool(rest.strip(" *_.,;:"))
            chosen.append(option[0])
            end = option[1]
            bullet = _NEXT_LINE.match(self.text, stop)
            place = bullet.end() if bullet else len(self.text)
        if not explained or len(set(chosen)) < len(chosen) or not 1 < len(chosen) < self.reader.size:
            return None
        return _Listed(tuple(chosen), begin, end)

    def _denies(self, begin: int, end: int) -> bool:
        """Whether a word between two places denies or doubts."""
        words = self.phrases.words
        denials = (*words.not_, *words.wrong, *words.no)
        # a particle ends its word: `나` is none in `나타난다`
        doubts = any(
            not _PARTICLE.fullmatch(match[0]) or not _PARTICLE.match(self.text, match.end())
            for match in any_of(words.or_).finditer(self.text, begin, end)
        )
        return (
            doubts
            or bool(any_of(denials).search(self.text, begin, end))
            or bool(CROSS.search(self.text, begin, end))
        )

    def _all_at(self, place: int) -> _Listed | None:
        match = any_of(self.phrases.words.all).match(self.text, place)
        if not match:
            return None
        stop = _SENTENCE_PART.search(self.text, match.end())
        if self.reader.mention.search(self.text, match.end(), stop.start() if stop else len(self.text)):
            return None  # `all that apply: A, B`
        return _Listed(tuple(range(self.reader.size)), place, match.end())

    def _run_at(self, place: int) -> _Listed | None:
        match = self.reader.run.match(self.text, place) if self.reader.single else None
        if not match or len(set(match[0])) < len(match[0]):
            return None
        said = self.original[self.places[place] : self.places[match.end()]]
        if self.reader.cased and said != said.upper():
            return None
        return _Listed(tuple(self.reader.forms[letter] for letter in match[0]), place, match.end())

    def _one_at(self, place: int, *, colon: bool = True) -> tuple[int, int] | None:
        """One option at a place, and where it ends."""
        number = _ENUMERATED.match(self.text, place)
        if number and not self.reader.numbered and (listed := self._one_at(number.end(), colon=colon)):
            return listed
        by_text = self._text_at(place)
        match = self.reader.label.match(self.text, place)
        if by_text and (not match or by_text[1] > match.end() + 1):
            return by_text[0], self._past_own_label(*by_text)
        if not match or not self._is_label(match, announced=colon):
            return None
        number, end = self.reader.forms[match[0]], match.end()
        own = self._text_at(self._past(end))
        if own and own[0] == number:
            return own
        if self._verdict(end) is False:
            return None
        return number, self._past_suffix(end)

    def _past_suffix(self, end: int) -> int:
        """Behind the word for an option that stands behind a label without a blank, as in `3번`."""
        suffix = self.phrases.option.match(self.text, end)
        return suffix.end() if suffix else end

    def _past_own_label(self, number: int, end: int) -> int:
        """Behind the label that stands in brackets behind an option's text, as in `Tremor (B)`."""
        opened = _OWN_LABEL.match(self.text, end)
        match = self.reader.label.match(self.text, opened.end()) if opened else None
        if not match or self.reader.forms[match[0]] != number:
            return end
        closed = _CLOSED_LABEL.match(self.text, match.end())
        return closed.end() if closed else end

    def _text_at(self, place: int) -> tuple[int, int] | None:
        for pattern, number in self.reader.texts:
            if match := pattern.match(self.text, place):
                return number, match.end()
        return None

    def _past(self, place: int) -> int:
        match = _PAST_LABEL.match(self.text, place)
        return match.end() if match else place

    def _is_label(self, match: regex.Match[str], *, announced: bool) -> bool:
        """Whether what looks like a label is one, and no word or number of the text."""
        begin, end = match.span()
        said = self.original[self.places[begin] : self.places[end]]
        if match[0].isdecimal() and said.isdecimal():
            own = self._text_at(self._past(end))
            suffix = self.phrases.option.match(self.text, end)
            return bool(
                announced
                or suffix
                or _ALONE.match(self.text, end)
                or self._has_option_word(begin)
                or (own and own[0] == self.reader.forms[match[0]])
                or _NEXT_NUMBER.match(self.text, end)
                or self._joins_a_number(end)
                or self._verdict_beside(end) is not None
                or (not match.string[begin - 1 : begin].isalpha() and self._is_said_last(end))
            )
        if not match[0].isalpha() or len(match[0]) > 1:
            return True
        own_label = self.reader.labels[self.reader.forms[match[0]]]
        if match[0].isascii() and not said.isascii() and plain(own_label) == match[0] and said in _ACCENTED:
            return False
        if self.reader.cased and said != said.upper():
            return bool(_ALONE.match(self.text, end))
        rest = _TO_A_WORD.match(self.text, end)
        if rest and said.upper() in self.phrases.words.words and self._begins_sentence(begin):
            own = self._text_at(rest.end())
            by_text = own is not None and own[0] == self.reader.forms[match[0]]
            letter = self.reader.label.match(self.text, rest.end())
            if letter and self.original[self.places[rest.end()]].isupper() and len(letter[0]) == 1:
                return True
            said_of_it = self.phrases.reason.match(self.text, rest.end())
            return by_text or bool(said_of_it) or self._verdict_beside(end) is not None
        return True

    def _joins_a_number(self, place: int) -> bool:
        """Whether a joining word and another number follow: `1 or 2`."""
        begin = place + len(self.text[place:]) - len(self.text[place:].lstrip(" "))
        joint = self.phrases.either.match(self.text, begin) or self.phrases.joins.match(self.text, begin)
        return bool(joint) and bool(_NUMBERED.match(self.text, joint.end()))

    def _is_said_last(self, place: int) -> bool:
        """Whether a word that says nothing follows without a blank, and ends the sentence: `3입니다.`"""
        match = self.phrases.skipped.match(self.text, place)
        return bool(match) and match.end() > place and bool(_LINE_END.match(self.text, match.end()))

    def _begins_sentence(self, place: int) -> bool:
        return bool(_SENTENCE_START.search(self.text[max(0, place - 12) : place])) or place == 0

    def _has_option_word(self, place: int) -> bool:
        before = self.text[max(0, place - 24) : place].rstrip(" *_`\"'(")
        return any(match.end() == len(before) for match in self.phrases.option.finditer(before))

    def _next(self, end: int, number: int) -> tuple[int, int, bool] | None:
        """The next option of a list: (place of the option, its end, whether it is an alternative)."""
        text = self.text
        own = self._text_at(self._past(end))
        place = own[1] if own and own[0] == number else end
        suffix = self.phrases.option.match(text, place)
        place = suffix.end() if suffix else place
        either = joined = False
        if remark := _REMARK.match(text, place):
            place = remark.end()
        begin = place
        if _PARAGRAPH.match(text, place):
            return None
        for _ in range(12):
            if place > begin and (labelled := self._listed_label(place)):
                if not joined and not either and not self._separated(begin, place):
                    return None
                return (*labelled, either)
            match = self.phrases.either.match(text, place)
            join = self.phrases.joins.match(text, place)
            if match and not join:
                either, place = True, match.end()
            elif join:
                joined, place = True, join.end()
            elif match := _SEPARATOR.match(text, place):
                if match[0] == "." and not regex.match(r"\.[*_\s]*\n", text, pos=place):
                    return None
                place = match.end()
            elif (joined or either or place > begin) and (match := self.phrases.skipped.match(text, place)):
                place = match.end()
            else:
                return None
        return None

    def _listed_label(self, place: int) -> tuple[int, int] | None:
        if self.text[place : place + 1].isspace():
            return None
        label = self._one_at(place)
        if label is None and (match := self.reader.label.match(self.text, place)):
            denied = self._is_label(match, announced=True) and self._verdict(match.end()) is False
            return (_DENIED, match.end()) if denied else None
        return label

    def _separated(self, begin: int, place: int) -> bool:
        """Whether what stands between two options makes a list; where several may be right, a blank does."""
        between = self.text[begin:place]
        if "\n\n" in between:
            return False
        if not self.several:
            return bool(regex.search(r"[,、/&+;]", between))
        if "\n" in between:
            return not self._explained(begin)
        return True

    def _explained(self, place: int) -> bool:
        return bool(self.text[place : self.text.find("\n", place)].strip(" *_.,;:"))

    # ------------------------------------------------------------------ marks of any language

    def _of_marked(self, found: Iterable[_Listed], why: str) -> Extraction | None:
        """What marked places name; None where they name different options."""
        by_places = {item.places: item for item in found if not item.either}
        if len(by_places) != 1:
            return None
        return self._said(next(iter(by_places.values())), why)

    def _member(self) -> Extraction | None:
        """Of an object the one value that is an option, or a list of options."""
        found = (self._listed(place, True) for place in members(self.text))
        whole = [item for item in found if item and ends_member(self.text, item.end)]
        return self._of_marked(whole, "a member of JSON")

    def _bold(self) -> Extraction | None:
        """The one option that is set in bold as a whole; where several may be right, all but all options."""
        found = []
        if self.several:
            single = [
                (stretch, option)
                for stretch in emphasised(self.text)
                if (option := self._one_at(stretch.start)) and stretch.is_filled(self.text, option[1])
            ]
            places = {option[0] for _, option in single}
            if len(places) > 1:
                denied = any(self._in_denial(*stretch) for stretch, _ in single)
                begin, end = single[0][0]
                whole = denied or len(places) == self.reader.size
                return None if whole else Extraction(sorted(places), (begin, end), "set in bold")
        for stretch in emphasised(self.text):
            listed = self._listed(stretch.start, True)
            if listed and stretch.is_filled(self.text, listed.end) and not self._in_denial(*stretch):
                found.append(listed)
        return self._of_marked(found, "set in bold")

    def _table(self) -> Extraction | None:
        """Where at least two options are called right or wrong by a word or mark each, the right ones."""
        told: dict[int, tuple[bool, int, int]] = {}
        untold = set()
        named = sorted(self._named(), key=lambda item: item[1])
        marks_first = bool(named) and self._mark_before(named[0][1]) is not None
        for number, start, end in named:
            own = self._text_at(self._past(end))
            end = own[1] if own and own[0] == number else self._past_suffix(end)
            verdict = self._mark_before(start) if marks_first else self._verdict_beside(end)
            if verdict is None:
                untold.add(number)
            else:
                told[number] = (verdict, start, end)
        right = {number: place for number, (verdict, *place) in told.items() if verdict}
        if not right or len(told) < _FEWEST_TOLD or untold - set(told):
            return None
        if len(right) > 1 and not self.several:
            return Extraction(None, None, "ambiguous: several options are called right")
        begin, end = next(iter(right.values()))
        return Extraction(sorted(right), (begin, end), "called right in a table")

    def _mark_before(self, start: int) -> bool | None:
        """Whether a tick stands before an option, or a cross; None where neither does."""
        before = self.text[max(0, start - 12) : start]
        return True if _TICKED.search(before) else False if _CROSSED.search(before) else None

    def _verdict_beside(self, end: int) -> bool | None:
        """Whether a mark, or a word that is set off, calls an option right; None where there is none."""
        beside = _BESIDE.match(self.text, end)
        place = beside.end() if beside else end
        for pattern, verdict in ((TICK, True), (CROSS, False)):
            if pattern.match(self.text, place):
                return verdict
        words = self.phrases.words
        right, wrong = words.right, (*words.wrong, *words.not_)
        if place == end and regex.match(rf"[{UNSPACED}]", self.text[place : place + 1]):  # `A对`
            right, wrong = (*right, *words.tick), (*wrong, *words.cross)
        row = (")" in self.text[end:place] or "." in self.text[end:place]) and self._is_a_row(end)
        if row or self.text[end:place].strip(" *_).`\"'"):  # in `A no` a blank sets no word apart
            labels = self.reader.forms
            right = (*right, *words.yes, *(mark for mark in words.tick if plain(mark) not in labels))
            wrong = (*wrong, *words.no, *(mark for mark in words.cross if plain(mark) not in labels))
        for said, verdict in ((right, True), (wrong, False)):
            match = any_of(said).match(self.text, place)
            if match and _VERDICT_END.match(self.text, match.end()):
                return verdict
        return None

    def _is_a_row(self, end: int) -> bool:
        """Whether a label and one word or mark behind it are a line: `A) F`."""
        begin = self.text.rfind("\n", 0, end) + 1
        stop = self.text.find("\n", end)
        line = self.text[begin : stop if stop >= 0 else len(self.text)]
        return len(line.split()) == 2

    def _named(self) -> Iterator[tuple[int, int, int]]:
        """(option, start, end) of all labels, and of the options' texts that have no label before them."""
        labels = list(self._mentions())
        yield from labels
        taken = [(start, self._past(end)) for _, start, end in labels]
        for pattern, number in self.reader.texts:
            for match in islice(pattern.finditer(self.text), _MOST):
                if not any(begin <= match.start() <= end for begin, end in taken):
                    taken.append(match.span())
                    yield number, *match.span()

    def _concluding(self) -> Extraction | None:
        """The one option of the last sentence, or of its last clause, where words lead to it."""
        begin = last_sentence(self.text)
        stops = [
            match.end()
            for match in _CLAUSE_STOP.finditer(self.text, begin, len(self.text) - 1)
            if match[0] != " " or not self.reader.label.match(self.text, match.end())
        ]
        stops += [match.end() for match in self.phrases.but.finditer(self.text, begin)]
        clause = max((stop for stop in stops if stop > begin and not self.several), default=begin)
        against = self.phrases.whereas.search(self.text, begin + 1)
        for place in dict.fromkeys((begin, clause)):
            named: dict[int, tuple[int, int]] = {}
            aside = False
            for number, start, end in self._named():
                if against and start > against.start():
                    continue
                if start >= place and self.phrases.is_set_aside(self.text, start, end):
                    aside = True
                elif start >= place:
                    named.setdefault(number, (start, end))
            if len(named) == 1 and not (place > begin and self._goes_on(place)):
                ((number, span),) = named.items()
                led = self._is_led_to(*span, sentence=begin) or (aside and self._only_skipped(span[1]))
                ends = place == begin or self._only_skipped(span[1]) or self._verdict(span[1])
                if led and ends and not self._in_denial(*span):
                    return Extraction([number], span, "the last sentence names it")
        return None

    def _behind_so(self) -> Extraction | None:
        """The one option behind the last word for a conclusion, in its sentence, where none is denied."""
        begin = last_sentence(self.text)
        leads = [match.end() for match in self.phrases.so.finditer(self.text, begin)]
        if self.several or not leads:
            return None
        named = {number: (start, end) for number, start, end in self._named() if start >= leads[-1]}
        if len(named) != 1:
            return None
        ((number, span),) = named.items()
        return None if self._in_denial(*span) else Extraction([number], span, "a conclusion names it")

    def _in_first_sentence(self) -> Extraction | None:
        """The one option of a first sentence that calls it the best or likeliest, and denies nothing."""
        stop = _SENTENCE_PART.search(self.text)
        if self.several or not stop:
            return None
        named = {number: (start, end) for number, start, end in self._named() if end <= stop.start()}
        right = self.phrases.right
        if (
            len(named) != 1
            or not right.search(self.text, 0, stop.start())
            or right.search(self.text, stop.end())
        ):
            return None
        ((number, span),) = named.items()
        return (
            None
            if self._denies(0, stop.start()) or self.phrases.but.search(self.text, 0, stop.start())
            else Extraction([number], span, "the first sentence calls it right")
        )

    def _goes_on(self, place: int) -> bool:
        """Whether a clause begins with a joining word, so that it goes on with a list."""
        begin = place + len(self.text[place:]) - len(self.text[place:].lstrip(" *_"))
        return bool(self.phrases.joins.match(self.text, begin) or self.phrases.either.match(self.text, begin))

    def _is_led_to(self, start: int, end: int, *, sentence: int) -> bool:
        """Whether words that say nothing, or that call it right, stand around an option."""
        phrases, text = self.phrases, self.text
        leading = _LEADING.match(text, sentence)
        head = leading.end() if leading else sentence
        return bool(
            (self._skipped_before(start) and not self._has_option_word(start))
            or phrases.right.search(text, sentence)
            or phrases.choose.search(text, sentence)
            or phrases.but.search(text, sentence, start)
            or (sentence and any_of((*phrases.words.answer, *phrases.words.filler)).match(text, head))
            or (_CLAUSE_BEGIN.search(text, sentence, start) and self._only_skipped(end))
        )

    def _by_part(self) -> Extraction | None:
        """Where no option stands there as a whole: the one of which a part does."""
        if any(True for _ in self._named()):
            return None
        begin, ending = self._past_marks(), _ENDING.match(self.text)
        said = self.text[begin : ending.start() if ending else len(self.text)]
        texts = [plain(option).strip(" .") for option in self.reader.options]
        fits = self._is_long(said) and 0 < len(plain(said)) <= max(map(len, texts), default=0)
        whole = regex.compile(word(said)) if fits else None
        found: dict[int, tuple[int, int]] = {}
        for number, text in enumerate(texts):
            if whole and whole.search(text):
                found[number] = (begin, begin + len(said))
            elif self._is_long(rest := text.partition(" ")[2]):
                found |= self._standing(number, regex.compile(word(rest)))
        if not found:
            own = [plain(option) for option in self.reader.options]
            for text, pattern in inflected(self.reader.options).items():
                found |= self._standing(own.index(text), pattern)
        if self.several and found:
            said_of = {number for number, span in found.items() if not self._in_denial(*span)}
            return (
                Extraction(sorted(said_of), next(iter(found.values())), "named with other endings")
                if said_of
                else None
            )
        if len(found) > 1:
            begin = max(match.end() for match in _CLAUSE_STOP.finditer("." + self.text[:-1])) - 1
            found = {number: span for number, span in found.items() if span[0] >= begin}
        if len(found) != 1:
            return None
        ((number, span),) = found.items()
        return Extraction([number], span, "a part of the option") if not self._in_denial(*span) else None

    def _standing(self, number: int, pattern: regex.Pattern[str]) -> dict[int, tuple[int, int]]:
        """The last place of an option's pattern that is not set aside; empty where there is none."""
        spans = [match.span() for match in pattern.finditer(self.text)]
        kept = [span for span in spans if not self.phrases.is_set_aside(self.text, *span)]
        return {number: kept[-1]} if kept else {}

    @staticmethod
    def _is_long(part: str) -> bool:
        """Whether a part of an option may stand for it."""
        return len(part) >= (
            _FEWEST_SIGNS if regex.match(rf"[{UNSPACED}\p{{Hangul}}]", part) else _FEWEST_LETTERS
        )

    def _only_skipped(self, place: int) -> bool:
        """Whether nothing but marks and words that say nothing follows a place."""
        return self.phrases.past_skipped(self.text, place, _SEPARATOR) >= len(self.text)

    def _named_in_words(self) -> Extraction | None:
        """Where several may be right and no label stands there: the texts in clauses that deny nothing."""
        if not self.several or any(True for _ in self._mentions()):
            return None
        texts = self._before_contrast(self._named_by_text())
        said = {number: span for number, span in texts.items() if not self._in_denial(*span)}
        if not said or not self._are_one_list(sorted(texts.values())):
            return None
        return Extraction(sorted(said), min(said.values()), "the options that are named")

    def _before_contrast(self, texts: dict[int, tuple[int, int]]) -> dict[int, tuple[int, int]]:
        """Those before the clause that is set against them: `A and B are, whereas C is not`."""
        first = min((start for start, _ in texts.values()), default=0)
        words = self.phrases.words
        contrast = any_of((*words.but, *words.whereas)).search(self.text, first)
        if not contrast:
            return texts
        commas = [match.end() for match in _CLAUSE_STOP.finditer(self.text, first, contrast.start() + 1)]
        place = commas[-1] if commas else contrast.start()
        return {number: span for number, span in texts.items() if span[1] <= place}

    def _are_one_list(self, spans: list[tuple[int, int]]) -> bool:
        """Whether no end of a sentence, nor a clause, parts texts that begin no lines."""
        for (_, end), (start, _) in pairwise(spans):
            between = self.text[end:start]
            if _LINE_BEGIN.search(between[-12:]):
                continue
            if _SENTENCE_PART.search(between) or (
                _CLAUSE_STOP.search(between) and not self._skips_to(end, start)
            ):
                return False
        return True

    # ------------------------------------------------------------------ the reply as a whole

    def _at_start(self) -> _Listed | None:
        place = 0
        marks = regex.compile(rf"{_MARKS}|{self.phrases.skipped.pattern}")
        for _ in range(8):
            if (
                place < len(self.text)
                and not self.text[place].isspace()
                and (listed := self._listed(place, False))
            ):
                if self._begins(listed):
                    return listed
                return None
            match = marks.match(self.text, place)
            if not match:
                return None
            place = match.end()
        return None

    def _begins(self, listed: _Listed) -> bool:
        end = listed.end
        if self._alone(listed) or listed.either:
            return True
        if len(listed.places) > 1:
            but = self.phrases.joins.match(self.text, end + 1)
            denies = self.phrases.not_.match(self.text, but.end() if but else end + 1)
            return bool(_AFTER_LABEL.match(self.text, end) or denies) or self._verdict(end) is True
        by_text = self._text_at(listed.start)
        if by_text and by_text[1] == end:
            alone = len(self._named_by_text()) < 2 or self._is_set_off(end)
            return bool(_BY_TEXT.match(self.text, end)) and alone
        if self._verdict(end) is not None:
            return bool(self._verdict(end)) and not self.several
        if self._lists_options(listed):
            return False
        line = self.text[: self.text.find("\n", end) if "\n" in self.text[end:] else len(self.text)]
        named = {
            self.reader.forms[match[0]]
            for match in self.reader.mention.finditer(line)
            if self._is_label(match, announced=False)
        }
        own = self._text_at(self._past(listed.start + 1))
        if own and own[1] == end:
            return True
        return (bool(_AFTER_LABEL.match(self.text, end)) and len(named) < 2) or bool(own)

    def _is_set_off(self, end: int) -> bool:
        """Whether a full stop, or a reason, follows the text of an option."""
        if _SAID_ALONE.match(self.text, end):
            return True
        comma = _COMMA.match(self.text, end)
        return bool(any_of(self.phrases.words.because).match(self.text, comma.end() if comma else end))

    def _lists_options(self, listed: _Listed) -> bool:
        """Whether a reply that begins with the first option goes through all, a line each."""
        begins = [
            number
            for number, start, _ in self._mentions()
            if start > listed.end and _LINE_BEGIN.search(self.text[max(0, start - 12) : start])
        ]
        return listed.places == (0,) and begins[:1] == [1]

    def _heads_options(self, listed: _Listed) -> bool:
        """Whether an announced option begins the list of all of them: `Options:`, then a line for each."""
        begins_line = _LINE_BEGIN.search(self.text[max(0, listed.start - 12) : listed.start])
        return bool(begins_line) and self._lists_options(listed)

    def _headed_lines(self) -> Extraction | None:
        """The options that begin the lines behind a heading, where several may be right."""
        if not self.several:
            return None
        found: list[_Listed] = []
        for match in _HEADING.finditer(self.text):
            listed = self._listed(match.end(), True)
            if listed and not listed.either and 1 < len(listed.places) < self.reader.size:
                found.append(listed)
        if len(found) != 1 or self._in_denial(found[0].start, found[0].start + 1):
            return None
        return self._said(found[0], "lines behind a heading")

    def _alone(self, listed: _Listed) -> bool:
        return bool(_LINE_END.match(self.text, listed.end))

    def _verdict(self, place: int) -> bool | None:
        """Whether what follows a label calls it right or wrong; None where it does neither."""
        phrases, denied, apart = self.phrases, False, False
        for _ in range(10):
            if match := phrases.option.match(self.text, place):
                place = match.end()
                continue
            if match := phrases.wrong.match(self.text, place):
                return None if self._heads(match.end(), apart=apart) else denied
            if match := phrases.right.match(self.text, place) or phrases.choose.match(self.text, place):
                return None if self._heads(match.end(), apart=apart) else not denied
            if match := phrases.not_.match(self.text, place):
                denied, place = not denied, match.end()
                continue
            match = phrases.before_verdict.match(self.text, place)
            if not match or "\n" in match[0]:
                return None
            apart |= match[0] == ","
            place = match.end()
        return None

    def _heads(self, place: int, *, apart: bool) -> bool:
        """Whether a word that ends at a place speaks of what follows: `Incorrect: C, D`; `选B，不选A`.

        Args:
            place: where it ends.
            apart: whether a comma stands before it.
        """
        if apart and self.reader.label.match(self.text, place):
            return True
        place = self.phrases.past_skipped(self.text, place, _BLANKS, most=4)
        return self.text[place : place + 1] == ":"

    def _mentions(self) -> Iterator[tuple[int, int, int]]:
        """(option, start, end) of all labels."""
        for match in islice(self.reader.mention.finditer(self.text), _MOST):
            inside = any(begin <= match.start() and match.end() <= end for begin, end in self._texts)
            if not inside and self._is_label(match, announced=False):
                yield self.reader.forms[match[0]], *match.span()

    @cached_property
    def _texts(self) -> list[tuple[int, int]]:
        """Where options of several signs stand as a whole."""
        return [
            match.span()
            for pattern, _ in self.reader.texts
            for match in islice(pattern.finditer(self.text), _MOST)
            if match.end() - match.start() > _SHORT
        ]

    def _verdicts(self) -> dict[int, tuple[bool | None, int, int]]:
        """Option -> what is said of it, and where its label stands."""
        verdicts: dict[int, tuple[bool | None, int, int]] = {}
        for number, start, end in self._mentions():
            said = False if self.phrases.is_set_aside(self.text, start, end) else self._verdict(end)
            if self.several and said is None and (own := self._text_at(self._past(end))) and own[0] == number:
                said = self._verdict(own[1])
            if number not in verdicts or said is not None:
                verdicts[number] = (said, start, end)
        return verdicts

    def _called_right(self, verdicts: dict[int, tuple[bool | None, int, int]]) -> Extraction | None:
        right = {number: (start, end) for number, (said, start, end) in verdicts.items() if said}
        if not right and not self.several and not verdicts:
            right = {number: span for number, span in self._named_by_text().items() if self._verdict(span[1])}
        if not right:
            return None
        if self.several:
            for _, start, _ in self._mentions():
                listed = self._listed(start, True)
                if listed and not listed.either and self._verdict(listed.end):
                    right |= dict.fromkeys(listed.places, (listed.start, listed.end))
            denied = {number for number, (said, *_) in verdicts.items() if said is False}
            right = {number: place for number, place in right.items() if number not in denied}
        if len(right) > 1 and not self.several:
            return Extraction(None, None, "ambiguous: several options are called right")
        return Extraction(sorted(right), next(iter(right.values())), "called right") if right else None

    def _none_of_these(self) -> bool:
        """Whether the reply begins with words that no option is right, which are none of the options."""
        place = self._past_marks()
        return bool(self.phrases.none.match(self.text, place)) and not self._text_at(place)

    def _after_neither(self) -> Extraction | None:
        """The one option behind a clause that denies others: `neither A nor B, but C`."""
        begin = self.phrases.neither.match(self.text, self._past_marks())
        clause = _CLAUSE_END.search(self.text, begin.end()) if begin else None
        if not clause:
            return None
        behind = {number: (start, end) for number, start, end in self._mentions() if start >= clause.end()}
        if len(behind) != 1:
            return None
        ((number, span),) = behind.items()
        return Extraction([number], span, "the others are denied")

    def _past_marks(self) -> int:
        match = _LEADING.match(self.text)
        return match.end() if match else 0

    def _last(self) -> Extraction | None:
        """The label with which the reply ends, behind a mark or on a line of its own."""
        for match in self.reader.mention.finditer(self.text, max(0, len(self.text) - 40)):
            begin = match.start()
            stands = _LAST.search(self.text[max(0, begin - 8) : begin]) or self._concluded(begin)
            listed = self._listed(begin, True) if stands else None
            if self.several and self._others_on_line(begin):
                return None  # the last of two lists: `true: A, B; false: C, D`
            if listed and _TRAILING.match(self.text, listed.end):
                return self._said(listed, "the reply ends with it")
        return None

    def _others_on_line(self, place: int) -> bool:
        """Whether an option stands before a place on its line."""
        line = self.text.rfind("\n", 0, place) + 1
        return any(line <= start < place for _, start, _ in self._mentions())

    def _concluded(self, begin: int) -> bool:
        """Whether words that say nothing lead to a place: a last clause of them, or several: `…, so B`."""
        if self._skipped_before(begin) >= _SEVERAL_WORDS:
            return True
        clause = _LAST_CLAUSE.search(self.text, 0, begin)
        if not clause:
            return False
        place, words = clause.end(), 0
        while place < begin:
            match = self.phrases.skipped.match(self.text, place) or _BLANKS.match(self.text, place)
            if not match or match.end() == place:
                return False
            words += not match[0].isspace()
            place = match.end()
        return words > 0 and place == begin

    def _skipped_before(self, place: int) -> int:
        """How many words that say nothing stand right before a place."""
        words, begin = 0, max(0, place - 60)
        ends = {
            match.end(): match.start() for match in self.phrases.skipped.finditer(self.text, begin, place)
        }
        while (end := len(self.text[:place].rstrip(" *_`\"'("))) in ends:
            words, place = words + 1, ends[end]
        return words

    def _all_but(self) -> Extraction | None:
        """All options but those beside a word that leaves them out: `all except D`, `d以外`."""
        words = self.phrases.words
        for match in any_of(words.except_).finditer(self.text):
            if not any_of(words.all).search(self.text, max(0, match.start() - 40), match.end() + 40):
                continue
            found = self.phrases.answer_at(self.text, match.end(), self._listed, on_line=True)
            listed = found[0] if found and len(found[0].places) < self.reader.size else None
            out = set(listed.places) if listed else set()
            span = (listed.start, listed.end) if listed else match.span()
            if not listed:
                before = [item for item in self._named() if item[2] <= match.start()]
                out = {number for number, _, end in before if self._skips_to(end, match.start())}
            if out:
                left = [number for number in range(self.reader.size) if number not in out]
                return Extraction(left, span, "all but those")
        return None

    def _skips_to(self, place: int, end: int) -> bool:
        """Whether marks and words that say nothing, or options, lead from a place to another one."""
        while place < end:
            match = (
                self.phrases.skipped.match(self.text, place)
                or self.phrases.joins.match(self.text, place)
                or _SEPARATOR.match(self.text, place)
                or self.reader.label.match(self.text, place)
            )
            if not match or match.end() == place:
                return False
            place = match.end()
        return place == end

    def _all_of_these(self) -> bool:
        match = any_of(self.phrases.words.all).search(self.text[:200])
        return bool(match) and not any(True for _ in self._named())

    def _named_by_text(self) -> dict[int, tuple[int, int]]:
        named: dict[int, tuple[int, int]] = {}
        taken: list[tuple[int, int]] = []
        for pattern, number in self.reader.texts:
            for match in islice(pattern.finditer(self.text), _MOST):
                if not any(begin < match.end() and match.start() < end for begin, end in taken):
                    taken.append(match.span())
                    if (
                        not self.phrases.is_denied(self.text, match.start())
                        and self._verdict(match.end()) is not False
                    ):
                        named.setdefault(number, match.span())
        return named

    def _only(self, verdicts: dict[int, tuple[bool | None, int, int]]) -> Extraction | None:
        left = {number: (start, end) for number, (said, start, end) in verdicts.items() if said is not False}
        texts = self._named_by_text()
        if len(left) == 1:
            number, span = next(iter(left.items()))
            if set(texts) <= {number} and self._points_to(*span):
                return Extraction([number], span, "the only option that is named")
        if left and not texts:
            return None
        if len(texts) == 1 and set(left) <= set(texts):
            number, span = next(iter(texts.items()))
            return Extraction([number], span, "the only option that is named")
        if self.several and texts and not left and self._is_list(texts):
            return Extraction(sorted(texts), None, "the options that are named")
        return None

    def _only_list(self) -> Extraction | None:
        """The one list of labels, where several may be right and its clause denies nothing."""
        if not self.several:
            return None
        found: list[_Listed] = []
        for _, start, end in self._mentions():
            if any(item.start <= start < item.end for item in found) or self._in_denial(start, end):
                continue
            listed = self._listed(start, True)
            if listed is None or len(listed.places) < 2 or listed.either:
                return None
            if not self._in_denial(listed.start, listed.end):
                found.append(listed)
        return self._said(found[0], "the only list of options") if len(found) == 1 else None

    @cached_property
    def _stops(self) -> list[int]:
        """Behind each mark that ends a sentence."""
        return [match.end() for match in _SENTENCE.finditer(self.text)]

    def _in_denial(self, start: int, end: int) -> bool:
        """Whether the clause of a place denies or doubts what stands there."""
        before = bisect_right(self._stops, start)
        begin = self._stops[before - 1] if before else 0
        begin = max(
            (match.end() for match in self.phrases.but.finditer(self.text, begin, start)), default=begin
        )
        # behind a label, or behind a list of them, a blank parts no clause: `จ ไม่มี`
        of_label = end - start <= _SHORT or self.text[end - 2 : end - 1].isspace()
        beside = of_label and self.text[end : end + 1].isspace()
        stop = _CLAUSE_STOP.search(self.text, end + beside)
        last = stop.start() if stop else len(self.text)
        turn = self.phrases.but.search(self.text, end, last)
        return self._denies(begin, turn.start() if turn else last)

    def _is_list(self, texts: dict[int, tuple[int, int]]) -> bool:
        """Whether nothing but the options' texts stands there."""
        rest = self.text
        for start, end in sorted(texts.values(), reverse=True):
            rest = rest[:start] + " " + rest[end:]
        return not regex.sub(rf"{_SEPARATORS}|{self.phrases.joins.pattern}", "", rest).strip()

    def _points_to(self, start: int, end: int) -> bool:
        """Whether a label is no part of a term: brackets, an option's word or a verb stand before it."""
        before = self.text[max(0, start - 24) : start].rstrip(" *_`\"'«“")
        if (
            not before
            or before[-1] in "([:,;–—-\n.。!"
            or (_SENTENCE.match(self.text, end) is None and self.phrases.option.match(self.text, end))
        ):
            return True
        if regex.match(rf"[{UNSPACED}\p{{Hangul}}]", before[-1]):
            return True
        if _TRAILING.match(self.text, end) and not _TERM.search(before):
            return True  # the reply ends with it
        return any(match.end() == len(before) for match in self.phrases.skipped.finditer(before))
