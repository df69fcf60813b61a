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
    """Response -> its reading; of a document that is asked several times, a list of them."""

    def __init__(self, answer: Config, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._format = answer_format(answer)

    def apply(self, resps: Iterable[list[Any]], docs: list[dict[str, Any]]) -> list[Parsed | list[Parsed]]:
        """The order of the documents is kept."""
        with collector_paused():
            texts = [[text if isinstance(text, str) else "" for text in given] or [""] for given in resps]
            unclosed = iter(unclosed_reasoning([text for given in texts for text in given]))
            parsed: list[Any] = []
            for given, document in zip(texts, docs, strict=True):
                cot, read = document["cot"], list[Any]()
                reader = "official" if self._format.has_released_reader(cot=cot) else "shared"
                for text in given:
                    reading = self._format.read(text, document, cot=cot)._asdict()
                    read.append({**reading, "reader": reader, "unclosed_reasoning": next(unclosed)})
                parsed.append(read if len(read) > 1 else read[0])
            return parsed
