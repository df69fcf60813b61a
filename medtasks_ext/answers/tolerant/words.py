"""One of a few labels: yes and no, or names of classes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from medtasks_ext.answers.tolerant.markers import end_of_answer, markers
from medtasks_ext.answers.tolerant.reply import LONGEST, NOTHING, Extraction, Reply

_MARKS = r"[\s*_`\"'(\[{<$\\#>~•:-]{0,12}"
_CLOSED = r"[*_`\"')\]}>$]{0,8}"
#: what joins two labels into "one or both"; a blank alone does, too (`maybe yes`)
_JOINT = re.compile(
    r"[*_`\"')\]}>$]{0,8}\s{0,3}(?:,|/|\||&|\+|和|或|(?:and|or|but|y|o|et|ou|und|oder|e|и|или|og|eller)(?!\w))?\s{0,3}[*_`\"'(\[<]{0,8}",
    re.IGNORECASE,
)
_NO_LABEL = re.compile(r"[^\S\n]+(?:doubt|question|problem|matter|way\s+to)\b", re.IGNORECASE)
_IF = re.compile(r"\s+if\b")
_SENTENCE_STOP = re.compile(r"[.!?。]\s+(?=\S)|\n\s*(?=\S)")
_CONCLUDES = re.compile(
    r"(?:[,:;–—]|\b(?:say|therefore|thus|hence|so|is|be))[^\S\n]{1,3}(?=\S)", re.IGNORECASE
)
#: of the last sentence, in characters
_LONGEST_SENTENCE = 600
_LINE_END = re.compile(r"[*_`\"')\]}>$.。!！,，;；]{0,12}[^\S\n]*(?:\n|\Z)")


@lru_cache(maxsize=256)
def _patterns(names: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    anyof = "|".join(rf"{re.escape(name)}" for name in sorted(names, key=len, reverse=True))
    label = rf"({anyof})(?![A-Za-z0-9_À-ɏа-яА-Я]|-[A-Za-z0-9]|'[a-z])"
    return (
        re.compile(
            rf"{_MARKS}(?:(?:the\s+)?(?:label|answer|relation|class)\s+(?:is\s+)?)?(?:\\?(?:text|textbf|mathrm)\{{)?{_MARKS}{label}",
            re.IGNORECASE,
        ),
        re.compile(
            rf"<\s*{label}\s*>|\*\*\s*{label}[.]?\s*\*\*|\"{label}\"|(?m:^[\s*_`\"'(\[-]{{0,8}}{label}{_CLOSED}[.。]?\s*$)",
            re.IGNORECASE,
        ),
    )


def _concluded(
    text: str, begin: int, end: int, label: re.Pattern[str], names: Mapping[str, str]
) -> Extraction | None:
    """The one label of the last sentence, which ends with it: `Based on the abstract, yes.`"""
    stops = [match.end() for match in _SENTENCE_STOP.finditer(text, begin, end)]
    begin = stops[-1] if stops else begin
    said = [
        match
        for turn in _CONCLUDES.finditer(text, begin, end)
        if (match := label.match(text, turn.end(), end)) and _LINE_END.match(text, match.end(), end)
    ]
    named = {_meant(match, names) for match in _words(tuple(names)).findall(text, begin, end)}
    return (
        Extraction(_meant(said[-1][1], names), said[-1].span(1), "concluded")
        if said and len(named) == 1
        else None
    )


def _meant(said: str, names: Mapping[str, str]) -> str:
    """The label of a name that was matched without regard to case."""
    if label := names.get(said.lower()):
        return label
    # some letters equal another one only where case does not count: `ſ` and `s`, `İ` and `i`
    return next(label for name, label in names.items() if re.fullmatch(re.escape(name), said, re.IGNORECASE))


@lru_cache(maxsize=256)
def _words(names: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)({'|'.join(map(re.escape, names))})(?!\w)", re.IGNORECASE)


def read_word(reply: Reply, names: Mapping[str, str]) -> Extraction:
    """The label of a reply.

    Signs in their order: a strong announcement; the label with which the reply begins; a weak
    announcement; the one label that stands in angle brackets, in bold, in quotation marks, or alone on
    a line. Two labels that are joined (`yes or no`) are ambiguous.

    Args:
        reply: to be read.
        names: spelling in lower case -> label.
    """
    if reply.begin >= reply.end:
        return Extraction(None, None, "the reply is empty")
    text, end = reply.text, end_of_answer(reply)
    at_place, set_apart = _patterns(tuple(names))

    def said(place: int, why: str) -> Extraction | None:
        match = at_place.match(text, place, end)
        if not match or _NO_LABEL.match(text, match.end(), end):
            return None
        if (
            _IF.match(text, match.end(), end)
            and "would" in text[max(0, match.start(1) - 12) : match.start(1)]
        ):
            return None
        label = _meant(match[1], names)
        joint = _JOINT.match(text, match.end(), end)
        other = joint and joint.end() > match.end() and at_place.match(text, joint.end(), end)
        if other and other.start(1) == joint.end() and _meant(other[1], names) != label:  # type: ignore[union-attr]
            return Extraction(None, (match.start(1), other.end(1)), "ambiguous: two labels")
        return Extraction(label, match.span(1), why)

    marked = markers(text, reply.begin, end)
    for marker in reversed([marker for marker in marked if marker.strong]):
        if answer := said(marker.end, "announced"):
            return answer
    if answer := said(reply.begin, "the reply begins with it"):
        return answer
    for marker in reversed([marker for marker in marked if not marker.strong]):
        if answer := said(marker.end, "said to be the answer"):
            return answer
    if answer := _concluded(text, max(reply.begin, end - _LONGEST_SENTENCE), end, at_place, names):
        return answer
    apart: dict[str, tuple[int, int]] = {}
    for match in set_apart.finditer(text, max(reply.begin, end - LONGEST), end):
        group = match.lastindex or 0
        apart[_meant(match[group], names)] = match.span(group)
    if len(apart) > 1:
        return Extraction(None, None, "ambiguous: several labels stand out")
    return next((Extraction(label, span, "it stands out") for label, span in apart.items()), NOTHING)
