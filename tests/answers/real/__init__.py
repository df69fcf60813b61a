"""Answers of a real model, drawn by a seed, and what the author took each to be: `drawn.yaml`.

SmolLM2-135M-Instruct, from Q4_1 weights, answered two bundled rows of each dataset of the four suites, in
three passes of `tools/real_answers.py`; 200 of these 786 answers were drawn with seed 1:
five of each kind in each suite, the rest at random. One author of the readers, and no second reader, wrote
down what each says before looking at what a reader makes of it; the commits are in that order. 154 of the
200 say nothing that answers the question, or several things.

First reading: 27 wrong, 15 unread of 200, 21 % (95 % interval 16 to 27 %, Wilson). By kind, answers wrong +
unread: `code_list` 5 of 5, `drug_list` 4 of 5, `entity_list` 4 of 6, `exact_letter` 10 of 23, `label` 3 of
27, `label_list` 2 of 8, `marked_letters` 5 of 11, `medcalc` 2 of 5, `medec` 2 of 5, `option_letter` 1 of
10, `relation_label` 1 of 6, `tuples` 3 of 15, others 0 of 74. 22 of the 27 found an answer in a reply that
has none. That is the estimate for a model that hardly follows its prompts, and none for others. Now 14 stay
misread; since the readers were mended on them, that is no estimate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from string import ascii_uppercase
from typing import Any

import yaml

from tests.answers.real.store import DRAWN as MAKING
from tests.answers.real.store import Kept, kept, reader_of

DRAWN = Path(__file__).with_name("drawn.yaml")
#: of an answer that is not there, or not clear
NONE = "none"


@dataclass(frozen=True)
class RealAnswer:
    """An answer, and what it says.

    Attributes:
        place: in the file.
        kept: the answer.
        said: what the author read.
    """

    place: int
    kept: Kept
    said: Any

    def read(self) -> Any:
        """What the shared reader finds, as the author wrote it down."""
        documents, reader = reader_of(self.kept.task)
        document = documents[self.kept.document]
        return _as_said(self.kept.kind, reader.read(document, self.kept.response)["answer"], document)

    @property
    def is_shared(self) -> bool:
        """Whether the shared reader reads it: its suite has released no other."""
        documents, reader = reader_of(self.kept.task)
        return bool(reader.read(documents[self.kept.document], self.kept.response)["reader"] == "shared")

    @property
    def agrees(self) -> bool:
        """Whether the reader finds what the author did."""
        return _plain(self.read()) == _plain(self.said)


def _as_said(kind: str, answer: Any, document: Any) -> Any:
    if answer is None:
        return NONE
    if kind == "marked_letters":
        return "".join(sorted(ascii_uppercase[document["options"].index(text)] for text in answer))
    if kind == "medec":
        return f"{answer['sentence']} {answer['correction']}" if answer["flag"] else "CORRECT"
    if kind == "drug_list":
        return sorted({", ".join(pieces) for pieces in answer})
    return answer


def _plain(said: Any) -> Any:
    return [item.casefold() for item in said] if isinstance(said, list) else str(said).casefold()


def real_answers() -> Iterator[RealAnswer]:
    """All of them, in their order."""
    answers = {item.key: item for item in kept()}
    for place, item in enumerate(yaml.safe_load(DRAWN.read_text(encoding="utf-8"))):
        answer = answers[MAKING, item["asked"], item["task"], item["document"]]
        yield RealAnswer(place, answer, item["said"])
