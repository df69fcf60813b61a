"""Tokens of prompts that are mostly alike, each text tokenised once.

A prompt that does not fit is tried with fewer shots and with less of its record: a dozen texts, each of which
differs from the first in one place. What stands far from that place has the tokens that it had. So only a
window around it is tokenised, wide enough that its tokens fall in with those of the first text on both sides;
where they do not, the whole text is tokenised. The prompt that is sent is tokenised as such, since the engine
gets these tokens: a record that is cut costs 1 + its cut length / its whole length.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from medtasks_ext.harness import LM

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
