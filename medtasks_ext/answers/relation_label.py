"""One relation, or that there is none (ClinicBench's relation extraction)."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field, model_validator

from medtasks_ext.answers.formats import AnswerFormat, GoldError, Reading, Repaired
from medtasks_ext.answers.normalise import after_result, strip_reasoning
from medtasks_ext.answers.tolerant import reply_of
from medtasks_ext.answers.tolerant.words import read_word
from medtasks_ext.privacy import excerpt

if TYPE_CHECKING:
    from collections.abc import Mapping

#: names of the class that stands for no relation
NEGATIVE = frozenset({"no", "none"})


class RelationLabel(AnswerFormat):
    """A label, in angle brackets or as a word.

    Labels in angle brackets decide if there are any, the one with which the reply begins before others;
    else labels that stand as words do. Two different ones are no answer.

    Attributes:
        labels: as they are to be written, or each with its meaning; one of them is `No` or `None`.
        aliases: other spelling -> label.
    """

    kind: Literal["relation_label"]
    labels: list[str] | dict[str, str]
    aliases: dict[str, str] = Field(default_factory=dict)
    released: ClassVar[Literal["always", "direct", "never"]] = "direct"

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
        """The gold label, lower-cased.

        Raises:
            GoldError: it is none of the labels.
        """
        label = self._names.get(text.strip().strip("<>").lower())
        if label is None:
            raise GoldError(f"{excerpt(text.strip())} is not one of: {', '.join(self.labels)}")
        return label

    def _read(self, text: str, row: Mapping[str, Any], *, cot: bool) -> Reading:
        """The one label that the reply names (under chain-of-thought: after `Result:`)."""
        reply = strip_reasoning(text)
        reply = (after_result(reply) if cot else reply).lstrip(" \t\r\n*_`")
        bracketed, word = self._patterns
        if first := bracketed.match(reply):
            named = {first[1]}
        else:
            named = set(bracketed.findall(reply)) or set(word.findall(reply))
        # some letters are equal to a label's only without regard to case: İ, ſ
        labels = {self._names.get(name.lower()) for name in named}
        label = labels.pop() if len(labels) == 1 else None
        return Reading(label, label is not None)

    def _read_repaired(self, text: str, document: Mapping[str, Any], *, cot: bool) -> Repaired:
        """The label that the reply gives."""
        found = read_word(reply_of(text), self._names)
        return {"gold": document.get("gold"), "answer": found.answer, "span": found.span, "why": found.why}

    def not_covered(self, golds: list[str]) -> list[str]:
        """Labels that are no row's gold."""
        return [label for label in self.labels if label.lower() not in golds]
