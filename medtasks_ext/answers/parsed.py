"""What the filter makes of a response."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from medtasks_ext.answers.formats import Repaired


class Parsed(TypedDict):
    """A response as its answer format reads it.

    Attributes:
        answer: the parsed answer that is scored, made of JSON types; None where nothing could be read.
        valid: whether an answer could be read.
        span: its place in the response, (first, last + 1), where the reader knows it.
        why: why it was read so.
        reader: whose reading it is: the suite's own, or the repaired one where the suite released none.
        unclosed_reasoning: whether a reasoning trace never ended.
        repaired: the repaired reading, and the gold answer as it is compared with that.
    """

    answer: Any
    valid: bool
    span: tuple[int, int] | None
    why: str
    reader: Literal["official", "repaired"]
    unclosed_reasoning: bool
    repaired: Repaired
