"""Rates, intervals and agreement, against published examples and plain implementations."""

import csv
import json
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from medtasks_ext.stats.agreement import fleiss_kappa, kappas
from medtasks_ext.stats.votes import LOSS, MAJORITY, MEAN, TIE, WIN, majority, rates
from tests.human.conftest import QUEUE, TASK, N, fill, key_of

# Fleiss (1971), Table 1: 30 patients, 6 psychiatrists, 5 diagnoses; kappa = .430, observed agreement .556
FLEISS_1971 = """
00060 03003 01401 00006 03030 20400 00402 20310 20040 00006 10050 11040 03300 10050 02031
00501 30012 51000 02040 10203 00006 01050 02013 20040 10041 05010 40002 02040 10500 00006
"""
table_1 = [[int(digit) for digit in patient] for patient in FLEISS_1971.split()]

outcomes = st.sampled_from([WIN, TIE, LOSS])


def test_fleiss_example():
    kappa, observed = fleiss_kappa(table_1)
    assert kappa == pytest.approx(0.430, abs=0.0005) and observed == pytest.approx(0.556, abs=0.0005)
    assert [sum(column) / 180 for column in zip(*table_1, strict=True)] == pytest.approx(
        [0.144, 0.144, 0.167, 0.306, 0.239], abs=0.0006
    )


def plain_fleiss(votes):
    """Kappa from the votes themselves: pairs that agree, against pairs drawn from all votes."""
    pairs = [a == b for subject in votes for a, b in combinations(subject, 2)]
    everything = [vote for subject in votes for vote in subject]
    expected = sum((everything.count(value) / len(everything)) ** 2 for value in set(everything))
    observed = sum(pairs) / len(pairs)
    return None if len(set(everything)) == 1 else (observed - expected) / (1 - expected)


@given(
    st.integers(2, 5).flatmap(
        lambda k: st.lists(st.lists(outcomes, min_size=k, max_size=k), min_size=1, max_size=15)
    )
)
def test_fleiss_kappa_is_the_plain_one(votes):
    counts = [[subject.count(value) for value in (WIN, TIE, LOSS)] for subject in votes]
    kappa, _ = fleiss_kappa(counts)
    plain = plain_fleiss(votes)
    assert kappa is plain is None or kappa == pytest.approx(plain)


def test_fleiss_kappa_needs_equally_many_raters():
    for counts in ([[1, 2], [2, 2]], [[1, 0], [0, 1]]):
        with pytest.raises(ValueError, match="same number of raters"):
            fleiss_kappa(counts)
    assert fleiss_kappa([]) == (None, None)


@given(st.lists(st.tuples(outcomes, outcomes, outcomes), min_size=2, max_size=20))
def test_cohen_kappa_of_each_pair_is_scikit_learns(votes):
    by_expert = {f"e{i}": {str(n): row[i] for n, row in enumerate(votes)} for i in range(3)}
    found = {one.between: one for one in kappas(by_expert, [LOSS, TIE, WIN])}
    assert len(found) == 4
    for i, j in combinations(range(3), 2):
        first, second = [row[i] for row in votes], [row[j] for row in votes]
        value = found[f"e{i}", f"e{j}"].value
        if len({*first, *second}) == 1:
            assert value is None
        else:
            assert value == pytest.approx(cohen_kappa_score(first, second))
        assert found[f"e{i}", f"e{j}"].observed == pytest.approx(np.mean(np.equal(first, second)))


def test_agreement_is_about_what_both_rated():
    votes = {
        "e1": {"a": WIN, "b": WIN, "c": TIE},
        "e2": {"a": WIN, "c": LOSS, "d": TIE},
        "e3": {"a": TIE, "c": TIE},
    }
    found = {one.between: (one.n, one.observed) for one in kappas(votes, [LOSS, TIE, WIN])}
    assert found == {
        ("e1", "e2", "e3"): (2, pytest.approx(1 / 3)),
        ("e1", "e2"): (2, 0.5), ("e1", "e3"): (2, 0.5), ("e2", "e3"): (2, 0),
    }  # fmt: skip
    assert kappas({"e1": votes["e1"]}, [LOSS, TIE, WIN]) == []


@pytest.mark.parametrize(
    ("votes", "merged"),
    [
        ([WIN, WIN, LOSS], WIN), ([LOSS, LOSS, TIE], LOSS), ([WIN, TIE, LOSS], None), ([WIN, LOSS], None),
        ([TIE, TIE, LOSS], TIE), ([LOSS], LOSS), ([WIN, TIE], None),
    ],
)  # fmt: skip
def test_majority(votes, merged):
    assert majority(Counter(votes)) == merged


def plain_rates(votes, by, weights):
    """(win, tie, loss, win or tie) of one expert or of all, each document as often as it was drawn."""
    documents = sorted({document for one in votes.values() for document in one})
    if by in votes:
        documents = sorted(votes[by])
    drawn = []
    for document, times in zip(documents, weights, strict=True):
        here = [
            one[document] for name, one in votes.items() if document in one and by in (name, MEAN, MAJORITY)
        ]
        if by == MAJORITY:
            most = Counter(here).most_common(2)
            here = [TIE if len(most) == 2 and most[0][1] == most[1][1] else most[0][0]]
        drawn += here * int(times)
    win, tie, loss = (drawn.count(value) / len(drawn) for value in (WIN, TIE, LOSS))
    return {"win": win, "tie": tie, "loss": loss, "win_tie": win + tie}


@settings(max_examples=15)
@given(st.data())
def test_rates_are_those_of_plain_counts_and_lie_in_their_intervals(data):
    n, experts = data.draw(st.integers(2, 6)), data.draw(st.integers(1, 3))
    votes = {
        f"expert_{i}": {f"d{j}": data.draw(outcomes) for j in range(n) if j < 2 or data.draw(st.booleans())}
        for i in range(experts)
    }
    found = rates(votes, "some_dataset")
    assert [rate.by for rate in found] == [*votes, *([MEAN, MAJORITY] if experts > 1 else [])]
    for rate in found:
        assert rate.shares == pytest.approx(plain_rates(votes, rate.by, [1] * rate.n))
        for name, share in rate.shares.items():
            interval = rate.intervals[name]
            assert 0 <= interval.low <= share <= interval.high <= 1 and interval.low < interval.high


def test_one_document_has_no_interval():
    [rate] = rates({"expert_1": {"d0": WIN}}, "some_dataset")
    assert rate.shares["win_tie"] == 1 and rate.intervals["win_tie"] is None


# ---------------------------------------------------------------------- from filled forms to files

#: expert, document number, criterion -> what the expert thinks of the first run
PLAN = {
    "factuality": lambda expert, i: WIN if i < 6 else LOSS,
    "completeness": lambda expert, i: (WIN, TIE, LOSS)[(i + expert) % 3],
    "preference": lambda expert, i: TIE,
    "safety": lambda expert, i: LOSS if expert == 3 else WIN,
}


@pytest.fixture
def evaluated(export, medtasks):
    """Three experts who fill their forms by plan, whatever the sides; what came of it."""
    folder = export()
    key = key_of(folder)["forms"]
    for number in (1, 2, 3):

        def choose(row, question, number=number):
            about = key[f"expert_{number}"][row]["about"]
            vote = PLAN[question](number, int(about["document"][1:]))
            first = about["first_run_is"]
            return "tie" if vote == TIE else first if vote == WIN else "BA"["AB".index(first)]

        fill(folder / f"expert_{number}.csv", choose)
    done = medtasks(
        "human", "ingest", *sorted(folder.glob("*.csv")), "--key", folder / "key.json", "-o", "out"
    )
    assert done.code == 0, done.text
    out = folder.parent / "out"
    return done, json.loads((out / "results.json").read_text()), out


def test_blinded_sides_are_undone(evaluated):
    _, results, out = evaluated
    found = {(row["criterion"], row["by"]): row for row in results["rates"]}
    by = ("expert_1", "expert_2", "expert_3", "mean", "majority")
    assert {row["task"] for row in results["rates"]} == {TASK} and set(found) == {
        (c, b) for c in PLAN for b in by
    }
    assert [found["factuality", name]["win_tie"] for name in by] == [0.5] * 5
    assert [found["completeness", name]["win_tie"] for name in by] == pytest.approx([2 / 3] * 4 + [1])
    assert found["completeness", "majority"]["without_majority"] == N
    assert [found["preference", name]["tie"] for name in by] == [1] * 5
    assert [found["safety", name]["win"] for name in by] == pytest.approx([1, 1, 0, 2 / 3, 1])
    assert all(
        row["documents"] == N and row["win"] + row["tie"] + row["loss"] == pytest.approx(1)
        for row in found.values()
    )
    votes = list(csv.DictReader((out / "votes.csv").open()))
    assert len(votes) == 3 * N
    for row in votes:
        expert, document = int(row["expert"][-1]), int(row["document"][1:])
        for criterion, plan in PLAN.items():
            assert row[criterion] == {WIN: "win", TIE: "tie", LOSS: "loss"}[plan(expert, document)]


def test_agreement_is_about_the_runs_not_about_the_sides(evaluated):
    _, results, _ = evaluated
    fleiss = {row["criterion"]: row for row in results["agreement"] if row["measure"] == "fleiss_kappa"}
    assert fleiss["factuality"]["value"] == pytest.approx(1)  # although A and B differ from expert to expert
    assert fleiss["completeness"]["value"] == pytest.approx(-0.5)
    assert fleiss["preference"]["value"] is None and fleiss["preference"]["observed"] == 1
    assert fleiss["safety"]["value"] == pytest.approx(-0.5) and fleiss["safety"]["observed"] == pytest.approx(
        1 / 3
    )
    pairs = [
        row
        for row in results["agreement"]
        if row["measure"] == "cohen_kappa" and row["criterion"] == "safety"
    ]
    assert {row["between"]: row["value"] for row in pairs} == {
        "expert_1, expert_2": None, "expert_1, expert_3": 0, "expert_2, expert_3": 0,
    }  # fmt: skip


def test_the_table_shows_what_the_files_hold(evaluated):
    done, results, out = evaluated
    line = next(line for line in done.out.splitlines() if TASK in line and "safety" in line)
    assert line.split()[2:6] == ["12", "66.7", "0.0", "33.3"] and line.split()[-3:] == [
        "100.0",
        "100.0",
        "0.0",
    ]
    assert "12 comparisons without one count as ties" in done.out
    assert "does not" not in results["merging"] and "not stated" in results["merging"]
    rows = list(csv.DictReader((out / "rates.csv").open()))
    assert [float(row["win_tie"]) for row in rows] == [row["win_tie"] for row in results["rates"]]
    assert "SAMPLE_DATA" not in results


# ---------------------------------------------------------------------- scoring points


def decide(medtasks, queue, folder, *choices):
    """One expert per choice decides about the queue."""
    done = medtasks("human", "export", "--kind", "points", queue, "--experts", len(choices), "-o", "forms")
    assert done.code == 0, done.text
    key = key_of(folder / "forms")["forms"]
    for number, choose in enumerate(choices, start=1):
        rows = key[f"expert_{number}"]
        fill(
            folder / "forms" / f"expert_{number}.csv",
            lambda row, question, rows=rows, choose=choose: choose(
                rows[row]["about"]["case"], rows[row]["about"]["point"]
            ),
        )
    files = sorted((folder / "forms").glob("*.csv"))
    done = medtasks("human", "ingest", *files, "--key", folder / "forms" / "key.json", "-o", "out")
    assert done.code == 0, done.text
    lines = (folder / "out" / "decisions.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines], json.loads((folder / "out" / "results.json").read_text())


def test_a_physicians_word_is_final(queue, tmp_path, medtasks):
    cases, results = decide(
        medtasks, queue, tmp_path, lambda case, point: "met" if point != "p1" else "not_met"
    )
    assert [(case["id"], [(p["id"], p["weight"]) for p in case["points"]]) for case in cases] == [
        (case["id"], [(p["id"], p["weight"]) for p in case["points"]]) for case in QUEUE
    ]
    assert all(p["met"] == (p["id"] != "p1") for case in cases for p in case["points"])
    assert (results["met"], results["not_met"], results["undecided"]) == (4, 2, 0) and results[
        "agreement"
    ] == []


def test_several_physicians_decide_by_majority(queue, tmp_path, medtasks):
    yes, no = (lambda case, point: "met"), (lambda case, point: "not_met")
    cases, results = decide(
        medtasks, queue, tmp_path, yes, no, lambda case, point: yes("", "") if case == "c2" else no("", "")
    )
    assert {case["id"]: {p["met"] for p in case["points"]} for case in cases} == {
        "c0": {False}, "c1": {False}, "c2": {True},
    }  # fmt: skip
    assert results["agreement"][0]["n"] == 6


def test_physicians_who_split_leave_a_point_undecided(queue, tmp_path, medtasks):
    cases, results = decide(
        medtasks, queue, tmp_path, lambda *_: "met", lambda case, point: "met" if case == "c0" else "not_met"
    )
    assert [p["met"] for case in cases for p in case["points"]] == [True, *[None] * 5] and results[
        "undecided"
    ] == 5
