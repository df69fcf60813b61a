"""Lists of labels, drugs, mentions or codes (ClinicBench; HELM's billing codes)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Literal

from pydantic import Field

from medtasks_ext.answers.formats import AnswerFormat, GoldError, OfLabels, Reading, reading
from medtasks_ext.answers.reader.announce import part_announced
from medtasks_ext.answers.reader.items import items_of
from medtasks_ext.answers.reader.words import reply_of, words_of
from medtasks_ext.answers.reasoning import without_reasoning
from medtasks_ext.privacy import excerpt

_SEPARATOR = re.compile(r"[\n,;；]")
_BULLET = re.compile(r"\A\s*(?:[-*+•·–—]+\s+|\(?\d{1,3}[.)]\s+)")
_REMARK = re.compile(r":|\(|\[|\s[-–—]\s")
_NO_WORD = re.compile(r"[\W_]+")
_NONE = frozenset({"none", "none of them", "none of these", "none of the above"})


class LabelSet(OfLabels):
    """Labels on lines of their own or between commas or semicolons; `none` for none of them.

    A label may be given by its name, another name, or its number in the list. Case, hyphens, `&` for
    `and`, bullets, and what stands behind a colon, dash or bracket do no harm. Other pieces are left
    out; a reply in which no piece is a label, or `none`, is invalid.
    """

    kind: Literal["label_set"]
    labels: list[str] | dict[str, str]  #: as they are to be written, or each with its meaning.
    aliases: dict[str, str] = Field(default_factory=dict)  #: other name (a title, a short code) -> label.

    @cached_property
    def _names(self) -> dict[str, str]:
        names = {str(number): label for number, label in enumerate(self.labels, start=1)}
        names |= {_plain(label): label for label in self.labels}
        return names | {_plain(other): label for other, label in self.aliases.items()}

    def read_gold(self, text: str, row: Mapping[str, Any]) -> list[str]:
        pieces = [piece for piece in _SEPARATOR.split(text) if piece.strip()]
        if strange := [piece.strip() for piece in pieces if not self._resolved(piece)]:
            raise GoldError(f"{excerpt(strange[0])} is not one of: {', '.join(self.labels)}")
        if not pieces:
            raise GoldError("write one label on each line, or none")
        return self._labels(text) or []

    def _read(self, text: str, row: Mapping[str, Any], *, cot: bool) -> Reading:
        return reading(self._labels(without_reasoning(text)))

    def _read_shared(self, text: str, document: Mapping[str, Any], *, cot: bool) -> Reading:
        listed = items_of(text, reply_of(text), words_of("en"))
        labels = self._labels("\n".join(listed.items).replace("、", ",").rstrip(" .。"))
        why = "no label was found" if labels is None else "a list"
        return reading(labels, listed.span, why)

    def _labels(self, text: str) -> list[str] | None:
        resolved = {label for piece in set(_SEPARATOR.split(text)) if (label := self._resolved(piece))}
        return sorted(resolved - {"none"}) if resolved else None

    def _resolved(self, piece: str) -> str | None:
        """The label that a piece names, `none` where it says that there is none, None if it says nothing."""
        for form in _forms(piece):
            if form in self._names:
                return self._names[form]
            if form in _NONE:
                return "none"
        return None


def _forms(piece: str) -> Iterator[str]:
    yield _plain(piece)
    bare = _BULLET.sub("", piece)
    yield _plain(bare)
    if remark := _REMARK.search(bare, 1):
        yield _plain(bare[: remark.start()])


def _plain(text: str) -> str:
    return _NO_WORD.sub(" ", text.casefold().replace("&", " and ")).strip()


_MARKER = re.compile(r"\bfinal[^\S\n]{1,9}answer[*_]*[^\S\n]*[:：]", re.IGNORECASE)
_LIST_END = re.compile(r"[\n;；•▪●◦]")
# a bullet or number before an item; a number within a line needs a full stop, since brands end in `13)`
_DRUG_BULLET = re.compile(r"^\s*(?:[-*+–—·]\s+|\(?\d{1,3}[.)]\s+)+")
_INLINE_NUMBER = re.compile(r"\s\d{1,2}\.\s+(?=\w)")
_COMMA = re.compile(r"[，、]|,(?!\d)|(?<!\d),")  # none within 1,000
# a drug's reason: ` - for pain`, `: an antibiotic`
_EXPLAINED = re.compile(r"(?:(?:\*{1,2}\s*|(?<!\s)\s+)?[:：]\s|(?<!\s)\s+[-–—]\s).*", re.DOTALL)
_WORD = re.compile(r"\w")
_NO_DRUG = re.compile(
    r"\W*(?:(?:i|we|there|it|this|as an ai)\b.*\.\s*\Z"
    r"|(?:disease|diagnosis|symptoms?|condition)[*_]*\s*[:：])",
    re.IGNORECASE | re.DOTALL,
)


class DrugList(AnswerFormat):
    """Names of drugs, separated by line breaks, commas, semicolons, bullets or numbers.

    What follows the last `Final Answer:` is read, without that mark the whole reply (under
    chain-of-thought what follows the last `Result:`). The answer is a list of items, each the list of
    its pieces between commas: some names hold commas, which only the gold list can tell.
    """

    kind: Literal["drug_list"]

    def read_gold(self, text: str, row: Mapping[str, Any]) -> list[str]:
        drugs = [line.strip() for line in _after_marker(text).split("\n") if _WORD.search(line)]
        if not drugs:
            raise GoldError("no drug is listed")
        return drugs

    def _read(self, text: str, row: Mapping[str, Any], *, cot: bool) -> Reading:
        parts = filter(None, _LIST_END.split(_after_marker(without_reasoning(text))))
        items = [pieces for part in parts for line in _numbered(part) if (pieces := pieces_of(line))]
        return reading(items or None)

    def _read_shared(self, text: str, document: Mapping[str, Any], *, cot: bool) -> Reading:
        """The items of a list in any form; what stands behind a dash or colon explains an item."""
        listed = items_of(text, reply_of(text), words_of("en"))
        named = (item for item in listed.items if not (_NO_DRUG.match(item) or _tells(item)))
        parts = (part for item in named for part in _LIST_END.split(_EXPLAINED.sub("", item).strip("*_ ")))
        items = [pieces for part in parts if part for line in _numbered(part) if (pieces := pieces_of(line))]
        why = "a list" if items else "no list was found"
        return reading(items or None, listed.span, why)


def _after_marker(text: str) -> str:
    markers = list(_MARKER.finditer(text))
    return text[markers[-1].end() :] if markers else text


def _numbered(line: str) -> list[str]:
    return _INLINE_NUMBER.split(_DRUG_BULLET.sub("", line, count=1))


def pieces_of(item: str) -> list[str]:
    """What stands between the commas of a text."""
    return [piece.strip() for piece in _COMMA.split(item) if _WORD.search(piece)]


# words that a sentence has and no mention
_TELLS = re.compile(
    r"\b(?:is|are|was|were|has|have|had|may|can|will|would|should|does|mentions|provides|contains)\b",
    re.IGNORECASE,
)
#: of a sentence, at least
_WORDS_OF_A_SENTENCE = 5


def _tells(item: str) -> bool:
    """Whether an item of a list is a sentence, as a text is that repeats the prompt."""
    return bool(_TELLS.search(item)) and len(item.split()) >= _WORDS_OF_A_SENTENCE


_MENTION_BULLET = re.compile(r"\A\s*(?:[-*+•·–—]+|\(?\d{1,3}[.)])\s+")
_EDGES = "\"'`“”‘’«»<>*_•.,:"
_WORDS = re.compile(r"\b\w+\s+\w+\s+\w+\s")
_BEGINS_SENTENCE = re.compile(r"\A(?:here (?:are|is)|these are|the following|note that)\b", re.IGNORECASE)
_LEAD = re.compile(r"\A(?:the|these|here)\b[^:\n]{0,60}:\s*", re.IGNORECASE)
_MENTION_COMMA = re.compile(r"(?:(?<!\s)\s+)?[,，、]\s*(?:and\s+)?")
_MENTION_SEPARATOR, _SEPARATOR_OR_BRACKET = re.compile(r"[;；]"), re.compile(r"[;；()]")


class EntityList(AnswerFormat):
    """Mentions as they stand in the text, separated by line breaks or semicolons, or `None`.

    A comma does not separate, since it is part of many mentions; nor does a semicolon in round brackets.
    Mentions are compared in lower case and without white space, since the texts are tokenised; quotes,
    angle brackets, emphasis, a bullet before it, punctuation at its edges and a closing note of its type
    (`fever (disease)`) do no harm. A line that ends with a colon is a heading.
    """

    kind: Literal["entity_list"]
    types: list[str]  #: names of the entity types that are asked for, in the singular.

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
        named = self._mentions(text)
        if named is None:
            raise GoldError("write one mention on each line, or None")
        return named

    def mentions(self, gold: list[str]) -> list[str]:
        return gold

    def _read(self, text: str, row: Mapping[str, Any], *, cot: bool) -> Reading:
        return reading(self._mentions(without_reasoning(text)))

    def _read_shared(self, text: str, document: Mapping[str, Any], *, cot: bool) -> Reading:
        """A comma separates where what it joins does not stand in the prompt as a whole; a sentence that does
        not stand there is no mention.
        """
        listed = items_of(text, reply_of(text), words_of("en"))
        prompt = "".join(str(document.get("prompt") or "").lower().split())
        none = self._patterns[2]
        items = [_LEAD.sub("", item) for item in listed.items]
        items = [item for item in items if not _tells(item) or none.fullmatch(self._comparable(item))]
        pieces = dict.fromkeys(piece for item in items for piece in _split(item))
        parts = dict.fromkeys(part for piece in pieces for part in _parted(piece, prompt))
        mentions = self._mentions(
            "\n".join(
                part
                for part in parts
                if not (_BEGINS_SENTENCE.match(part) or (part.rstrip().endswith(".") and _WORDS.search(part)))
                or none.fullmatch(self._comparable(part))
                or "".join(part.lower().split()).strip(_EDGES) in prompt
            )
        )
        if mentions is None and listed.bullets and not listed.items:  # an empty array
            mentions = []
        why = "no list was found" if mentions is None else "a list"
        return reading(mentions, listed.span, why)

    def _mentions(self, text: str) -> list[str] | None:
        heading, _, none = self._patterns
        named: set[str] = set()
        said = False
        for line in text.split("\n"):
            if line.rstrip(" \t\r*_").endswith(":"):
                continue
            line = heading.sub("", _MENTION_BULLET.sub("", line))
            for piece in dict.fromkeys(_split(line)):
                mention = self._comparable(piece)
                if _WORD.search(mention):
                    said = True
                    if not none.fullmatch(mention):
                        named.add(mention)
        return sorted(named) if said else None

    def _comparable(self, piece: str) -> str:
        mention = "".join(_MENTION_BULLET.sub("", piece).lower().split()).strip(_EDGES)
        return self._patterns[1].sub("", mention).strip(_EDGES)


def _split(line: str) -> Iterator[str]:
    """The parts of a line between semicolons that stand in no round brackets."""
    if "(" not in line or line.count("(") != line.count(")"):
        yield from _MENTION_SEPARATOR.split(line)
        return
    begin = depth = 0
    for match in _SEPARATOR_OR_BRACKET.finditer(line):
        if match[0] in "()":
            depth = max(0, depth + (1 if match[0] == "(" else -1))
        elif not depth:
            yield line[begin : match.start()]
            begin = match.end()
    yield line[begin:]


def _parted(piece: str, prompt: str) -> list[str]:
    """A piece at its commas, unless it stands in the prompt as a whole (without blanks, in small letters)."""
    if not _MENTION_COMMA.search(piece) or "".join(piece.lower().split()).strip(_EDGES) in prompt:
        return [piece]
    return _MENTION_COMMA.split(piece)


_ICD10 = re.compile(r"\b[A-Z]\d{1,3}(?:\.\d{1,4})?\.?\b")


class CodesInText(AnswerFormat):
    """A set of ICD-10 codes. Gold and reply are read by one pattern (HELM, `mimiciv_billing_code_metrics`).

    No case folding; the dot is significant; codes that the pattern cannot read (a letter after
    the dot, a letter in position 2 or 3, procedure codes) shrink to their stem or vanish.
    """

    kind: Literal["codes_in_text"]

    def read_gold(self, text: str, row: Mapping[str, Any]) -> list[str]:
        return self._codes(text)

    def _read(self, text: str, row: Mapping[str, Any], *, cot: bool) -> Reading:
        codes = self._codes(without_reasoning(text))
        return Reading(codes, bool(codes))

    def _read_shared(self, text: str, document: Mapping[str, Any], *, cot: bool) -> Reading:
        reply = reply_of(text)
        span = part_announced(reply, words_of("en"))
        codes = self._codes(reply.text[slice(*span)])
        return reading(codes or None, span, "codes in the reply")

    @staticmethod
    def _codes(text: str) -> list[str]:
        return sorted({code.rstrip(".") for code in _ICD10.findall(text.replace("**", ""))})
