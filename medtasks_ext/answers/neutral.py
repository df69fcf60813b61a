"""Kinds of answers that belong to no paper: by form, in any script, with the words of the row's language."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from medtasks_ext.answers.formats import AnswerFormat, GoldError, Lead, OfLabels, Reading, reading
from medtasks_ext.answers.reader.announce import Reader, part_announced
from medtasks_ext.answers.reader.finders import Numbers, read_letters, word_reader
from medtasks_ext.answers.reader.items import EDGES, is_prose, pieces_listed, pieces_of, says_none, unfenced
from medtasks_ext.answers.reader.words import LISTS, Words, languages, plain, reply_of, squeezed, tokens_of
from medtasks_ext.errors import near
from medtasks_ext.privacy import excerpt


class OfNoPaper(AnswerFormat):
    """Base: what all of them say."""

    #: whose words replies are read with; that of the dataset, where nothing else is said.
    language: str = "en"
    #: words of the language besides those that are known, by the lists of `marks.yaml`: `answer`, `option`,
    #: `right`, `not`, `wait`, `yes`, `no`, `none`.
    words: dict[str, list[str]] = Field(default_factory=dict)
    #: what the prompt asks for before the answer, such as `Resposta:`; gold answers may have it.
    before: str = ""

    @field_validator("words")
    @classmethod
    def _are_lists_of_words(cls, given: dict[str, list[str]]) -> dict[str, list[str]]:
        for key, words in given.items():
            if key not in LISTS:
                raise ValueError(f"{key!r} is no list of words{near(key, LISTS)}: {', '.join(LISTS)}")
            if not words or not all(plain(word) for word in words):
                raise ValueError(f"{key}: write one word or more")
        return given

    @cached_property
    def known(self) -> Words:
        """The words of the language, and what the prompt asks for before the answer."""
        asked = [self.before.strip(" :：=")] if plain(self.before).strip(" :=") else []
        return Words(self.language, {**self.words, "answer": [*self.words.get("answer", ()), *asked]})

    def unknown_language(self) -> str:
        if self.language in languages() or "answer" in self.words:
            return ""
        return (
            f"no words of the language {self.language!r} are known: replies are read only with English words"
            " → give its own: answer.words: {answer: [...], yes: [...], no: [...]} (docs/keys.md)"
        )

    @property
    def lead(self) -> Lead:
        return Lead(self.before)

    def _bare(self, text: str) -> str:
        return text.strip().removeprefix(self.before).strip()


def _alike(names: Iterable[str], called: Sequence[str]) -> str:
    """What two names are called that replies cannot tell apart, such as `A and B`; mostly empty."""
    seen: dict[str, int] = {}
    for place, name in enumerate(names):
        if (first := seen.setdefault(plain(name), place)) < place:
            return f"{called[first]} and {called[place]}"
    return ""


class _Options(OfNoPaper):
    several: ClassVar[bool] = False  # whether several may be right
    #: of the options, in their order, as the prompt shows them; by default A, B, C …
    labels: list[str] = Field(default_factory=lambda: list("ABCDEFGHIJ"), min_length=2)

    @model_validator(mode="after")
    def _are_told_apart(self) -> _Options:
        if alike := _alike(self.labels, self.labels):
            raise ValueError(f"labels {alike} are the same letter to a reader: use others")
        if empty := [label for label in self.labels if not plain(label)]:
            raise ValueError(f"{empty[0]!r} is no label: write a letter or number")
        return self

    def shown(self, row: Mapping[str, Any]) -> list[str]:
        """The labels of a row's options."""
        options = row.get("options")
        if options is None:
            return self.labels
        if not isinstance(options, list):
            raise GoldError("`options` are no list of texts: write `options: COLUMN | split_options`")
        if len(options) > len(self.labels):
            raise GoldError(f"{len(options)} options, and {len(self.labels)} labels: add to `answer.labels`")
        if alike := _alike(options, self.labels):
            raise GoldError(f"options {alike} have the same text: correct the row, or leave one of them out")
        return self.labels[: len(options)]

    def _label(self, text: str, row: Mapping[str, Any]) -> str:
        """The label that a gold answer names by itself or by its option's text."""
        labels, said = self.shown(row), self._bare(text)
        texts = zip(map(plain, row.get("options") or ()), labels, strict=False)
        if label := ({**dict(texts), **{plain(label): label for label in labels}}).get(plain(said)):
            return label
        raise GoldError(f"{excerpt(said)} is none of {', '.join(labels)}, and no option's text")

    def _read_shared(self, text: str, document: Mapping[str, Any], *, cot: bool) -> Reading:
        options = document.get("options") or ()
        labels = self.labels[: len(options) or None]
        return read_letters(text, labels, options, self.known, several=self.several)


class Choice(_Options):
    """One of a question's options, by its label or its text.

    Rows have `options`, a list of texts; labels are letters or numbers of any script.
    """

    kind: Literal["choice"]

    def read_gold(self, text: str, row: Mapping[str, Any]) -> str:
        return self._label(text, row)

    def possible(self, document: Mapping[str, Any]) -> list[str]:
        return self.shown(document)


class Choices(_Options):
    """One or several of a question's options. Gold answers are their labels or texts, with commas between."""

    kind: Literal["choices"]
    several: ClassVar[bool] = True

    def read_gold(self, text: str, row: Mapping[str, Any]) -> list[str]:
        labels, said = self.shown(row), self._bare(text)
        pieces = [piece for piece in re.split("[,;\n]", said) if piece.strip()]
        if not pieces:
            raise GoldError("no option is right: name at least one")
        try:
            chosen = {self._label(said, row)}  # a text that holds a comma
        except GoldError:
            chosen = {self._label(piece, row) for piece in pieces}
        return [label for label in labels if label in chosen]


class Number(OfNoPaper):
    """A number."""

    kind: Literal["number"]
    #: how far an answer may be from the gold answer, in its unit.
    tolerance: float = Field(default=0.0, ge=0)
    #: the same as a share of the gold answer; the larger of both counts.
    relative: float = Field(default=0.0, ge=0)
    #: spelling -> what a number in it is multiplied with to be in the gold answers' unit.
    units: dict[str, float] = Field(default_factory=dict)

    @cached_property
    def _numbers(self) -> Numbers:
        return Numbers(self.units, self.known)

    def read_gold(self, text: str, row: Mapping[str, Any]) -> dict[str, float]:
        value = self._numbers.value(self._bare(text))
        if value is None or not math.isfinite(value):
            raise GoldError(f"{excerpt(text.strip())} is no number")
        return {"value": value, "within": max(self.tolerance, self.relative * abs(value))}

    def _read_shared(self, text: str, document: Mapping[str, Any], *, cot: bool) -> Reading:
        return self._numbers.reader.read(text)


class OfNames(OfLabels, OfNoPaper):
    """Names of a closed list."""

    aliases: dict[str, str] = Field(default_factory=dict)  #: other spelling -> name.

    @model_validator(mode="after")
    def _are_told_apart(self) -> OfNames:
        if alike := _alike(self.labels, list(self.labels)):
            raise ValueError(f"labels {alike} are the same word to a reader: use others")
        if wrong := [other for other, label in self.aliases.items() if label not in self.labels]:
            raise ValueError(f"aliases: {wrong[0]!r} stands for no label")
        return self

    @cached_property
    def spellings(self) -> dict[str, str]:
        """Plain form -> name. Where yes and no are names, so are their variants in the language."""
        own = {plain(label): label for label in self.labels}
        own |= {plain(other): label for other, label in self.aliases.items()}
        for words in (self.known.yes, self.known.no):
            named = {own[plain(word)] for word in words if plain(word) in own}
            if len(named) == 1:
                label = named.pop()
                own = {**{plain(word): label for word in words}, **own}
        return own

    @cached_property
    def _reader(self) -> Reader:
        return word_reader(self.spellings, self.known)

    def _name(self, text: str) -> str:
        said = self._bare(text)
        if name := self.spellings.get(plain(said)):
            return name
        raise GoldError(f"{excerpt(said)} is not one of: {', '.join(self.labels)}")


class _OneName(OfNames):
    def _read_shared(self, text: str, document: Mapping[str, Any], *, cot: bool) -> Reading:
        return self._reader.read(text)

    def possible(self, document: Mapping[str, Any]) -> list[str]:
        return list(self.labels)


class Category(_OneName):
    """One label of a closed list: classes, or yes and no."""

    kind: Literal["category"]
    has_label_pool: ClassVar[bool] = True

    def read_gold(self, text: str, row: Mapping[str, Any]) -> str:
        return self._name(text)


class Ordinal(_OneName):
    """One level of a scale, from the lowest to the highest. The answer is its place, from 0."""

    kind: Literal["ordinal"]

    def read_gold(self, text: str, row: Mapping[str, Any]) -> dict[str, int]:
        return {"level": list(self.labels).index(self._name(text)), "of": len(self.labels)}

    def _read_shared(self, text: str, document: Mapping[str, Any], *, cot: bool) -> Reading:
        found = super()._read_shared(text, document, cot=cot)
        return found._replace(answer=list(self.labels).index(found.answer)) if found.valid else found


class _Listed(OfNoPaper):
    #: the word that the prompt asks for where no item is right; gold answers have it, too.
    nothing: str = Field(default="none", min_length=1)

    def _is_none(self, text: str) -> bool:
        return says_none(text, self.known, self.nothing, "none", "nil", "n/a")


class Labels(_Listed, OfNames):
    """Several labels of a closed list, or none of them.

    They stand on lines, between commas or joining words, in an array, or in a table or an object that says of
    each whether it is true. A piece that is no label leaves the others; a reply without a label, and without
    a word for none, cannot be read.
    """

    kind: Literal["labels"]

    def read_gold(self, text: str, row: Mapping[str, Any]) -> list[str]:
        said = self._bare(text)
        if self._is_none(said):
            if not said:
                raise GoldError(f"write the labels with commas between, or {self.nothing}")
            return []
        lines = (pieces_of(line, self.known, self._is_named, closed=True) for line in said.split("\n"))
        pieces = [piece for line in lines for piece in line]
        if strange := [piece for piece in pieces if self._named(piece) is None]:
            raise GoldError(f"{excerpt(strange[0])} is not one of: {', '.join(self.labels)}")
        named = set(map(self._named, pieces))
        return [label for label in self.labels if label in named]

    def _named(self, piece: str) -> str | None:
        return self.spellings.get(plain(piece)) or self.spellings.get(plain(piece.strip(EDGES)))

    def _is_named(self, piece: str) -> bool:
        return self._named(piece) is not None

    def _read_shared(self, text: str, document: Mapping[str, Any], *, cot: bool) -> Reading:
        pieces, listed = pieces_listed(text, self.known, self._is_named, closed=True)
        named = {name for piece in pieces or () if (name := self._named(piece)) is not None}
        is_empty = listed.array and not pieces
        if pieces is None or not (named or is_empty or any(map(self._is_none, pieces))):
            return reading(None, why="no label was found")
        return reading([label for label in self.labels if label in named], listed.span, "a list")


#: of no mention that is not copied
_FOREIGN = re.compile(r"[:：|{}<>=\"\[【]")


class Spans(_Listed):
    """Mentions, copied from the text that is asked about, or none: on lines, between commas, or as an array.

    Gold answers have one mention a line. Of replies, a mark or joining word separates where what it joins
    does not stand in the prompt as a whole. Mentions are compared in plain form and without blanks, since
    texts may be tokenised. Mentions have no place: a text that occurs twice counts once.
    """

    kind: Literal["spans"]

    def read_gold(self, text: str, row: Mapping[str, Any]) -> list[str]:
        said = self._bare(text)
        if said and self._is_none(said):
            return []
        lines = [line for line in said.split("\n") if not self._is_none(line)]
        mentions = {squeezed(line.strip(EDGES)) for line in lines} - {""}
        if not mentions:
            raise GoldError(f"write one mention on each line, or {self.nothing}")
        return sorted(mentions)

    def mentions(self, gold: list[str]) -> list[str]:
        return gold

    def looked_for(self, text: str) -> str:
        return squeezed(text)

    def _read_shared(self, text: str, document: Mapping[str, Any], *, cot: bool) -> Reading:
        asked = str(document.get("prompt") or "")
        prompt, words = squeezed(asked), {plain(token.text) for token in tokens_of(asked)}

        def is_copied(piece: str) -> bool:
            """Whether a text stands in the prompt; a single word as a word of it."""
            said, bare = squeezed(piece.strip(EDGES)), piece.strip(EDGES)
            return bool(said) and said in prompt and (len(tokens_of(bare)) > 1 or plain(bare) in words)

        pieces, listed = pieces_listed(text, self.known, is_copied if prompt else None)
        mentions = [piece for piece in pieces or () if not self._is_none(piece)]
        new = [piece for piece in mentions if prompt and not listed.array and not is_copied(piece)]
        if pieces is None or any(map(_FOREIGN.search, new)) or (new and is_prose(new[0], listed, self.known)):
            return reading(None, None, "it is not clear what is listed")
        found = {mention for piece in mentions if (mention := squeezed(piece.strip(EDGES)))}
        is_empty = listed.array and not pieces
        if not (found or is_empty or any(map(self._is_none, [*listed.items, *pieces]))):
            return reading(None, None, "no list was found")
        return reading(sorted(found), listed.span, "a list")


class Prose(OfNoPaper):
    """Any text, with the words of its language where it is announced."""

    kind: Literal["prose"]
    #: the field that answers are compared with, where that is not the task's target.
    reference: str | None = None

    def read_gold(self, text: str, row: Mapping[str, Any]) -> str:
        gold = self._bare(str(row[self.reference]) if self.reference else text)
        if not gold:
            raise GoldError("empty reference")
        return gold

    def _read_shared(self, text: str, document: Mapping[str, Any], *, cot: bool) -> Reading:
        reply = reply_of(text)
        begin, end = part_announced(reply, self.known) if cot else (reply.begin, reply.end)
        answer = self._bare(unfenced(text[begin:end]))
        why = "the text" if answer else "the reply is empty"
        return reading(answer or None, (begin, end), why)
