"""What the filter gives for one response, as samples record it."""

from __future__ import annotations

from typing import Any, TypedDict


class _Parsed(TypedDict):
    answer: Any
    valid: bool
    unclosed_reasoning: bool


class Parsed(_Parsed, total=False):
    """A response as its answer format reads it.

    Attributes:
        answer: the parsed answer, made of JSON types; None where nothing could be read.
        valid: whether an answer could be read.
        unclosed_reasoning: whether a reasoning trace never ended.
        repaired: what the `_repaired` metrics compare, where there is such a reading.
    """

    repaired: dict[str, Any]
