"""Entities from tags on single words or characters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from medtasks_ext.privacy import RowValueError


def spans(
    tokens: Sequence[str], tags: Sequence[str], *, scheme: str = "iob", joint: str = " "
) -> list[dict[str, Any]]:
    """The entities that tags mark, in order.

    Args:
        tokens: words or characters.
        tags: one per token. Scheme `iob` reads `B-X` and `S-X` as a beginning, `I-X` and `E-X` as a
            continuation (or a beginning, where no X goes before); scheme `plain` reads a run of one
            tag as one entity. `O` and an empty tag are outside.
        joint: what stands between tokens.

    Returns:
        `{type, text, start, end}` per entity; start and end count tokens.

    Raises:
        ValueError: not one tag per token.
    """
    if len(tokens) != len(tags):
        raise RowValueError(f"{len(tokens)} tokens have {len(tags)} tags")
    found: list[dict[str, Any]] = []
    for index, tag in enumerate(tags):
        place, _, kind = tag.partition("-") if scheme == "iob" else ("I", "-", tag)
        if tag in ("O", ""):
            continue
        goes_on = found and found[-1]["end"] == index and found[-1]["type"] == kind and place in ("I", "E")
        if goes_on and not found[-1].get("closed"):
            found[-1]["end"] = index + 1
        else:
            found.append({"type": kind, "start": index, "end": index + 1})
        found[-1]["closed"] = place in ("E", "S")
    return [
        {
            "type": span["type"],
            "text": joint.join(tokens[span["start"] : span["end"]]),
            "start": span["start"],
            "end": span["end"],
        }
        for span in found
    ]
