"""Prompts that do not fit the context: drop shots from the end, then cut the end of the input.

Of a dialogue the oldest turns go first.

This is BRIDGE's rule (`dataset/process.py`), used for all suites. Where one turn holds instruction, input and
cue, the input is the longest column of the row: a question that stands after a long record stays whole.
lm-eval alone would cut the left end of the prompt, which holds the instruction.

The texts that are tried differ from the first in one place. What stands far from there has the tokens that it
had. So only a window around it is tokenised, wide enough that its tokens fall in with those of the first text
on both sides; where they do not, the whole text is. The prompt that is left is counted once more as a whole,
since the engine gets these tokens; where that count is another one, all of them are.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

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


#: Characters of equal text on each side of a difference that are tokenised with it, and tokens of them that
#: must be those of the first text: more than the tokens of one character.
OVERLAP, AGREE = 256, 8


@dataclass(frozen=True, slots=True)
class _Tokens:
    text: str
    starts: list[int]


class PromptCounter:
    """Counts a model's tokens; `characters`: that were tokenised so far."""

    def __init__(self, lm: LM) -> None:
        self._lm = lm
        self.characters = 0
        self._tokenizer, self._special = _with_places(lm)
        self._first: _Tokens | None = None
        self._near: _Tokens | None = None

    def exact(self, text: str) -> int:
        self.characters += len(text)
        return len(self._lm.tok_encode(text))

    def first(self, text: str) -> int:
        """Tokens of a text that others are like.

        What it begins with like the last such text is not tokenised again: the shots of a task.
        """
        if self._tokenizer is None:
            return self.exact(text)
        self._first = self._near = self._tokens(self._first, text)
        return len(self._near.starts) + self._special

    def then(self, text: str) -> None:
        """From here on texts are like this one, which is like those before."""
        if self._tokenizer is not None:
            self._near = self._tokens(self._near, text)

    def like(self, text: str) -> int:
        """Tokens of a text that is mostly like the one before."""
        if self._tokenizer is None or self._near is None:
            return self.exact(text)
        if (found := self._joined(self._near, text)) is None:
            return self.exact(text)
        before, window, after = found
        return before + len(window) + after + self._special

    def _tokens(self, known: _Tokens | None, text: str) -> _Tokens:
        """A text's tokens, as many of them as can be from those of a known one."""
        if known is None or (found := self._joined(known, text)) is None:
            return _Tokens(text, self._starts(text, 0))
        before, window, after = found
        shift = len(text) - len(known.text)
        rest = [start + shift for start in known.starts[len(known.starts) - after :]]
        return _Tokens(text, known.starts[:before] + window + rest)

    def _joined(self, known: _Tokens, text: str) -> tuple[int, list[int], int] | None:
        """How many known tokens stand before those of a window, these, and how many of the known behind them.

        None where the tokens of the window do not fall in with the known ones.
        """
        same_start = shared_characters(known.text, text)
        same_end = shared_characters(known.text[same_start:][::-1], text[same_start:][::-1])
        shift, margin = len(text) - len(known.text), OVERLAP // 8
        place = bisect_left(known.starts, same_start - OVERLAP) - 1
        begin = known.starts[place] if place >= 0 else 0
        end = len(text) - same_end + OVERLAP if same_end > 2 * OVERLAP else len(text)
        window, before, after = self._starts(text[begin:end], begin), 0, 0
        if begin:
            meets = _meets(known.starts, window, (begin, same_start - margin), 0)
            if meets is None:
                return None
            before, window = bisect_left(known.starts, meets), window[bisect_left(window, meets) :]
        if end < len(text):
            meets = _meets(known.starts, window, (len(text) - same_end + margin, end - margin), shift)
            if meets is None:
                return None
            after = len(known.starts) - bisect_left(known.starts, meets - shift)
            window = window[: bisect_left(window, meets)]
        return before, window, after

    def _starts(self, text: str, place: int) -> list[int]:
        self.characters += len(text)
        made = self._tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        return [place + start for start, _ in made["offset_mapping"]]


def _with_places(lm: LM) -> tuple[Any, int]:
    """A model's tokenizer where it tells where tokens begin, and how many it puts around a text."""
    # engines that encode in another thread give single texts a tokenizer of their own
    owner = getattr(getattr(lm, "tok_encode", None), "__self__", lm)
    tokenizer: Any = tokenizer_of(owner)
    if not getattr(tokenizer, "is_fast", False):
        return None, 0
    text = "a b\nc"
    plain = list(tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])
    whole = list(lm.tok_encode(text))
    for place in range(len(whole) - len(plain) + 1):
        if whole[place : place + len(plain)] == plain:
            return tokenizer, len(whole) - len(plain)
    return None, 0


def _meets(known: list[int], window: list[int], where: tuple[int, int], shift: int) -> int | None:
    """A place around which the tokens of a window begin where the known ones do; None if they do not.

    `where`: from and to which place the window's text is the known one. `shift`: added to a known place.
    """
    low, high = where
    some = known[bisect_left(known, low - shift) : bisect_left(known, high - shift)]
    there = [place + shift for place in some]
    here = window[bisect_left(window, low) : bisect_left(window, high)]
    return here[-1] if len(here) >= AGREE and here[-AGREE:] == there[-AGREE:] else None


def shared_characters(one: str, other: str) -> int:
    alike, most = 0, min(len(one), len(other))
    while alike < most:
        middle = (alike + most + 1) // 2
        if one[alike:middle] == other[alike:middle]:
            alike = middle
        else:
            most = middle - 1
    return alike


def tokenizer_of(model: LM) -> Any:
    try:
        return getattr(model, "tokenizer", None)
    except (ImportError, OSError):  # lm-eval's `dummy` loads one from the hub when it is asked for it
        return None
