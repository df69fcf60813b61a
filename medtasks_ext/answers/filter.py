"""The filter that every task uses: it reads responses with the task's answer format."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from lm_eval.api.filter import Filter

from medtasks_ext.answers import Reading, answer_format
from medtasks_ext.answers.normalise import unclosed_reasoning
from medtasks_ext.collector import collector_paused

if TYPE_CHECKING:
    from medtasks_ext.answers.formats import Parsed
    from medtasks_ext.registry.yamlfile import Config


class ParseAnswer(Filter):
    """Response -> both of its readings.

    `answer`, `valid`, `span` and `why` are what is scored: the suite's own reading (`reader` is
    `official`) or, where the suite has released no reader, the repaired one (`reader` is `repaired`).
    `repaired` is the repaired reading, with the gold answer as it is compared with that
    (`AnswerFormat.read_repaired`). An answer is None where nothing could be read; what that counts as
    is the metric's business, since it is part of the suite's scoring rule. Spans are places in the
    response, (first, last + 1). `unclosed_reasoning` says whether a reasoning trace never ended.
    """

    def __init__(self, answer: Config, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._format = answer_format(answer)

    def apply(self, resps: Iterable[list[Any]], docs: list[dict[str, Any]]) -> list[Parsed]:
        """Read the first response of every document; the order is kept."""
        with collector_paused():
            texts = [given[0] if given and isinstance(given[0], str) else "" for given in resps]
            unclosed = unclosed_reasoning(texts)
            return [self._read(*item) for item in zip(texts, docs, unclosed, strict=True)]

    def _read(self, response: str, document: dict[str, Any], unclosed: bool) -> Parsed:
        cot = document["cot"]
        repaired = self._format.read_repaired(response, document, cot=cot)
        released = self._format.has_released_reader(cot=cot)
        if released:
            reading = self._format.read(response, document, cot=cot)
        else:
            answer = repaired["answer"]
            reading = Reading(answer, answer is not None, repaired.get("span"), repaired["why"])
        return {
            "answer": reading.answer,
            "valid": reading.valid,
            "span": reading.span,
            "why": reading.why,
            "reader": "official" if released else "repaired",
            "unclosed_reasoning": unclosed,
            "repaired": repaired,
        }
