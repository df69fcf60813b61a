"""Choice answers of MedHELM (a letter), ClinicBench (a word) and MLB (letters after a marker)."""

from __future__ import annotations

import re
from functools import cached_property
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from medtasks_ext.answers.formats import AnswerFormat, GoldError, Reading, Repaired
from medtasks_ext.answers.normalise import after_result, strip_reasoning
from medtasks_ext.answers.tolerant import reply_of
from medtasks_ext.answers.tolerant.letters import LETTERS, read_letters
from medtasks_ext.answers.tolerant.words import read_word
from medtasks_ext.privacy import excerpt

if TYPE_CHECKING:
    from collections.abc import Mapping


_FIRST_TOKEN = re.compile(r"[A-Za-z0-9](?![^\W_])")


class ExactLetter(AnswerFormat):
    """One option letter, compared by HELM's exact match.

    HELM asks for one token, so that of `D. text` it sees `D`. The answer is therefore the letter with
    which the stripped reply begins, if no letter or digit follows; else, and for models that reason,
    the whole reply. It is valid when it is one of the letters, of as many as the row has options. HELM
    has no chain-of-thought prompt and no reader for one.

    Attributes:
        letters: of the options, or digits where rows have no options.
        one_token: whether HELM decodes a single token; if not the whole reply is the answer.
    """

    kind: Literal["exact_letter"]
    letters: list[str]
    one_token: bool = True
    released: ClassVar[Literal["always", "direct", "never"]] = "direct"

    def read_gold(self, text: str, row: Mapping[str, Any]) -> str:
        """The gold letter."""
        letter, letters = text.strip(), self._letters(row)
        if letter not in letters:
            raise GoldError(f"{excerpt(letter)} is not one of the letters {', '.join(letters)}")
        return letter

    def _read(self, text: str, row: Mapping[str, Any], *, cot: bool) -> Reading:
        """The first token of the reply, or the whole reply without reasoning trace."""
        reply = strip_reasoning(text)
        reasoned = len(reply) < len(text)
        reply = after_result(reply).strip().strip("*").strip() if cot else reply.strip()
        if self.one_token and not reasoned and not cot and _FIRST_TOKEN.match(reply):
            reply = reply[0]
        valid = reply in self._letters(row)
        place = text.rfind(reply) if reasoned else text.find(reply)
        return Reading(reply, valid, (place, place + len(reply)) if valid else None, "the first token")

    def _read_repaired(self, text: str, document: Mapping[str, Any], *, cot: bool) -> Repaired:
        """The letter of the option that the reply names."""
        letters = self._letters(document)
        options = document.get("options", ())
        found = read_letters(reply_of(text), options, LETTERS if options else "".join(letters), several=False)
        letter = None if found.answer is None else (LETTERS if options else letters)[found.answer[0]]
        return {"gold": document.get("gold"), "answer": letter, "span": found.span, "why": found.why}

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
    released: ClassVar[Literal["always", "direct", "never"]] = "direct"

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

    def _read(self, text: str, row: Mapping[str, Any], *, cot: bool) -> Reading:
        """The one label named in the reply (under chain-of-thought: after `Result:`)."""
        reply = strip_reasoning(text)
        named = {match.lower() for match in self._pattern.findall(after_result(reply) if cot else reply)}
        named &= {label.lower() for label in self.labels}
        return Reading(named.pop(), True) if len(named) == 1 else Reading(None, False)

    def _read_repaired(self, text: str, document: Mapping[str, Any], *, cot: bool) -> Repaired:
        """The label that the reply gives."""
        found = read_word(reply_of(text), {label.lower(): label.lower() for label in self.labels})
        return {"gold": document.get("gold"), "answer": found.answer, "span": found.span, "why": found.why}

    def labels_of(self, gold: str) -> list[str]:
        """The one gold label."""
        return [gold]

    def not_covered(self, golds: list[str]) -> list[str]:
        """Labels that are no row's gold."""
        return [label for label in self.labels if label.lower() not in golds]


class MarkedLetters(AnswerFormat):
    """Option letters, asked for as `答案：` and letters; the answer is the set of the options' texts.

    MLB scores contents, not letters (protocol `dynamic_mc`), so letters are mapped to the options
    as this row shows them. MLB has released no reader.
    """

    kind: Literal["marked_letters"]
    released: ClassVar[Literal["always", "direct", "never"]] = "never"

    def read_gold(self, text: str, row: Mapping[str, Any]) -> list[str]:
        """The texts of the gold options, sorted."""
        chosen = self._options(text.replace("答案：", ""), row["options"])
        if not chosen:
            raise GoldError(f"{excerpt(text)} names no option of the question")
        return chosen

    def _read_repaired(self, text: str, document: Mapping[str, Any], *, cot: bool) -> Repaired:
        """The texts of the options that the reply names."""
        options = document["options"]
        found = read_letters(reply_of(text), options, LETTERS, several=True)
        chosen = None if found.answer is None else sorted(options[place] for place in found.answer)
        return {"gold": document.get("gold"), "answer": chosen, "span": found.span, "why": found.why}

    @staticmethod
    def _options(letters: str, options: list[str]) -> list[str] | None:
        """The chosen texts, sorted, or None when a letter has no option."""
        indices = {ascii_uppercase.index(letter) for letter in letters if letter in ascii_uppercase}
        if not indices or max(indices) >= len(options):
            return None
        return sorted(options[i] for i in indices)
