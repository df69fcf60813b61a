"""The filter that every task uses: it reads responses with the task's answer format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lm_eval.api.filter import Filter

from medtasks_ext.answers import answer_format
from medtasks_ext.answers.normalise import unclosed_reasoning
from medtasks_ext.collector import collector_paused

if TYPE_CHECKING:
    from collections.abc import Iterable


class ParseAnswer(Filter):
    """Response -> `{"answer", "valid", "unclosed_reasoning"}`, and `repaired` where there is such a reading.

    `answer` is None where nothing could be read. What an unreadable answer counts as is the
    metric's business, since it is part of the suite's scoring rule. `repaired` is what the
    `_repaired` metrics compare (`AnswerFormat.read_repaired`); documents without gold have none.
    """

    def __init__(self, answer: dict[str, Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._format = answer_format(answer)

    def apply(self, resps: Iterable[list[Any]], docs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Read the first response of every document; the order is kept."""
        with collector_paused():
            texts = [given[0] if given and isinstance(given[0], str) else "" for given in resps]
            unclosed = unclosed_reasoning(texts)
            return [self._read(*item) for item in zip(texts, docs, unclosed, strict=True)]

    def _read(self, response: str, document: dict[str, Any], unclosed: bool) -> dict[str, Any]:
        reading = self._format.read(response, document, cot=document["cot"])
        parsed = {
            "answer": reading.answer,
            "valid": reading.valid,
            "unclosed_reasoning": unclosed,
        }
        if document["gold"] is not None:
            repaired = self._format.read_repaired(response, document, cot=document["cot"])
            if repaired is not None:
                parsed["repaired"] = repaired
        return parsed
