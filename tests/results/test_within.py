"""One model asked in several ways: `compare` tests them document by document."""

import json
from itertools import product

import numpy as np
import pytest

from tests.report.made import write_run

A, B = "bridge_ade_identification", "bridge_chip_ctc"
RIGHT = [1.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0, 0.0]
WRONG = [0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0]
HALF = [0.5, 0.25, 1.0, 0.5, 0.75, 0.5]


def answered(medtasks, command, *arguments):
    alone = ["--published", "none"] if command == "report" else []
    outcome = medtasks(command, *arguments, "--json", *alone)
    assert outcome.code == 0, outcome.err
    return json.loads(outcome.out)


@pytest.fixture
def three_ways(tmp_path):
    """One model, two tasks, three strategies."""
    scores = {A: WRONG, B: HALF, f"{A}_cot": RIGHT, f"{B}_cot": HALF, f"{A}_5shot": WRONG, f"{B}_5shot": HALF}
    return write_run(tmp_path / "run", "ORG/a", scores)


def exact(differences):
    sums = [abs(np.dot(signs, differences)) for signs in product((1, -1), repeat=len(differences))]
    return np.mean(np.array(sums) >= abs(np.sum(differences)) - 1e-12)


def test_strategies_of_one_run_are_tested_in_pairs_and_small_groups_exactly(medtasks, three_ways):
    found = answered(medtasks, "compare", "run")
    assert [item["pair"] for item in found["pairs"]] == [
        "zero-shot → chain of thought", "zero-shot → 5-shot", "chain of thought → 5-shot",
    ]  # fmt: skip
    assert {item["question"] for item in found["pairs"]} == {"strategies"}
    suite = {item["pair"]: item for item in found["groups"] if item["name"] == "bridge"}
    line = suite["zero-shot → chain of thought"]
    gain = (np.array(RIGHT) - WRONG) / len(RIGHT)
    assert line["difference"] == pytest.approx(gain.sum() / 2)
    assert line["p"] == pytest.approx(exact(gain)) and line["method"] == "sign flips, exact"
    assert line["p_holm"] == pytest.approx(min(1, 3 * line["p"]))  # three pairs of one suite


def test_report_and_compare_say_the_same_of_two_models(medtasks, tmp_path):
    for name, tasks in (("a", (RIGHT, HALF)), ("b", (WRONG, HALF[::-1]))):
        write_run(tmp_path / name, f"ORG/{name}", dict(zip((A, B), tasks, strict=True)))
    [one] = [line for line in answered(medtasks, "compare", "b", "a")["groups"] if line["name"] == "bridge"]
    [other] = answered(medtasks, "report", "a", "b")["pairs"]
    assert (one["p"], one["p_holm"]) == pytest.approx((other["p_value"], other["p_holm"]))
    steps = [*(np.array(RIGHT) - WRONG) / 16, *(np.array(HALF) - HALF[::-1]) / 12]
    assert one["p"] == pytest.approx(exact(steps))


def test_wordings_of_one_model_are_a_paired_test_of_prompts(medtasks, tmp_path):
    for name, scores, prompt in (("plain", WRONG, "p1"), ("other", RIGHT, "p2")):
        write_run(tmp_path / name, "ORG/a", {A: scores}, loaded={"prompt_hash": prompt})
    found = answered(medtasks, "compare", "plain", "other")
    assert [item["question"] for item in found["pairs"]] == ["prompts"]
    assert "other wording: a paired test of prompts" in medtasks("compare", "plain", "other").out
    assert answered(medtasks, "report", "plain", "other")["pairs"] == []
    write_run(tmp_path / "third", "ORG/b", {A: RIGHT}, loaded={"prompt_hash": "p3"})
    assert answered(medtasks, "compare", "plain", "third")["pairs"][0]["question"] == "entries"
