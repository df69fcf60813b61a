"""JSON as models write it: single quotes, trailing commas, full-width punctuation, fences, a cut end.

A text is read strictly first. What is no JSON is read once more by a parser that forgives slips, with
limits on depth and on how many beginnings are tried, so that a hostile text costs no more than its
length. What is read strictly has the limits of `medtasks_ext.jsonfile`.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any, NamedTuple

from medtasks_ext.answers.reader.reply import Reply, Span
from medtasks_ext.jsonfile import MAX_DEPTH, Json, is_deep

#: nesting of what is read forgivingly, beginnings that turn out to be none, and digits of a number
MAX_NESTED, MAX_FALSE_STARTS, MAX_DIGITS = 20, 50, 400
#: arrays and objects that are read
MAX_VALUES = 5_000
#: tokens that are read forgivingly in one reply, and characters that are read strictly in vain
MAX_TOKENS, MAX_IN_VAIN = 20_000, 500_000

_BEGIN = re.compile(r"[\[{]")
_TOKEN = re.compile(
    r"\s*(?:(?P<mark>[\[\]{}:,;])|\"(?P<double>(?:[^\"\\]|\\.)*)\"|'(?P<single>(?:[^'\\\n]|\\.)*)'(?=\s*[,:;\]}])"
    r"|(?P<bare>[^\[\]{}:,;\"'\n][^\[\]{}:,;\"\n]*))",
    re.DOTALL,
)
_MARK = re.compile(r"\s*([\[\]{}:,;])")
_COMMENT = re.compile(r"(?<=[,\[\]{}])[ \t]{0,8}//[^\n\"]{0,200}$", re.MULTILINE)
_DECODER = json.JSONDecoder()
_WORDS = {"null": None, "none": None, "true": True, "false": False}


class Value(NamedTuple):
    """A value and where it stands.

    Attributes:
        value: an array or an object.
        span: in the response.
        whole: whether it was closed.
    """

    value: Any
    span: Span
    whole: bool


def values(response: str, reply: Reply) -> list[Value]:
    """All arrays and objects of a reply that are inside no other one, in their order."""
    if "//" in reply.text:  # a comment
        text = _COMMENT.sub(lambda match: " " * len(match[0]), reply.text)
        reply = replace(reply, text=text)
    parsed: list[Value] = []
    place, end, false_starts = reply.begin, reply.end, 0
    tokens, in_vain = MAX_TOKENS, 0
    while (
        len(parsed) < MAX_VALUES
        and false_starts < MAX_FALSE_STARTS
        and tokens > 0
        and (start := _BEGIN.search(reply.text, place, end))
    ):
        begin = start.start()
        if in_vain < MAX_IN_VAIN:
            try:
                value, stop = _DECODER.raw_decode(response, begin)
            except json.JSONDecodeError as error:
                in_vain += error.pos - begin
            except (ValueError, RecursionError):  # a number of thousands of digits; deep nesting
                in_vain += MAX_IN_VAIN
            else:
                if stop - begin <= 2 * MAX_DEPTH or not is_deep(value):
                    parsed.append(Value(value, (begin, min(stop, end)), whole=True))
                    place = stop
                    continue
                in_vain += MAX_IN_VAIN
        forgiving = _Parser(reply.text, begin, end, tokens)
        value = forgiving.value(0)
        tokens = forgiving.tokens
        if forgiving.read or (forgiving.whole and forgiving.place > begin + 1):
            parsed.append(Value(value, (begin, forgiving.place), whole=forgiving.whole))
            place = max(forgiving.place, begin + 1)
        else:
            false_starts += 1
            place = begin + 1
    return parsed


class _Parser:
    """Reads one value. `read`: something was read; `whole`: it was closed."""

    def __init__(self, text: str, place: int, end: int, tokens: int) -> None:
        self.text, self.place, self.end, self.tokens = text, place, end, tokens
        self.read, self.whole = False, True

    def _next(self) -> tuple[str, str] | None:
        match = _TOKEN.match(self.text, self.place, self.end)
        self.tokens -= 1
        if not match or match.end() == self.place or self.tokens < 0:
            return None
        self.place = match.end()
        kind = match.lastgroup or ""
        return kind, match[kind]

    def _peek(self) -> str:
        match = _MARK.match(self.text, self.place, self.end)
        return match[1] if match else ""

    def value(self, depth: int) -> Any:
        token = self._next()
        if token is None or depth > MAX_NESTED:
            self.whole = False
            return None
        kind, text = token
        if kind == "mark":
            if text == "{":
                return self._object(depth)
            if text == "[":
                return self._array(depth)
            self.whole = False
            return None
        return _scalar(kind, text)

    def _array(self, depth: int) -> list[Any]:
        items: list[Any] = []
        while self.tokens > 0:
            mark = self._peek()
            if mark == "]":
                self._next()
                return items
            if mark in (",", ";"):
                self._next()
                continue
            if mark in ("}", ":"):  # a bracket of the wrong kind closes, too
                self.whole = False
                return items
            before, was_whole = self.place, self.whole
            item = self.value(depth + 1)
            if self.place == before or (not self.whole and was_whole and not isinstance(item, (dict, list))):
                self.whole = False
                return items
            if isinstance(item, (dict, list)) and not item and not self.whole:
                return items
            items.append(item)
            if not self.whole and self.place >= self.end:
                break
        return items

    def _object(self, depth: int) -> Json:
        members: Json = {}
        while self.tokens > 0:
            mark = self._peek()
            if mark == "}":
                self._next()
                return members
            if mark in (",", ";"):
                self._next()
                continue
            if mark in ("]", "{", "["):  # the closing brace is missing
                self.read = self.read or bool(members)
                return members
            key = self._next()
            if key is None or key[0] == "mark" or self._peek() != ":":
                self.whole = False
                return members
            self._next()
            before = self.place
            value = self.value(depth + 1)
            if self.place == before or (value is None and not self.whole):
                self.whole = False
                return members
            members[key[1].strip().strip("\"'")] = value
            self.read = True
        return members


def _scalar(kind: str, text: str) -> Any:
    if kind == "bare":
        text = text.strip()
        return _WORDS.get(text.lower(), text[:MAX_DIGITS] if text.isdecimal() else text)
    if "\\" in text:
        try:
            return json.loads(f'"{text}"') if kind == "double" else text.replace("\\'", "'")
        except ValueError:
            return text
    return text
