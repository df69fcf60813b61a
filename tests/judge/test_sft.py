"""The judge model: training data without a question on both sides, and its evaluation against experts."""

import csv
import json
import shutil

import pytest
from sklearn.metrics import cohen_kappa_score

from medtasks_ext.judge.cases import point_rubric, shown_for_point
from medtasks_ext.judge.protocol import fence_code
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


def test_no_question_is_on_both_sides_however_it_is_spaced_and_ordered(medtasks, tmp_path):
    cases = [case(f"c{n}", "题" + " " * (n % 3) + f"目{n % 5}", task="mlb_maethic") for n in range(15)]
    cases.append(case("alone", "没有第二个人问的题目", task="", document=""))
    made = []
    for rows in (cases, cases[::-1]):
        write_jsonl(tmp_path / "cases.jsonl", rows)
        medtasks.done("study", "judge", "cases.jsonl")
        folder = tmp_path / "judge_data"
        made.append([{row["case"] for row in lines(folder / f"{side}.jsonl")} for side in ("train", "test")])
    assert made[0] == made[1] and made[0][0] | made[0][1] == {item["id"] for item in cases}
    train, test = ({int(name[1:]) % 5 for name in side - {"alone"}} for side in made[0])
    assert not train & test


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
    write_jsonl(tmp_path / "other.jsonl", [case("b", decided_by="judge")])
    other = medtasks("study", "judge", "cases.jsonl", "--judge", "other.jsonl")
    assert other.code == 2 and "a decision about case b, which is not among the cases" in other.err
    # right 4 of 5 that are met and 3 of 4 that are not
    expert, judge = [1, 0, 1, 0, 1, 0, 1, 0, 1], [1, 0, 1, 0, 1, 0, 1, 1, 0]
    assert found["accuracy"]["value"] == pytest.approx(7 / 9)
    assert [found[name]["value"] for name in ("precision", "recall", "F1")] == pytest.approx([4 / 5] * 3)
    assert found["kappa"]["value"] == pytest.approx(cohen_kappa_score(expert, judge))


def test_judges_of_a_jury_are_asked_about_each_point_once(medtasks, tmp_path, server, jury):
    def decide(asked, seen):
        wrong = "c1" in asked.texts["response"] and asked.model == "two"
        return Reply(coded({"decision": {"met": ("休息" in asked.texts["point"]) != wrong}}))

    server.script = decide
    write_jsonl(tmp_path / "cases.jsonl", [case(f"c{n}") for n in range(3)])
    command = ("study", "judge", "cases.jsonl", "--jury", jury("one", "two"))
    assert medtasks(*command).code == 0 and len(server.asked) == 12
    found = {(row["judge"], row["measure"]): row["value"] for row in read(tmp_path / "judge_eval")}
    assert found["one", "kappa"] == 1 and found["two", "accuracy"] == pytest.approx(2 / 3)
    assert medtasks(*command).code == 0 and len(server.asked) == 12
    server.script = lambda asked, seen: Reply(coded({"decision": {"met": "perhaps"}}))
    shutil.rmtree(tmp_path / "judge_eval")
    outcome = medtasks(*command)
    assert outcome.code == 1 and "one did not decide 6 points" in outcome.out
    assert "missing: one: 6 (decision.met is not one of False, True)" in outcome.err


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
        return medtasks("study", "gold", "r1", "r2", "--jury", jury(*names, file="gold.yaml"), *options)

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


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"id": "a"}], "cases.jsonl:1: no case"),
        ([case("a"), case("a", "anders")], "cases.jsonl:2: case a occurs twice"),
        ([case("a", decisions={"p9": True})], "'p9', which is no point of the case"),
        ([{**case("a"), "question": " "}], "no text of the question, or of a point"),
        ([case("a", "gleich"), case("b", "gleich")], "one question cannot be split"),
        ([case(f"c{n}", decided_by="judge") for n in range(4)], "no decision of an expert"),
    ],
)
def test_cases_that_cannot_be_used_are_one_message(medtasks, tmp_path, rows, message):
    write_jsonl(tmp_path / "cases.jsonl", rows)
    outcome = medtasks("study", "judge", "cases.jsonl")
    assert outcome.code == 2 and message in outcome.err and "→" in outcome.err
    assert not (tmp_path / "judge_data").exists()
