"""Text normalisation and reasoning traces, suite by suite."""

import re
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

_END = "|"
_SMALL_DOTTED_I = "i\u0307"  # the small letter of `İ`: two characters
_KEPT_FULL_WIDTH = {0xFF01, 0xFF1F}  # ！ and ？ stay: the official table has no entry for them


def _fold_table() -> dict[str, str]:
    codes = (code for code in range(0xFF01, 0xFF5F) if code not in _KEPT_FULL_WIDTH)
    table = {chr(code): chr(code - 0xFEE0) for code in codes}
    return {**table, "\u3000": " ", "。": ".", "“": '"', "”": '"', "‘": "'", "’": "'"}


@lru_cache(maxsize=1)
def _folded_codes() -> NDArray[np.uint32]:
    """Code of a character -> code of its small letter, folded; `İ`, which has two for one, stays."""
    codes = np.arange(sys.maxunicode + 1, dtype="<u4")
    small = codes.tobytes().decode("utf-32-le", "surrogatepass").replace("İ", "i").lower()
    small_codes = np.frombuffer(small.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    for wide, narrow in _fold_table().items():
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


@lru_cache(maxsize=1)  # the official and the repaired reading of a response follow each other
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


def strip_reasoning(text: str) -> str:
    """The response without its reasoning trace, for suites whose papers state no rule.

    What follows the last `</think>` is kept. A trace that was never closed holds no answer, so
    nothing is left of it.
    """
    if "</think>" in text:
        return text.rpartition("</think>")[2]
    if "<think>" in text:
        return text.partition("<think>")[0]
    return text


#: share of responses that end a trace without a beginning, from which the chat template began it
OPENED_BY_TEMPLATE = 0.1


def has_unclosed_reasoning(text: str) -> bool:
    """Whether a reasoning trace was opened and never closed (usually a budget that ran out)."""
    return text.rfind("<think>") > text.rfind("</think>")


def unclosed_reasoning(texts: Sequence[str]) -> list[bool]:
    """Which responses of a task hold a reasoning trace that never ended.

    Some chat templates open the trace in the prompt, and responses show its end alone. Where a tenth of them
    do (a few may be slips of a model that does not reason), one without an end is a trace to its last word.
    """
    ends_alone = sum(
        "<think>" not in head for head, end, _ in (text.partition("</think>") for text in texts) if end
    )
    opened = ends_alone >= max(1, OPENED_BY_TEMPLATE * len(texts))
    return [
        has_unclosed_reasoning(text) or (opened and bool(text.strip()) and "</think>" not in text)
        for text in texts
    ]


_RESULT = re.compile(r"(?:result|结果)\**\s*[:：]\**", re.IGNORECASE)


def after_result(text: str) -> str:
    """What follows the last `Result:` (or `结果：`) line marker; the whole text if there is none."""
    markers = list(_RESULT.finditer(text))
    return text[markers[-1].end() :] if markers else text


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
