"""Worked examples of answer kinds, from `cases/*.yaml`: what a text is read as, and what gold is refused.

A file holds blocks of one `answer:` block and its examples. `mode` is `direct` or `cot`; without it the
example holds in both. `{20000 x}` stands for `x` repeated to 20,000 characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from medtasks_ext.answers import GoldError, answer_format
from tests.answers.plain_rules import RULES, plainly

Block = dict[str, Any]
FILES = sorted((Path(__file__).parent / "cases").glob("*.yaml"))
MODES = {"direct": False, "cot": True}


def examples(part: str) -> Iterator[Any]:
    for file in FILES:
        for block in yaml.safe_load(file.read_text(encoding="utf-8")):
            for example in block.get(part, []):
                yield pytest.param(block, example, id=f"{file.stem}: {example['says']}")


def long(text: str) -> str:
    return re.sub(r"\{20000 (.+?)\}", lambda match: (match[1] * 20_000)[:20_000], text, flags=re.DOTALL)


def modes(example: Block) -> list[bool]:
    return [MODES[example["mode"]]] if "mode" in example else list(MODES.values())


def expected(example: Block) -> tuple[Any, bool]:
    """Answer and validity. `invalid` names what the format still hands on, if anything."""
    if "read" in example:
        return example["read"], True
    rest = example["invalid"]
    return (long(rest) if isinstance(rest, str) else rest), False


@pytest.mark.parametrize(("block", "example"), examples("responses"))
def test_a_response_is_read_as(block: Block, example: Block):
    for cot in modes(example):
        reading = answer_format(block["answer"]).read(long(example["text"]), block.get("row", {}), cot=cot)
        assert (reading.answer, reading.valid) == expected(example)


@pytest.mark.parametrize(
    ("block", "example"),
    [item for item in examples("responses") if item.values[0]["answer"]["kind"] in RULES],
)
def test_the_plain_rules_read_it_the_same_way(block: Block, example: Block):
    answer, form = block["answer"], answer_format(block["answer"])
    for cot in filter(lambda cot: form.has_released_reader(cot=cot), modes(example)):
        read = RULES[answer["kind"]](answer, long(example["text"]), block.get("row", {}), cot)
        assert plainly(read[0]) == plainly(expected(example)[0])
        assert read[1] == expected(example)[1]


@pytest.mark.parametrize(("block", "example"), examples("gold"))
def test_a_gold_answer_is_read_as(block: Block, example: Block):
    row = {**block.get("row", {}), **example.get("row", {})}
    assert answer_format(block["answer"]).read_gold(long(example["text"]), row) == example["read"]


@pytest.mark.parametrize(("block", "example"), examples("refused"))
def test_a_gold_answer_is_refused_with_a_reason(block: Block, example: Block):
    with pytest.raises(GoldError, match=re.escape(example["because"])):
        answer_format(block["answer"]).read_gold(long(example["text"]), block.get("row", {}))
