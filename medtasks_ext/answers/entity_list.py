"""Lists of entity mentions without offsets, one on each line (ClinicBench's named entity recognition)."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from medtasks_ext.answers.formats import AnswerFormat, GoldError, Reading, Repaired
from medtasks_ext.answers.normalise import after_result, strip_reasoning
from medtasks_ext.answers.tolerant import reply_of
from medtasks_ext.answers.tolerant.lists import items_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_BULLET = re.compile(r"\A\s*(?:[-*+•·–—]+|\(?\d{1,3}[.)])\s+")
_EDGES = "\"'`“”‘’«»<>*_•.,:"
_WORDS = re.compile(r"\b\w+\s+\w+\s+\w+\s")
_BEGINS_SENTENCE = re.compile(r"\A(?:here (?:are|is)|these are|the following|note that)\b", re.IGNORECASE)
_LEAD = re.compile(r"\A(?:the|these|here)\b[^:\n]{0,60}:\s*", re.IGNORECASE)
_COMMA = re.compile(r"\s*[,，、]\s*(?:and\s+)?")
_WORD = re.compile(r"\w")
_SEPARATOR, _SEPARATOR_OR_BRACKET = re.compile(r"[;；]"), re.compile(r"[;；()]")


class EntityList(AnswerFormat):
    """Mentions as they stand in the text, separated by line breaks or semicolons, or `None`.

    A comma does not separate, since it is part of many mentions; nor does a semicolon in round brackets.
    Mentions are compared in lower case and without white space, since the texts are tokenised; quotes,
    angle brackets, emphasis, a bullet before it, punctuation at its edges and a closing note of its type
    (`fever (disease)`) do no harm. A line that ends with a colon is a heading.

    Attributes:
        types: names of the entity types that are asked for, in the singular.
    """

    kind: Literal["entity_list"]
    released: ClassVar[Literal["always", "direct", "never"]] = "direct"
    types: list[str]

    @cached_property
    def _patterns(self) -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
        """A heading before mentions, a note behind one, and what says that there are none."""
        types = "|".join(re.escape("".join(name.lower().split())) for name in self.types)
        what = rf"(?:(?:{types})?(?:s|entity|entities|mentions?|names?)?)"
        return (
            re.compile(rf"\A\s*[*_]*(?:answer|mentions|entities|(?:{types})s?)[*_]*\s*:", re.IGNORECASE),
            re.compile(rf"\((?:{types})s?\)\Z"),
            re.compile(
                rf"none(?:found|mentioned)?|n/?a|(?:thereareno|no){what}"
                r"(?:(?:are|is|were|was)?(?:found|mentioned|present))?(?:inthe(?:sentence|text))?"
            ),
        )

    def read_gold(self, text: str, row: Mapping[str, Any]) -> list[str]:
        """The distinct mentions in the form in which they are compared, sorted; there may be none.

        Raises:
            GoldError: it says neither a mention nor that there are none.
        """
        found = self._mentions(text)
        if found is None:
            raise GoldError("write one mention on each line, or None")
        return found

    def _read(self, text: str, row: Mapping[str, Any], *, cot: bool) -> Reading:
        """The mentions of the reply; a reply without a word in it is invalid."""
        reply = strip_reasoning(text)
        found = self._mentions(after_result(reply) if cot else reply)
        return Reading(found, found is not None)

    def _read_repaired(self, text: str, document: Mapping[str, Any], *, cot: bool) -> Repaired:
        """The mentions of a list in any form.

        A comma separates where what it joins does not stand in the prompt as a whole. A sentence that
        does not stand there is no mention.
        """
        found = items_of(text, reply_of(text))
        prompt = "".join(str(document.get("prompt") or "").lower().split())
        items = (_LEAD.sub("", item) for item in found.items)
        pieces = dict.fromkeys(piece for item in items for piece in _split(item))
        parts = dict.fromkeys(part for piece in pieces for part in _parted(piece, prompt))
        mentions = self._mentions(
            "\n".join(
                part
                for part in parts
                if not _is_sentence(part)
                or self._patterns[2].fullmatch(self._comparable(part))
                or "".join(part.lower().split()).strip(_EDGES) in prompt
            )
        )
        if mentions is None and found.bullets:  # an empty array
            mentions = []
        why = "no list was found" if mentions is None else "a list"
        return {
            "gold": document.get("gold"),
            "answer": mentions,
            "span": None if mentions is None else found.span,
            "why": why,
        }

    def _mentions(self, text: str) -> list[str] | None:
        heading, _, none = self._patterns
        found: set[str] = set()
        said = False
        for line in text.split("\n"):
            if line.rstrip(" \t\r*_").endswith(":"):
                continue
            line = heading.sub("", _BULLET.sub("", line))
            for piece in dict.fromkeys(_split(line)):
                mention = self._comparable(piece)
                if _WORD.search(mention):
                    said = True
                    if not none.fullmatch(mention):
                        found.add(mention)
        return sorted(found) if said else None

    def _comparable(self, piece: str) -> str:
        mention = "".join(_BULLET.sub("", piece).lower().split()).strip(_EDGES)
        return self._patterns[1].sub("", mention).strip(_EDGES)


def _split(line: str) -> Iterator[str]:
    """The parts of a line between semicolons that stand in no round brackets."""
    if "(" not in line or line.count("(") != line.count(")"):
        yield from _SEPARATOR.split(line)
        return
    begin = depth = 0
    for match in _SEPARATOR_OR_BRACKET.finditer(line):
        if match[0] in "()":
            depth = max(0, depth + (1 if match[0] == "(" else -1))
        elif not depth:
            yield line[begin : match.start()]
            begin = match.end()
    yield line[begin:]


def _is_sentence(part: str) -> bool:
    return bool(_BEGINS_SENTENCE.match(part) or (part.rstrip().endswith(".") and _WORDS.search(part)))


def _parted(piece: str, prompt: str) -> list[str]:
    """A piece at its commas, unless it stands in the prompt as a whole (without blanks, in small letters)."""
    if not _COMMA.search(piece) or "".join(piece.lower().split()).strip(_EDGES) in prompt:
        return [piece]
    return _COMMA.split(piece)
