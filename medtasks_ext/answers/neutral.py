"""Kinds of answers that belong to no paper: by form, in any script, with the words of the row's language.

No suite has released a reader for them: the repaired reading is the score.

- Labels are letters or numbers of any script, in the order of the options. A reply may also name the place
  by a Latin letter, a number, or the language's own letters, unless these are labels.
- Equal: case, full width, circled and other digits, accents, Arabic vowel signs and forms of alef, marks of
  direction.
- Where yes and no are labels, their variants in the language count (`아니요`, `hayır`, `si`).
- Decimal marks follow the language: `1.250` is 1250 in German and 1.25 in English. A range is no answer.
- Items of `labels` and `spans` stand on lines, between commas of any script, between joining words (`und`,
  `と`), or in an array. A label that is denied (`no fever`, `咳嗽はない`) is not said. A mention that holds a
  comma stays whole where it stands so in the prompt.
- An answer that cannot be read is wrong; a level that cannot be read counts as the farthest one.
- Refused, with the row: labels that a reader takes for the same (`①` and `1`), options with equal texts,
  more options than labels, a gold answer outside its options.
- First readings, before the reader was mended on what it had missed: of 1,200 replies in twelve languages in
  the forms and about as often as models write them, 14 were read wrongly and 6 not at all (1.7 %); of 600 in
  rare forms, 5 and 30. Those who mended the reader wrote the replies, no native, and several languages share
  their cases. `tests/answers/first_readings.csv` has all sets, and how they are read now.
- ROUGE and BLEU take characters in scripts without blanks (Chinese, Japanese, Thai, Lao, Khmer, Burmese,
  Tibetan), else words. ICU's word breaks are not used: its dictionaries differ between versions.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from medtasks_ext.answers.formats import AnswerFormat, GoldError, Lead, Repaired, repaired_from
from medtasks_ext.answers.languages import LISTS, Words, languages, words_of
from medtasks_ext.answers.tolerant import reply_of
from medtasks_ext.answers.tolerant.folding import plain, script_of
from medtasks_ext.answers.tolerant.measures import NumberReader
from medtasks_ext.answers.tolerant.names import NameReader
from medtasks_ext.answers.tolerant.options import OptionReader
from medtasks_ext.answers.tolerant.phrases import Phrases, phrases_of
from medtasks_ext.errors import near
from medtasks_ext.privacy import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class OfNoPaper(AnswerFormat):
    """Base: what all of them say.

    Attributes:
        language: whose words replies are read with; that of the dataset, where nothing else is said.
        words: words of the language besides those that are known, by the keys of `languages.yaml`: `answer`,
            `option`, `right`, `yes`, `no`, `none`, `joins` and others.
        before: what the prompt asks for before the answer, such as `Resposta:`; gold answers may have it.
    """

    released: ClassVar[Literal["always", "direct", "never"]] = "never"
    language: str = "en"
    words: dict[str, list[str]] = Field(default_factory=dict)
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
        """The words of the language."""
        return words_of(self.language).extended_by(self.words)

    @cached_property
    def _phrases(self) -> Phrases:
        return Phrases(self.known) if self.words else phrases_of(self.language)

    def unknown_language(self) -> str:
        """That replies are read with English words alone, and what to do; empty where they are not."""
        if self.language in languages() or "answer" in self.words:
            return ""
        return (
            f"no words of the language {self.language!r} are known: replies are read with English words alone"
            " → give its own: answer.words: {answer: [...], yes: [...], no: [...]} (docs/keys.md)"
        )

    @property
    def lead(self) -> Lead:
        """What the prompt asks for before the answer."""
        return Lead(self.before) if self.before else Lead()

    def _bare(self, text: str) -> str:
        return text.strip().removeprefix(self.before).strip()


def _alike(names: Iterable[str]) -> list[str]:
    """Two names that replies cannot tell apart; none where there are no such."""
    seen: dict[str, str] = {}
    for name in names:
        if (form := plain(name)) in seen:
            return [seen[form], name]
        seen[form] = name
    return []


class _Options(OfNoPaper):
    """Options of a question.

    Attributes:
        labels: of the options, in their order, as the prompt shows them; by default A, B, C …
    """

    labels: list[str] = Field(default_factory=lambda: list("ABCDEFGHIJ"), min_length=2)

    @model_validator(mode="after")
    def _are_told_apart(self) -> _Options:
        if alike := _alike(self.labels):
            raise ValueError(f"labels {alike[0]} and {alike[1]} are the same letter to a reader: use others")
        if empty := [label for label in self.labels if not plain(label)]:
            raise ValueError(f"{empty[0]!r} is no label: write a letter or number")
        letters = {script_of(label): label for label in self.labels if len(label) == 1 and label.isalpha()}
        if len(letters) > 1:
            (one, label), (two, other), *_ = letters.items()
            raise ValueError(f"labels {label} ({one}) and {other} ({two}) are of two scripts: use one")
        return self

    def shown(self, row: Mapping[str, Any]) -> list[str]:
        """The labels of a row's options.

        Raises:
            GoldError: it has more options than there are labels, or two of the same text.
        """
        options = row.get("options")
        if options is None:
            return self.labels
        if not isinstance(options, list):
            raise GoldError("`options` are no list of texts: write `options: COLUMN | split_options`")
        if len(options) > len(self.labels):
            raise GoldError(f"{len(options)} options, and {len(self.labels)} labels: add to `answer.labels`")
        if alike := _alike(options):
            place = [plain(option) for option in options].index(plain(alike[0]))
            last = len(options) - 1 - [plain(option) for option in options][::-1].index(plain(alike[0]))
            raise GoldError(
                f"options {self.labels[place]} and {self.labels[last]} have the same text:"
                " correct the row, or leave one of them out"
            )
        return self.labels[: len(options)]

    def _label(self, text: str, row: Mapping[str, Any]) -> str:
        """The label that a gold answer names by itself or by its option's text."""
        labels, said = self.shown(row), self._bare(text)
        forms = {plain(label): label for label in labels}
        if plain(said) in forms:
            return forms[plain(said)]
        texts = {
            plain(option): label for option, label in zip(row.get("options") or (), labels, strict=False)
        }
        if plain(said) in texts:
            return texts[plain(said)]
        raise GoldError(f"{excerpt(said)} is none of {', '.join(labels)}, and no option's text")

    def _reader(self, row: Mapping[str, Any]) -> OptionReader:
        options = row.get("options") or ()
        return OptionReader(self.labels[: len(options) or None], options, self._phrases)


class Choice(_Options):
    """One of a question's options, by its label or its text.

    Rows have `options`, a list of texts; labels are letters or numbers of any script.
    """

    kind: Literal["choice"]

    def read_gold(self, text: str, row: Mapping[str, Any]) -> str:
        """The label of the right option.

        Raises:
            GoldError: it is none of the options; or options cannot be told apart.
        """
        return self._label(text, row)

    def _read_repaired(self, text: str, document: Mapping[str, Any], *, cot: bool) -> Repaired:
        """The label of the option that the reply names."""
        extraction = self._reader(document).read(reply_of(text), several=False)
        return repaired_from(document, extraction, lambda places: self.labels[places[0]])

    def possible(self, document: Mapping[str, Any]) -> list[str]:
        """The labels of the options."""
        return self.shown(document)


class Choices(_Options):
    """One or several of a question's options. Gold answers are their labels or texts, with commas between."""

    kind: Literal["choices"]

    def read_gold(self, text: str, row: Mapping[str, Any]) -> list[str]:
        """The labels of the right options, in their order.

        Raises:
            GoldError: one of them is none of the options, or there is none.
        """
        labels, said = self.shown(row), self._bare(text)
        pieces = [piece for piece in said.replace(";", ",").replace("\n", ",").split(",") if piece.strip()]
        if not pieces:
            raise GoldError("no option is right: name at least one")
        chosen = {self._label(piece, row) for piece in pieces}
        return [label for label in labels if label in chosen]

    def _read_repaired(self, text: str, document: Mapping[str, Any], *, cot: bool) -> Repaired:
        """The labels of the options that the reply names."""
        extraction = self._reader(document).read(reply_of(text), several=True)
        return repaired_from(document, extraction, lambda places: [self.labels[place] for place in places])


class Number(OfNoPaper):
    """A number.

    Attributes:
        tolerance: how far an answer may be from the gold answer, in its unit.
        relative: the same as a share of the gold answer; the larger of both counts.
        units: spelling -> what a number in it is multiplied with to be in the gold answers' unit.
    """

    kind: Literal["number"]
    tolerance: float = Field(default=0.0, ge=0)
    relative: float = Field(default=0.0, ge=0)
    units: dict[str, float] = Field(default_factory=dict)

    @cached_property
    def _reader(self) -> NumberReader:
        return NumberReader(self.units, self._phrases)

    def read_gold(self, text: str, row: Mapping[str, Any]) -> dict[str, float]:
        """The number, and how far an answer may be from it.

        Raises:
            GoldError: it is no number.
        """
        value = self._reader.value(self._bare(text))
        if value is None or not math.isfinite(value):
            raise GoldError(f"{excerpt(text.strip())} is no number")
        return {"value": value, "within": max(self.tolerance, self.relative * abs(value))}

    def _read_repaired(self, text: str, document: Mapping[str, Any], *, cot: bool) -> Repaired:
        """The number that the reply gives."""
        return repaired_from(document, self._reader.read(reply_of(text)))


class OfNames(OfNoPaper):
    """Names of a closed list.

    Attributes:
        labels: the names, or each with its meaning.
        aliases: other spelling -> name.
    """

    labels: list[str] | dict[str, str]
    aliases: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _are_told_apart(self) -> OfNames:
        if alike := _alike(self.labels):
            raise ValueError(f"labels {alike[0]} and {alike[1]} are the same word to a reader: use others")
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
    def _reader(self) -> NameReader:
        return NameReader(self.spellings, self._phrases)

    def _name(self, text: str) -> str:
        said = self._bare(text)
        name = self.spellings.get(plain(said))
        if name is None:
            raise GoldError(f"{excerpt(said)} is not one of: {', '.join(self.labels)}")
        return name


class Category(OfNames):
    """One label of a closed list: classes, or yes and no."""

    kind: Literal["category"]
    has_label_pool: ClassVar[bool] = True

    def read_gold(self, text: str, row: Mapping[str, Any]) -> str:
        """The label.

        Raises:
            GoldError: it is none of the list.
        """
        return self._name(text)

    def _read_repaired(self, text: str, document: Mapping[str, Any], *, cot: bool) -> Repaired:
        """The label that the reply gives."""
        return repaired_from(document, self._reader.read(reply_of(text)))

    def possible(self, document: Mapping[str, Any]) -> list[str]:
        """The labels."""
        return list(self.labels)

    def not_covered(self, golds: list[str]) -> list[str]:
        """Labels that are no row's gold."""
        return [label for label in self.labels if label not in golds]


class Ordinal(OfNames):
    """One level of a scale, from the lowest to the highest. The answer is its place, from 0."""

    kind: Literal["ordinal"]

    def read_gold(self, text: str, row: Mapping[str, Any]) -> dict[str, int]:
        """The level's place, and how many there are.

        Raises:
            GoldError: it is no level.
        """
        return {"level": list(self.labels).index(self._name(text)), "of": len(self.labels)}

    def _read_repaired(self, text: str, document: Mapping[str, Any], *, cot: bool) -> Repaired:
        """The place of the level that the reply gives."""
        return repaired_from(document, self._reader.read(reply_of(text)), list(self.labels).index)

    def possible(self, document: Mapping[str, Any]) -> list[str]:
        """The levels."""
        return list(self.labels)

    def not_covered(self, golds: list[dict[str, int]]) -> list[str]:
        """Levels that no row has."""
        shown = {gold["level"] for gold in golds}
        return [label for place, label in enumerate(self.labels) if place not in shown]
