"""Choice answers of MedHELM (a letter), ClinicBench (a word) and MLB (letters after a marker)."""

from __future__ import annotations

import re
from functools import cached_property
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from medtasks_ext.answers.formats import AnswerFormat, GoldError, Reading
from medtasks_ext.answers.normalise import after_result, strip_reasoning
from medtasks_ext.privacy import excerpt

if TYPE_CHECKING:
    from collections.abc import Mapping


class ExactLetter(AnswerFormat):
    """One option letter. A verbose reply such as `A. yes` is wrong by HELM's exact match.

    The answer is the whole stripped reply: the metric maps it to an option, and reads its first
    token too. It is valid when it is exactly one of the letters, of as many as the row has options.
    A task whose rows have no options (`letters: ["0", "1"]`) compares the reply itself.
    """

    kind: Literal["exact_letter"]
    letters: list[str]

    def read_gold(self, text: str, row: Mapping[str, Any]) -> str:
        """The gold letter."""
        letter, letters = text.strip(), self._letters(row)
        if letter not in letters:
            raise GoldError(f"{excerpt(letter)} is not one of the letters {', '.join(letters)}")
        return letter

    def read(self, text: str, row: Mapping[str, Any], *, cot: bool) -> Reading:
        """The reply without reasoning trace; under chain-of-thought what follows `Result:`."""
        reply = strip_reasoning(text)
        reply = after_result(reply).strip().strip("*").strip() if cot else reply.strip()
        return Reading(reply, reply in self._letters(row))

    def _letters(self, row: Mapping[str, Any]) -> list[str]:
        return self.letters[: len(row["options"])] if "options" in row else self.letters

    def not_covered(self, golds: list[str]) -> list[str]:
        """Letters that are no row's gold."""
        return [letter for letter in self.letters if letter not in golds]


class LabelWord(AnswerFormat):
    """One of a few words (`yes`, `no`, `maybe`).

    The reply counts as the label that it names alone; a reply that names two different labels
    is invalid.
    """

    kind: Literal["label_word"]
    labels: list[str] | dict[str, str]
    has_label_pool: ClassVar[bool] = True

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        labels = sorted(self.labels, key=len, reverse=True)
        return re.compile(rf"\b({'|'.join(map(re.escape, labels))})\b", re.IGNORECASE)

    def read_gold(self, text: str, row: Mapping[str, Any]) -> str:
        """The gold label, lower-cased."""
        label = text.strip().lower()
        if label not in {item.lower() for item in self.labels}:
            raise GoldError(f"{excerpt(label)} is not one of: {', '.join(self.labels)}")
        return label

    def read(self, text: str, row: Mapping[str, Any], *, cot: bool) -> Reading:
        """The one label named in the reply (under chain-of-thought: after `Result:`)."""
        reply = strip_reasoning(text)
        named = {match.lower() for match in self._pattern.findall(after_result(reply) if cot else reply)}
        named &= {label.lower() for label in self.labels}
        return Reading(named.pop(), True) if len(named) == 1 else Reading(None, False)

    def labels_of(self, gold: str) -> list[str]:
        """The one gold label."""
        return [gold]

    def not_covered(self, golds: list[str]) -> list[str]:
        """Labels that are no row's gold."""
        return [label for label in self.labels if label.lower() not in golds]


_MARKER = re.compile(r"答案\**\s*(?:[是为]\s*)?[:：]\s*\**\s*")
_LETTER_RUN = re.compile(r"[A-Z](?:[\s,，、;；和及/]*[A-Z])*(?![A-Za-z])")


class MarkedLetters(AnswerFormat):
    """Option letters after the marker `答案：`; the answer is the set of the options' texts.

    MLB scores contents, not letters (protocol `dynamic_mc`), so letters are mapped to the options
    as this row shows them.
    """

    kind: Literal["marked_letters"]

    def read_gold(self, text: str, row: Mapping[str, Any]) -> list[str]:
        """The texts of the gold options, sorted."""
        chosen = self._options(text.replace("答案：", ""), row["options"])
        if not chosen:
            raise GoldError(f"{excerpt(text)} names no option of the question")
        return chosen

    def read(self, text: str, row: Mapping[str, Any], *, cot: bool) -> Reading:
        """What follows the last marker; without one, a reply that is letters and nothing else."""
        reply = strip_reasoning(text).translate(_FULL_WIDTH_LETTERS)
        markers = list(_MARKER.finditer(reply))
        if markers:
            run = _LETTER_RUN.match(reply, markers[-1].end())
        else:
            run = _LETTER_RUN.fullmatch(reply.strip().rstrip(".。"))
        chosen = self._options(run[0], row["options"]) if run else None
        return Reading(chosen, True) if chosen else Reading(None, False)

    @staticmethod
    def _options(letters: str, options: list[str]) -> list[str] | None:
        """The chosen texts, sorted, or None when a letter has no option."""
        indices = {ascii_uppercase.index(letter) for letter in letters if letter in ascii_uppercase}
        if not indices or max(indices) >= len(options):
            return None
        return sorted(options[i] for i in indices)


_FULL_WIDTH_LETTERS = {0xFF21 + i: letter for i, letter in enumerate(ascii_uppercase)}
