"""What every metric shares: invalid answers, documents without gold, sample rows."""

import os
import subprocess
import sys
from collections import Counter

import pytest

from medtasks_ext.metrics import choice, drugs, generation, labels, permutation, sets
from medtasks_ext.metrics.common import random_label
from tests.conftest import ROOT
from tests.metrics.build import INVALID, columns, documents, parsed

LABELS = ["a", "b", "c"]


def test_an_invalid_label_counts_as_one_drawn_uniformly_from_the_distinct_gold_labels():
    # nine in ten are "a", which does not matter
    docs = documents(["a"] * 2_700 + ["b"] * 150 + ["c"] * 150, labels=LABELS)
    got = columns(labels.process_label, docs, [INVALID] * len(docs))
    drawn = Counter(predicted for _, predicted in got["f1_macro"])
    assert set(drawn) == set(LABELS)
    assert all(900 < n < 1_100 for n in drawn.values())
    assert got["valid"] == [0] * len(docs)
    assert got["acc"] == [float(gold == predicted) for gold, predicted in got["f1_macro"]]


def test_an_invalid_label_list_counts_as_one_label_drawn_from_the_gold_labels():
    docs = documents([["a", "b"], ["c"]] * 300, labels=LABELS)
    got = columns(labels.process_labels, docs, [INVALID] * len(docs))
    drawn = Counter(tuple(predicted) for _, predicted in got["f1_macro"])
    assert set(drawn) == {("a",), ("b",), ("c",)}
    assert all(150 < n < 250 for n in drawn.values())


def test_the_draw_depends_on_the_document_alone_and_not_on_the_process():
    docs = documents(["a"] * 20, labels=[f"label {i}" for i in range(9)])
    here = [random_label(document) for document in docs]
    assert [random_label(document) for document in reversed(docs)] == here[::-1]
    code = (
        "from medtasks_ext.metrics.common import random_label\nfrom tests.metrics.build import documents\n"
        "docs = documents(['a'] * 20, labels={f'label {i}' for i in range(9)})\n"
        "print(*map(random_label, docs), sep='\\n')"
    )
    for seed in ("1", "2"):
        run = [sys.executable, "-c", code]
        there = subprocess.run(
            run, cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True
        )
        assert there.stdout.splitlines() == here, there.stderr


METRICS = [
    (labels.process_label, "a", {}),
    (labels.process_label_invalid_is_wrong, "a", {}),
    (labels.process_labels, ["a"], {}),
    (sets.process_events, [["a", "x"]], {}),
    (sets.process_relations, [[["a", "b"], "b", "x"]], {}),
    (sets.process_codes, ["I10"], {}),
    (generation.process_text, "a", {}),
    (generation.process_passages, ["a"], {}),
    (choice.process_choice, "A", {"options": ["yes", "no"]}),
    (permutation.process_results, ["yes"], {"options": ["yes", "no"], "item": "1", "trial": 0}),
    (drugs.process_results, ["Aspirin"], {}),
    (sets.process_entities, ["rash"], {}),
    (sets.process_relation_label, "effect", {}),
    (sets.process_labels, ["death"], {}),
    (generation.process_report, "Normal chest.", {}),
    (generation.process_open_ended, "rest", {}),
]
#: whose score judges give
JUDGED = (generation.process_open_ended,)
NAMES = [f"{process.__module__.rpartition('.')[2]}.{process.__name__}" for process, _, _ in METRICS]


@pytest.mark.parametrize(("process", "answer", "fields"), METRICS, ids=NAMES)
def test_without_gold_a_document_reports_valid_and_no_score(process, answer, fields):
    [document] = documents([None], labels=["a"], **fields)
    assert process(document, [parsed(answer)]) == {"valid": 1, "unclosed_reasoning": 0, "scored": 0}
    unread = "" if process is choice.process_choice else [] if process is sets.process_codes else None
    unclosed = parsed(unread, valid=False, unclosed=True)
    assert process(document, [unclosed]) == {"valid": 0, "unclosed_reasoning": 1, "scored": 0}


@pytest.mark.parametrize(("process", "answer", "fields"), METRICS, ids=NAMES)
def test_sample_rows_are_marked_and_others_are_not(process, answer, fields):
    gold = [answer] if process is generation.process_text else answer
    [document] = documents([gold], labels=["a"], **fields)
    read = parsed(answer)
    real = process(document, [read])
    document["data"] = "sample"
    sample = process(document, [read])
    assert "SAMPLE_DATA" not in real
    assert sample == {**real, "SAMPLE_DATA": 1}
    assert real["scored"] == float(process not in JUDGED)
    assert ("score" in real) == (process not in JUDGED)
