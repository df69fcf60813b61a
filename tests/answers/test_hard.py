"""Hand-written replies are read as a person labelled them, before a reader saw them (`hard/*.yaml`)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from medtasks_ext.answers import answer_format
from medtasks_ext.answers.tolerant import reply_of
from medtasks_ext.answers.tolerant.letters import LETTERS, read_letters

FOLDER = Path(__file__).parent / "hard"


def _blocks(name: str) -> list[dict[str, Any]]:
    return yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))


def letters(name: str = "letters") -> Iterator[tuple[str, str, dict[str, Any], str, str]]:
    """(kind, language, block, text, label)."""
    for block in _blocks(name):
        kind = "several letters" if block["several"] else "one letter"
        for language, items in block["replies"].items():
            for text, label in items:
                yield kind, language, block, text, label


def others(name: str = "others") -> Iterator[tuple[str, str, dict[str, Any], str, Any]]:
    for block in _blocks(name):
        for language, items in block["replies"].items():
            for text, label in items:
                yield block["answer"]["kind"], language, block, text, label


def read_letter(block: dict[str, Any], text: str) -> str:
    found = read_letters(reply_of(text), block["options"], LETTERS, several=block["several"])
    if found.answer is None:
        return "ambiguous" if found.why.startswith("ambiguous") else "none"
    return "".join(LETTERS[place] for place in found.answer)


def read_other(block: dict[str, Any], text: str) -> Any:
    gold = {"form": block["form"]} if "form" in block else None
    document = {"gold": gold, "target": "", **block.get("row", {})}
    answer = answer_format(block["answer"]).read_repaired(text, document, cot=False)["answer"]
    answer = json.loads(json.dumps(answer))
    return answer["tuples"] if block.get("tuples") and answer is not None else answer


@pytest.mark.parametrize(
    ("block", "text", "label"),
    [item[2:] for name in ("letters", "letters_languages", "letters_announced") for item in letters(name)],
)
def test_letters(block, text, label):
    assert read_letter(block, text) == label


@pytest.mark.parametrize(
    ("block", "text", "label"),
    [item[2:] for name in ("others", "languages") for item in others(name)],
)
def test_other_kinds(block, text, label):
    assert read_other(block, text) == label


#: read wrongly, a silent error that stays (medtasks_ext/answers/tolerant)
STAY = {
    "entity: fiebre, type: síntoma; (mencionada dos veces)",
    "breast cancer and ovarian cancer",
    "E11.9 not I10",
}


@pytest.mark.parametrize(
    ("block", "text", "label"), [item[2:] for name in ("unseen", "unseen_letters") for item in letters(name)]
)
def test_replies_that_were_unseen_are_read_rightly_or_not_at_all(block, text, label):
    assert read_letter(block, text) in (label, "none", "ambiguous")


@pytest.mark.parametrize(("block", "text", "label"), [item[2:] for item in others("unseen_others")])
def test_other_kinds_that_were_unseen_are_read_rightly_or_not_at_all(block, text, label):
    assert (read_other(block, text) not in (label, None)) == (text in STAY)
