"""Letters that equal others only where case does not count: `ſ` and `s`, `ᲃ` and `с`."""

from __future__ import annotations

import re

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from medtasks_ext.answers import answer_format
from medtasks_ext.answers.labels import SAME_LETTERS
from medtasks_ext.answers.normalise import fold

LABELS = ["yes", "not stated", "no", "с болью (да)", "2", "i"]
LABEL = answer_format({"kind": "label", "prefix": "Status", "labels": LABELS})
PIECES = [
    *LABELS,
    "no",
    "ye",
    "ſ",
    "yeſ",
    "ᲃ болью (да)",
    "İ",
    "Status",
    ":",
    ": ",
    " ",
    "-",
    "_",
    "a",
    "é",
    "\u0301",
    "\n",
    "答",
]


def by_the_patterns(text: str) -> str | None:
    """The released rule: three searches that ignore case, one after the other."""
    anyof = "|".join(map(regex.escape, sorted(map(fold, LABELS), key=len, reverse=True)))
    steps = (rf"status: ({anyof})", rf"status:?\s*({anyof})", rf"\b({anyof})\b")
    found = (regex.search(step, fold(text), regex.IGNORECASE) for step in steps)
    return next((match[1].lower() for match in found if match), None)


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_a_label_is_that_of_the_released_patterns(text):
    assert LABEL.read(text, {}, cot=False).answer == by_the_patterns(text)


@pytest.mark.parametrize("noise", ["no1 ", "noé", "yes_", "2\u0301", "ye"])
def test_a_label_after_thousands_of_places_that_look_like_one_is_found(noise):
    assert LABEL.read(noise * 3_000 + " yes", {}, cot=False).answer == "yes"
    assert LABEL.read(noise * 3_000, {}, cot=False).answer == by_the_patterns(noise * 3_000)


def test_all_letters_that_the_official_search_takes_for_the_same_are_known():
    small = [
        letter
        for letter in map(chr, range(0x110000))
        if fold(f"|{letter}|") == f"|{letter}|" and {letter.upper(), letter.casefold()} != {letter}
    ]
    every = "".join(small)
    groups = {
        "".join(sorted({letter, *same}))
        for letter in small
        if len(same := regex.findall(regex.escape(letter), every, regex.IGNORECASE)) > 1
    }
    assert groups == {"".join(sorted(group)) for group in SAME_LETTERS}


@pytest.mark.parametrize(
    "reply", ["Yeſ", "**Yeſ**", "Answer: yeſ", "I think so. Therefore, yeſ.", "Yeſ or no"]
)
@pytest.mark.parametrize(
    "block",
    [
        {"kind": "label_word", "labels": ["yes", "no"]},
        {"kind": "relation_label", "labels": {"yes": "there is one", "no": "there is none"}},
    ],
)
def test_such_a_letter_in_a_reply_is_read(block, reply):
    found = answer_format(block).read_repaired(reply, {"gold": "yes", "target": "yes"}, cot=False)
    assert found["answer"] == (None if re.search(" or ", reply) else "yes")
