"""Responses are read as the plain rules read them, where a suite has a reader, and as worked examples say.

Examples stand in `cases/*.yaml`: what a text is read as, and what gold is refused. A file holds blocks of one
`answer:` block and its examples. `mode` is `direct` or `cot`; without it the example holds in both.
`{20000 x}` stands for `x` repeated to 20,000 characters.
"""

from __future__ import annotations

import json
import random
import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from medtasks_ext.answers import GoldError, answer_format
from medtasks_ext.answers.text import fold
from medtasks_ext.registry import registry
from tests.answers import responses
from tests.answers.plain_rules import RULES, folded, plainly
from tests.conftest import ROOT

pytestmark = pytest.mark.long

Block = dict[str, Any]

#: random responses per task, each read in both modes: the same every day, others each night
SERIES = [
    pytest.param(200, "every day", id="200"),
    pytest.param(2_000, f"a night of {random.SystemRandom().random()}", id="2000", marks=pytest.mark.nightly),
]
#: seconds of a processor, however busy it is, for lines that a reader takes in milliseconds
CPU_SECONDS = 60

TASKS: dict[str, Block] = {
    name: block
    for name, dataset in registry().datasets.items()
    if (block := dataset.blocks["answer"])["kind"] in RULES
}
BRIDGE = yaml.safe_load((Path(__file__).parent / "bridge_shapes.yaml").read_text(encoding="utf-8"))
BLOCKS: dict[str, Block] = {**TASKS, **BRIDGE}


@pytest.mark.parametrize(("n", "seed"), SERIES)
@pytest.mark.parametrize("name", BLOCKS)
def test_random_responses_are_read_as_the_plain_rules_say(name, n, seed):
    block, form = BLOCKS[name], answer_format(BLOCKS[name])
    read, rule = form.read, RULES[block["kind"]]
    modes = [cot for cot in (False, True) if form.has_released_reader(cot=cot)]
    differing, valid, answers = [], 0, set()
    for text in responses.many(block, responses.ROW, f"responses to {name}, {seed}", n):
        for cot in modes:
            answer, is_valid = read(text, responses.ROW, cot=cot)[:2]
            expected = rule(block, text, responses.ROW, cot)
            if (plainly(answer), is_valid) != expected:
                differing.append((text, f"{cot=}", answer, expected))
            valid += is_valid
            answers.add(str(answer))
    assert min(differing, key=lambda item: len(item[0]), default=None) is None
    # the responses are worth reading: neither all valid (where that can be) nor all the same
    assert valid > n * len(modes) / 10
    assert valid < n * len(modes) or block["kind"] == "code_list"
    assert len(answers) > 2


MARKS = [":", ",", ";", "'", "[]", "**", ":a,", ":;", "a:b,", "a:b,c:d,", ":[],", ":,[a],", "I10.", "x", "病"]
WORDS = ["result", "结果", "answer:", "答案：", "<think>", "A ", "Similarity score "]
BLANKS = ["\n", " ", "\t", ": ", ", ", ": ,"]


def shape(block: Block) -> str:
    size = len(block.get("fields", [])) or None
    parts = (block["kind"], block.get("pattern_set"), *block.get("patterns", []), size)
    return " ".join(str(part) for part in parts if part)


SHAPES = {shape(block): block for block in BLOCKS.values()}


@pytest.mark.parametrize("name", SHAPES)
def test_a_line_of_20_000_characters_that_repeats_itself_is_read(name):
    """Models that fall into a loop write such lines."""
    block = SHAPES[name]
    answer = responses.gold(block, responses.ROW, random.Random(0)).split("\n")[0]
    units = [*MARKS, *WORDS, *BLANKS, answer, answer.replace(";", ", ")]
    texts = [(unit * 20_000)[:20_000] for unit in units]
    # in a process of its own: a search that does not end cannot be interrupted
    code = (
        "import json, sys\nfrom medtasks_ext.answers import answer_format\n"
        "block, texts, row = json.load(sys.stdin)\nform = answer_format(block)\n"
        "for text in texts:\n    form.read(text, row, cot=True)\n"
        "    print('read', flush=True)"
    )
    given = json.dumps([block, texts, responses.ROW]).encode()
    done = subprocess.run(
        [sys.executable, "-c", code], input=given, capture_output=True, cwd=ROOT,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS)),
    )  # fmt: skip
    n_read = done.stdout.count(b"read")
    assert n_read == len(texts), f"not read: {units[n_read]!r} again and again"


#: letters whose small form depends on their neighbours or has another length, halves of pairs, zero
ODD = st.text(st.sampled_from([*"İiΣσςſKÅßﬀ．，：；！？“’。　aB9 \n\x00", "\ud800", "\udfff", "😀"]))
TEXTS = st.text() | ODD | st.text(st.characters(min_codepoint=0xFF00, max_codepoint=0xFF60))


@given(TEXTS, st.sampled_from(["", "答", "Σ"]))
def test_folding_is_the_rule_character_by_character(text, beside):
    """Texts in ASCII alone, those with a letter that depends on its neighbours, and others go other ways."""
    assert fold(text + beside) == folded(text + beside)


@pytest.mark.parametrize("without", ["", "Σ"])
def test_every_character_is_folded_by_the_rule(without):
    everything = "".join(map(chr, range(0x110000))).replace(without, "")
    assert fold(everything) == folded(everything)


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
