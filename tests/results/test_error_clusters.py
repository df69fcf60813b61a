"""Errors: what an extraction found, missed and made up; which cluster an answer is in, and its cost."""

import pytest

from medtasks_ext.answers.filter import ParseAnswer
from medtasks_ext.registry import registry
from medtasks_ext.results.error_clusters import EMPTY, FORMAT, OTHER, REFUSAL, TRUNCATED, error_of, items_of

LABEL, EVENTS, TEXT = "bridge_mednli", "bridge_ade_extraction", "bridge_mediqa_2023_sum_b"
GOLD = {
    LABEL: ("neutral", "relation: neutral"),
    EVENTS: ([["ibuprofen", "severe nausea"]], "drug: ibuprofen, adverse effect: severe nausea;"),
    TEXT: (["no fever."], "summary: No fever."),
}


def cluster(task, response, *, score=0.0, cut=False):
    """The cluster of a response to a document of a task, read by the task's own reader."""
    answer = registry().tasks[task][0].config["answer"]
    gold, target = GOLD[task]
    document = {"id": "d", "gold": gold, "target": target, "prompt": "", "cot": False, "data": "local"}
    [parsed] = ParseAnswer(dict(answer)).apply([[response]], [document])
    return error_of(answer["kind"], response, score, readable=parsed["valid"], cut=cut)


@pytest.mark.parametrize(
    ("task", "response", "expected"),
    [
        (LABEL, "relation: entailment", OTHER),
        (LABEL, "", EMPTY),
        (LABEL, "<think>The premise says so.</think>", EMPTY),
        (LABEL, "I'm sorry, but I cannot help with this.", REFUSAL),
        (LABEL, "抱歉，我无法回答这个问题。", REFUSAL),
        (LABEL, "<unused94>I cannot answer.<unused95>Much can be said about both of them.", FORMAT),
        (LABEL, "relation: unrelated", FORMAT),
        (EVENTS, "drug: ibuprofen, adverse effect: rash;", OTHER),
        (TEXT, "summary: He is well, and there is a slight cough.", None),  # graded, and no error by itself
    ],
)  # fmt: skip
def test_the_cluster_of_a_response(task, response, expected):
    assert cluster(task, response) is expected


def test_a_response_that_was_cut_is_truncated_where_nothing_could_be_read():
    unread = "The premise speaks of varices, which are a sign of"
    assert cluster(LABEL, unread, cut=True) is TRUNCATED
    assert cluster(LABEL, f"<think>{unread}", cut=True) is TRUNCATED
    assert cluster(LABEL, "relation: entailment, since", cut=True) is OTHER


def test_items_of_an_answer_are_found_missed_or_spurious():
    gold = [["ibuprofen", "nausea"], ["aspirin", "bleeding"]]
    items = items_of("event_lines", gold, [["aspirin", "bleeding"], ["aspirin", "rash"]])
    assert items == {
        "found": [("aspirin", "bleeding")],
        "missed": [("ibuprofen", "nausea")],
        "spurious": [("aspirin", "rash")],
    }
    assert items_of("event_lines", gold, None)["missed"] == [tuple(item) for item in gold]
    assert items_of("label", "yes", "no") is None and items_of("entity_list", None, ["x"]) is None
