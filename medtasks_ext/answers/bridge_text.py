"""BRIDGE generation answers: the whole normalised response."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from medtasks_ext.answers.formats import AnswerFormat, GoldError, Reading
from medtasks_ext.answers.normalise import bridge_normalise, bridge_response

if TYPE_CHECKING:
    from collections.abc import Mapping


class Text(AnswerFormat):
    """Free text. A prefix that the answer format asks for stays in both texts, as officially scored."""

    kind: Literal["bridge_text"]

    def read_gold(self, text: str, row: Mapping[str, Any]) -> list[str]:
        """One reference, or several when the row has an `output_list`."""
        references = [bridge_normalise(item) for item in row.get("output_list") or [text]]
        if not any(references):
            raise GoldError("empty reference")
        return references

    def read(self, text: str, row: Mapping[str, Any], *, cot: bool) -> Reading:
        """The normalised response; an empty one is invalid."""
        response = bridge_response(text, cot=cot)
        return Reading(response, True) if response else Reading(None, False)
