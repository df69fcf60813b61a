"""Prompts that do not fit the context: drop shots from the end, then cut the end of the input.

Of a dialogue the oldest turns go first.

This is BRIDGE's rule (`dataset/process.py`), used for all suites. Where one turn holds instruction, input and
cue, the input is the longest column of the row: a question that stands after a long record stays whole.
lm-eval alone would cut the left end of the prompt, which holds the instruction.

The texts that are tried are counted by what differs (see `counting`); the one that is left is counted once
more as a whole, and where that count is another one, all of them are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from medtasks_ext.prompts.counting import PromptCounter, tokenizer_of
from medtasks_ext.prompts.documents import Document

if TYPE_CHECKING:
    from medtasks_ext.harness import LM

#: Document, number of shots -> the prompt: text, or what an API model wraps a conversation in.
Render: TypeAlias = Callable[[Document, int], Any]
#: What was cut of a prompt.
SHOTS, INPUT = "shots", "input"
#: Tokens from the room within which a prompt that seems to fit, or not to, is counted as a whole.
NEAR = 8


class PromptFitter:
    """Fits the prompts of one task to a model's context."""

    def __init__(self, lm: LM) -> None:
        self.lm, self.has_cut = lm, False
        context = getattr(lm, "max_length", None)
        can_count = isinstance(context, int) and tokenizer_of(lm) is not None
        self._context: int | None = context if can_count else None
        self._counter = PromptCounter(lm) if can_count else None
        self._counted = lru_cache(maxsize=4096)(self._count)  # of options, which are mostly the same

    def longest(self, options: Iterable[str]) -> int:
        """Tokens of the longest of some texts; 0 where nothing is fitted."""
        return 0 if self._context is None else max(map(self._counted, options), default=0)

    def fitted(self, document: Document, shots: int, answer: int, render: Render) -> tuple[Any, str]:
        """The prompt of a document, and what was cut of it: `shots`, `input`, or nothing.

        `answer`: tokens that it takes at most. Text, or what an API model wraps a conversation in.
        """
        prompt = render(document, shots)
        if self._counter is None or self._context is None or not isinstance(prompt, str):
            return prompt, ""
        room = self._context - answer
        if _is_short(prompt, room):
            return prompt, ""
        counter, tokens = self._counter, self._counter.first(prompt)
        if abs(tokens - room) < NEAR:
            tokens = self._count(prompt)
        if tokens <= room:
            return prompt, ""
        counted: dict[str, int] = {}

        def like(text: str) -> int:
            counted[text] = n = counter.like(text)
            return n

        prompt, cut = self._fewer(document, shots, room, like, render)
        if not _is_short(prompt, room) and self._count(prompt) != counted.get(prompt):
            return self._fewer(document, shots, room, self._count, render)
        return prompt, cut

    def _fewer(
        self, document: Document, shots: int, room: int, count: Callable[[str], int], render: Render
    ) -> tuple[str, str]:
        """As much of a prompt as fits `room` tokens, and what was cut of it."""

        def fits(prompt: str) -> bool:
            return _is_short(prompt, room) or count(prompt) <= room

        for fewer in range(shots - 1, -1, -1):
            if fits(prompt := render(document, fewer)):
                return prompt, SHOTS
        while before := document.get("before"):
            rest, document = document, Document(document, before=before[1:])
            document.record, document.keeps_end = rest.record, rest.keeps_end
            if fits(prompt := render(document, 0)):
                return prompt, INPUT
        assert self._counter is not None
        self._counter.then(render(document, 0))
        return _cut(document, fits, render), INPUT

    def _count(self, text: str) -> int:
        assert self._counter is not None
        return self._counter.exact(text)


def _cut(document: Document, fits: Callable[[str], bool], render: Render) -> str:
    """The prompt without shots, with as much of its record as fits; without a record, of its input."""
    prompt = document["prompt"]
    before, record, after = prompt.partition(document.record) if document.record else ("", prompt, "")

    def shortened(kept: int) -> str:
        part = record[len(record) - kept :] if document.keeps_end else record[:kept]
        text: str = render(Document(document, prompt=before + part + after), 0)
        return text

    low, high = 0, len(record)
    while low < high:
        middle = (low + high + 1) // 2
        if fits(shortened(middle)):
            low = middle
        else:
            high = middle - 1
    if not low and document.record:
        rest = Document(document, prompt=before + after)
        rest.record, rest.keeps_end = "", False
        return _cut(rest, fits, render)
    return shortened(low)


def _is_short(prompt: str, room: int) -> bool:
    """Whether a prompt fits uncounted: a token covers at least one byte."""
    return len(prompt.encode(errors="surrogatepass")) <= room
