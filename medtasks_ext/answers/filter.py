"""The filter that every task uses: it reads responses with the task's answer format."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from medtasks_ext.answers import answer_format
from medtasks_ext.answers.reasoning import unclosed_reasoning
from medtasks_ext.harness import Filter
from medtasks_ext.process import collector_paused

if TYPE_CHECKING:
    from medtasks_ext.answers.formats import Parsed
    from medtasks_ext.strict import Config


class ParseAnswer(Filter):
    """Response -> its reading.

    An answer is None where nothing could be read; what that counts as is the metric's business, since it is
    part of the suite's scoring rule.
    """

    def __init__(self, answer: Config, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._format = answer_format(answer)

    def apply(self, resps: Iterable[list[Any]], docs: list[dict[str, Any]]) -> list[Parsed]:
        """Read the first response of every document; the order is kept."""
        with collector_paused():
            texts = [given[0] if given and isinstance(given[0], str) else "" for given in resps]
            unclosed = unclosed_reasoning(texts)
            parsed: list[Any] = []
            for text, document, never_ends in zip(texts, docs, unclosed, strict=True):
                cot = document["cot"]
                reading = self._format.read(text, document, cot=cot)
                reader = "official" if self._format.has_released_reader(cot=cot) else "shared"
                parsed.append({**reading._asdict(), "reader": reader, "unclosed_reasoning": never_ends})
            return parsed
