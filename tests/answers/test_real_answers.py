"""Answers of a real model are read as before, and 200 of them as an author read them, but for some."""

from collections import Counter
from pathlib import Path

import pytest
import yaml

from medtasks_ext.registry import registry
from tests.answers.real import NONE, PASSES, Kept, kept, read_by_the_author, readings

ANSWERS = list(read_by_the_author())
#: place -> what the shared reader finds where the author read another thing, or nothing
STAY = {186: "it is announced in the form that is asked for, with the words of that form in its fields"}


def suite_of(item: Kept) -> str:
    return registry().tasks[item.task][0].metadata.suite


def test_they_are_of_all_suites_and_kinds():
    assert len(ANSWERS) == 200
    assert {suite_of(item) for item, _ in ANSWERS} == {"bridge", "medhelm", "clinicbench", "mlb"}
    kinds = {item.kind for item, _ in ANSWERS}
    assert {"label", "exact_letter", "option_letter", "event_lines", "tuples", "sql", "medec"} <= kinds
    assert 20 < sum(said != NONE for _, said in ANSWERS) < 180


def plain(said):
    return [item.casefold() for item in said] if isinstance(said, list) else str(said).casefold()


@pytest.mark.parametrize(
    ("place", "item", "said"),
    [
        pytest.param(place, item, said, id=f"{place}-{item.task}")
        for place, (item, said) in enumerate(ANSWERS)
        if item.read()["reader"] == "shared"  # its suite has released no other
    ],
)
def test_it_is_read_as_the_author_read_it_or_not_at_all(place, item, said):
    found = item.found()
    assert (found == NONE or plain(found) == plain(said)) == (place not in STAY), (found, said, item.response)


def test_the_store_has_an_answer_to_each_task_in_each_pass():
    """Three strategies, greedy and sampled; cut ones among them."""
    stored = [item for item in kept() if item.made == PASSES]
    passes = Counter(item.asked for item in stored)
    assert len(passes) == 6 and set(passes.values()) == {163}
    assert len({item.key for item in kept()}) == len(kept()) == len(readings())
    assert {item.finish for item in stored} == {"stop", "length"}


@pytest.mark.parametrize("suite", ["bridge", "medhelm", "clinicbench", "mlb"])
def test_a_reader_that_changes_says_of_which_answers(suite):
    """Where the change is meant, `python -m tests.answers.real` keeps the new readings; look at the diff."""
    changed = []
    for item, before in zip(kept(), readings(), strict=True):
        if suite_of(item) != suite:
            continue
        now = item.reading()
        if now != {"scored": before["scored"]}:
            changed.append((item, before, now))
    counts = Counter(item.kind for item, _, _ in changed)
    first = [(item.key, before, now, item.response[:200]) for item, before, now in changed[:5]]
    assert not changed, (dict(counts), first)


def test_each_score_that_the_shared_reader_changed_has_its_reason():
    answers = {item.key: item for item in kept()}
    changed = yaml.safe_load((Path(__file__).parent / "real" / "changed.yaml").read_text(encoding="utf-8"))
    assert len({tuple(item["key"]) for item in changed}) == len(changed)
    for item in changed:
        assert item["reason"] and answers[tuple(item["key"])].reading()["scored"] != item["before"], item
