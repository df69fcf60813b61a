"""What is left of a reply without what is said around an answer: a heading, a fence, a phrase before it."""

from __future__ import annotations

import re
from functools import lru_cache

from medtasks_ext.answers.tolerant.markers import markers
from medtasks_ext.answers.tolerant.reply import LONGEST, Reply, Span

_FENCE = re.compile(r"```[^\S\n]{0,4}([\w+-]{0,20})[^\S\n]*\n(.*?)(?:```|\Z)", re.DOTALL)
_SQL_ELEMENT = re.compile(r"<\s*sql\s*>", re.IGNORECASE)
_SQL_END = re.compile(r"</?\s*sql\s*>", re.IGNORECASE)
_SQL = re.compile(
    r"(?:^|(?<=[\n:`*]))[\s`*>]{0,8}\b((?:select\b(?![^\n]{0,200}\bthe\b[^;]{0,80}\.\s*$)|with\s+(?:recursive\s+)?\w{1,40}\s+as\s*\())",
    re.IGNORECASE | re.MULTILINE,
)
_SQL_STOP = re.compile(
    r";(?=\s*(?:\n|\Z|`))|;(?=\s+[A-Z][a-z])|\n\s*\n"
    r"|\n(?=(?:this|the|note|explanation|here|it|i|that)\b)|```|</?\s*sql",
    re.IGNORECASE,
)
_NULL = re.compile(
    r"[\s`*\"'.;]*(?:null|none|n/a|not\s+answerable|unanswerable|empty)?[\s`*\"'.;]*\Z", re.IGNORECASE
)


def after_last_marker(reply: Reply) -> Span:
    """What follows the last strong announcement behind which something stands; without one the reply."""
    for marker in reversed(markers(reply.text, reply.begin, reply.end)):
        if marker.strong and reply.text[marker.end : reply.end].strip(" \t\n*_`#>"):
            return marker.end, reply.end
    return reply.begin, reply.end


def ends_with_marker(reply: Reply) -> bool:
    """Whether the answer is announced, and nothing follows."""
    found = [marker for marker in markers(reply.text, reply.begin, reply.end) if marker.strong]
    return bool(found) and not reply.text[found[-1].end : reply.end].strip(" \t\n*_`#>")


def fenced(text: str, begin: int, end: int) -> Span | None:
    """The last block between fences, which may be open at the end."""
    found = None
    for match in _FENCE.finditer(text, begin, end):
        found = match.span(2)
    return found


def trimmed(text: str, begin: int, end: int, marks: str = " \t\n\r*_`#>\"'") -> Span:
    """A stretch without marks around it."""
    part = text[begin:end]
    begin += len(part) - len(part.lstrip(marks))
    return begin, max(begin, end - (len(part) - len(part.rstrip(marks))))


@lru_cache(maxsize=8)
def _heading(words: str) -> re.Pattern[str]:
    return re.compile(
        rf"^[^\S\n]*(?:[*_#\[]{{1,8}}[^\S\n]*)?(?:final\s+)?(?:{words})[\]*_]{{0,4}}[^\S\n]*(?::[*_]{{0,4}}|(?<=[*\]])[^\S\n]*$|$)",
        re.IGNORECASE | re.MULTILINE,
    )


def text_of(reply: Reply, words: str) -> Span:
    """A free text: what follows the first line that begins with one of the words and a colon, or is one
    of them as a heading; of a text that is one fenced block the block."""
    begin, end = reply.begin, reply.end
    if found := _heading(words).search(reply.text, begin, end):
        begin = found.end() if reply.text[found.end() : end].strip() else begin
    begin, end = trimmed(reply.text, begin, end, " \t\n\r")
    whole = _FENCE.match(reply.text, begin, end)
    if whole and not reply.text[whole.end() : end].strip():
        begin, end = trimmed(reply.text, *whole.span(2), " \t\n\r")
    return begin, end


def sql_of(reply: Reply) -> Span | None:
    """The SQL statement of a reply: an element `<sql>`, a fence, or what begins with SELECT or WITH."""
    text, begin = reply.text, reply.begin
    end = min(reply.end, begin + LONGEST)
    elements = list(_SQL_ELEMENT.finditer(text, begin, end))
    if elements:
        stop = _SQL_END.search(text, elements[-1].end(), end)
        return trimmed(text, elements[-1].end(), stop.start() if stop else end, " \t\n\r`")
    if block := fenced(text, begin, end):
        begin, end = block
    begins = [match.start(1) for match in _SQL.finditer(text, begin, end)]
    if not begins:
        return None
    if block:
        return trimmed(text, begins[0], end, " \t\n\r`")
    last = next((place for place in reversed(begins)), begins[0])
    stop = _SQL_STOP.search(text, last, end)
    finish = (stop.end() if stop[0] == ";" else stop.start()) if stop else end
    return trimmed(text, last, finish, " \t\n\r`*")


def is_abstention(text: str) -> bool:
    """Whether a text says that there is no answer."""
    return bool(_NULL.match(text))
