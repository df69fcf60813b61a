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
from hypothesis import assume, given
from hypothesis import strategies as st

from medtasks_ext.answers import answer_format
from medtasks_ext.answers.normalise import fold
from medtasks_ext.registry import registry
from tests.answers import responses
from tests.answers.plain_rules import RULES, plainly
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


# BRIDGE's normalisation and its released readers, against plain statements of their rules.


FORMS = {"\u3000": " ", "。": ".", "“": '"', "”": '"', "‘": "'", "’": "'"}
#: letters whose small form depends on their neighbours or has another length, halves of pairs, zero
ODD = st.text(st.sampled_from([*"İiΣσςſKÅßﬀ．，：；！？“’。　aB9 \n\x00", "\ud800", "\udfff", "😀"]))
TEXTS = st.text() | ODD | st.text(st.characters(min_codepoint=0xFF00, max_codepoint=0xFF60))


def by_the_rule(text: str) -> str:
    """Character by character."""
    folded = []
    for character in text.lower():
        full_width = "！" <= character <= "～" and character not in "！？"
        folded.append(chr(ord(character) - 0xFEE0) if full_width else FORMS.get(character, character))
    return "".join(folded).strip()


@given(TEXTS)
def test_folding_is_the_rule_character_by_character(text):
    assert fold(text) == by_the_rule(text)


QUESTIONS = ["genre", "origine", "origine du cas"]
PASSAGES = answer_format(
    {"kind": "passages", "prefix": "Evidence of", "questions": dict.fromkeys(QUESTIONS, "")}
)
PIECES = [
    "Evidence of ",
    "genre",
    "origine",
    "origine du cas",
    " du cas",
    ":",
    ": ",
    ";",
    "x",
    " ",
    "\n",
    "ſ",
]


def passages_line_by_line(text: str) -> list[str]:
    """Each line goes to the first question without an answer whose pattern matches."""
    found: dict[str, str] = {}
    for line in fold(text).split("\n"):
        for question in QUESTIONS:
            for mark in (f"evidence of {question}: ", f"{question}:"):
                if question in found or mark not in line.strip():
                    continue
                rests = [
                    line.strip()[i + len(mark) :]
                    for i in range(len(line))
                    if line.strip()[i:].startswith(mark)
                ]
                value = next((rest.split(";")[0] for rest in rests if rest.split(";")[0]), None)
                if value is not None:
                    found[question] = value.strip()
                    break
            else:
                continue
            break
    return [found.get(question, "") for question in QUESTIONS]


@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
def test_passages_go_line_by_line_to_the_first_question_without_one(text):
    assert PASSAGES.read(text, {}, cot=False).answer == passages_line_by_line(text)


LISTS = answer_format(
    {"kind": "label_list", "prefix": "Codes", "labels": ["I", "II", "VII", "a b", "x", "X"]}
)


@given(
    st.lists(st.sampled_from(["i", "ii", "v", "a b", "a", " ", ",", '"', "x", "Codes: ", "\n"])).map("".join)
)
def test_a_piece_counts_as_the_longest_label_in_it(text):
    reading = LISTS.read(text, {}, cot=False)
    line = fold(text)
    if "codes:" in line:
        line = line.partition("codes: ")[2].split("\n")[0]
        assume(line)  # else the other patterns are tried: those of the cases
    else:
        assume(not line or ("\n" not in line and line[0].isalnum()))
    pieces = [piece.strip().replace('"', "") for piece in line.split(",")]
    longest_first = ["vii", "a b", "ii", "i", "x"]
    named = {label for piece in pieces if (label := next((x for x in longest_first if x in piece), None))}
    assert reading.answer == (sorted(named) or None)


@given(TEXTS, st.sampled_from(["", "答", "Σ"]))
def test_what_stands_beside_a_letter_changes_no_other_one(text, beside):
    """Texts in ASCII alone, those with a letter that depends on its neighbours, and others go other ways."""
    assert fold(text + beside) == by_the_rule(text + beside)


def test_every_character_is_folded_by_the_rule():
    everything = "".join(map(chr, range(0x110000)))
    assert fold(everything) == by_the_rule(everything)
    without = everything.replace("Σ", "")
    assert fold(without) == by_the_rule(without)
