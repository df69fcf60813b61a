"""A released reader sees the whole response: no length changes an official score."""

import json

import pytest

from medtasks_ext.answers import answer_format
from medtasks_ext.registry import registry


@pytest.mark.parametrize("side", [20_000, 60_000])
def test_lines_in_the_middle_of_a_long_response_count_officially(side):
    dataset = registry().datasets["bridge_mie"]
    reader = answer_format(dataset.blocks["answer"], where=dataset.file)
    first = next(
        json.loads(line) for line in dataset.sample_file.read_text(encoding="utf-8").splitlines() if line
    )
    line = first["output"]
    padding = "这一段没有答案。\n" * (side // 9)
    alone, amid = (reader.read(text, {}, cot=False) for text in (line, f"{padding}{line}\n{padding}"))
    assert alone.valid and amid.answer == alone.answer
