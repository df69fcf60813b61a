"""One choice: a letter, a word, a relation, or a value of a scale, as the suites read it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import cached_property
from string import ascii_uppercase
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from medtasks_ext.answers.formats import AnswerFormat, GoldError, Lead, OfLabels, Reading, reading
from medtasks_ext.answers.reader.finders import read_letters, word_reader
from medtasks_ext.answers.reader.words import NOTHING, words_of
from medtasks_ext.answers.reasoning import without_reasoning
from medtasks_ext.privacy import excerpt

_FIRST_TOKEN = re.compile(r"[A-Za-z0-9](?![^\W_])")


class OfLetters(AnswerFormat):
    """Base: the letter of one of the row's options."""

    letters: list[str]  #: of the options that questions have.
    language: str = "en"  #: of the replies, where the suite has released no reader.

    def _read_shared(self, text: str, document: Mapping[str, Any], *, cot: bool) -> Reading:
        options = document.get("options", ())
        return read_letters(text, self._letters(document), options, words_of(self.language))

    def _letters(self, row: Mapping[str, Any]) -> list[str]:
        return self.letters[: len(row["options"])] if "options" in row else self.letters

    def _of_letters(self, letter: str, row: Mapping[str, Any]) -> str:
        """A gold letter, which is one of the row's."""
        if letter not in (letters := self._letters(row)):
            raise GoldError(f"{excerpt(letter)} is not one of the letters {', '.join(letters)}")
        return letter

    def possible(self, document: Mapping[str, Any]) -> list[str]:
        return self._letters(document)


class ExactLetter(OfLetters):
    """One option letter, compared by HELM's exact match.

    HELM asks for one token, so that of `D. text` it sees `D`. The answer is therefore the letter with
    which the stripped reply begins, if no letter or digit follows; else, and for models that reason,
    the whole reply. It is valid when it is one of the letters, of as many as the row has options.
    """

    kind: Literal["exact_letter"]
    letters: list[str]  #: of the options, or digits where rows have no options.
    #: what the letters stand for where they are yes and no, in their order; under chain of thought the word
    #: counts for its letter.
    words: list[str] = Field(default=[])
    one_token: bool = True  #: whether HELM decodes a single token; if not the whole reply is the answer.

    def read_gold(self, text: str, row: Mapping[str, Any]) -> str:
        return self._of_letters(text.strip(), row)

    def _read(self, text: str, row: Mapping[str, Any], *, cot: bool) -> Reading:
        reply = without_reasoning(text)
        reasoned = len(reply) < len(text)
        reply = reply.strip()
        if self.one_token and not reasoned and not cot and _FIRST_TOKEN.match(reply):
            reply = reply[0]
        valid = reply in self._letters(row)
        place = text.rfind(reply) if reasoned else text.find(reply)
        return Reading(reply, valid, (place, place + len(reply)) if valid else None, "the first token")

    def _read_shared(self, text: str, document: Mapping[str, Any], *, cot: bool) -> Reading:
        found = super()._read_shared(text, document, cot=cot)
        if found is not NOTHING or not self.words:
            return found
        names = dict(zip(self.words, self._letters(document), strict=False))
        return word_reader(names, words_of(self.language)).read(text)


class LabelWord(OfLabels):
    """One of a few words (`yes`, `no`, `maybe`).

    The reply counts as the label that it names alone; a reply that names two different labels
    is invalid.
    """

    kind: Literal["label_word"]
    has_label_pool: ClassVar[bool] = True

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        labels = sorted(self.labels, key=len, reverse=True)
        return re.compile(rf"\b({'|'.join(map(re.escape, labels))})\b", re.IGNORECASE)

    def read_gold(self, text: str, row: Mapping[str, Any]) -> str:
        label = text.strip().lower()
        if label not in {item.lower() for item in self.labels}:
            raise GoldError(f"{excerpt(label)} is not one of: {', '.join(self.labels)}")
        return label

    def _read(self, text: str, row: Mapping[str, Any], *, cot: bool) -> Reading:
        named = {match.lower() for match in self._pattern.findall(without_reasoning(text))}
        named &= {label.lower() for label in self.labels}
        return reading(named.pop() if len(named) == 1 else None)

    def _read_shared(self, text: str, document: Mapping[str, Any], *, cot: bool) -> Reading:
        names = {label: label.lower() for label in self.labels}
        return word_reader(names, words_of("en")).read(text)

    def possible(self, document: Mapping[str, Any]) -> list[str]:
        return list(self.labels)


class MarkedLetters(AnswerFormat):
    """Option letters, asked for as `答案：` and letters; the answer is the set of the options' texts.

    MLB scores contents, not letters (protocol `dynamic_mc`), so letters are mapped to the options
    as this row shows them. MLB has released no reader.
    """

    kind: Literal["marked_letters"]

    def read_gold(self, text: str, row: Mapping[str, Any]) -> list[str]:
        chosen = self._options(text.replace("答案：", ""), row["options"])
        if not chosen:
            raise GoldError(f"{excerpt(text)} names no option of the question")
        return chosen

    def _read_shared(self, text: str, document: Mapping[str, Any], *, cot: bool) -> Reading:
        options = document["options"]
        letters = ascii_uppercase[: len(options)]
        found = read_letters(text, letters, options, words_of("zh"), several=True)
        return found._replace(answer=self._options("".join(found.answer or ""), options))

    @property
    def lead(self) -> Lead:
        return Lead("答案：", "")

    def possible(self, document: Mapping[str, Any]) -> list[str]:
        return list(ascii_uppercase[: len(document["options"])])

    @staticmethod
    def _options(letters: str, options: list[str]) -> list[str] | None:
        indices = {ascii_uppercase.index(letter) for letter in letters if letter in ascii_uppercase}
        if not indices or max(indices) >= len(options):
            return None
        return sorted(options[i] for i in indices)


class OptionLetter(OfLetters):
    """A letter of one of the row's options. The suites have released no reader: the shared one is the
    score."""

    kind: Literal["option_letter"]

    def read_gold(self, text: str, row: Mapping[str, Any]) -> str:
        """The gold letter, with or without `Answer:` before it."""
        letter, size = text.strip().removeprefix("Answer:").strip(), len(row["options"])
        if len(letter) != 1 or letter not in ascii_uppercase[:size]:
            raise GoldError(f"{excerpt(letter)} is not the letter of one of the {size} options")
        return letter

    def _letters(self, row: Mapping[str, Any]) -> list[str]:
        return list(ascii_uppercase[: len(row["options"])])


#: names of the class that stands for no relation
NEGATIVE = frozenset({"no", "none"})


class RelationLabel(OfLabels):
    """A label, in angle brackets or as a word.

    Labels in angle brackets decide if there are any, the one with which the reply begins before others;
    else labels that stand as words do. Two different ones are no answer.
    """

    kind: Literal["relation_label"]
    #: as they are to be written, or each with its meaning; one of them is `No` or `None`.
    labels: list[str] | dict[str, str]
    aliases: dict[str, str] = Field(default_factory=dict)  #: other spelling -> label.

    @model_validator(mode="after")
    def _has_negative(self) -> RelationLabel:
        if len(NEGATIVE & {label.lower() for label in self.labels}) != 1:
            raise ValueError("one of the labels must be No or None")
        return self

    @cached_property
    def _names(self) -> dict[str, str]:
        own = {label.lower(): label.lower() for label in self.labels}
        return own | {other.lower(): label.lower() for other, label in self.aliases.items()}

    @cached_property
    def _patterns(self) -> tuple[re.Pattern[str], re.Pattern[str]]:
        names = "|".join(re.escape(name) for name in sorted(self._names, key=len, reverse=True))
        return (
            re.compile(rf"<\s*({names})\s*>", re.IGNORECASE),
            re.compile(rf"\b({names})\b", re.IGNORECASE),
        )

    def read_gold(self, text: str, row: Mapping[str, Any]) -> str:
        label = self._names.get(text.strip().strip("<>").lower())
        if label is None:
            raise GoldError(f"{excerpt(text.strip())} is not one of: {', '.join(self.labels)}")
        return label

    def _read(self, text: str, row: Mapping[str, Any], *, cot: bool) -> Reading:
        reply = without_reasoning(text).lstrip(" \t\r\n*_`")
        bracketed, word = self._patterns
        if first := bracketed.match(reply):
            named = {first[1]}
        else:
            named = set(bracketed.findall(reply)) or set(word.findall(reply))
        # some letters are equal to a label's only without regard to case: İ, ſ
        labels = {self._names.get(name.lower()) for name in named}
        return reading(labels.pop() if len(labels) == 1 else None)

    def possible(self, document: Mapping[str, Any]) -> list[str]:
        """The labels, in angle brackets where the gold answer has them."""
        form = "<{}>" if document["target"].strip().startswith("<") else "{}"
        return list(map(form.format, self.labels))

    def _read_shared(self, text: str, document: Mapping[str, Any], *, cot: bool) -> Reading:
        return word_reader(self._names, words_of("en")).read(text)


#: Characters behind the marker in which the suite's reader looks for the value.
_WINDOW = 5


class PanelRating(AnswerFormat):
    """One integer of a scale, such as -2 to +2, after a marker.

    The field that `votes` names has the experts' votes, a number per value, in the order of the scale:
    counts, or shares of the panel. The gold answer is what each value is worth: its votes over the most votes
    that any value has. The official reader takes the five characters behind the first marker, and joins what
    it finds there: `+1` is a value, `+1-2` is none.
    """

    kind: Literal["panel_rating"]
    values: list[int] = Field(min_length=2)  #: of the scale, in order.
    votes: str  #: the field of a row that has the votes.
    marker: str = "Rating: "  #: what the value follows.

    @field_validator("values")
    @classmethod
    def _ordered(cls, values: list[int]) -> list[int]:
        if values != sorted(set(values)):
            raise ValueError("list each value once, in rising order")
        return values

    def read_gold(self, text: str, row: Mapping[str, Any]) -> dict[str, float]:
        """Value -> what it is worth; the target names one that is worth most."""
        votes = row.get(self.votes)
        if not (
            isinstance(votes, list)
            and len(votes) == len(self.values)
            and all(type(count) in (int, float) and 0 <= count < math.inf for count in votes)
            and any(votes)
        ):
            what = f"expected {len(self.values)} numbers from 0 on, in the order of the values, and not all 0"
            raise GoldError(f"{self.votes} is {excerpt(votes)}; {what}")
        worth = {str(value): count / max(votes) for value, count in zip(self.values, votes, strict=True)}
        if worth.get(self._read(text, row, cot=False).answer) != 1:
            raise GoldError(f"{excerpt(text)} is not the value that most experts chose")
        return worth

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        spelled = [f"{value:+d}" if value else "0" for value in self.values]
        return re.compile("|".join(map(re.escape, sorted(spelled, key=len, reverse=True))))

    def _read(self, text: str, row: Mapping[str, Any], *, cot: bool) -> Reading:
        _, marker, rest = without_reasoning(text).partition(self.marker)
        matches = list(self._pattern.finditer(rest[:_WINDOW])) if marker else []
        joined = "".join(match[0] for match in matches)
        if not re.fullmatch(r"[+-]?\d{1,9}", joined) or int(joined) not in self.values:
            return reading(None)
        place = len(text) - len(rest) + matches[0].start()
        return Reading(str(int(joined)), True, (place, place + len(joined)), "behind the marker")
