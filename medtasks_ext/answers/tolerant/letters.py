"""Letters of options: one, or several, with or without the options' texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from string import ascii_uppercase
from typing import NamedTuple

from medtasks_ext.answers.tolerant.markers import Marker, end_of_answer, markers
from medtasks_ext.answers.tolerant.reply import LONGEST, NOTHING, Extraction, Reply, narrow

_MARKS = r"[\s*_`\"'(\[{$\\#>~•:✅☑✔|-]{0,12}"
_OPENING = (
    rf"{_MARKS}(?:(?:(?i:boxed|fbox|text|textbf|mathrm|mathbf|option|choice|letter|answer|is|the|la|el|le|die|das|der|det|opción|"
    rf"opção|réponse|(?:a\s+)?letra|lettre|буква|probably|likely|clearly|definitely|donc|therefore|вариант|alternativ[ae]?|antwort)(?![A-Za-z])|おそらく|选项|选择|选|項){_MARKS}){{0,3}}"
)
# a letter that begins no word: what follows is none of `Despite`, `D-dimer`, `A's`, `2.5`
# or a word of Chinese, as in A型, B超, C反应蛋白
_TERM = "型|类|族|级|期|组|区|段|带|波|线|超|链|环|酸|肽|细胞|淋巴|抗原|抗体|受体|因子|反应|二聚|胆固醇"
_NO_WORD = rf"(?![A-Za-z0-9_]|'[a-z]|-[A-Za-z0-9]|[.,]\d|[À-ɏа-яА-Я]|{_TERM})"
# several letters without anything between them: what follows is no word of any script, but `项` and the like
_RUN_END = (
    r"(?=[A-Z]{0,26}(?![A-Za-z0-9_À-ɏа-яА-Я]|'[a-z]|-[A-Za-z0-9]|[.,]\d"
    r"|[\u3400-\u9fff](?<![选项都均和与及或])))"
)
_CLOSED = re.compile(r"[*_`\"')\]}>$\\]{0,12}")
_END = re.compile(r"[*_`\"')\]}>$\\.。!！,，;；]{0,12}[^\S\n]*(?:\n|\Z)")
#: what joins two letters for sure, and what may only separate them
_JOINT = re.compile(
    r"[^\S\n]*(?:、|/|&|\+|和|与|與|及|以及|或|或者|\band\b|\bor\b(?:\s(?:possibly|perhaps|maybe|even|else))?|\by\b|\bet\b|\bund\b|\be\b|\bи\b|\bog\b|\bou\b|\bo\b|\boder\b|\bили\b|\beller\b)[^\S\n]*"
)
_COMMA = re.compile(r"[^\S\n]*(?:[,，;；][^\S\n]*(?:and|or|和|及)?|)[^\S\n]*")
_AFTER_COMMA = re.compile(
    r"[*_`\"')\]}>$\\.。!！]*[^\S\n]*"
    r"(?:\n|\Z|。|(?:[,，、;；/&和与及][^\S\n]*|(?<=[^\S\n])(?:and\b[^\S\n]*)?)[A-Z](?![A-Za-z]))"
)
# after a letter: the sentence is a question, or says that it is wrong
_DENIED = re.compile(
    r"[^\S\n]*(?:[?？]|(?:(?:选项|项)[^\S\n]*)?(?:吗|是?错|不对|不正确|不是|不符|有误"
    r"|is\s+(?:not|wrong|incorrect|false)|isn't|was\s+(?:not|wrong)))"
)
#: after a letter: what it stands for, and another one with that, as the prompt says what to write
_EACH = re.compile(
    r"[^\S\n]*(?:(?:for|means)\b|表示|代表)[^,;，；\n]{1,60}[,;，；][^\S\n]*(?:(?:and|or)[^\S\n]+)?[A-Z0-9][^\S\n]*"
    r"(?:for|means|表示|代表)"
)
_ARTICLE = re.compile(
    r"[^\S\n]+(?!(?:o|ou|oder|eller|y|und|et|og|is|was|because|since|as|and|or|due|which|that|for)\b|[A-Z](?![A-Za-z]))[a-zA-Zà-ÿ0-9]"
)
# behind the first letter of a line
_AT_START = re.compile(r"[*_`\"')\]}>$]*(?:[.．:：)、,，;；。!！]|[^\S\n]*(?:\n|\Z)|[^\S\n]+[-–—(]|选?项)")
#: words with which an answer is taken back
_CORRECTS = re.compile(
    r"\b(?:wait|actually|correction|on second thought|mistake|i was wrong|that is wrong|that's wrong"
    r"|reconsider\w*|moment|perdón|espera|espere|pardon|подождите|vent)\b"
    r"|更正|不对|等等|等一下|错了|訂正|間違い",
    re.IGNORECASE,
)
_EXPLAINS = re.compile(
    r"\n[\s*_#>-]{0,8}(?:explanation|rationale|reason|because|analysis|justification|why|解析|分析|理由|解释|说明|因为|由于"
    r"|explicación|explication|erklärung|begründung|explicação|объяснение|обоснование|解説|forklaring)",
    re.IGNORECASE,
)
#: another option later on the first line: `A: 10%, B: 70%`
_ON_LINE = re.compile(r"[,;，；、][^\S\n]*[*(]{0,3}([A-Z])[)*]{0,3}[^\S\n]*[:：]")
_RIGHT = re.compile(
    r"(?<![A-Za-z])(?<![Nn]or )(?<![Nn]either )"
    r"([A-Z]{1,10}|[A-Z](?:(?:[、,和与及]| and | und | et | y )[A-Z]){1,9})[)\]*\"']{0,4}"
    r"\s{0,2}(?:选项|项)?\s{0,2}"
    r"(?:(?:is|would\s+be|are(?:\s+both)?|is\s+the)\s+(?:the\s+)?(?:most\s+likely\s+|single\s+)?(?:correct|right|best|most\s+appropriate|answer)\b"
    r"|(?:ist|er|est|es|é)\s+(?:die\s+|la\s+|a\s+|den\s+|det\s+)?(?:richtig|korrekt|riktig|bonne|correct|corret)"
    r"|die\s+(?:richtige|korrekte)\s|[が](?:正解|正しい|最も適切)|(?:都|均)?(?:是|为)?(?:唯一)?(?:正确|最佳|符合题意|最合适|对的))"
)
#: before an answer that is quoted, as an echo of the prompt quotes its form
_EXAMPLE = re.compile(r"(?:例如|比如|如|或|\bexample:?,?|\be\.g\.,?)\s{0,2}[\"“「『]\Z")
#: before the letter of another option than that with which a reply begins
_CORRECT_ONE = re.compile(
    r"\b(?:correct|right)\s{1,2}(?:answer|option|choice)\s{1,2}is\b|正确答案[是为]", re.IGNORECASE
)
#: behind a letter that is the answer only under a condition
_IF = re.compile(
    r"[^\n,;.]{0,60}[\s,](?:if|unless|when|falls|wenn|si|se|quand|cuando|quando|если|hvis)\b|[^\n，；。]{0,30}(?:如果|若|の場合)"
)
_MARKUP = re.compile(r"[*_`\"'\s]+")
#: of options; questions have at most ten
LETTERS = ascii_uppercase[:10]
#: beyond this a line is prose, not an option
_LONGEST_OPTION = 600
#: how far lines are looked at that begin with options
_LONGEST_LIST = 8_000


class _Group(NamedTuple):
    letters: tuple[int, ...]
    start: int
    end: int


@lru_cache(maxsize=32)
def _first(allowed: str, several: bool) -> re.Pattern[str]:
    small = "".join(letter.lower() for letter in allowed if letter.isalpha())
    run = rf"|[{allowed}](?=[A-Z]){_RUN_END}" if several else ""
    number = r"(?:\s{0,3}\d{1,2}[.)、]\s{0,3})?" if small else ""
    return re.compile(rf"{number}{_OPENING}([{allowed}{small}]{_NO_WORD}{run})")


def read_letters(reply: Reply, options: Sequence[str], allowed: str, *, several: bool) -> Extraction:
    """The chosen places, from 0, in ascending order.

    Signs in their order: a strong announcement; the letter, or the text of an option, with which the
    reply begins; a weak announcement; one option that is called right; a letter alone on the last line.

    Args:
        reply: to be read.
        options: their texts; empty where there are none.
        allowed: the letters, or digits, in the order of the options.
        several: whether an answer may have more than one letter.
    """
    if reply.begin >= reply.end:
        return Extraction(None, None, "the reply is empty")
    reader = _Reader(reply, options, allowed, several=several)
    return reader.read()


class _Reader:
    def __init__(self, reply: Reply, options: Sequence[str], allowed: str, *, several: bool) -> None:
        self.text, self.begin, self.end = reply.text, reply.begin, end_of_answer(reply)
        self.options, self.allowed, self.several = options, allowed, several
        self.first = _first(allowed, several)

    def read(self) -> Extraction:
        marked = markers(self.text, self.begin, self.end)
        if group := self._announced([marker for marker in marked if marker.strong]):
            later = self._announced([item for item in marked if not item.strong and item.start > group.end])
            if later and _CORRECTS.search(self.text, group.end, later.start):
                return self._found(later, "announced, and corrected")
            return self._found(group, "announced")
        first = self._at_start()
        said = self._announced([marker for marker in marked if not marker.strong])
        other = said and first and said.letters != first.letters
        if other and _CORRECT_ONE.search(self.text, first.end, said.start):  # type: ignore[union-attr]
            return self._found(said, "said to be the correct answer")  # type: ignore[arg-type]
        if first and (final := self._final(first, marked)):
            return self._found(final, "announced behind another one")
        if first and not (other and not self._stands_alone(first)):
            return self._found(first, "the reply begins with it")
        if said:
            return self._found(said, "said to be the answer")
        if first == ():
            return Extraction(None, None, "ambiguous: lines begin with several options")
        return self._called_right() or self._last_line() or NOTHING

    def _announced(self, marked: list[Marker]) -> _Group | None:
        """What the last announcement announces that is neither quoted, as in an echo of the prompt, nor
        followed by a list of the options."""
        for marker in reversed(marked):
            quoted = _EXAMPLE.search(self.text[max(0, marker.start - 12) : marker.start])
            group = None if quoted else self._said(marker.end)
            if group and not self._is_list(group, marker.end):
                return group
        return None

    def _final(self, first: _Group, marked: list[Marker]) -> _Group | None:
        """Another answer than that with which the reply begins, named by the last sentence that says what
        the answer is."""
        said = self._announced([item for item in marked if item.sentence and item.start >= first.end])
        if not said or said.letters == first.letters or _IF.match(self.text, said.end, self.end):
            return None
        return said

    def _is_list(self, group: _Group, place: int) -> bool:
        """Whether lines list the options: all of them, or the first ones from the next line on."""
        below = "\n" in self.text[place : group.start]
        if len(group.letters) == self._size > 1 and "\n" in self.text[group.start : group.end]:
            return True
        others = self._begun(group) if below else []
        return len(others) > 1 and group.letters[0] == 0 and self._lists(group, others)

    def _stands_alone(self, group: _Group) -> bool:
        """Whether nothing but the letters, or the option's text, stands on the line."""
        return bool(_END.match(self.text, group.end, self.end)) or self._begins_with_option(group)

    def _found(self, group: _Group, why: str) -> Extraction:
        if len(group.letters) > 1 and not self.several:
            return Extraction(None, (group.start, group.end), "ambiguous: several letters")
        if any(place >= self._size for place in group.letters):
            return Extraction(None, (group.start, group.end), "a letter without option")
        return Extraction(sorted(group.letters), (group.start, group.end), why)

    @property
    def _size(self) -> int:
        return len(self.options) if self.options else len(self.allowed)

    # ------------------------------------------------------------------ what stands at a place

    def _said(self, place: int) -> _Group | None:
        """Letters, or the text of an option, that stand at a place."""
        by_text = self._option_text(place)
        group = self._letters(place)
        if group is None or (by_text and len(by_text.letters) == 1 and self._is_name(group, by_text)):
            return by_text
        return group

    @staticmethod
    def _is_name(group: _Group, by_text: _Group) -> bool:
        """Whether the letter belongs to an option's own text, as in `C. difficile`."""
        return by_text.start <= group.start and by_text.end > group.end + 1

    def _letters(self, place: int) -> _Group | None:
        match = self.first.match(self.text, place, self.end)
        if not match:
            return None
        start, end = match.span(1)
        letter = match[1]
        if (
            letter.islower()
            and not _END.match(self.text, end, self.end)
            and self.text[start - 1 : start] not in "([{"
        ):
            return None
        if self._is_article(letter, end) or any(
            pattern.match(self.text, end, self.end) for pattern in (_DENIED, _EACH)
        ):
            return None
        chosen = [self._place(letter)]
        while len(chosen) < len(ascii_uppercase) and (more := self._next(end)):
            chosen.append(self._place(self.text[more[0]]))
            end = more[1]
        if self.several:
            end = self._lines_below(end, chosen)
        return self._consistent(_Group(tuple(dict.fromkeys(chosen)), start, end))

    def _behind(self, place: int, n: int) -> str:
        """So many characters of the answer from a place on, or what is left of it."""
        return self.text[place : min(self.end, place + n)]

    def _place(self, letter: str) -> int:
        return self.allowed.index(letter.upper())

    def _is_article(self, letter: str, end: int) -> bool:
        """`A` before a word that is no text of option A, and `I`."""
        if letter not in "AIEO" or not _ARTICLE.match(self.text, end, self.end):
            return False
        place = self.allowed.index(letter)
        option = self.options[place] if place < len(self.options) else ""
        rest = _plain(self._behind(end, len(option) + 8))
        return not (option and rest.startswith(_plain(option)[:40]))

    def _next(self, end: int) -> tuple[int, int] | None:
        """The next letter on the line that belongs to the answer: (its place, the end)."""
        text, limit = self.text, self.end
        place = self._place(text[end - 1])
        own = _plain(self.options[place]) if place < len(self.options) else ""
        if own and _plain(self._behind(end, len(own) + 8)).startswith(own[:40]):
            return self._next_with_text(end, self.options[place]) if self.several else None
        end = _CLOSED.match(text, end, limit).end()  # type: ignore[union-attr]
        for joint, sure in ((_JOINT, True), (_COMMA, False)):
            between = joint.match(text, end, limit)
            if not between:
                continue
            match = _LETTER.match(text, between.end(), limit)
            if not match or match[1] not in self.allowed:
                continue
            if _DENIED.match(text, match.end(1), limit):
                continue
            direct = between.end() == end
            if direct and not self.several:
                continue
            if sure or direct or _AFTER_COMMA.match(text, match.end(1), limit):
                return match.start(1), match.end(1)
        return None

    def _next_with_text(self, end: int, own: str) -> tuple[int, int] | None:
        """The next letter on the line, behind an option's text and before its own."""
        behind = self.text.find(own, end, min(self.end, end + len(own) + 8))
        match = (
            _LETTER.match(self.text, between.end(), self.end)
            if behind >= 0 and (between := _COMMA.match(self.text, behind + len(own), self.end))
            else None
        )
        if not match or match[1] not in self.allowed or self._place(match[1]) >= len(self.options):
            return None
        text = _plain(self.options[self._place(match[1])])
        follows = _plain(self._behind(match.end(1), len(text) + 8)).startswith(text[:40])
        return (match.start(1), match.end(1)) if follows else None

    def _lines_below(self, end: int, chosen: list[int]) -> int:
        """Of several answers each may stand on a line of its own, as `A. ` and its text, or as the letter."""
        while (line_end := self.text.find("\n", end, self.end)) >= 0 and len(chosen) < len(ascii_uppercase):
            first = self.first.match(self.text, line_end, self.end)
            if not first or "\n" in first[0].lstrip()[:-1] or not first[1].isupper():
                return end
            rest_end = self.text.find("\n", first.end(), self.end)
            rest = self.text[first.end() : rest_end if rest_end >= 0 else self.end]
            place = self._place(first[1])
            if place <= chosen[-1]:  # the options are listed anew
                return end
            own = self.options[place] if place < len(self.options) else None
            if rest.strip(" .。*)") and (own is None or _plain(rest) != _plain(own)):
                return end
            chosen.append(place)
            end = first.end() + len(rest)
        return end

    def _consistent(self, group: _Group) -> _Group:
        """A letter with the text of another option is both of them."""
        if len(group.letters) == 1 and self.options:
            rest_end = self.text.find("\n", group.end, self.end)
            rest = self.text[group.end : rest_end if rest_end >= 0 else self.end]
            if 0 < len(rest) < _LONGEST_OPTION and (plain := _plain(rest)):
                named = [
                    place
                    for place, option in enumerate(self.options)
                    if len(plain) > 1 and _plain(option) == plain
                ]
                if named and group.letters[0] not in named:
                    return _Group((group.letters[0], named[0]), group.start, group.end)
        return group

    def _option_text(self, place: int) -> _Group | None:
        """The option whose whole text is the first line that is not empty from a place on."""
        if not self.options:
            return None
        rest = self.text[place : min(self.end, place + _LONGEST_OPTION)]
        line = rest.lstrip(" \t\n*_`\"'([{#>$")
        begin = place + len(rest) - len(line)
        line = line.split("\n", 1)[0]
        plain = _plain(line)
        if not plain:
            return None
        named = [
            number
            for number, option in enumerate(self.options)
            if len(_plain(option)) > 1 and _plain(option) == plain
        ]
        return _Group((named[0],), begin, begin + len(line)) if len(named) == 1 else None

    # ------------------------------------------------------------------ the reply as a whole

    def _at_start(self) -> _Group | tuple[()] | None:
        """What the reply begins with; an empty tuple where lines list several options."""
        match = self.first.match(self.text, self.begin, self.end)
        group = self._said(self.begin)
        if not group:
            return None
        if match and match.start(1) == group.start:
            has_text = self._begins_with_option(group)
            joined = len(group.letters) > 1 and not self.several
            if not has_text and not joined and not _AT_START.match(self.text, group.end, self.end):
                return None
        if len(group.letters) == self._size > 1 and "\n" in self.text[group.start : group.end]:
            return ()
        if _ON_LINE.search(self.text, group.end, self._line_end(group.end)):
            return ()
        others = self._begun(group)
        if others and not self.several:
            return () if self._lists(group, others) else group
        if others and self._lists(group, others):
            return ()
        return group

    def _line_end(self, place: int) -> int:
        line_break = self.text.find("\n", place, self.end)
        return self.end if line_break < 0 else line_break

    def _begins_with_option(self, group: _Group) -> bool:
        place = group.letters[0]
        if len(group.letters) > 1 or place >= len(self.options):
            return False
        own = _plain(self.options[place])
        return bool(own) and _plain(self._behind(group.end, len(own) + 12)).startswith(own[:40])

    def _begun(self, group: _Group) -> list[tuple[int, int]]:
        """(option, place) of later lines that begin with another option, in the first part of the reply."""
        begun = []
        for match in _LINE_LETTER.finditer(self.text, group.end, min(self.end, group.end + _LONGEST_LIST)):
            letter = match[1]
            if letter in self.allowed and self._place(letter) not in group.letters:
                begun.append((self._place(letter), match.start()))
        return begun

    def _lists(self, group: _Group, others: list[tuple[int, int]]) -> bool:
        """Whether lines list options of which the first is no answer: A, B, C in their order, without a
        break."""
        between = self.text[group.end : others[0][1]]
        if _EXPLAINS.search(between) or "\n\n" in between.strip(" "):
            return False
        if group.letters == tuple(range(others[0][0])):
            return True
        return len({place for place, _ in others}) < 2

    def _called_right(self) -> Extraction | None:
        said: dict[int, tuple[int, int]] = {}
        for match in _RIGHT.finditer(self.text, max(self.begin, self.end - LONGEST), self.end):
            places = [self.allowed.find(letter) for letter in match[1] if letter.isupper()]
            if all(0 <= place < self._size for place in places):
                said.update(dict.fromkeys(places, match.span(1)))
        if not said:
            return None
        if len(said) > 1 and not self.several:
            return Extraction(None, None, "ambiguous: several options are called right")
        return Extraction(sorted(said), next(iter(said.values())), "called right")

    def _last_line(self) -> Extraction | None:
        line = self.text.rfind("\n", self.begin, self.end) + 1
        if line <= self.begin:
            return None
        match = self.first.match(self.text, line, self.end)
        if not match or match[1].islower():
            return None
        group = self._letters(line)
        if group and _END.match(self.text, group.end, self.end) and not self._ends_list(group, line):
            return self._found(group, "alone on the last line")
        return None

    def _ends_list(self, group: _Group, line: int) -> bool:
        """Whether the lines above begin with the options before it, so that a list of them was cut."""
        above = self.text[max(self.begin, line - _LONGEST_LIST) : line]
        places = {self.allowed.find(match[1]) for match in _LINE_LETTER.finditer(f"\n{above}")}
        return group.letters[0] > 1 and places.issuperset(range(group.letters[0]))


_LETTER = re.compile(
    r"[*_`\"'(\[{$\\]*(?:(?:[Oo]ption\s+|选项\s*)[*_`\"'(\[]*)?([A-Z0-9])(?![a-z0-9_]|'[a-z]|-[A-Za-z0-9]|[.,]\d|[À-ɏа-яА-Я])"
)
_LINE_LETTER = re.compile(
    r"\n[\s*_`\"'(\[#>•-]{0,8}(?:[Oo]ption\s+|选项\s*)?[*(\[]*([A-Z0-9])[*_`\"')\]]*[.．:：)、]"
)


@lru_cache(maxsize=4_096)
def _plain(text: str) -> str:
    """Without markup, blanks and marks around it, in one case."""
    return _MARKUP.sub(" ", narrow(text)).strip(" .。,，;；:：!！()[]{}$\\、-").casefold()
