"""The package reads random responses exactly as the plain rules do, for every task and in both modes."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from typing import Any

import pytest

from medtasks_ext.answers import answer_format
from medtasks_ext.registry import registry
from tests.answers import responses
from tests.answers.plain_rules import RULES

#: random responses per task, each read in both modes
RESPONSES = 2_000

TASKS: dict[str, dict[str, Any]] = {
    name: block
    for name, dataset in registry().datasets.items()
    if (block := dataset.config["dataset_kwargs"]["medtasks_dataset"]["answer"])["kind"] in RULES
}
#: shapes of answers that BRIDGE has besides
BRIDGE: dict[str, dict[str, Any]] = {
    "CLISTER": {"kind": "bridge_label", "prefix": "Similarity score", "labels": list("012345")},
    "MedSTS": {
        "kind": "bridge_label", "pattern_set": "two_step", "prefix": "Similarity score", "labels": list("012345"),
    },
    "MIMIC-III LOS": {"kind": "bridge_label", "prefix": "Length of stay", "labels": list("ABCD")},
    "Brateca": {"kind": "bridge_label", "prefix": "Hospitalization > 7 days", "labels": ["Yes", "No"]},
    "CARES-ICD10-Chapter": {
        "kind": "bridge_label_list", "prefix": "ICD-10 chapter", "labels": ["I", "II", "IV", "V", "IX", "XIV", "XIX"],
    },
    "MTS": {
        "kind": "bridge_label_list", "pattern_set": "list_two_step", "prefix": "answer",
        "labels": ["Allergy / Immunology", "Surgery", "Cosmetic / Plastic Surgery", "Consult - History and Phy."],
    },
    "CARES-ICD10-Block": {
        "kind": "bridge_code_list", "pattern_set": "list_whole_line", "prefix": "ICD-10 block",
    },
    "IMCS-V2-NER": {
        "kind": "bridge_events", "fields": ["entity", "type"], "patterns": ["strict", "nospace", "loose", "bare"],
    },
    "CHIP-CDEE": {
        "kind": "bridge_events", "fields": ["subject", "description", "location", "status"],
        "patterns": ["bracketed"],
    },
    "seven fields": {
        "kind": "bridge_events", "fields": ["drug", *"abcdef"], "patterns": ["strict", "loose"],
    },
}  # fmt: skip


def plainly(answer: Any) -> Any:
    """Without the shape of lists, which JSON sets."""
    return sorted(map(tuple, answer)) if answer and isinstance(answer[0], list) else answer


@pytest.mark.parametrize("name", [*TASKS, *BRIDGE])
def test_random_responses_are_read_as_the_plain_rules_say(name):
    block = {**TASKS, **BRIDGE}[name]
    read, rule = answer_format(block).read, RULES[block["kind"]]
    differing, valid, answers = [], 0, set()
    for text in responses.many(block, responses.ROW, f"responses to {name}", RESPONSES):
        for cot in (False, True):
            answer, is_valid = read(text, responses.ROW, cot=cot)
            expected = rule(block, text, responses.ROW, cot)
            if (plainly(answer), is_valid) != expected:
                differing.append((text, f"{cot=}", answer, expected))
            valid += is_valid
            answers.add(str(answer))
    assert min(differing, key=lambda item: len(item[0]), default=None) is None
    # the responses are worth reading: neither all valid (where that can be) nor all the same
    assert valid > RESPONSES / 5
    assert valid < 2 * RESPONSES or block["kind"] == "bridge_code_list"
    assert len(answers) > 2


HOSTILE = [
    ":", ",", ";", ": ", ", ", ": ,", ":a,", ":;", "\n", " ", "\t", "A ", "答案：", "result", "结果", "<think>", "'",
    "a:b,", "a:b,c:d,", "x", "！", "Similarity score ", "answer:", "[]", ":[],", ":,[a],", "I10.", "**", "病",
]  # fmt: skip


def shape(block: dict[str, Any]) -> str:
    parts = (block["kind"], block.get("pattern_set"), *block.get("patterns", []), len(block.get("fields", [])))
    return " ".join(str(part) for part in parts if part)


SHAPES = {shape(block): block for block in (*BRIDGE.values(), *TASKS.values())}


@pytest.mark.parametrize("name", SHAPES)
def test_a_line_of_20_000_characters_that_repeats_itself_is_read(name):
    """Models that fall into a loop write such lines."""
    block = SHAPES[name]
    answer = responses.gold(block, responses.ROW, random.Random(0)).split("\n")[0]
    units = [*HOSTILE, answer, answer.replace(";", ", ")]
    texts = [(unit * 20_000)[:20_000] for unit in units]
    # in a process of its own: a search that does not end cannot be interrupted
    code = (
        "import json, sys\nfrom medtasks_ext.answers import answer_format\n"
        "block, texts, row = json.load(sys.stdin)\nread = answer_format(block).read\n"
        "for text in texts:\n    read(text, row, cot=True)\n    print('read', flush=True)"
    )
    given = json.dumps([block, texts, responses.ROW]).encode()
    try:
        done = subprocess.run([sys.executable, "-c", code], input=given, capture_output=True, timeout=60).stdout
    except subprocess.TimeoutExpired as stopped:
        done = stopped.stdout or b""
    n_read = done.count(b"read")
    assert n_read == len(texts), f"no end with {units[n_read]!r} again and again"
