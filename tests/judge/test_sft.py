"""The judge model: training data without a question on both sides, and its evaluation against experts."""

import csv
import json
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtasks_ext.judge.cases import point_rubric, shown_for_point
from medtasks_ext.judge.protocol import fence_code
from medtasks_ext.studies.judge_data import evaluate, expert_decisions, split_by_question
from tests.conftest import read_json, write_jsonl
from tests.judge.server import Reply, coded, verdict
from tests.judge.test_command import number


def case(name: str, question: str = "", decisions: dict | None = None, **more) -> dict:
    return {
        "id": name, "question": question or f"问题 {name}", "answer": f"回答 {name}",
        "points": [{"id": "p1", "text": "休息", "weight": 2}, {"id": "p2", "text": "就医"}],
        "decisions": {"p1": True, "p2": False} if decisions is None else decisions,
        "decided_by": "expert", **more,
    }  # fmt: skip


def lines(path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_row_asks_what_the_served_judge_is_asked_and_answers_with_the_experts_decision(medtasks, tmp_path):
    write_jsonl(tmp_path / "cases.jsonl", [case(f"c{n}") for n in range(10)])
    outcome = medtasks("study", "judge", "cases.jsonl")
    made = tmp_path / "judge_data"
    assert {path.stat().st_mode & 0o077 for path in (made, *made.iterdir())} == {0}  # they hold texts
    assert outcome.code == 0 and "train: 9 questions, 9 answers, 18 points (50.0% met)" in outcome.out
    rubric = point_rubric()
    for row in lines(tmp_path / "judge_data" / "train.jsonl"):
        asked = case(row["case"])
        point = next(item for item in asked["points"] if item["id"] == row["point"])
        texts = shown_for_point(asked["question"], point["text"], asked["answer"])
        assert row["prompt"] == rubric.messages(texts)
        shown = (*texts.values(), fence_code(texts.values()))
        assert all(text in row["prompt"][1]["content"] for text in shown)
        [turn] = row["completion"]
        verdict = rubric.read(turn["content"], texts)
        assert turn["role"] == "assistant" and verdict == {"decision": {"met": row["point"] == "p1"}}


@st.composite
def asked_alike(draw):
    """Cases, some of which share a question, written with other blanks; one stands alone."""
    n = draw(st.integers(1, 25))
    cases = [case("alone", "没有第二个人问的题目", task="", document="")]
    for k in range(n):
        question = draw(st.sampled_from([f"题目{i}" for i in range(8)]))
        blanks = draw(st.sampled_from(["", " ", "\n"]))
        cases.append(case(f"c{k}", question[:1] + blanks + question[1:], task="mlb_maethic"))
    return cases


def by_id(cases) -> dict[str, dict]:
    return {
        item["id"]: {**item, "points": {point["id"]: point["text"] for point in item["points"]}}
        for item in cases
    }


@given(asked_alike())
def test_no_question_is_on_both_sides(cases):
    found = by_id(cases)
    split = split_by_question(found, expert_decisions(found))
    assert all(split.values()) and sum(map(len, split.values())) == len(cases)
    train, test = ({"".join(item["question"].split()) for item in split[side]} for side in ("train", "test"))
    assert not train & test


@given(asked_alike(), st.randoms())
def test_the_order_of_the_cases_has_no_influence(cases, rng):
    first, second = by_id(cases), by_id(rng.sample(cases, len(cases)))
    one, other = (split_by_question(found, expert_decisions(found)) for found in (first, second))
    assert one == other


def test_decisions_may_come_from_filled_forms(medtasks, tmp_path):
    queue = [
        {key: value for key, value in case(f"c{n}").items() if key not in ("decisions", "decided_by")}
        for n in range(4)
    ]
    open_point = {"id": "p2", "weight": 1, "met": None, "votes": {}}
    voted = {"id": "p1", "weight": 2, "votes": {"expert_1": True}}
    forms = [{"id": f"c{n}", "points": [{**voted, "met": n % 2 == 0}, open_point]} for n in range(4)]
    write_jsonl(tmp_path / "queue.jsonl", queue)
    write_jsonl(tmp_path / "decisions.jsonl", forms)
    outcome = medtasks("study", "judge", "queue.jsonl", "--expert", "decisions.jsonl")
    assert outcome.code == 0 and "left out: 4 of 8 points, which no expert has decided" in outcome.out
    rows = [row for side in ("train", "test") for row in lines(tmp_path / "judge_data" / f"{side}.jsonl")]
    verdicts = {row["case"]: json.loads(row["completion"][0]["content"])["decision"]["met"] for row in rows}
    assert verdicts == {"c0": True, "c1": False, "c2": True, "c3": False}


def test_what_a_judge_decided_is_nothing_to_learn_from(medtasks, tmp_path):
    write_jsonl(tmp_path / "cases.jsonl", [case(f"c{n}", decided_by="judge") for n in range(4)])
    outcome = medtasks("study", "judge", "cases.jsonl")
    assert outcome.code == 2 and "no decision of an expert" in outcome.err and "--expert" in outcome.err


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"id": "a"}], "cases.jsonl:1: no case"),
        ([case("a"), case("a", "anders")], "cases.jsonl:2: case a occurs twice"),
        ([case("a", decisions={"p9": True})], "'p9', which is no point of the case"),
        ([case("a", decisions={"p1": "yes"})], "decisions are true or false"),
        ([{**case("a"), "question": " "}], "no text of the question, or of a point"),
        ([case("a")], "one question cannot be split"),
        ([case("a", "gleich"), case("b", "gleich")], "one question cannot be split"),
        ([], "no cases"),
    ],
)
def test_cases_that_cannot_be_used_are_one_message(medtasks, tmp_path, rows, message):
    write_jsonl(tmp_path / "cases.jsonl", rows)
    outcome = medtasks("study", "judge", "cases.jsonl")
    assert outcome.code == 2 and message in outcome.err and "→" in outcome.err
    assert not (tmp_path / "judge_data").exists()


def decided(*rows: tuple[int, str, bool, bool]):
    """(question, point, expert, judge) -> cases and both decisions."""
    cases, expert, judge = {}, {}, {}
    for question, point, truth, given_ in rows:
        name = f"c{question}"
        cases[name] = {"id": name, "question": f"q{question}", "task": "", "document": "", "points": {}}
        expert[name, point], judge[name, point] = truth, given_
    return cases, expert, judge


def figures_of(rows) -> dict[str, dict]:
    return {row["measure"]: row for row in evaluate(*decided(*rows), "judge")}


decisions = st.lists(st.tuples(st.integers(0, 6), st.booleans(), st.booleans()), min_size=1, max_size=40)


@given(decisions)
def test_figures_are_those_of_the_four_counts(found):
    rows = [(q, f"p{place}", truth, given_) for place, (q, truth, given_) in enumerate(found)]
    figures = figures_of(rows)
    truth, judged = np.array([row[2:] for row in rows]).T
    tp = int((truth & judged).sum())
    po = (truth == judged).mean()
    pe = truth.mean() * judged.mean() + (1 - truth.mean()) * (1 - judged.mean())
    expected = {
        "accuracy": po,
        "precision": tp / judged.sum() if judged.any() else None,
        "recall": tp / truth.sum() if truth.any() else None,
        "F1": 2 * tp / (truth.sum() + judged.sum()) if truth.any() or judged.any() else None,
        "kappa": (po - pe) / (1 - pe) if pe < 1 - 1e-12 else None,
    }
    assert figures["points"]["n"] == len(rows)
    for name, value in expected.items():
        assert figures[name]["value"] == (None if value is None else pytest.approx(value)), name


def test_intervals_resample_questions_with_all_their_points():
    rng = random.Random(3)
    rows = []
    for question in range(60):
        right = rng.random() < 0.7  # all points of a question alike: there are 60 facts, not 240
        rows += [(question, f"p{k}", truth := rng.random() < 0.6, truth == right) for k in range(4)]
    interval = figures_of(rows)["accuracy"]
    by_question = np.array([[t == g for q, _, t, g in rows if q == question] for question in range(60)])
    draws = np.random.default_rng(0).integers(0, 60, (4000, 60))
    low, high = np.quantile(by_question[draws].mean(axis=(1, 2)), [0.025, 0.975])
    assert (interval["low"], interval["high"]) == pytest.approx((low, high), abs=0.02)
    alone = np.quantile(
        np.random.default_rng(0).choice(by_question.ravel(), (4000, 240)).mean(axis=1), [0.025, 0.975]
    )
    assert interval["high"] - interval["low"] > 1.5 * (alone[1] - alone[0])


def read(folder) -> list[dict]:
    return read_json(folder / "judge_eval.json")["figures"]


def test_points_that_the_judge_left_out_are_counted_as_missing_and_nowhere_else(medtasks, tmp_path):
    write_jsonl(tmp_path / "cases.jsonl", [case(f"c{n}") for n in range(6)])
    answers = [{"p1": True, "p2": False}] * 3 + [{"p1": True, "p2": True}, {"p1": False}]
    judged = [case(f"c{n}", decisions=found, decided_by="judge") for n, found in enumerate(answers)]
    write_jsonl(tmp_path / "judge.jsonl", judged)
    outcome = medtasks("study", "judge", "cases.jsonl", "--judge", "judge.jsonl")
    found = {row["measure"]: row for row in read(tmp_path / "judge_eval")}
    assert outcome.code == 1 and "judge.jsonl did not decide 3 points" in outcome.out
    assert [found["points"][name] for name in ("n", "of", "questions")] == [9, 12, 5]
    assert found["accuracy"]["value"] == pytest.approx(7 / 9)
    assert found["precision"]["value"] == found["recall"]["value"] == pytest.approx(4 / 5)


def test_decisions_about_other_cases_are_refused(medtasks, tmp_path):
    write_jsonl(tmp_path / "cases.jsonl", [case("a")])
    write_jsonl(tmp_path / "other.jsonl", [case("b", decided_by="judge")])
    outcome = medtasks("study", "judge", "cases.jsonl", "--judge", "other.jsonl")
    assert outcome.code == 2 and "a decision about case b, which is not among the cases" in outcome.err


def test_judges_of_a_jury_are_asked_about_each_point_once(medtasks, tmp_path, server, jury):
    def decide(asked, seen):
        wrong = "c1" in asked.texts["response"] and asked.model == "two"
        return Reply(coded({"decision": {"met": ("休息" in asked.texts["point"]) != wrong}}))

    server.script = decide
    write_jsonl(tmp_path / "cases.jsonl", [case(f"c{n}") for n in range(3)])
    command = ("study", "judge", "cases.jsonl", "--jury", jury("one", "two"), "-o", "out")
    assert medtasks(*command).code == 0 and len(server.asked) == 12
    found = {(row["judge"], row["measure"]): row["value"] for row in read(tmp_path / "out")}
    assert found["one", "kappa"] == 1 and found["two", "accuracy"] == pytest.approx(2 / 3)
    assert medtasks(*command).code == 0 and len(server.asked) == 12


def test_a_reply_that_cannot_be_read_is_missing(medtasks, tmp_path, server, jury):
    server.script = lambda asked, seen: Reply(coded({"decision": {"met": "perhaps"}}))
    write_jsonl(tmp_path / "cases.jsonl", [case("a")])
    outcome = medtasks("study", "judge", "cases.jsonl", "--jury", jury("one"))
    assert outcome.code == 1 and "one did not decide 2 points" in outcome.out
    assert "missing: one: 2 (decision.met is not one of False, True)" in outcome.err


def test_cases_go_to_no_judge_elsewhere_unless_allowed(medtasks, tmp_path):
    write_jsonl(tmp_path / "cases.jsonl", [case("a")])
    (tmp_path / "jury.yaml").write_text(
        "judges: [{name: far, model: far, base_url: 'https://judge.example/v1'}]"
    )
    outcome = medtasks("study", "judge", "cases.jsonl", "--jury", "jury.yaml")
    assert outcome.code == 2 and "would be sent to judge.example" in outcome.err
    assert "asked:" not in outcome.err


# References that a model flags, and the jury's scores with and without them.


BAD = {1, 4}


def script(asked, seen):
    """A judge that doubts two references, and a jury that likes the second run better."""
    if "reasonable" in asked.system:
        doubt = int(asked.texts["response"].split()[-1].strip(".")) in BAD
        return Reply(coded({"reference": {"reasonable": not doubt, "explanation": "x"}}))
    grade = 1 + number(asked) % 4 + ("Good" in asked.texts["response"])
    return Reply(verdict(asked.axes, grade))


@pytest.fixture
def gold(run, jury, medtasks, server):
    """Two judged runs, and a call of `medtasks study gold` on both."""
    server.script = script
    for name, text in (("r1", "Fair."), ("r2", "Good.")):
        run("qa", folder=name, answers={f"d{i}": text for i in range(6)})

    def call(*options, names=("checker",), judged=True):
        if judged:
            assert medtasks("judge", "r1", "r2", "--jury", jury("one", "two")).code == 0
        return medtasks(
            "study", "gold", "r1", "r2", "--jury", jury(*names, file="gold.yaml"), "-o", "gold", *options
        )

    return call


def test_scores_stand_by_reference(gold, tmp_path, server):
    done = gold()
    assert done.code == 0 and done.err.endswith("next: medtasks view r1 r2\n"), done.text
    results = read_json(tmp_path / "gold" / "gold.json")
    [task] = results["tasks"]
    assert (task["documents"], task["flagged"], task["missing"]) == (6, 2, 0)
    grades = {"r1": [(i % 4) / 4 for i in range(6)], "r2": [(i % 4 + 1) / 4 for i in range(6)]}
    for score in results["scores"]:
        own = grades[score["run"]]
        flagged = sum(own[i] for i in BAD) / 2
        accepted = sum(own[i] for i in range(6) if i not in BAD) / 4
        assert (score["flagged"], score["accepted"]) == pytest.approx((flagged, accepted))
        assert score["difference"] == pytest.approx(flagged - accepted)
        assert score["low"] <= score["difference"] <= score["high"]
        assert (score["n_flagged"], score["n_accepted"]) == (2, 4)
    with (tmp_path / "gold" / "gold_flags.csv").open() as file:
        assert {row["document"] for row in csv.DictReader(file) if row["flagged"] == "1"} == {"d1", "d4"}
    assert "2 (33.3 %)" in done.out
    # a reference is asked about once, whatever the number of runs, and never again
    asked = [item for item in server.asked if "reasonable" in item.system]
    assert len(asked) == 6 and all(set(item.texts) == {"question", "response"} for item in asked)
    assert gold(judged=False).code == 0
    assert len([item for item in server.asked if "reasonable" in item.system]) == 6


def test_the_majority_of_several_judges_flags(gold, server, tmp_path):
    def opinions(asked, seen):
        if "reasonable" in asked.system:
            doubt = {"one": True, "two": number(asked) == 1, "three": number(asked) in (1, 2)}[asked.model]
            return Reply(coded({"reference": {"reasonable": not doubt, "explanation": "x"}}))
        return script(asked, seen)

    server.script = opinions
    assert gold(names=("one", "two", "three")).code == 0
    with (tmp_path / "gold" / "gold_flags.csv").open() as file:
        assert {row["document"] for row in csv.DictReader(file) if row["flagged"] == "1"} == {"d1", "d2"}


def test_without_scores_the_flags_stand_alone(gold):
    done = gold(judged=False)
    assert done.code == 0 and "medtasks judge" in done.out and "jury's score" not in done.out


def test_a_verdict_that_is_none_is_missing_and_asked_for_again(gold, server):
    server.script = lambda asked, seen: (
        Reply("I cannot say") if "reasonable" in asked.system and number(asked) == 3 else script(asked, seen)
    )
    done = gold()
    assert done.code == 1 and "missing in all: 1 verdicts on references" in done.err
    server.script = script
    assert gold(judged=False).code == 0


def test_a_dry_run_asks_nobody_and_a_run_without_references_is_refused(gold, run, medtasks, jury, server):
    done = gold("--dry-run", judged=False)
    assert done.code == 0 and not [item for item in server.asked if "reasonable" in item.system]
    run("note", folder="noted")
    done = medtasks("study", "gold", "noted", "--jury", jury("one"), "-o", "gold")
    assert done.code == 2 and "beside a reference" in done.err
