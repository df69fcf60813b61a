"""Forgeries that the check refuses: the forger knows all code, and makes hashes and records fit.

What no check can tell is said to readers (`undetected.yaml`), and is no part of this table.
"""

import pytest

from medtasks_ext.prompts import load
from medtasks_ext.report.submissions import read_answers, read_record
from tests.submissions.conftest import OPEN_COUNTS, OPEN_MEAN, PLACE
from tests.submissions.test_check import edited


def first(**changes):
    return lambda items: [items[0]._replace(**changes), *items[1:]]


def traded(items):
    """Each answer under the document of the next one."""
    return [
        item._replace(answer=other.answer) for item, other in zip(items, [*items[1:], items[0]], strict=True)
    ]


def fewer(content):
    """The record says that the better half of the rows was all there is."""
    for name in (OPEN_MEAN, OPEN_COUNTS):
        item = content["tasks"][name]
        item["n"] //= 2
        item["conditions"] |= {"n": item["n"], "n_here": item["n"]}


def nothing(_):
    pass


#: what is done to the answers of each task, and to the record -> words of the check
FORGERIES = {
    "an answer that is another one": (first(answer="none of them"), nothing, "and the answers give"),
    "planted scores of honest answers": (
        lambda items: items,
        lambda content: content["tasks"][OPEN_MEAN].update(score=1.0),
        "the score is 1.0, and the answers give",
    ),
    "a prompt that is another one": (first(prompt="0" * 32), nothing, "1 of 12 prompts are others here"),
    "a document that is not there": (first(document="x"), nothing, "to documents that are not here"),
    "an answer less": (lambda items: items[1:], nothing, "answers to 11 documents, and the record says 12"),
    "an answer twice": (lambda items: [*items[1:], items[1]], nothing, "answers to 11 documents"),
    "another order": (lambda items: items[::-1], nothing, "stand in another order"),
    "answers out of place": (traded, nothing, "and the answers give"),
    "cherry-picked documents": (
        lambda items: items[: len(items) // 2],
        fewer,
        "number of rows 6, and here 12",
    ),
    "other rows": (
        lambda items: items,
        lambda content: content["tasks"][OPEN_MEAN]["conditions"].update(rows="0" * 12),
        "other documents: rows 000000000000, and here",
    ),
    "other words": (
        lambda items: items,
        lambda content: content["tasks"][OPEN_MEAN]["conditions"].update(prompt="0" * 12),
        "other documents: words 000000000000, and here",
    ),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_is_refused_and_named(medtasks, submission, name):
    change, record, words = FORGERIES[name]
    found = {task: change(read_answers(submission, task)) for task in (OPEN_MEAN, OPEN_COUNTS)}
    read_record(submission).write(submission, found)
    edited(submission, record)
    refused = medtasks("rescore", "--check", PLACE)
    assert refused.code == 1, refused.text
    assert words in refused.out and f"tasks.{OPEN_MEAN}" in refused.out


def test_rows_that_are_others_here_are_named(medtasks, submission, data_dir):
    rows = data_dir / "medhelm" / "medqa" / "test.jsonl"
    rows.write_text(rows.read_text().replace('"answer_idx": "A"', '"answer_idx": "C"'))
    load._build.cache_clear()
    found = medtasks("rescore", "--check", PLACE)
    assert found.code == 1 and "other documents: rows" in found.out and OPEN_COUNTS not in found.out
