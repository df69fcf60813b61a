"""One model asked in several ways: `compare` and `report` give the same tests, document by document."""

import json
from itertools import product

import numpy as np
import pytest

from medtasks_ext.prompts.load import load_documents
from medtasks_ext.registry import registry
from tests.report.made import write_run

A, B, F1 = "bridge_ade_identification", "bridge_chip_ctc", "bridge_mie"
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


def test_identical_answers_differ_by_nothing_with_a_width(medtasks, three_ways):
    for line in [
        *(x for x in answered(medtasks, "compare", "run")["groups"] if x["pair"] == "zero-shot → 5-shot"),
        *(
            {**x, "interval_low": x["low"], "interval_high": x["high"], "p": x["p_value"]}
            for x in answered(medtasks, "report", "run")["within"]
            if x["pair"] == "zero-shot → 5-shot"
        ),
    ]:
        assert line["difference"] == 0 and -1 < line["interval_low"] < 0 < line["interval_high"] < 1
        assert line["p"] == line["p_holm"] == 1


@pytest.mark.parametrize("n", [8, 300])
def test_report_and_compare_say_the_same_of_strategies(medtasks, tmp_path, n):
    """Both below the number of documents that are tested one by one, and above it."""
    rng = np.random.default_rng(1)
    scores = {
        f"{task}{suffix}": rng.beta(2 + (suffix == "_cot"), 2, n).tolist()
        for task in (A, B)
        for suffix in ("", "_cot", "_5shot")
    }
    write_run(tmp_path / "run", "ORG/a", scores)
    here = [line for line in answered(medtasks, "compare", "run")["groups"] if line["name"] == "bridge"]
    there = answered(medtasks, "report", "run")["within"]
    assert len(here) == len(there) == 3
    for one, other in zip(here, there, strict=True):
        assert (one["pair"], one["method"], one["tasks"]) == (other["pair"], other["method"], other["tasks"])
        for mine, theirs in (
            ("difference", "difference"), ("interval_low", "low"), ("interval_high", "high"),
            ("p", "p_value"), ("p_holm", "p_holm"), ("p_bh", "p_bh"), ("after", "score_after"),
        ):  # fmt: skip
            assert one[mine] == pytest.approx(other[theirs], abs=1e-12), (one["pair"], mine)


def test_documents_of_the_same_names_are_compared_without_a_look_at_them(medtasks, tmp_path):
    rng = np.random.default_rng(2)
    scores = {f"{task}{suffix}": rng.beta(2, 2, 300).tolist() for task in (A, B) for suffix in ("", "_cot")}
    run = write_run(tmp_path / "run", "ORG/a", scores)

    def recorded(**facts):
        """A strategy's prompt is part of its rows; `facts` are known of the rows of both."""
        for task in scores:
            file = run / "tasks" / f"{task}.json"
            content = json.loads(file.read_text())
            content["loaded"] |= {"rows_hash": f"rows of {task}", **facts}
            content["conditions"]["asked"]["rows"]["hash"] = f"rows of {task}"
            file.write_text(json.dumps(content))
        return answered(medtasks, "report", "run")["within"]

    [paired], [known] = recorded(), recorded(names_hash="n1")
    for name, value in paired.items():
        assert known[name] == (value if isinstance(value, str) else pytest.approx(value, abs=1e-12)), name
    [line] = [x for x in answered(medtasks, "compare", "run")["groups"] if x["name"] == "bridge"]
    assert line["difference"] == pytest.approx(known["difference"], abs=1e-12)
    assert line["p"] == pytest.approx(known["p_value"], abs=1e-12)
    for task in scores:
        (run / "tasks" / f"{task}.parquet").unlink()
    assert recorded(names_hash="n1") == [known] and recorded(names_hash=None) == []


def test_strategies_share_the_names_of_their_documents_and_other_rows_do_not():
    def loaded(name, **asked):
        return load_documents(registry().dataset(name), origin="sample", **asked)["test"][0].loaded.record

    zero, cot = (loaded("clinicbench/drug_interaction", cot=cot) for cot in (False, True))
    assert zero["rows_hash"] != cot["rows_hash"] and zero["names_hash"] == cot["names_hash"]
    assert loaded("bridge/mednli", cot=False)["names_hash"] != zero["names_hash"]


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
    report = answered(medtasks, "report", "plain", "other")
    [line] = report["within"]
    assert (line["question"], line["suite"], line["tasks"]) == ("prompts", "bridge", 1)
    assert line["p_value"] == pytest.approx(found["tasks"][0]["p"]) and report["pairs"] == []
    write_run(tmp_path / "third", "ORG/b", {A: RIGHT}, loaded={"prompt_hash": "p3"})
    assert answered(medtasks, "compare", "plain", "third")["pairs"][0]["question"] == "entries"


def test_strategies_in_two_runs_of_one_model_are_paired_and_of_two_models_are_not(medtasks, tmp_path):
    write_run(tmp_path / "direct", "ORG/a", {A: WRONG})
    write_run(tmp_path / "cot", "ORG/a", {f"{A}_cot": RIGHT}, settings={"gen_kwargs": {"temperature": 0.6}})
    [line] = answered(medtasks, "compare", "direct", "cot")["tasks"]
    assert (line["name"], line["pair"], line["documents"]) == (A, "zero-shot → chain of thought", 8)
    write_run(tmp_path / "rival", "ORG/b", {f"{A}_cot": RIGHT})
    outcome = medtasks("compare", "direct", "rival")
    assert outcome.code == 2 and "no scored task in common" in outcome.err


def test_held_out_rows_leave_the_documents_that_both_strategies_were_asked(medtasks, tmp_path):
    run = write_run(tmp_path / "run", "ORG/a", {A: RIGHT, f"{A}_5shot": WRONG[:5]})
    file = run / "tasks" / f"{A}_5shot.json"
    content = json.loads(file.read_text())
    content["loaded"]["rows_hash"] = "without those held out"
    file.write_text(json.dumps(content))
    [here], [there] = (
        answered(medtasks, "compare", "run")["tasks"],
        answered(medtasks, "report", "run")["within"],
    )
    assert here["documents"] == 5 and here["documents_of_one_alone"] == 3
    assert here["p"] == pytest.approx(there["p_value"])
    assert here["before"] == pytest.approx(np.mean(RIGHT[:5]))


@pytest.mark.parametrize(("arguments", "message"), [(("one",), "one run with several strategies")])
def test_a_run_with_one_strategy_has_no_pair(medtasks, tmp_path, arguments, message):
    write_run(tmp_path / "one", "ORG/a", {A: RIGHT})
    outcome = medtasks("compare", *arguments)
    assert outcome.code == 2 and message in outcome.err
