"""The repaired reading of BRIDGE labels and lists, which stands beside the official one.

A label counts where it stands alone, a piece of a list counts where it is the label, and an answer
that says two things is no answer.
All patterns need time proportional to the length of a response.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

from medtasks_ext.answers.normalise import fold
from medtasks_ext.answers.tolerant.json_text import values
from medtasks_ext.answers.tolerant.markers import markers
from medtasks_ext.answers.tolerant.reply import Reply

#: a letter or digit of a script that sets words apart; Chinese and Japanese do not
_LETTER = r"[^\W_\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
_IS_LETTER = re.compile(_LETTER)
_BLANKS = re.compile(r"[\s-]+")
#: what says in front of a label that it is not the one
_DENIALS = ("not ", "不是", "并非", "não é ", "no es ", "nicht ", "ikke ", "не ", "pas ")
#: what makes a letter behind it a part of a name: hepatitis C, vitamin D, type B
_OF_A_NAME = re.compile(r"\b(?:hepatitis|vitamin|influenza|protein|factor|type)[ \t]\Z")
_OPENING = re.compile(r"[\s*`\"'_~\[({<【「『«#>•-]*")
#: what joins two labels into "one or both of them", in the languages of the suite
_JOINED = re.compile(
    r"[\s,/、;|&+*`\"'_)\]】」』»]*"
    r"(?:(?:and|or|to|y|o|u|e|et|ou|à|und|oder|bis|og|eller|и|или|和|或|或者|及|与|至|到|または|と|から)"
    r"[\s*`\"'_(\[【「『«]*)?"
)
_RANGE = re.compile(r"[\s*]*[-–—~〜][\s*]*")


_IS = r"(?:[-–—=→]|is|are|es|son|são|est|sont|ist|sind|er|是|为|は)"


class Prefix:
    """The words before the colon of an answer line, as in `Length of stay: B`.

    Blanks and hyphens between the words are interchangeable; emphasis and quotes before the colon
    do no harm. Without a colon the words count as a heading, or before a dash or a verb.
    """

    def __init__(self, prefix: str) -> None:
        words = _BLANKS.split(fold(prefix))
        written = r"[ \t-]*".join(map(re.escape, words))
        self._pattern = re.compile(written + r"[ \t*`\"'_]*:")
        self._without_colon = re.compile(
            rf"^[\s#*_>]{{0,8}}{written}[*`\"'_]{{0,3}}(?:[ \t]{{0,3}}\n|[ \t]{{0,3}}{_IS}(?!\w))",
            re.MULTILINE,
        )

    def end_of_last(self, response: str) -> int | None:
        """Where the last answer line's value begins; None without such a line.

        The last one counts, since a response ends with its answer: an earlier line under the same
        prefix is a draft, or the form of the answer quoted from the prompt.
        """
        end = None
        for match in self._pattern.finditer(response):
            if not _IS_LETTER.match(response[match.start() - 1 : match.start()]):
                end = match.end()
        if end is None and (bare := list(self._without_colon.finditer(response))):
            return bare[-1].end()
        return end


class LabelReader:
    """Finds the one label that a response gives.

    Args:
        prefix: the answer line's.
        labels: as the task lists them.
        aliases: other spelling -> label.
        several: whether an answer may have more than one; it is then the set of them.
    """

    def __init__(
        self, prefix: str, labels: Iterable[str], aliases: Mapping[str, str], *, several: bool
    ) -> None:
        self._prefix, self._several = Prefix(prefix), several
        names = {fold(label): fold(label) for label in labels}
        names |= {fold(other): fold(label) for other, label in aliases.items()}
        self._labels = {_BLANKS.sub(" ", name): label for name, label in names.items()}
        ordered = sorted(names, key=len, reverse=True)
        largest = max(ordered, key=int) if all(name.isdecimal() for name in ordered) else None
        self._pattern = re.compile("|".join(_number(n, largest) if largest else _alone(n) for n in ordered))

    def read(self, response: str) -> str | None:
        """The label, lower-cased; several are sorted and joined by commas; None if there is no answer.

        The last answer line decides if there is one (its value may stand on the line below);
        otherwise the whole response does. It must name exactly one distinct label. An answer line
        may name others behind the label with which it begins, as explanations do (`Yes. There is no
        bleeding`), unless they are joined to it (`yes or no`, `A, B`).
        """
        begin, end = self._prefix.end_of_last(response), len(response)
        if begin is None:
            return self._only(self._named(response, 0, end))
        begin = _OPENING.match(response, begin).end()  # type: ignore[union-attr]
        line_end = response.find("\n", begin)
        named = list(self._named(response, begin, line_end if line_end >= 0 else end))
        label = self._only(named)
        if label is None and named and named[0][1] == begin and not self._is_joined(response, named):
            return named[0][0]
        return label

    def place(self, response: str, answer: str) -> tuple[int, int] | None:
        """Where the answer's first label stands."""
        begin, wanted = self._prefix.end_of_last(response) or 0, answer.split(", ")
        spans = (
            item
            for item in self._named(response, begin, len(response))
            if item[0] in wanted or item[0] == answer
        )
        return next(((start, end) for _, start, end in spans), None)

    def _named(self, text: str, begin: int, end: int) -> Iterator[tuple[str, int, int]]:
        for match in self._pattern.finditer(text, begin, end):
            if text[max(0, match.start() - 6) : match.start()].endswith(_DENIALS):
                continue
            if (
                match[0].isalpha()
                and len(match[0]) == 1
                and _OF_A_NAME.search(text[max(0, match.start() - 12) : match.start()])
            ):
                continue
            name = match[match.lastindex] if match.lastindex else match[0]
            yield self._labels.get(name) or self._labels[_BLANKS.sub(" ", name)], match.start(), match.end()

    def _only(self, named: Iterable[tuple[str, int, int]]) -> str | None:
        labels: set[str] = set()
        for label, _, _ in named:
            labels.add(label)
            if len(labels) > 1 and not self._several:
                return None
        return ", ".join(sorted(labels)) or None

    @staticmethod
    def _is_joined(text: str, named: list[tuple[str, int, int]]) -> bool:
        """Whether another label is joined to the first one."""
        for (_, _, end), (label, start, _) in pairwise(named):
            dash = _RANGE.fullmatch(text, end, start) and len(label) == len(named[0][0]) == 1
            if not (dash or _JOINED.fullmatch(text, end, start)):
                return False
            if label != named[0][0]:
                return True
        return False


def _alone(name: str) -> str:
    """A label that is no part of a longer word or of a word with a hyphen."""
    first, last = re.escape(name[0]), name[-1]
    # the look-behinds stand after the first character, since a literal in front is searched faster
    before = rf"(?<!{_LETTER}{first})(?<!{_LETTER}-{first})" if _IS_LETTER.match(name) else ""
    after = rf"(?!-?{_LETTER})" if _IS_LETTER.match(last) else ""
    if name == "a":  # before another word it is the article
        after += rf"(?![^\S\n]+{_LETTER})"
    return first + before + r"[\s-]+".join(map(re.escape, _BLANKS.split(name[1:]))) + after


def _number(digit: str, largest: str) -> str:
    """A whole number: `4`, `4.0` and `4/5` are 4; `4.5`, `-4`, `14`, `3-4` and `4/10` are not."""
    places = (_LETTER, rf"{_LETTER}-", r"\d[.,/]", r"\d/ ", r"\A-", r"\s-")
    before = "".join(f"(?<!{place}{digit})" for place in places)
    after = rf"(?:[.,]0+)?(?: ?/ ?{largest}(?:[.,]0+)?)?(?!-?{_LETTER}|[.,]\d| ?/ ?\d)"
    return f"({digit}){before}{after}"


# ---------------------------------------------------------------------- lists

_BULLET = re.compile(r"[-*•·–—>]+\s+|\(?\d{1,3}[.)、](?!\d)\s*")
_WORD = re.compile(r"\w")
_EDGES = " \t*`\"'_~.«»「」『』“”\\}"
_PAIRS = {"[": "]", "(": ")", "{": "}", "<": ">", "【": "】"}
_SEPARATOR = re.compile(r"[,;、]")
_SEPARATOR_OR_BRACKET = re.compile(r"[,;、()]")
_AND = re.compile(r"(?<!\s)\s+(?:and|y|e|et|und|og|и)\s+|和|と|及")
_CODE = re.compile(r"[a-z]{0,2}\d[\w./-]*\s*\Z")
#: a list of codes has one piece at least that begins as a code does: `m47`, `8140/3`
_BEGINS_AS_CODE = re.compile(r"[a-z]{0,2}\d[\w./-]+")
_OF_CODES = re.compile(r"\b(?:code|icd)", re.IGNORECASE)


class ListReader:
    """Reads the pieces of a list.

    Args:
        prefix: the answer line's.
        labels: the closed list that pieces come from; None: an open list of codes or terms.
    """

    def __init__(self, prefix: str, labels: Iterable[str] | None = None) -> None:
        self._prefix = Prefix(prefix)
        self._codes = labels is None and bool(_OF_CODES.search(prefix))
        names = None if labels is None else [fold(label) for label in labels]
        self._labels = None if names is None else {_plain(name): name for name in names}

    def read(self, response: str) -> list[str] | None:
        """The pieces, sorted and distinct; None where there are none.

        The list is the rest of the last answer line; where that is empty, the line or the bullets
        below. Without an answer line it is the first line, or the bullets, that follow headings; of a
        closed list one piece must then be a label, since anything else is prose. Pieces outside a
        closed list stay as they are, so that they count as wrong. Where the prefix asks for codes, one
        piece must begin as codes do.
        """
        begin = self._prefix.end_of_last(response)
        headed, parts = begin is None, _of_json(response) if "{" in response or "[" in response else None
        if begin is None and (announced := _announced(response)):
            begin, headed = announced, False
        if parts is None:
            lines = _list_lines(response[begin:] if begin else response, headed=headed)
            parts = [part for line in lines for part in _split(line)]
        pieces = {piece for part in self._separated(parts) if (piece := self._piece(part))}
        known = self._labels and any(piece in self._labels.values() for piece in pieces)
        if self._codes and not any(_BEGINS_AS_CODE.match(piece) for piece in pieces):
            return None
        if not pieces or (headed and self._labels and not known):
            return None
        return sorted(pieces)

    def _separated(self, parts: list[str]) -> Iterator[str]:
        """The parts, those of two labels or codes with a word between them as two."""
        for part in parts:
            both = _AND.split(part)
            if len(both) > 1 and all(self._is_one(piece) for piece in both):
                yield from both
            else:
                yield part

    def _is_one(self, text: str) -> bool:
        piece = self._piece(text)
        return piece in self._labels.values() if self._labels else bool(_CODE.match(piece))

    def _piece(self, text: str) -> str:
        """A piece without bullet, emphasis, quotes, brackets around it, full stop and bracketed remark."""
        text = text.strip()
        if text.isalnum():
            return self._labels.get(text, text) if self._labels else text
        bullet = _BULLET.match(text)
        piece = _plain(text[bullet.end() :] if bullet else text)
        if self._labels is not None and piece in self._labels:
            return self._labels[piece]
        name = _plain(piece.partition(":")[0])
        if self._labels.get(name) if self._labels else ":" in piece and _CODE.match(name):
            piece = self._labels[name] if self._labels else name  # a reason stands behind it
        if piece.endswith(")") and "(" in piece[1:]:
            bare = piece[: piece.index("(", 1)]
            if self._labels is not None:
                return self._labels.get(_plain(bare), piece)
            # brackets are part of many terms, but of no code
            return _plain(bare) if _CODE.match(bare) else piece
        return piece


def _announced(response: str) -> int | None:
    """Where a list begins that is said to be the answer without the words of the answer line."""
    marked = markers(response, 0, len(response))
    chosen = [marker for marker in marked if marker.strong] or marked
    return chosen[-1].end if chosen and _WORD.search(response, chosen[-1].end) else None


def _of_json(response: str) -> list[str] | None:
    """The texts of an answer that is one object with one value, or one array; None where it is none."""
    objects = values(response, Reply(response, 0, len(response), traced=False))
    value = objects[-1].value if objects else None
    if isinstance(value, dict) and len(value) == 1:
        [value] = value.values()
        value = _split(value) if isinstance(value, str) else value
    elif isinstance(value, dict) or not response.lstrip(" \t\n`*jsonaw").startswith("["):
        return None
    texts = isinstance(value, list) and all(isinstance(item, str) for item in value)
    return value if value and texts else None


def _plain(text: str) -> str:
    return " ".join(_unwrapped(text.strip().strip(_EDGES)).strip(_EDGES).split())


def _unwrapped(text: str) -> str:
    """The inside of a pair of brackets around the whole text."""
    closing = _PAIRS.get(text[:1])
    return text[1:-1] if closing and text.find(closing) == len(text) - 1 else text


def _list_lines(text: str, *, headed: bool) -> list[str]:
    """The lines that hold a list, without bullets: the first that says something, or all from it on
    that have a bullet.

    Args:
        text: what follows the prefix, or the whole response.
        headed: whether lines that end with a colon may stand before the list.
    """
    items: list[str] = []
    begin = 0
    while begin <= len(text):
        end = text.find("\n", begin) % (len(text) + 1)  # -1 becomes the end of the text
        line, begin = text[begin:end].strip(), end + 1
        if not _WORD.search(line) or (headed and not items and line.rstrip(_EDGES).endswith(":")):
            continue
        bullet = _BULLET.match(line)
        if bullet or not items:
            items.append(line[bullet.end() :] if bullet else line)
        if not bullet:
            break
    return items


def _split(line: str) -> list[str]:
    """The pieces of a line; separators within round brackets do not separate."""
    if line[:1] in _PAIRS:
        line = _unwrapped(line.rstrip(_EDGES))
    if "(" not in line or line.count("(") != line.count(")"):
        return _SEPARATOR.split(line)
    pieces, begin, depth = [], 0, 0
    for match in _SEPARATOR_OR_BRACKET.finditer(line):
        if match[0] in "()":
            depth = max(0, depth + (1 if match[0] == "(" else -1))
        elif not depth:
            pieces.append(line[begin : match.start()])
            begin = match.end()
    return [*pieces, line[begin:]]
