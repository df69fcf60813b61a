"""Errors: what an extraction found, missed and made up; which cluster an answer is in, and its cost."""

import pytest

from medtasks_ext.answers.filter import ParseAnswer
from medtasks_ext.registry import registry
from medtasks_ext.results.error_clusters import (
    Cluster,
    Items,
    costs,
    error_of,
    items_of,
    marked,
    near_misses,
    right_value,
)
from medtasks_ext.stats.statistic import mean

LABEL, EVENTS, CODES, TEXT = (
    "bridge_mednli", "bridge_ade_extraction", "medhelm_mimic_iv_billing_code", "bridge_mediqa_2023_sum_b",
)  # fmt: skip
GOLD = {
    LABEL: ("neutral", "relation: neutral"),
    EVENTS: ([["ibuprofen", "severe nausea"]], "drug: ibuprofen, adverse effect: severe nausea;"),
    CODES: (["I21.4", "E11.9"], "I21.4,E11.9"),
    TEXT: (["no fever."], "summary: No fever."),
}


def cluster(task, response, *, score=0.0, cut=False):
    """The cluster of a response to a document of a task, read by the task's own reader."""
    dataset = registry().tasks[task][0]
    gold, target = GOLD[task]
    document = {"id": "d", "gold": gold, "target": target, "prompt": "", "cot": False, "data": "local"}
    [parsed] = ParseAnswer(dict(dataset.config["answer"])).apply([[response]], [document])
    error = error_of(dataset, document, parsed, response, score, cut=cut)
    return error and error[0]


@pytest.mark.parametrize(
    ("task", "response", "expected"),
    [
        (LABEL, "relation: entailment", Cluster.OTHER),
        (LABEL, "", Cluster.EMPTY),
        (LABEL, "<think>The premise says so.</think>", Cluster.EMPTY),
        (LABEL, "I'm sorry, but I cannot help with this.", Cluster.REFUSAL),
        (LABEL, "抱歉，我无法回答这个问题。", Cluster.REFUSAL),
        (LABEL, "<unused94>I cannot answer.<unused95>Much can be said about both of them.", Cluster.FORMAT),
        (LABEL, "relation: unrelated", Cluster.OUTSIDE),
        (EVENTS, "drug: ibuprofen, adverse effect: rash;", Cluster.ATTRIBUTE),
        (EVENTS, "drug: the ibuprofen, adverse effect: severe nausea;", Cluster.BOUNDARY),
        (EVENTS, "drug: aspirin, adverse effect: bleeding;", Cluster.OTHER),
        (CODES, "I21.9, E11.9", Cluster.HIERARCHY),
        (TEXT, "summary: He is well, and there is a slight cough.", None),  # graded, and no error by itself
    ],
)  # fmt: skip
def test_the_cluster_of_a_response(task, response, expected):
    assert cluster(task, response) is expected


def test_a_response_that_was_cut_is_truncated_where_nothing_could_be_read():
    unread = "The premise speaks of varices, which are a sign of"
    assert cluster(LABEL, unread, cut=True) is Cluster.TRUNCATED
    assert cluster(LABEL, f"<think>{unread}", cut=True) is Cluster.TRUNCATED
    assert cluster(LABEL, "relation: entailment, since", cut=True) is Cluster.OTHER


def test_what_a_right_answer_contributes_is_computed_by_the_tasks_own_metric():
    for task, expected in ((LABEL, 1.0), (EVENTS, (1, 0, 0)), (CODES, 1.0)):
        gold, target = GOLD[task]
        document = {"id": "d", "gold": gold, "target": target, "prompt": "", "cot": False, "data": "local"}
        assert right_value(registry().tasks[task][0], {"doc": document}) == expected
    no_gold = {"id": "d", "gold": None, "target": "", "prompt": "", "cot": False, "data": "local"}
    assert right_value(registry().tasks[LABEL][0], {"doc": no_gold}) is None


def test_the_score_if_mended_is_the_metric_over_all_documents():
    clusters = [None, Cluster.FORMAT, Cluster.FORMAT, Cluster.OTHER, Cluster.OTHER]
    found = costs(mean, [1.0, 0.0, 0.0, 0.0, None], clusters, {1: 1.0, 2: 1.0, 3: 0.5})
    assert {item["cluster"]: (item["documents"], item["mended"]) for item in found} == {
        Cluster.FORMAT.value: (2, 0.75),
        Cluster.OTHER.value: (2, 0.375),  # the document without a score takes no part
    }


def test_items_of_an_answer_are_found_missed_or_spurious():
    gold = [["ibuprofen", "nausea"], ["aspirin", "bleeding"]]
    items = items_of("event_lines", gold, [["aspirin", "bleeding"], ["aspirin", "rash"]])
    assert items == Items(
        found=(("aspirin", "bleeding"),), missed=(("ibuprofen", "nausea"),), spurious=(("aspirin", "rash"),)
    )
    assert items_of("event_lines", gold, None).missed == (("ibuprofen", "nausea"), ("aspirin", "bleeding"))
    assert items_of("label", "yes", "no") is None and items_of("entity_list", None, ["x"]) is None


@pytest.mark.parametrize(
    ("kind", "missed", "spurious", "near"),
    [
        ("codes_in_text", ("I21.4",), ("I21.9",), "hierarchy"),
        ("code_list", ("i10",), ("i11",), None),
        ("code_list", ("8000/3",), ("8000/6",), None),  # morphology has other categories
        ("entity_list", ("severe chest pain",), ("chest pain",), "boundary"),
        ("entity_list", ("压榨样胸痛",), ("胸痛",), "boundary"),
        ("event_lines", ("aspirin", "81 mg"), ("aspirin", "100 mg"), "attribute"),
        ("event_lines", ("acute pain", "present"), ("pain", "absent"), None),
        ("label_list", ("cardiology",), ("cardiology ward",), None),
    ],
)
def test_near_misses(kind, missed, spurious, near):
    found = near_misses(kind, Items((), (missed,), (spurious,)))
    assert [kind.name.lower() for _, _, kind in found] == ([near] if near else [])


def test_marks_ignore_case_and_blanks_and_keep_every_character():
    text = "The rash, and severe  Chest Pain; no painless rashes."
    items = Items(found=(("chestpain",),), missed=(("rash",),), spurious=(("severe chest pain",),))
    pieces = marked(text, items)
    assert "".join(piece["text"] for piece in pieces) == text
    shown = {piece["text"]: piece["marks"] for piece in pieces if piece["marks"]}
    assert shown == {
        "rash": ("missed",),  # not in `rashes`, which is another word
        "severe  ": ("spurious",),
        "Chest Pain": ("found", "spurious"),
    }
