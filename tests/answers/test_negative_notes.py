"""Extraction from notes in which there is nothing to find, where a task has a word for that."""

from __future__ import annotations

import pytest

from medtasks_ext.answers import GoldError, answer_format
from medtasks_ext.answers.filter import ParseAnswer
from medtasks_ext.metrics.events import micro_f1, process_results

ANSWER = {"kind": "event_lines", "fields": ["entity", "type"], "patterns": ["strict", "loose"]}
WITH_NONE = {**ANSWER, "empty": "none"}
FOUND = "entity: cough, type: symptom;"


def score(replies: list[tuple[str, str]]) -> tuple[float, float]:
    """Score and repaired score of (gold, reply) pairs, read and compared as in a run."""
    answers = answer_format(WITH_NONE)
    documents = [
        {"id": str(n), "target": gold, "gold": answers.read_gold(gold, {}), "cot": False, "data": "local"}
        for n, (gold, _) in enumerate(replies)
    ]
    read = ParseAnswer(WITH_NONE).apply(([reply] for _, reply in replies), documents)
    results = [process_results(document, [item]) for document, item in zip(documents, read, strict=True)]
    return tuple(micro_f1([result[name] for result in results]) for name in ("score", "score_repaired"))


def test_an_empty_gold_can_be_written_as_the_word_or_as_nothing():
    assert answer_format(WITH_NONE).read_gold("None", {}) == []
    assert answer_format(WITH_NONE).read_gold("  ", {}) == []
    with pytest.raises(GoldError, match="no event"):
        answer_format(ANSWER).read_gold(" ", {})


@pytest.mark.parametrize("reply", ["none", "None.", "<think>cough?</think>NONE"])
def test_the_word_is_a_valid_answer_without_events(reply):
    read = ParseAnswer(WITH_NONE).apply([[reply]], [{"target": "none", "gold": [], "cot": False}])
    assert read[0]["valid"] and read[0]["answer"] == [] == read[0]["repaired"]["answer"]


def test_what_is_found_in_a_negative_note_costs_precision():
    assert score([(FOUND, FOUND), ("none", "none")]) == (1.0, 1.0)
    assert score([(FOUND, FOUND), ("none", FOUND)]) == (pytest.approx(2 / 3), pytest.approx(2 / 3))


def test_without_the_key_the_suite_s_reading_stays_as_it_is():
    read = ParseAnswer(ANSWER).apply(
        [["none"]], [{"target": FOUND, "gold": [["cough", "symptom"]], "cot": False}]
    )
    assert not read[0]["valid"] and read[0]["answer"] is None
