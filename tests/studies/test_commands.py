"""`medtasks study difficulty`, `sample` and `prompts`: from runs to a list of documents or to a wording."""

import json
import shutil
from pathlib import Path

import pytest
import yaml

from medtasks_ext.prompts import load
from tests.conftest import outcomes, rewrite_answers, sft_row, write_jsonl
from tests.judge.conftest import make_rows, make_task, rows
from tests.run_files import result_of, samples_file, samples_of

TASK = "mlb_cmexam"
PANEL = [f"panel/{name}" for name in "abcde"]


def question(number: int) -> dict:
    return {
        "id": f"q{number}", "Question": f"第{number}题", "Options": ["甲", "乙", "丙", "丁", "戊"],
        "Answer": "ABCDE"[number % 5], "type": "药学" if number % 3 else "护理",
        "departments": [["心内科", "呼吸科"][number % 2], "急诊科"],
    }  # fmt: skip


@pytest.fixture
def exam(data_dir):
    """Twelve questions, each asked three times."""
    write_jsonl(data_dir / "mlb" / "cmexam" / "test.jsonl", [question(number) for number in range(12)])
    write_jsonl(
        data_dir / "mlb" / "cmexam" / "fewshot.jsonl", [{**question(50 + n), "id": f"f{n}"} for n in range(5)]
    )
    load._build.cache_clear()
    return data_dir


@pytest.fixture
def panel(medtasks, tmp_path):
    """Make the panel: one run, copied; `wrong` says which answers of which model are spoilt."""

    def make(task: str, wrong: dict[str, dict[str, str]], folders=PANEL) -> None:
        done = medtasks("run", "--model", "oracle", "--tasks", task, "--output_path", folders[0])
        assert done.code == 0, done.text
        for folder in folders[1:]:
            shutil.copytree(tmp_path / folders[0], tmp_path / folder)
        for folder, answers in wrong.items():
            rewrite_answers(tmp_path / folder, task, answers)
            assert medtasks("rescore", folder).code == 0

    return make


def graded(path: Path) -> dict[str, tuple[str, float]]:
    return {item["id"]: (item["level"], item["value"]) for item in json.loads(path.read_text())["questions"]}


def test_a_question_that_is_wrong_in_one_of_its_three_trials_is_wrong(medtasks, exam, panel, tmp_path):
    nonsense = {"q0#1": "答案：无", "q1#0": "不知道", "q1#2": "不知道"}
    panel(TASK, {PANEL[0]: nonsense, PANEL[1]: {"q1#1": "?"}})
    outcome = medtasks("study", "difficulty", *PANEL)
    found = graded(tmp_path / "difficulty" / f"{TASK}.json")
    assert outcome.code == 0 and (found["q0"], found["q1"]) == (("medium", 4), ("hard", 3))
    assert {found[f"q{number}"] for number in range(2, 12)} == {("easy", 5)}
    row = next(line for line in outcome.out.splitlines() if TASK in line).split()
    assert row == [TASK, "right_or_wrong", "12", "1", "1", "10"]


def test_an_extraction_is_right_above_a_micro_f1_of_08(medtasks, data_dir, panel, tmp_path):
    lines = [f"entity: 症状{n}, type: symptom, status: 病人-阳性;" for n in range(6)]
    names = {"five": lines[:5], "six": lines}
    rows = [
        {**sft_row(0, f"对话{name}", "\n".join(found), task="MIE"), "id": name}
        for name, found in names.items()
    ]
    folder = data_dir / "bridge"
    folder.mkdir()
    (folder / "MIE.SFT.json").write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8")
    load._build.cache_clear()
    task = "bridge_mie"
    done = medtasks("run", "--model", "oracle", "--tasks", task, "--output_path", "probe")
    assert done.code == 0, done.text
    answers = {row["document"]: row["text"] for row in outcomes(tmp_path / "probe", task)}
    less = {"five": answers["five"].replace(lines[0], ""), "six": answers["six"].replace(lines[0], "")}
    least = {name: text.replace(lines[1], "") for name, text in less.items()}
    # five: 4 of 5 found is F1 0.889, 3 of 5 is 0.75; six: 5 of 6 is 0.909, 4 of 6 is 0.8, which is not above
    panel(task, {PANEL[0]: less, PANEL[1]: least})
    assert medtasks("study", "difficulty", *PANEL, "--tasks", task).code == 0
    assert graded(tmp_path / "difficulty" / f"{task}.json") == {"five": ("medium", 4), "six": ("medium", 4)}


@pytest.fixture
def judged(tmp_path, monkeypatch, data_dir, panel):
    """A panel on an open-ended task with the scores that judges gave."""
    root = tmp_path / "tasks"
    make_task(root, "qa")
    make_rows(data_dir, "qa", rows(3))
    monkeypatch.setenv("MEDTASKS_TASKS_DIR", str(root))
    panel("medhelm_qa", {})

    def scored(folder: str, scores: list[float | None]) -> None:
        content = {
            "documents": [
                {"document": f"d{place}", "score": score, "complete": score is not None}
                for place, score in enumerate(scores)
            ]
        }
        path = tmp_path / folder / "judgements" / "medhelm_qa.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(content))

    return scored


def test_open_answers_are_graded_by_their_mean_judged_score(medtasks, judged, tmp_path):
    for folder, last in zip(PANEL, [0.5, 0.6, 0.7, 0.8, 0.4], strict=True):
        judged(folder, [0.7, 0.75, last])
    medtasks.done("study", "difficulty", *PANEL)
    found = graded(tmp_path / "difficulty" / "medhelm_qa.json")
    assert found == {"d0": ("medium", 0.7), "d1": ("easy", 0.75), "d2": ("medium", 0.6)}
    judged(PANEL[4], [0.7, None, 0.5])
    outcome = medtasks("study", "difficulty", *PANEL)
    assert outcome.code == 2 and f"medtasks judge {PANEL[4]}" in outcome.err
    assert f"{PANEL[4]}: 1 of 3 answers of medhelm_qa are not judged (first: d1)" in outcome.err


@pytest.fixture
def levels(medtasks, exam, panel, tmp_path) -> Path:
    """Of the twelve questions 0-3 are hard, 4-7 medium, 8-11 easy."""
    first = {f"q{number}#0": "?" for number in range(8)}
    second = {f"q{number}#0": "?" for number in range(4)}
    panel(TASK, {PANEL[0]: first, PANEL[1]: second})
    assert medtasks("study", "difficulty", *PANEL).code == 0
    return tmp_path / "difficulty" / f"{TASK}.json"


def drawn(outcome, of: str) -> dict[str, tuple[int, ...]]:
    """Name -> questions in the pool, wanted and drawn, as the table says them."""
    lines = [line.split() for line in outcome.out.splitlines() if TASK in line and line.split()[0] == TASK]
    return {line[2]: tuple(map(int, line[3:])) for line in lines if line[1] == of}


def test_the_list_is_taken_by_a_run_and_holds_all_trials(medtasks, levels, tmp_path):
    outcome = medtasks("study", "sample", levels, "-n", "8")
    assert outcome.code == 0, outcome.text
    lists = json.loads((tmp_path / "samples.json").read_text())
    assert set(lists) == {TASK, f"{TASK}_cot", f"{TASK}_5shot"}
    assert drawn(outcome, "level") == {"hard": (4, 2, 2), "medium": (4, 4, 4), "easy": (4, 2, 2)}
    ids = {
        row["id"] for row in json.loads(levels.read_text())["questions"] if row["documents"][0] in lists[TASK]
    }
    for name in lists:
        done = medtasks(
            "run", "--model", "oracle", "--tasks", name, "--samples", "samples.json", "--output_path", name
        )
        assert done.code == 0, done.text
        docs = [json.loads(line)["doc"] for line in samples_file(tmp_path / name, name).open()]
        asked = sorted((doc["item"], doc["trial"]) for doc in docs)
        assert asked == sorted((item, trial) for item in ids for trial in range(3))
        assert result_of(tmp_path / name, name)["metrics"]["score"] == 1


def test_strata_of_rows_and_of_labels_keep_their_share_of_the_pool(medtasks, levels, tmp_path):
    labels = [{"id": f"q{n}", "department": ["Cardiology", "Oncology"] if n < 4 else []} for n in range(12)]
    (tmp_path / "labels.json").write_text(json.dumps({"questions": labels}))
    call = ("study", "sample", levels, "-n", "6", "--by")
    outcome = medtasks(*call, "labels.json")
    assert outcome.code == 0
    assert drawn(outcome, "department") == {"(none)": (8, 4, 4), "Cardiology": (4, 2, 2)}
    refused = medtasks(*call, "department")
    assert refused.code == 2 and "its rows name no departments" in refused.err
    content = json.loads(levels.read_text())
    levels.write_text(json.dumps({**content, "questions": [{**labels[int(row["id"][1:])], **{
        name: row[name] for name in ("documents", "level")}} for row in content["questions"]]}))  # fmt: skip
    assert drawn(medtasks(*call, "department"), "department") == drawn(outcome, "department")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-n", "13"), "--size: 13 questions cannot be drawn: the pool has 12"),
        (("-n", "5", "--by", "few.json"), "11 of its questions have no row"),
        (("-n", "5", "--by", "none.json"), "none.json"),
    ],
)
def test_what_cannot_be_drawn_is_one_message(medtasks, levels, tmp_path, arguments, message):
    (tmp_path / "few.json").write_text('{"questions": [{"id": "q0", "department": []}]}')
    outcome = medtasks("study", "sample", levels, *arguments)
    assert outcome.code == 2 and message in outcome.err and "→" in outcome.err
    assert not (tmp_path / "samples.json").exists()


def test_runs_that_are_no_panel_are_named(medtasks, exam, panel):
    panel(TASK, {})
    oracle = ("run", "--model", "oracle", "--output_path")
    medtasks(*oracle, "short", "--tasks", TASK, "--limit", "6")
    changed = [question(number) for number in range(11)] + [{**question(11), "Question": "改过的题"}]
    write_jsonl(exam / "mlb" / "cmexam" / "test.jsonl", changed)
    load._build.cache_clear()
    medtasks(*oracle, "other", "--tasks", TASK)
    for folders, message in (
        (("short",), "short: mlb_cmexam was asked in part"),
        (("other",), "other: mlb_cmexam was run on other documents than in panel/a"),
        ((), "at least two runs"),
        ((PANEL[0],), "each named once"),
    ):
        outcome = medtasks("study", "difficulty", PANEL[0], *folders)
        assert outcome.code == 2 and message in outcome.err


def test_a_mix_that_the_pool_has_not_is_drawn_as_far_as_it_goes_and_said(medtasks, levels, tmp_path):
    (tmp_path / "samples.json").write_text(json.dumps({"bridge_mie": [1, 2]}))
    outcome = medtasks("study", "sample", levels, "-n", "10")
    assert outcome.code == 1 and "not met: the pool has too few of a level" in outcome.out
    assert drawn(outcome, "level") == {"hard": (4, 3, 4), "medium": (4, 5, 4), "easy": (4, 2, 2)}
    assert set(json.loads((tmp_path / "samples.json").read_text())) > {"bridge_mie", TASK}  # it stays


# Which wording is asked, by rows of the few-shot pool alone.

PROMPTED = "clinicbench_pubmedqa"
SHORT = "Answer from the abstract with yes, no or maybe. {{ strategy }}"
CHOOSE = ("study", "prompts", "wordings.yaml")


def abstract(name: str, number: int) -> dict:
    question = f"Does {name} {number} help?"
    context = {"contexts": [f"Abstract {name} {number}."]}
    return {"pubid": f"{name}{number}", "question": question, "context": context, "final_decision": "yes"}


@pytest.fixture
def pool(data_dir):
    """Six test rows and 112 rows of a pool; one of the pool is a test row."""
    folder = data_dir / "clinicbench" / "pubmedqa"
    test = [abstract("test", n) for n in range(6)]
    write_jsonl(folder / "test.jsonl", test)
    write_jsonl(folder / "fewshot.jsonl", [*(abstract("pool", n) for n in range(112)), test[0]])
    return folder


@pytest.fixture
def wordings(tmp_path):
    def write(**changes) -> None:
        content = {"task": PROMPTED, "wordings": {"now": "", "short": SHORT}, **changes}
        (tmp_path / "wordings.yaml").write_text(yaml.safe_dump(content))

    write()
    return write


def place(name: str) -> Path:
    return Path("wordings", name, "clinicbench", "pubmedqa")


def asked(name: str) -> list[dict]:
    return [json.loads(line) for line in (place(name) / "test.jsonl").read_text().splitlines()]


@pytest.fixture
def worded(medtasks, pool, wordings, tmp_path, monkeypatch):
    """Two models that answered in both wordings: the first is wrong once in `now`, the second twice."""
    assert medtasks(*CHOOSE).code == 0
    ids = [item["pubid"] for item in asked("now")]
    for name in ("now", "short"):
        monkeypatch.setenv("MEDTASKS_DATA_DIR", str(tmp_path / "wordings" / name))
        load._build.cache_clear()
        one, other = (tmp_path / "wordings" / name / "runs" / model for model in "ab")
        done = medtasks("run", "--model", "oracle", "--tasks", PROMPTED, "--output_path", one)
        assert done.code == 0, done.text
        shutil.copytree(one, other)
        manifest = other / "run.json"
        manifest.write_text(manifest.read_text().replace('"oracle"', '"other"'))
        for folder, wrong in ((one, 1), (other, 2)):
            rewrite_answers(folder, PROMPTED, dict.fromkeys(ids[:wrong] if name == "now" else [], "no"))
            assert medtasks("rescore", folder).code == 0
    return tmp_path / "wordings"


def test_all_wordings_are_asked_the_same_rows_of_the_pool_and_no_test_row(medtasks, pool, wordings):
    outcome = medtasks(*CHOOSE)
    assert outcome.code == 0 and "2 wordings on 100 rows of the few-shot pool's 112" in outcome.out
    assert f"MEDTASKS_DATA_DIR=wordings/WORDING medtasks run --tasks {PROMPTED}" in outcome.err
    assert asked("now") == asked("short") and len(asked("now")) == 100
    assert all(item["pubid"].startswith("pool") for item in asked("now"))
    assert (place("short") / "instruction.txt").read_text() == SHORT
    assert not (place("now") / "instruction.txt").exists()


def test_the_best_mean_over_models_is_chosen_of_what_was_asked_in_these_words(medtasks, worded):
    samples = [samples_of(worded / name / "runs" / "a", PROMPTED)[0] for name in ("short", "now")]
    prompts = [sample["arguments"]["gen_args_0"]["arg_0"] for sample in samples]
    assert ["Answer from the abstract" in str(prompt) for prompt in prompts] == [True, False]
    outcome = medtasks(*CHOOSE)
    assert outcome.code == 0, outcome.text
    found = json.loads((worded / "selection.json").read_text())
    assert found["chosen"] == "short" and found["prompt"] == SHORT and found["tied"] == []
    assert found["means"] == {"now": pytest.approx((0.99 + 0.98) / 2), "short": 1}
    assert found["scores"]["now"] == {"oracle": 0.99, "other": 0.98}
    printed = " ".join(outcome.out.split())
    assert "now 0.9850 0.9900 0.9800" in printed and "short 1.0000 1.0000 1.0000" in printed
    assert "chosen: short; these scores chose the prompt and are no results" in outcome.out
    shutil.rmtree(worded / "now" / "runs")
    shutil.copytree(worded / "short" / "runs", worded / "now" / "runs")
    assert "equal means: now, short; the first of the file is chosen" in medtasks(*CHOOSE).out


def test_what_chooses_nothing_is_one_message(medtasks, worded, pool, wordings, monkeypatch):
    shutil.rmtree(worded / "short" / "runs" / "b")
    outcome = medtasks(*CHOOSE)
    assert outcome.code == 2 and "wordings/short/runs: has no score of other on all rows" in outcome.err
    assert not outcome.out and not (worded / "selection.json").exists()
    shutil.rmtree(worded)
    for changes in ({"task": "clinicbench_nothing"}, {"wordings": {"../one": "", "two": SHORT}}):
        wordings(**changes)
        assert "wordings.yaml: names no dataset as `task`" in medtasks(*CHOOSE).err
    wordings()
    monkeypatch.setenv("MEDTASKS_DATA_DIR", str(pool.parents[1]))
    (pool / "fewshot.jsonl").unlink()  # no test row may choose its own prompt
    outcome = medtasks(*CHOOSE)
    assert outcome.code == 2 and "has no few-shot pool" in outcome.err and not worded.exists()
