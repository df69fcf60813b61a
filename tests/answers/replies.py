"""Hand-written replies in many languages, with the answer that a reader of the language takes from them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from medtasks_ext.answers import answer_format

FOLDER = Path(__file__).parent / "replies"
SECOND = Path(__file__).parent / "replies_second.yaml"
THIRD = Path(__file__).parent / "replies_third.yaml"
FOURTH = Path(__file__).parent / "replies_fourth.yaml"
FIFTH = Path(__file__).parent / "replies_fifth"
SIXTH = Path(__file__).parent / "replies_sixth"
SEVENTH = Path(__file__).parent / "replies_seventh"
MODELS = Path(__file__).parent / "replies_models"
LATER = Path(__file__).parent / "replies_later.yaml"
#: written for an answer that is not there, or not clear
NONE = "none"


@dataclass(frozen=True)
class HandWritten:
    """A reply, and what it says."""

    language: str
    kind: str
    block: tuple[tuple[str, Any], ...]
    text: str
    gold: str

    @property
    def spec(self) -> dict[str, Any]:
        """The block `answer:`."""
        keys = ("labels", "units")
        return {"kind": self.kind, "language": self.language, **{k: v for k, v in self.block if k in keys}}

    def read(self) -> str:
        """The answer as the reader finds it, written as the gold answers are."""
        block = dict(self.block)
        row = {"options": block["options"]} if "options" in block else {}
        document = {**row, "gold": None, "target": ""}
        answer = answer_format(self.spec).read_repaired(self.text, document, cot=False)["answer"]
        if answer is None:
            return NONE
        if self.kind == "ordinal":
            return str(block["labels"][answer])
        # of labels such as I, II and III those of several answers are written apart
        apart = " " if "III" in block.get("labels", ()) else ""
        return apart.join(answer) if isinstance(answer, list) else _number(answer)


def _number(answer: Any) -> str:
    return f"{answer:g}" if isinstance(answer, float | int) else str(answer)


def _made(language: str, kind: str, block: dict[str, Any]) -> Iterator[HandWritten]:
    block = {("labels" if key == "levels" else key): value for key, value in block.items()}
    replies = block.pop("replies")
    for text, gold in replies:
        said = _number(gold).replace("+", "")
        yield HandWritten(language, kind, tuple(block.items()), text, said)


@lru_cache(maxsize=1)
def written_before() -> list[HandWritten]:
    """A hundred in each of twelve languages, written before there was a reader."""
    found = []
    for file in sorted(FOLDER.glob("*.yaml")):
        for kind, block in yaml.safe_load(file.read_text(encoding="utf-8")).items():
            found += _made(file.stem, kind, block)
    return found


@lru_cache(maxsize=1)
def written_later() -> list[HandWritten]:
    """Those that were written when the readers were finished, in these and other languages."""
    found = []
    for block in yaml.safe_load(LATER.read_text(encoding="utf-8")):
        found += _made(block.pop("language"), block.pop("kind"), block)
    return found


@lru_cache(maxsize=1)
def written_second() -> list[HandWritten]:
    """Thirty more in each of the first twelve languages, which no reader had seen."""
    return list(_of_languages(SECOND))


@lru_cache(maxsize=1)
def written_third() -> list[HandWritten]:
    """Fifteen more in each, as models write them, which no reader had seen."""
    return list(_of_languages(THIRD))


@lru_cache(maxsize=1)
def written_fourth() -> list[HandWritten]:
    """Twenty more in each, whose options are phrases, which no reader had seen."""
    return list(_of_languages(FOURTH))


@lru_cache(maxsize=1)
def written_fifth() -> list[HandWritten]:
    """A hundred more in each, written when the reader knew the fourth set, and read by it as it was then."""
    return list(_of_files(FIFTH))


@lru_cache(maxsize=1)
def written_sixth() -> list[HandWritten]:
    """Fifty more in each, written when the reader knew the fifth set."""
    return list(_of_files(SIXTH))


@lru_cache(maxsize=1)
def written_seventh() -> list[HandWritten]:
    """A hundred more in each, in the forms and about as often as models write them; committed before any
    reader had seen it."""
    return list(_of_files(SEVENTH))


@lru_cache(maxsize=1)
def written_for_mending() -> list[HandWritten]:
    """Replies as models write them, with which the reader was mended before the seventh set was written."""
    return list(_of_files(MODELS))


#: what a set is -> the set, in the order in which they were written
SETS = {
    "written before the reader": written_before,
    "written when it was finished": written_later,
    "with twists": written_second,
    "as models write": written_third,
    "options that are phrases": written_fourth,
    "a hundred more in each language": written_fifth,
    "fifty more in each language": written_sixth,
    "as models write, for mending": written_for_mending,
    "as models write, a hundred in each language": written_seventh,
}


def _of_files(folder: Path) -> Iterator[HandWritten]:
    for file in sorted(folder.glob("*.yaml")):
        for block in yaml.safe_load(file.read_text(encoding="utf-8")):
            yield from _made(file.stem, block.pop("kind"), block)


def _of_languages(file: Path) -> Iterator[HandWritten]:
    for language, blocks in yaml.safe_load(file.read_text(encoding="utf-8")).items():
        for block in blocks:
            yield from _made(language, block.pop("kind"), block)
