"""Two assessors and an adjudicator: scoring points, disputes, and a physician's word."""

import json
import re

import pytest
import yaml
from sklearn.metrics import cohen_kappa_score

from medtasks_ext.prompts.load import _build
from medtasks_ext.registry import tasks_folder
from tests.conftest import declare_suites, read_json, rewrite_answers, write_jsonl
from tests.human.conftest import write
from tests.judge.conftest import judgements
from tests.judge.server import Reply, coded
from tests.run_files import result_of, results_of

TASK = "mlb_case"
#: Quarter steps: the points of a row weigh 1, 1 and 2.
WEIGHTS = (1, 1, 2)


def points(*weights):
    return [{"text": f"说出第{i}条要点", "weight": weight} for i, weight in enumerate(weights, start=1)]


def row(number, *weights, **more):
    return {
        "id": f"d{number}",
        "prompt": f"病例{number}：请给出处理意见。",
        "reference": f"参考意见{number}。",
        "points": points(*(weights or WEIGHTS)),
        **more,
    }


@pytest.fixture
def case_task(tmp_path, monkeypatch, data_dir):
    """Make a task like MLB's open-ended ones: `case_task(rows)` puts its local rows there."""
    folder = tmp_path / "tasks" / "mlb" / "case"
    folder.mkdir(parents=True)
    text = (tasks_folder() / "mlb" / "maethic" / "task.yaml").read_text().replace("mlb/maethic", "mlb/case")
    text = text.replace("task: mlb_maethic", f"task: {TASK}").partition("# written by")[0]
    (folder / "task.yaml").write_text(text)
    (folder / "card.yaml").write_text((tasks_folder() / "mlb" / "maethic" / "card.yaml").read_text())
    declare_suites(tmp_path / "tasks")
    monkeypatch.setenv("MEDTASKS_TASKS_DIR", str(tmp_path / "tasks"))

    def rows(items):
        _build.cache_clear()  # rows that change belong to another process
        write_jsonl(data_dir / "mlb" / "case" / "test.jsonl", items)

    return rows


@pytest.fixture
def answered(case_task, medtasks, tmp_path):
    """A run over rows, answered with their references; `answers` changes some."""

    def make(items, answers=None, folder="run"):
        case_task(items)
        medtasks.done("run", "--model", "oracle", "--tasks", TASK, "--output_path", folder)
        if answers:
            rewrite_answers(tmp_path / folder, TASK, answers)
            assert medtasks("rescore", folder).code == 0
        return tmp_path / folder

    return make


@pytest.fixture
def panel(tmp_path, server):
    """A jury file: two assessors (more names: more judges) and an adjudicator."""

    def write(*names, adjudicator="human", asks=None, **settings):
        def judge(name):
            return {"name": name, "model": name, "base_url": server.url, "max_concurrent": 4, **settings}

        content = {"judges": [judge(name) for name in names or ("one", "two")]}
        if adjudicator:
            content["adjudicator"] = "human" if adjudicator == "human" else judge(adjudicator)
        if asks:
            content["adjudicator"]["asks"] = asks
        path = tmp_path / "panel.yaml"
        path.write_text(yaml.safe_dump(content))
        return path

    return write


def ids(asked):
    return re.findall(r"^([\w.-]+)\. ", asked.texts["points"], re.MULTILINE)


def number(asked):
    return int(re.search(r"病例(\d+)", asked.texts["question"])[1])


def verdict(names, met):
    return coded({name: {"reason": "依据如此", "met": name in met} for name in names})


def decides(**by_model):
    """A script: model -> the points that it finds met, or a function of the document's number."""

    def script(asked, seen):
        met = by_model[asked.model]
        return Reply(verdict(ids(asked), met(number(asked)) if callable(met) else met))

    return script


def snapshot(folder):
    return read_json(folder / "judgements" / f"{TASK}.json")["documents"]


def stored(folder):
    return result_of(folder, TASK)["metrics"]


def queue(folder):
    path = folder / "judgements" / f"disputed_{TASK}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


ALL = {"p1", "p2", "p3"}
#: What judges say, how many answers there are, the adjudicator and changed answers -> the documents that each
#: judge is asked about, the scores of documents, and figures of the task.
OUTCOMES = {
    "assessors that agree give their mean": (
        {"one": {"p1", "p3"}, "two": ALL}, 3, "human", {},  # 3/4 and 4/4
        {"one": [0, 1, 2], "two": [0, 1, 2]}, [7 / 8] * 3,
        {"score": 7 / 8, "jury_one": 0.75, "jury_two": 1, "disputed": 0, "pending": 0,
         "assessor_agreement": 1, "judged": 1, "scored": 1, "judgements_missing": 0},
    ),
    "a larger difference goes to the adjudicator, who counts alone": (
        # 1/2 of two documents, 3/4 of the others
        {"one": ALL, "two": lambda n: {"p3"} if n < 2 else {"p1", "p3"}, "third": {"p1"}}, 5, "third", {},
        {"one": [*range(5)], "two": [*range(5)], "third": [0, 1]}, [0.25, 0.25, 0.875, 0.875, 0.875],
        {"score": (2 * 0.25 + 3 * 0.875) / 5, "disputed": 0.4, "assessor_agreement": 0.6, "pending": 0,
         "jury_third": 0.25},
    ),
    "an empty answer scores nothing and says nothing of the assessors": (
        {"one": ALL, "two": ALL}, 4, "human", {"d1": " "},
        {"one": [0, 2, 3], "two": [0, 2, 3]}, [1, 0, 1, 1],
        {"score": 0.75, "empty_answers": 1, "disputed": 0, "assessor_agreement": 1, "judged": 1},
    ),
}  # fmt: skip


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_two_assessors_and_who_decides_between_them(answered, panel, medtasks, server, outcome):
    says, n, adjudicator, answers, asked, scores, metrics = OUTCOMES[outcome]
    server.script = decides(**says)
    folder = answered([row(i) for i in range(n)], answers)
    # of three judges the first two assess
    printed = medtasks.done("judge", "--jury", panel("one", "two", "further", adjudicator=adjudicator)).out
    requests = sorted((item.model, number(item)) for item in server.asked)
    assert requests == [(name, document) for name in sorted(asked) for document in asked[name]]
    assert not queue(folder)
    assert [item["score"] for item in snapshot(folder)] == scores
    found = stored(folder)
    assert {name: found[name] for name in metrics} == pytest.approx(metrics)
    assert not [name for name in found if name.startswith("jury_p")]
    results = results_of(folder)["results"][TASK]
    assert all(results[f"{name},answer"] == found[name] for name in ("score", "disputed"))
    line = next(line for line in printed.splitlines() if TASK in line).split()
    assert line[:2] == [TASK, f"{metrics['score']:.4f}"] and line[-1] == f"{n}/{n}"


def test_agreement_on_points_is_cohens_kappa(answered, panel, medtasks, server):
    decisions = {
        "one": [{"p1"}, {"p1", "p2"}, {"p3"}, {"p1", "p3"}, set(), {"p2"}],
        "two": [{"p1"}, {"p2"}, {"p3"}, {"p1", "p2", "p3"}, {"p1"}, {"p2", "p1"}],
    }
    server.script = decides(**{name: items.__getitem__ for name, items in decisions.items()})
    folder = answered([row(i) for i in range(6)])
    assert medtasks("judge", "--jury", panel()).code == 0
    flat = {
        name: [point in met for met in items for point in ("p1", "p2", "p3")]
        for name, items in decisions.items()
    }
    expected = cohen_kappa_score(flat["one"], flat["two"])
    assert stored(folder)["assessor_kappa"] == pytest.approx(expected)
    tables = read_json(folder / "judgements" / "agreement.json")
    pooled = [item for item in tables if item["item"] == "all axes" and item["measure"] == "Cohen's kappa"]
    assert [item["value"] for item in pooled] == [pytest.approx(expected)] and pooled[0]["n"] == 18


#: an adjudicator that is asked about one scoring point at a time
BY_POINTS = {"adjudicator": "third", "asks": "points_one_by_one"}


def decides_points(third, **assessors):
    """A script: the assessors decide on all points of a case, `third` on the one that it is shown."""
    whole = decides(**assessors)

    def script(asked, seen):
        if asked.model != "third":
            return whole(asked, seen)
        return Reply(coded({"decision": {"met": point_shown(asked) in third}}))

    return script


def point_shown(asked):
    return "p" + re.fullmatch(r"说出第(\d)条要点", asked.texts["point"])[1]


#: Disputed where the document's number is odd.
ODD = {"one": {"p1", "p2", "p3"}, "two": lambda n: set() if n % 2 else {"p1", "p2", "p3"}}


def test_disputed_points_are_put_as_a_judge_was_trained(answered, panel, medtasks, server, tmp_path):
    server.script = decides_points({"p1", "p3"}, **ODD)
    own = [{"text": " 说出第1条要点 ", "weight": 5}, *points(1, 1, 2)[1:]]
    folder = answered([row(0), row(1, 5, 1, 2), {**row(3), "points": own}])
    medtasks("judge", "--jury", panel())
    cases = [
        {**case, "decisions": dict.fromkeys(("p1", "p2", "p3"), True), "decided_by": "expert"}
        for case in queue(folder)
    ]
    write_jsonl(tmp_path / "cases.jsonl", cases)
    assert medtasks("study", "judge", "cases.jsonl").code == 0
    rows = [
        json.loads(line)
        for side in ("train", "test")
        for line in (tmp_path / "judge_data" / f"{side}.jsonl").read_text().splitlines()
    ]
    server.asked.clear()
    medtasks.done("judge", "--jury", panel(**BY_POINTS))
    assert {asked.model for asked in server.asked} == {"third"} and len(rows) == 6

    def in_order(prompts):
        return sorted(json.dumps(prompt, ensure_ascii=False) for prompt in prompts)

    assert in_order(asked.body["messages"] for asked in server.asked) == in_order(r["prompt"] for r in rows)
    found = stored(folder)
    assert [item["score"] for item in snapshot(folder)] == [1, 7 / 8, 7 / 8]
    assert found["jury_third"] == 7 / 8 and (found["pending"], found["judgements_missing"]) == (0, 0)
    assert medtasks("rescore", "run").code == 0
    assert stored(folder) == found


def test_a_missing_point_leaves_a_case_pending_and_is_asked_again(answered, panel, medtasks, server):
    full = decides_points({"p3"}, **ODD)
    server.script = lambda asked, seen: (
        Reply("不清楚") if asked.model == "third" and point_shown(asked) == "p2" else full(asked, seen)
    )
    folder = answered([row(0), row(1)])
    outcome = medtasks("judge", "--jury", panel(**BY_POINTS))
    found = stored(folder)
    assert outcome.code == 1 and "missing: mlb_case, third: 1 (no JSON object in the reply)" in outcome.out
    assert [item["score"] for item in snapshot(folder)] == [1, None]
    assert (found["pending"], found["judgements_missing"], found["scored"]) == (1, 1, 0.5)
    assert "jury_third" not in found and not queue(folder)
    server.script = full
    server.asked.clear()
    assert medtasks("judge", "--jury", panel(**BY_POINTS)).code == 0
    assert [(asked.model, point_shown(asked)) for asked in server.asked] == [("third", "p2")]
    assert [item["score"] for item in snapshot(folder)] == [1, 0.5]


def test_assessors_see_points_and_reference_and_no_weights(answered, panel, medtasks, server):
    server.script = decides(one={"A"}, two={"A"})
    own = [{"id": "A", "text": "指出\n风险", "weight": 0.37}, {"id": "B-2", "text": "建议就诊", "weight": 9}]
    folder = answered([{**row(0), "points": own}, {**row(1), "points": own, "reference": ""}])
    rewrite_answers(folder, TASK, {"d1": "建议尽快就诊。"})
    assert medtasks("rescore", "run").code == 0
    assert medtasks("judge", "--jury", panel()).code == 0
    asked = {number(item): item for item in server.asked}
    assert asked[0].texts == {
        "question": "病例0：请给出处理意见。", "response": "参考意见0。", "gold": "参考意见0。",
        "points": "A. 指出 风险\nB-2. 建议就诊",
    }  # fmt: skip
    assert set(asked[1].texts) == {"question", "response", "points"} and "参考答案" not in asked[1].system
    schema = asked[0].body["response_format"]["json_schema"]["schema"]
    assert schema["required"] == ["code", "A", "B-2"]
    assert schema["properties"]["A"]["properties"]["met"] == {"type": "boolean", "enum": [False, True]}
    for item in server.asked:
        assert "0.37" not in item.system + item.user and "A、B-2" in item.system


def test_other_weights_ask_nobody_again(answered, panel, medtasks, server):
    server.script = decides(one={"p1"}, two={"p1"})
    folder = answered([row(0)])
    medtasks("judge", "--jury", panel())
    assert stored(folder)["score"] == 1 / 4
    answered([row(0, 5, 1, 1)])
    server.asked.clear()
    assert medtasks("judge", "--jury", panel()).code == 0 and not server.asked
    assert stored(folder)["score"] == 5 / 7


@pytest.fixture
def disputed(answered, panel, medtasks, server):
    """A run with two disputed cases, d1 and d3, that wait for a physician."""
    server.script = decides(one={"p1", "p2", "p3"}, two=lambda n: {"p1"} if n % 2 else {"p1", "p3"})
    folder = answered([row(i) for i in range(4)])
    return folder, medtasks("judge", "--jury", panel())


def test_the_physicians_word_comes_through_the_form_and_is_final(disputed, medtasks, panel, server, tmp_path):
    folder, outcome = disputed
    found = stored(folder)
    assert outcome.code == 1 and "asks for them again" not in outcome.err
    assert "disputed_mlb_case.jsonl" in outcome.err and "study forms --kind points" in outcome.err
    assert "missing: mlb_case, human: 2 (waits for a physician)" in outcome.out
    assert [item["score"] for item in snapshot(folder)] == [0.875, None, 0.875, None]
    assert (found["pending"], found["disputed"], found["scored"], found["judged"]) == (2, 0.5, 0.5, 0.5)

    waiting, cases = folder / "judgements" / f"disputed_{TASK}.jsonl", queue(folder)
    shown = [{"id": f"p{i}", "text": f"说出第{i}条要点", "weight": w} for i, w in enumerate(WEIGHTS, 1)]
    assert [{**case, "id": "-"} for case in cases] == [
        {"id": "-", "question": f"病例{n}：请给出处理意见。", "answer": f"参考意见{n}。", "points": shown}
        for n in (1, 3)
    ]
    medtasks.done("study", "forms", waiting, "--kind", "points", "-o", "forms")
    first = {case["id"] for case in cases if "病例1" in case["question"]}
    third = {point["id"] for case in cases for point in case["points"] if "第3条" in point["text"]}

    def decision(about, question):
        return "met" if about["task"] in first and about["unit"] in third else "not_met"

    form = write(tmp_path / "forms", "expert_1", decision)
    medtasks.done("study", "forms", form, "--key", "forms/key.json", "-o", "decided")
    server.asked.clear()
    outcome = medtasks.done("judge", "--jury", panel(), "--ratings", "decided/decisions.jsonl")
    found = stored(folder)
    assert "2 new decisions" in outcome.err and not server.asked and not waiting.exists()
    assert [item["score"] for item in snapshot(folder)] == [0.875, 0.5, 0.875, 0]
    assert (found["pending"], found["disputed"], found["scored"]) == (0, 0.5, 1)
    assert found["jury_human"] == 0.25
    # it stays, also where the scores are computed anew, and another call needs no file
    assert medtasks("rescore", "run").code == 0
    assert stored(folder) == found
    assert medtasks("judge", "--jury", panel()).code == 0
    assert stored(folder) == found


@pytest.fixture
def decisions(disputed, tmp_path):
    """A file that says of each disputed case which points are met."""

    def write_(*met, change=lambda lines: None):
        lines = [
            {"id": case["id"], "points": [{"id": p["id"], "met": p["id"] in own} for p in case["points"]]}
            for case, own in zip(queue(disputed[0]), met, strict=True)
        ]
        change(lines)
        return write_jsonl(tmp_path / "decisions.jsonl", lines)

    return write_


def test_decisions_may_be_a_part_are_corrected_and_are_about_one_answer(disputed, decisions, medtasks, panel):
    folder, _ = disputed

    def scores():
        return [item["score"] for item in snapshot(folder)]

    path = decisions({"p1"}, {"p1", "p2", "p3"})
    judge = ("judge", "--jury", panel(), "--ratings", path)
    assert medtasks(*judge, "--dry-run").code == 0
    assert all(item["judge"] != "human" for item in judgements(folder, TASK))
    whole = path.read_text()
    decisions({"p1"}, {"p1"}, change=lambda lines: lines[1]["points"][0].update(met=None))
    outcome = medtasks(*judge)
    assert outcome.code == 1 and "1 new decisions" in outcome.err
    assert "1 cases are not decided on every point" in outcome.err
    assert scores() == [0.875, 0.25, 0.875, None] and len(queue(folder)) == 1
    path.write_text(whole.replace('"p3", "met": false', '"p3", "met": true'))
    outcome = medtasks(*judge)
    assert outcome.code == 0 and "1 new decisions, 1 replaced" in outcome.err
    assert scores() == [0.875, 0.75, 0.875, 1]
    rewrite_answers(folder, TASK, {"d1": "另一份意见。"})
    assert medtasks("rescore", "run").code == 0
    outcome = medtasks(*judge)
    assert outcome.code == 1 and "1 cases are about answers that are others now" in outcome.err
    assert scores() == [0.875, None, 0.875, 1]
    assert [case["answer"] for case in queue(folder)] == ["另一份意见。"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: lines[0].update(id="mlb_case/d9/000000000000"), "line 1: no case"),
        (lambda lines: lines[1]["points"].pop(), "has the points p1, p2, p3, each to be decided once"),
        (lambda lines: lines.append(lines[0]), "line 3: mlb_case/d1/"),
        (lambda lines: lines[1]["points"][0].update(met="yes"), "decision.points.0.met"),
        (list.clear, "no decisions in it"),
    ],
)
def test_impossible_decisions_are_refused_whole(
    disputed, decisions, medtasks, panel, server, change, message
):
    folder, _ = disputed
    path, before = decisions({"p1"}, {"p1"}, change=change), judgements(folder, TASK)
    server.asked.clear()
    outcome = medtasks("judge", "--jury", panel(), "--ratings", path)
    assert outcome.code == 2 and message in outcome.err and "nothing of it was stored" in outcome.err
    assert outcome.err.count("medtasks: ") == 1 and str(path) in outcome.err
    assert judgements(folder, TASK) == before and not server.asked and len(queue(folder)) == 2
    other = medtasks("judge", "--jury", panel(adjudicator="third"), "--ratings", path)
    assert other.code == 2 and "adjudicator: human" in other.err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: content["judges"].pop(), "mlb_case: two assessors are needed"),
        (lambda content: content["judges"][0].update(asks="points_one_by_one"), "asks"),
        (
            lambda content: content.update(adjudicator="physician"),
            "a judge with name, model and base_url, or the word human",
        ),
        (lambda content: content["adjudicator"].update(name="one"), "two judges are named one"),
        (lambda content: content["adjudicator"].update(base_url="http://far.example/v1"), "far.example"),
    ],
)
def test_a_panel_that_cannot_decide_or_may_not_have_the_text_is_refused(
    answered, medtasks, panel, server, change, message
):
    answered([row(0)])
    path = panel(adjudicator="third")
    content = yaml.safe_load(path.read_text())
    change(content)
    path.write_text(yaml.safe_dump(content))
    outcome = medtasks("judge", "--jury", path)
    assert outcome.code == 2 and message in outcome.err and not server.asked


@pytest.mark.parametrize(
    ("value", "total", "message"),
    [
        ([], None, "no scoring points"),
        ([{"text": "甲", "weight": 1}, {"text": " ", "weight": 1}], None, "point 2 has no text"),
        ([{"text": "甲", "weight": 0}], None, "the weight of point 1 is 0"),
        ([{"text": "甲", "weight": 1, "id": "a b"}], None, "the id of point 1 is 'a b'"),
        ([{"id": "p2", **points(1)[0]}, *points(1, 1)[1:]], None, "two points have the id p2"),
        (points(0.3, 0.3), 1, "the weights add up to 0.6, not to 1"),
        (points(1), 0, "the total of the weights is 0"),
    ],
)
def test_a_rubric_without_score_is_named_by_file_and_row(
    case_task, medtasks, data_dir, value, total, message
):
    case_task([row(0), {**row(1), "points": value, **({} if total is None else {"total": total})}])
    outcome = medtasks("run", "--model", "oracle", "--tasks", TASK, "--output_path", "run")
    assert outcome.code == 2 and f"test row 2 (id d1): {message}" in outcome.err
    assert "test.jsonl" in outcome.err and "mend the scoring points" in outcome.err
    assert outcome.err.count("scoring points of these rows") == 1
