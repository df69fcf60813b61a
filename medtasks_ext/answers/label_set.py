"""Any number of labels of a closed list, or none (ClinicBench's document classification)."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from medtasks_ext.answers.formats import AnswerFormat, GoldError, Reading, Repaired
from medtasks_ext.answers.normalise import after_result, strip_reasoning
from medtasks_ext.answers.tolerant import reply_of
from medtasks_ext.answers.tolerant.lists import items_of
from medtasks_ext.privacy import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SEPARATOR = re.compile(r"[\n,;；]")
_BULLET = re.compile(r"\A\s*(?:[-*+•·–—]+\s+|\(?\d{1,3}[.)]\s+)")
_REMARK = re.compile(r":|\(|\[|\s[-–—]\s")
_NO_WORD = re.compile(r"[\W_]+")
_NONE = frozenset({"none", "none of them", "none of these", "none of the above"})


class LabelSet(AnswerFormat):
    """Labels on lines of their own or between commas or semicolons; `none` for none of them.

    A label may be given by its name, another name, or its number in the list. Case, hyphens, `&` for
    `and`, bullets, and what stands behind a colon, dash or bracket do no harm. Other pieces are left
    out; a reply in which no piece is a label, or `none`, is invalid.

    Attributes:
        labels: as they are to be written, or each with its meaning.
        aliases: other name (a title, a short code) -> label.
    """

    kind: Literal["label_set"]
    labels: list[str] | dict[str, str]
    aliases: dict[str, str] = Field(default_factory=dict)
    released: ClassVar[Literal["always", "direct", "never"]] = "direct"

    @cached_property
    def _names(self) -> dict[str, str]:
        names = {str(number): label for number, label in enumerate(self.labels, start=1)}
        names |= {_plain(label): label for label in self.labels}
        return names | {_plain(other): label for other, label in self.aliases.items()}

    def read_gold(self, text: str, row: Mapping[str, Any]) -> list[str]:
        """The gold labels, sorted; there may be none.

        Raises:
            GoldError: a piece of it is no label.
        """
        pieces = [piece for piece in _SEPARATOR.split(text) if piece.strip()]
        if strange := [piece.strip() for piece in pieces if not self._resolved(piece)]:
            raise GoldError(f"{excerpt(strange[0])} is not one of: {', '.join(self.labels)}")
        if not pieces:
            raise GoldError("write one label on each line, or none")
        return self._labels(text) or []

    def _read(self, text: str, row: Mapping[str, Any], *, cot: bool) -> Reading:
        """The distinct labels of the reply (under chain-of-thought: of what follows `Result:`)."""
        reply = strip_reasoning(text)
        found = self._labels(after_result(reply) if cot else reply)
        return Reading(found, found is not None)

    def _read_repaired(self, text: str, document: Mapping[str, Any], *, cot: bool) -> Repaired:
        """The labels of a list in any form."""
        found = items_of(text, reply_of(text))
        labels = self._labels("\n".join(found.items).replace("、", ",").rstrip(" .。"))
        why = "no label was found" if labels is None else "a list"
        return {
            "gold": document.get("gold"),
            "answer": labels,
            "span": None if labels is None else found.span,
            "why": why,
        }

    def _labels(self, text: str) -> list[str] | None:
        resolved = {label for piece in set(_SEPARATOR.split(text)) if (label := self._resolved(piece))}
        return sorted(resolved - {"none"}) if resolved else None

    def _resolved(self, piece: str) -> str | None:
        """The label that a piece names, `none` where it says that there is none, None if it says nothing."""
        for form in _forms(piece):
            if form in self._names:
                return self._names[form]
            if form in _NONE:
                return "none"
        return None

    def not_covered(self, golds: list[list[str]]) -> list[str]:
        """Labels that no row has."""
        return [label for label in self.labels if not any(label in gold for gold in golds)]


def _forms(piece: str) -> Iterator[str]:
    """The piece as it is, without bullet, and without what explains it."""
    yield _plain(piece)
    bare = _BULLET.sub("", piece)
    yield _plain(bare)
    if remark := _REMARK.search(bare, 1):
        yield _plain(bare[: remark.start()])


def _plain(text: str) -> str:
    return _NO_WORD.sub(" ", text.casefold().replace("&", " and ")).strip()
