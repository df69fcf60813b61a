"""Scores by level of difficulty, by department, on clean inputs; `medtasks study departments`."""
# ruff: noqa: F811

import json
import shutil

import polars as pl
import pytest
import yaml

from medtasks_ext.prompts import load
from medtasks_ext.stats.intervals import wilson
from tests.conftest import rewrite_answers, write_jsonl
from tests.judge.conftest import jury, quick_pauses, server  # noqa: F401  (fixtures)
from tests.judge.server import Reply, coded
from tests.run_files import result_of

TASK = "mlb_maguidance"
WRONG = "不知道"


PEOPLE = ["Cardiology", ["Cardiology", "Oncology"], "Neonatology", "No Department"]


def question(number: int, *, named: bool = True) -> dict:
    row = {
        "id": f"q{number}", "question": f"第{number}题：应当挂哪一科？",
        "options": ["甲", "乙", "丙", "丁", "戊"], "answer": [number % 5],
    }  # fmt: skip
    return {**row, "department": PEOPLE[number % 4]} if named else row


def put_rows(data_dir, rows) -> None:
    write_jsonl(data_dir / "mlb" / "maguidance" / "test.jsonl", rows)
    load._build.cache_clear()


@pytest.fixture
def runs(medtasks, data_dir, tmp_path):
    """Two models on twelve questions, each asked three times: one is right, the other wrong in q0 to q3."""
    put_rows(data_dir, [question(number) for number in range(12)])
    made = medtasks("run", "--model", "oracle", "--tasks", TASK, "--output_path", "good")
    assert made.code == 0, made.text
    shutil.copytree(tmp_path / "good", tmp_path / "poor")
    wrong = {f"q{number}#{trial}": WRONG for number in range(4) for trial in range(3)}
    rewrite_answers(tmp_path / "poor", TASK, wrong)
    assert medtasks("rescore", "poor").code == 0
    return tmp_path


@pytest.fixture
def levels(runs):
    """q0 and q1 hard, q2 to q5 medium, the others easy, as `medtasks study difficulty` writes it."""
    record = result_of(runs / "good", TASK)["loaded"]
    names = ["hard"] * 2 + ["medium"] * 4 + ["easy"] * 6
    content = {
        "schema": 1, "task": TASK, "method": "right_or_wrong", "panel": [], "counts": {},
        "rows_hash": record["rows_hash"], "origin": record["origin"], "same_documents": [TASK],
        "questions": [
            {"id": f"q{n}", "documents": [3 * n], "level": level, "value": 1, "department": []}
            for n, level in enumerate(names)
        ],
    }  # fmt: skip
    path = runs / "levels" / f"{TASK}.json"
    path.parent.mkdir()
    path.write_text(json.dumps(content))
    return path


def labels(medtasks, *arguments):
    outcome = medtasks("report", *arguments, "--published", "none", "--json")
    return {(row["axis"], row["value"]): row for row in json.loads(outcome.out)["labels"]}, outcome


def test_a_score_by_level_is_that_of_its_documents_beside_all(medtasks, levels, runs):
    found, outcome = labels(medtasks, "poor", "--by", "levels")
    assert outcome.code == 0
    by_level = {value: row for (axis, value), row in found.items() if axis == "difficulty"}
    assert {name: (row["score"], row["documents"]) for name, row in by_level.items()} == {
        "hard": (0, 6), "medium": (0.5, 12), "easy": (1, 18)
    }  # fmt: skip
    assert {(row["score_of_all"], row["documents_of_all"]) for row in by_level.values()} == {(8 / 12, 36)}
    # the four medium questions, two of them right: each is one unit, whatever its number of trials
    low, high = wilson(0.5, 4)
    medium = by_level["medium"]
    assert (medium["interval_low"], medium["interval_high"]) == pytest.approx((float(low), float(high)))


def test_tables_have_the_levels_and_the_terminal_names_them(medtasks, levels, runs):
    outcome = medtasks("report", "poor", "--by", levels, "--published", "none", "-o", "out")
    assert outcome.code == 0 and "label: groups.csv, labels.csv" in outcome.out
    assert "by difficulty: oracle, MLB" in outcome.out.replace("\n", " ") and "medium" in outcome.out
    table = pl.read_csv(runs / "out" / "labels.csv")
    assert table.filter(pl.col("axis") == "difficulty")["value"].to_list() == ["hard", "medium", "easy"]
    assert pl.read_parquet(runs / "out" / "labels.parquet").height == table.height


def test_rows_that_name_departments_need_no_file(medtasks, runs, levels):
    found, _ = labels(medtasks, "poor")
    scores = {value: (row["score"], row["documents"]) for (_, value), row in found.items()}
    # of each four questions: two of Cardiology, one of them of Oncology, too, one of Neonatology, one of none
    assert scores["Internal Medicine, Cardiology"] == (4 / 6, 18)
    assert scores["No Department"] == (2 / 3, 9)
    assert [value for value in scores if value.endswith("Oncology")]
    printed = medtasks("report", "poor", "--published", "none").out
    assert "by language, specialty, stage and label: groups.csv, labels.csv of -o OUT" in printed


def test_rows_that_name_levels_need_no_file_and_a_file_goes_before_them(medtasks, runs, levels, data_dir):
    put_rows(data_dir, [{**question(n), "difficulty": "Easy" if n < 9 else "hard"} for n in range(12)])
    assert medtasks("run", "--model", "oracle", "--tasks", TASK, "--output_path", "own").code == 0
    own, _ = labels(medtasks, "own")
    counts = {value: row["documents"] for (axis, value), row in own.items() if axis == "difficulty"}
    assert counts == {"hard": 9, "easy": 27}
    given, _ = labels(medtasks, "own", "--by", levels)
    assert given["difficulty", "medium"]["documents"] == 12 and given["difficulty", "easy"]["documents"] == 18
    put_rows(data_dir, [{**question(0), "difficulty": "so so"}])
    outcome = medtasks("run", "--model", "oracle", "--tasks", TASK, "--output_path", "bad")
    assert outcome.code == 2 and "difficulty" in outcome.err and "hard, medium, easy" in outcome.err


def test_labels_of_other_rows_or_tasks_are_named_and_a_file_without_any_is_refused(medtasks, levels, runs):
    content = json.loads(levels.read_text())
    for wrong, message in ((None, "holds no labels"), ('{"method": 1}', "is no file of labels")):
        if wrong:
            (runs / "wrong.json").write_text(wrong)
        outcome = medtasks("report", "poor", "--published", "none", "--by", "wrong.json")
        assert outcome.code == 2 and message in outcome.err and not outcome.out
    levels.write_text(json.dumps({**content, "task": "mlb_mareport", "same_documents": ["mlb_mareport"]}))
    _, outcome = labels(medtasks, "poor", "--by", levels)
    assert "no run here has a score of mlb_mareport" in json.loads(outcome.out)["faults"][0]["what"]
    levels.write_text(json.dumps({**content, "rows_hash": "0" * 12}))
    found, outcome = labels(medtasks, "poor", "--by", "levels")
    assert outcome.code == 1 and not [axis for axis, _ in found if axis == "difficulty"]
    assert any("of other rows" in fault["what"] for fault in json.loads(outcome.out)["faults"])
    content["questions"] = content["questions"][1:]
    levels.write_text(json.dumps(content))
    _, outcome = labels(medtasks, "poor", "--by", "levels")
    assert any(
        "3 of 36 documents are not in it" in item["what"] for item in json.loads(outcome.out)["faults"]
    )


def test_two_models_are_compared_on_the_documents_of_each_level(medtasks, levels, runs):
    file = runs / "poor" / "run.json"
    file.write_text(file.read_text().replace('"oracle"', '"poor"'))
    outcome = medtasks("compare", "poor", "good", "--by", "levels", "--json", "-o", "out")
    assert outcome.code == 0, outcome.err
    found = {line["name"]: line for line in json.loads(outcome.out)["labels"]}
    assert {name: (line["before"], line["after"]) for name, line in found.items()} == {
        "difficulty: hard": (0, 1), "difficulty: medium": (0.5, 1), "difficulty: easy": (1, 1)
    }  # fmt: skip
    assert found["difficulty: hard"]["difference"] == 1 and found["difficulty: easy"]["p"] == 1
    assert pl.read_csv(runs / "out" / "labels.csv")["name"].to_list() == list(found)
    assert "difficulty: hard" in medtasks("compare", "poor", "good", "--by", "levels").out


def test_the_score_on_clean_inputs_is_of_the_model_that_was_probed(medtasks, runs):
    record = result_of(runs / "good", TASK)["loaded"]
    words = [5, 5, 0, 0, 0, 1, 2, None, 0, 0, 0, 0]  # matches: q0 and q1 leaked, q7 is too short
    documents = [
        {"id": f"q{n}", "n_matches": found, "leaked": None if found is None else found >= 3}
        for n, found in enumerate(words)
    ]
    probe = {
        "schema": 2, "rule": {"cuts": [10, 15, 20, 25, 30], "predicted": 5, "threshold": 3}, "name": "oracle",
        "identity": {},
        "tasks": {TASK: {"origin": "local", "rows_hash": record["rows_hash"], "documents": documents}},
    }  # fmt: skip
    (runs / "probe").mkdir()
    (runs / "probe" / "contamination.json").write_text(json.dumps(probe))
    found, outcome = labels(medtasks, "poor", "--by", "probe")
    of = {value: row for (axis, value), row in found.items() if axis == "contamination"}
    assert (
        outcome.code == 0 and of["clean"]["score"] == pytest.approx(7 / 9) and of["clean"]["documents"] == 27
    )
    assert of["clean"]["score_of_all"] == pytest.approx(8 / 12) and of["leaked"]["score"] == 0
    assert of["too short to probe"]["documents"] == 3 and of["clean"]["interval_low"] is not None
    (runs / "probe" / "contamination.json").write_text(json.dumps({**probe, "name": "another"}))
    found, outcome = labels(medtasks, "poor", "--by", "probe")
    assert not [axis for axis, _ in found if axis == "contamination"]
    assert f"no run here has a score of {TASK} by another" in outcome.out


# What replies to `medtasks study departments` become.


def places(*names: str) -> str:
    named = [*names, "none", "none"][:3]
    return coded(
        {place: {"department": name} for place, name in zip(("first", "second", "third"), named, strict=True)}
    )


def nth(asked) -> int:
    return int(asked.texts["question"].partition("题")[0].rpartition("第")[2])


def as_people_but_one(asked, seen):
    """As people do, but q0 is Nephrology."""
    n = nth(asked)
    names = ["Nephrology"] if n == 0 else PEOPLE[n % 4]
    return Reply(places(*([names] if isinstance(names, str) else names)))


@pytest.fixture
def rows(data_dir, server):
    """Write rows, which a server labels."""
    server.script = as_people_but_one

    def write(n: int = 8, *, named: bool = True) -> None:
        put_rows(data_dir, [question(i, named=named) for i in range(n)])

    return write


def labels_in(tmp_path) -> dict[str, list[str]]:
    content = json.loads((tmp_path / "departments" / f"{TASK}.json").read_text())
    return {item["id"]: item["department"] for item in content["questions"]}


def test_each_question_is_labelled_once_whatever_its_trials(medtasks, rows, jury, server, tmp_path):
    rows()
    outcome = medtasks("study", "departments", "--tasks", TASK, "--jury", jury("labeller"))
    assert outcome.code == 0, outcome.text
    assert len(server.asked) == 8 and labels_in(tmp_path)["q1"] == ["Cardiology", "Oncology"]
    assert labels_in(tmp_path)["q0"] == ["Nephrology"] and labels_in(tmp_path)["q3"] == ["No Department"]
    asked = server.asked[0]
    assert "Internal Medicine: Respiratory Medicine; " in asked.system and "Cardiology" not in asked.user
    fields = asked.body["response_format"]["json_schema"]["schema"]["properties"]["first"]["properties"]
    assert len(fields["department"]["enum"]) == 66
    assert medtasks("study", "departments", "--tasks", TASK, "--jury", jury("labeller")).code == 0
    assert len(server.asked) == 8  # nobody is asked twice


def test_the_labels_give_a_score_by_department(medtasks, rows, jury, server):
    rows(named=False)
    assert medtasks("run", "--model", "oracle", "--tasks", TASK, "--output_path", "run").code == 0
    assert medtasks("study", "departments", "--tasks", TASK, "--jury", jury("labeller")).code == 0
    outcome = medtasks("report", "run", "--by", "departments", "--published", "none", "--json")
    found = {row["value"]: row for row in json.loads(outcome.out)["labels"]}
    assert found["Internal Medicine, Nephrology"]["documents"] == 3  # three trials of q0
    assert found["No Department"]["documents"] == 6 and found["No Department"]["score"] == 1


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (places("Cardiology", "Cardiology"), "named twice"),
        (places("No Department", "Cardiology"), "stands beside others"),
        (places("none"), "no first department"),
        (places("Internal Medicine"), "is not one of"),
    ],
)
def test_a_reply_that_is_no_label_is_asked_for_again_and_then_missing(
    medtasks, rows, jury, server, tmp_path, reply, reason
):
    rows(2)
    server.script = lambda asked, seen: Reply(reply) if nth(asked) == 1 else as_people_but_one(asked, seen)
    outcome = medtasks("study", "departments", "--tasks", TASK, "--jury", jury("labeller"))
    assert outcome.code == 1 and reason in outcome.err and outcome.err.count("missing:") == 1
    assert len(server.asked) == 4  # once for q0, three times for q1
    content = json.loads((tmp_path / "departments" / f"{TASK}.json").read_text())
    assert content["missing"] == ["q1"] and labels_in(tmp_path) == {"q0": ["Nephrology"]}
    server.script = as_people_but_one
    assert medtasks("study", "departments", "--tasks", TASK, "--jury", jury("labeller")).code == 0
    assert len(server.asked) == 5 and set(labels_in(tmp_path)) == {"q0", "q1"}


def test_what_may_not_be_asked_is_one_message_and_nobody_is_asked(medtasks, rows, server, jury, tmp_path):
    rows(2)
    jury("a", "b", file="two.yaml"), jury("a", file="one.yaml")
    judge = {"name": "far", "model": "m", "base_url": "http://labels.example.org/v1"}
    (tmp_path / "far.yaml").write_text(yaml.safe_dump({"judges": [judge]}))
    for task, judges, message in (
        (TASK, "two.yaml", "has several models"),
        ("mlb_nothing", "one.yaml", "mlb_nothing"),
        (TASK, "far.yaml", "labels.example.org"),
    ):
        outcome = medtasks("study", "departments", "--tasks", task, "--jury", judges)
        assert outcome.code == 2 and message in outcome.err and outcome.err.count("medtasks: ") == 1
        assert not outcome.out and not server.asked
