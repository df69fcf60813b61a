"""Text normalisation as BRIDGE has it, and elements of a text."""

import sys
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

_END = "|"
_SMALL_DOTTED_I = "i\u0307"  # the small letter of `İ`: two characters
#: full-width forms and marks -> ASCII; the official table has no entry for ！ and ？
_FOLDED = {chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F) if chr(code) not in "！？"}
_FOLDED |= {"\u3000": " ", "。": ".", "“": '"', "”": '"', "‘": "'", "’": "'"}


@lru_cache(maxsize=1)
def _folded_codes() -> NDArray[np.uint32]:
    """Code of a character -> code of its small letter, folded; `İ`, which has two for one, stays."""
    codes = np.arange(sys.maxunicode + 1, dtype="<u4")
    small = codes.tobytes().decode("utf-32-le", "surrogatepass").replace("İ", "i").lower()
    small_codes = np.frombuffer(small.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    for wide, narrow in _FOLDED.items():
        codes[ord(wide)] = ord(narrow)
    folded: NDArray[np.uint32] = codes[small_codes].astype(np.uint32)
    folded[ord("İ")] = ord("İ")
    return folded


def fold(text: str) -> str:
    """Lower-case, full-width forms to ASCII, strip (BRIDGE, `util/preprocess.py`).

    Applied to gold answers and responses alike, before any pattern is tried.
    """
    if text.isascii():
        return text.lower().strip()
    if "Σ" in text:  # the one capital whose small letter depends on its neighbours
        text = text.replace("İ", _SMALL_DOTTED_I).lower()
    # one look-up for all characters: `lower` and `translate` take one for each
    closed = np.array([text + _END])  # NumPy drops zero characters at the end of a text
    folded: Any = _folded_codes()[closed.view(np.uint32)].view(closed.dtype).item()
    text = folded[: -len(_END)]
    return (text.replace("İ", _SMALL_DOTTED_I) if "İ" in text else text).strip()


def answer_part(text: str, *, cot: bool) -> str:
    """Normalise a response and cut what stands before its answer (BRIDGE, `dataset/process.py`).

    Everything up to the first `</think>` goes; an unclosed trace changes nothing. Under
    chain-of-thought everything up to the first `result:` goes, if there is one. Everything up
    to the first `assistantfinal` goes.
    """
    text = _after_first(fold(text), "</think>")
    if cot:
        text = _after_first(text, "result:").strip()
    return _after_first(text, "assistantfinal").strip()


def part_span(text: str, part: str, begin: int = 0, end: int | None = None) -> tuple[int, int] | None:
    """Where a stretch of an `answer_part` stands in its response; None in the one case in which small letters
    are longer than capitals."""
    if "İ" in text or not part:
        return None
    start = len(text.rstrip()) - len(part)
    return (start + begin, start + (len(part) if end is None else end)) if start >= 0 else None


def _after_first(text: str, marker: str) -> str:
    return text.partition(marker)[2] if marker in text else text


def tagged(text: str, name: str) -> Iterator[tuple[int, int]]:
    """Where what stands in the tags of a name begins and ends, without blanks around it.

    A tag ends where the next one ends; one that never ends holds nothing.
    """
    opening, closing = f"<{name}>", f"</{name}>"
    begin = text.find(opening)
    while begin >= 0 and (end := text.find(closing, begin := begin + len(opening))) >= 0:
        inside = text[begin:end]
        start = end - len(inside.lstrip())
        yield start, max(start, begin + len(inside.rstrip()))
        begin = text.find(opening, end + len(closing))
