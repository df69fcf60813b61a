"""The package reads random responses as the plain rules do, for every task whose suite has a reader."""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from medtasks_ext.answers import answer_format
from medtasks_ext.answers.normalise import fold
from medtasks_ext.registry import registry
from tests.answers import responses
from tests.answers.plain_rules import RULES, folded, plainly
from tests.conftest import ROOT

#: random responses per task, each read in both modes: the same every day, others each night
SERIES = [
    pytest.param(200, "every day", id="200"),
    pytest.param(2_000, f"a night of {random.SystemRandom().random()}", id="2000", marks=pytest.mark.nightly),
]
#: seconds of a processor, however busy it is, for lines that a reader takes in milliseconds
CPU_SECONDS = 60

TASKS: dict[str, dict[str, Any]] = {
    name: block
    for name, dataset in registry().datasets.items()
    if (block := dataset.blocks["answer"])["kind"] in RULES
}
BRIDGE = yaml.safe_load((Path(__file__).parent / "bridge_shapes.yaml").read_text(encoding="utf-8"))
BLOCKS: dict[str, dict[str, Any]] = {**TASKS, **BRIDGE}


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


def shape(block: dict[str, Any]) -> str:
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
