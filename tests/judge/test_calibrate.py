"""A jury's scores on the scale of other raters: the map, its intervals and errors, and what it refuses."""

from __future__ import annotations

import csv
import json
import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtasks_lab.judge.calibration import (
    FEWEST_ANCHORS,
    Anchors,
    calibrated_score,
    monotone_map,
    out_of_sample_errors,
)
from tests.judge.made import make_rows, rows
from tests.judge.server import Reply, verdict

TASK, N = "medhelm_qa", 40

# ---------------------------------------------------------------- the map


def by_hand(own, other):
    """Isotonic regression by its min-max formula: Robertson, Wright and Dykstra (1988), theorem 1.4.4."""
    levels = sorted(set(own))
    groups = [[y for x, y in zip(own, other, strict=True) if x == level] for level in levels]

    def mean(first, last):
        inside = [y for group in groups[first : last + 1] for y in group]
        return sum(inside) / len(inside)

    places = range(len(levels))
    return [max(min(mean(a, b) for b in places if b >= i) for a in places if a <= i) for i in places]


pairs = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 12)), min_size=1, max_size=25)


@given(pairs)
def test_the_map_is_the_isotonic_regression(points):
    own, other = (np.array(side) / 12 for side in zip(*points, strict=True))
    found = monotone_map(own, other, np.ones(len(own)), np.unique(own))
    assert found == pytest.approx(by_hand(own.tolist(), other.tolist()))


@given(pairs, st.lists(st.floats(0, 1), min_size=2, max_size=9))
def test_the_map_never_falls_and_stays_within_what_was_rated(points, at):
    own, other = (np.array(side) / 12 for side in zip(*points, strict=True))
    found = monotone_map(own, other, np.ones(len(own)), np.sort(at))
    assert all(low <= high + 1e-12 for low, high in pairwise(found))
    assert (found >= other.min() - 1e-12).all() and (found <= other.max() + 1e-12).all()


def test_weights_are_repeated_anchors():
    own, other = np.array([0.1, 0.4, 0.4, 0.9]), np.array([0.3, 0.2, 0.6, 0.5])
    weights = np.array([2, 1, 0, 3])
    again = monotone_map(np.repeat(own, weights), np.repeat(other, weights), np.ones(6), own)
    assert monotone_map(own, other, weights, own) == pytest.approx(again)


def strict_jury(n, seed=0):
    """A jury that halves what others would give, with some noise."""
    rng = np.random.default_rng(seed)
    truth = rng.random(n)
    return Anchors(np.clip(truth / 2 + rng.normal(0, 0.03, n), 0, 1), truth, [str(i) for i in range(n)])


def test_a_strict_jury_is_brought_to_the_scale_of_the_others_out_of_sample():
    found = out_of_sample_errors(strict_jury(200))
    assert found.calibrated < 0.1 < 0.25 < found.as_they_are


def test_answers_to_one_document_are_never_on_both_sides_of_a_fold():
    """A map that has seen the document's other answer would look nearer than it is."""
    rng = np.random.default_rng(1)
    own = np.repeat(rng.permutation(40) / 40, 5)  # a level of its own for each document
    other = np.repeat(rng.random(40), 5)
    together = out_of_sample_errors(Anchors(own, other, np.repeat(range(40), 5).tolist()))
    apart = out_of_sample_errors(Anchors(own, other, list(range(200))))
    assert apart.calibrated < together.calibrated


def test_the_interval_covers_the_score_of_the_others():
    """Other answers of the same jury: their score by the others is inside in about 95 % of the trials."""
    inside = 0
    for seed in range(40):
        anchors, answers = strict_jury(60, seed), strict_jury(50, seed + 1000)
        value, interval = calibrated_score(anchors, answers.own, np.zeros(50), np.arange(50), f"task {seed}")
        assert interval.low < value < interval.high
        inside += interval.low <= 0.5 <= interval.high
    assert inside >= 35


def test_each_run_of_a_benchmark_counts_once():
    anchors = Anchors(np.array([0.0, 0.5, 1.0]), np.array([0.0, 0.5, 1.0]), ["a", "b", "c"])
    scores, runs = np.array([1.0, 1.0, 1.0, 0.0]), np.array(["x", "x", "x", "y"])
    value, _ = calibrated_score(anchors, scores, runs, np.arange(4), "task")
    assert value == pytest.approx(0.5)


# ---------------------------------------------------------------- the command


def number(asked):
    return int(re.search(r"\d+", asked.texts["question"])[0])


@pytest.fixture
def judged(tasks, data_dir, run, jury, medtasks, server):
    """A run of which a lenient judge rated all answers: 3, 4 or 5."""
    make_rows(data_dir, "qa", rows(N))
    server.script = lambda asked, seen: Reply(verdict(asked.axes, 3 + number(asked) % 3))
    folder = run("qa")
    assert medtasks("judge", "run", "--jury", jury("one")).code == 0
    return folder


@pytest.fixture
def sheet(judged, medtasks, tmp_path):
    """The lines of the anchor set that is to be filled in."""
    assert medtasks("judge", "calibrate", "run", "--sheet", "anchors.csv").code == 0
    with (tmp_path / "anchors.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def filled(path, lines, rate=lambda place: 1 + place % 3, **changed):
    """An anchor set whose raters give 1, 2 or 3 where the judge gave 3, 4 or 5."""
    rated = [
        {**line, "rating": rate(int(line["document"][1:])), "rater": "the published jury", **changed}
        for line in lines
    ]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(lines[0]))
        writer.writeheader()
        writer.writerows(rated)
    return rated


def test_scores_are_placed_on_the_scale_of_the_anchors_and_marked(judged, sheet, medtasks, metrics, tmp_path):
    filled(tmp_path / "anchors.csv", sheet)
    own = metrics(judged)["score"]
    outcome = medtasks("judge", "calibrate", "run", "--anchors", "anchors.csv")
    assert outcome.code == 0, outcome.err
    expected = np.mean([(place % 3) / 4 for place in range(N)])
    found = metrics(judged)
    assert found["score_calibrated"] == pytest.approx(expected) and found["score"] == own
    assert "on the scale of the published jury" in outcome.out
    assert (
        "40 anchors; distance from the published jury out of sample: 0.000, uncalibrated 0.500" in outcome.out
    )
    record = json.loads((judged / "tasks" / f"{TASK}.json").read_text())
    assert record["calibrated"]["rater"] == "the published jury"
    interval = record["intervals"]["score_calibrated"]
    assert interval["interval_low"] <= expected <= interval["interval_high"]
    results = json.loads((judged / "results.json").read_text())["results"][TASK]
    assert results["score_calibrated,answer"] == pytest.approx(expected) and results["score,answer"] == own
    report = medtasks("report", "run", "--published", "none", "-o", "out")
    assert f"{TASK}: {own:.4f} by the jury, {expected:.4f}" in report.out
    assert "on the scale of the published jury (40 anchors, out of sample 0.000 off)" in report.out
    with (tmp_path / "out" / "groups.csv").open() as file:  # the score and its rank stay the jury's own
        assert {float(row["score"]) for row in csv.DictReader(file) if row["score"]} == {own}


def test_an_anchor_set_may_be_jsonl_and_another_run_is_placed_by_it(
    judged, sheet, run, jury, medtasks, metrics, server, tmp_path
):
    lines = filled(tmp_path / "a.csv", sheet)
    text = "".join(json.dumps({**line, "lowest": 1, "highest": 5.0}) + "\n" for line in lines)
    (tmp_path / "a.jsonl").write_text(text)
    server.script = lambda asked, seen: Reply(verdict(asked.axes, 5))
    other = run("qa", folder="other", answers={f"d{i}": f"another answer {i}" for i in range(N)})
    assert medtasks("judge", "other", "--jury", jury("one")).code == 0
    assert medtasks("judge", "calibrate", "other", "run", "--anchors", "a.jsonl").code == 0
    assert metrics(other)["score"] == 1 and metrics(other)["score_calibrated"] == pytest.approx(0.5)
    outcome = medtasks("judge", "calibrate", "other", "--anchors", "a.jsonl")
    assert outcome.code == 2 and "0 of its anchors are about answers of these runs" in outcome.err


def test_another_judgement_takes_the_calibrated_score_out(judged, sheet, jury, medtasks, metrics, tmp_path):
    filled(tmp_path / "anchors.csv", sheet)
    assert medtasks("judge", "calibrate", "run", "--anchors", "anchors.csv").code == 0
    assert medtasks("judge", "run", "--jury", jury("two")).code == 0
    assert "score_calibrated" not in metrics(judged)
    record = json.loads((judged / "tasks" / f"{TASK}.json").read_text())
    assert "calibrated" not in record and "score_calibrated" not in record["intervals"]


def test_runs_of_several_juries_have_no_map_in_common(judged, sheet, run, jury, medtasks, tmp_path):
    filled(tmp_path / "anchors.csv", sheet)
    run("qa", folder="other")
    assert medtasks("judge", "other", "--jury", jury("two")).code == 0
    outcome = medtasks("judge", "calibrate", "run", "other", "--anchors", "anchors.csv")
    assert outcome.code == 2 and "several juries judged these runs: one; likert_jury" in outcome.err


def test_anchors_from_a_spreadsheet_that_writes_semicolons(judged, sheet, medtasks, metrics, tmp_path):
    with (tmp_path / "anchors.csv").open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.DictWriter(file, list(sheet[0]), delimiter=";")
        writer.writeheader()
        writer.writerows(filled(tmp_path / "unused.csv", sheet))
    outcome = medtasks("judge", "calibrate", "run", "--anchors", "anchors.csv")
    assert outcome.code == 0, outcome.err
    assert "score_calibrated" in metrics(judged)


def test_anchors_in_a_line_that_is_no_json_are_named(judged, medtasks, tmp_path):
    (tmp_path / "anchors.jsonl").write_text('{"task": "secret\n')
    outcome = medtasks("judge", "calibrate", "run", "--anchors", "anchors.jsonl")
    assert outcome.code == 2 and "anchors.jsonl: line 1: is no JSON" in outcome.err, outcome.err
    assert "secret" not in outcome.err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: lines[: FEWEST_ANCHORS - 1], "29 of its anchors are about answers of these runs; 30"),
        (lambda lines: [{**line, "task": "bridge_mie"} for line in lines], "task 'bridge_mie' is not judged"),
        (
            lambda lines: [{**line, "highest": 10} for line in lines],
            "a scale of 1 to 10; medhelm_qa is judged on 1",
        ),
        (lambda lines: [*lines, lines[0]], "line 42: the answer is rated twice"),
        (lambda lines: [{**line, "rating": 7} for line in lines], "rating 7 is not on the scale 1 to 5"),
        (lambda lines: [{**line, "rating": "good"} for line in lines], "line 2: anchor.rating"),
        (
            lambda lines: [{**lines[0], "rater": "another"}, *lines[1:]],
            "several raters: another, the published jury",
        ),
        (lambda lines: [{**line, "response": "my answer"} for line in lines], "line 2: anchor.response"),
        (lambda lines: [{**line, "rating": ""} for line in lines], "no anchors in it"),
        (lambda lines: [{"task": TASK}], "columns are missing: document, response"),
    ],
    ids=["few", "task", "scale", "twice", "range", "number", "raters", "answer", "empty", "columns"],
)
def test_a_wrong_anchor_set_gets_one_message(judged, sheet, medtasks, metrics, tmp_path, change, message):
    lines = change(filled(tmp_path / "anchors.csv", sheet))
    with (tmp_path / "anchors.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)
    outcome = medtasks("judge", "calibrate", "run", "--anchors", "anchors.csv")
    assert outcome.code == 2 and message in outcome.err and outcome.err.count("medtasks: ") == 1
    assert "score_calibrated" not in metrics(judged)


def test_a_jury_that_gives_one_score_has_no_map(tasks, data_dir, run, jury, medtasks, server, tmp_path):
    make_rows(data_dir, "qa", rows(N))
    server.script = lambda asked, seen: Reply(verdict(asked.axes, 4))
    run("qa")
    assert medtasks("judge", "run", "--jury", jury("one")).code == 0
    assert medtasks("judge", "calibrate", "run", "--sheet", "a.csv").code == 0
    with (tmp_path / "a.csv").open(newline="") as file:
        filled(tmp_path / "a.csv", list(csv.DictReader(file)))
    outcome = medtasks("judge", "calibrate", "run", "--anchors", "a.csv")
    assert outcome.code == 2 and "the jury gave the anchors 1 different scores; 3 are needed" in outcome.err


def test_a_run_without_judgements_and_other_faults_are_named(run, medtasks):
    run("qa")
    assert "no task of it was judged" in medtasks("judge", "calibrate", "run", "--sheet", "a.csv").err
    assert "give one of the two" in medtasks("judge", "calibrate", "run").err
