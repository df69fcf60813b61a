"""`medtasks study difficulty` and `sample`: from a panel's runs to a list that lm-eval takes."""

import json
import shutil
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts import load
from medtasks_ext.registry.blocks import LEVELS
from medtasks_ext.studies.difficulty import RATIO, apportioned, draw, feasible, level_of
from tests.conftest import outcomes, rewrite_answers, sft_row, write_jsonl
from tests.judge.made import make_rows, make_task, rows
from tests.run_files import result_of, samples_file

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


# ---------------------------------------------------------------------- levels


@pytest.mark.parametrize(("panel", "levels"), [(5, "hhhhme"), (3, "hhme"), (2, "hme")])
def test_all_right_is_easy_all_but_one_medium_and_fewer_hard(panel, levels):
    found = [level_of([1.0] * right + [0.8] * (panel - right), judged=False) for right in range(panel + 1)]
    assert found == [
        ({"h": "hard", "m": "medium", "e": "easy"}[levels[right]], right) for right in range(panel + 1)
    ]


def test_the_limits_of_judged_scores_are_medium():
    scores = [0.0, 0.5999, 0.6, 0.65, 0.1 * 7, 0.7001, 1.0]
    levels = ["hard", "hard", "medium", "medium", "medium", "easy", "easy"]
    assert [level_of([score] * 5, judged=True)[0] for score in scores] == levels


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
        path.parent.mkdir()
        path.write_text(json.dumps(content))

    return scored


def test_open_answers_are_graded_by_their_mean_judged_score(medtasks, judged, tmp_path):
    for folder, last in zip(PANEL, [0.5, 0.6, 0.7, 0.8, 0.4], strict=True):
        judged(folder, [0.7, 0.75, last])
    outcome = medtasks("study", "difficulty", *PANEL)
    assert outcome.code == 0, outcome.text
    found = graded(tmp_path / "difficulty" / "medhelm_qa.json")
    assert found == {"d0": ("medium", 0.7), "d1": ("easy", 0.75), "d2": ("medium", 0.6)}


def test_answers_that_are_not_judged_are_not_graded(medtasks, judged):
    for folder in PANEL[:4]:
        judged(folder, [0.7, 0.75, 0.5])
    outcome = medtasks("study", "difficulty", *PANEL)
    assert outcome.code == 2 and f"{PANEL[4]}: 3 of 3 answers of medhelm_qa are not judged" in outcome.err
    judged(PANEL[4], [0.7, None, 0.5])
    outcome = medtasks("study", "difficulty", *PANEL)
    assert "1 of 3 answers of medhelm_qa are not judged (first: d1)" in outcome.err
    assert f"medtasks judge {PANEL[4]}" in outcome.err


# ---------------------------------------------------------------------- panels that do not fit together


def test_a_run_that_lacks_documents_is_named(medtasks, exam, panel):
    panel(TASK, {})
    medtasks("run", "--model", "oracle", "--tasks", TASK, "--limit", "6", "--output_path", "short")
    outcome = medtasks("study", "difficulty", *PANEL[:4], "short")
    assert outcome.code == 2 and outcome.err.startswith(
        "medtasks: short: mlb_cmexam is not finished, or was asked in part"
    )


def test_a_run_on_other_rows_is_named(medtasks, exam, panel):
    panel(TASK, {})
    changed = [question(number) for number in range(11)] + [{**question(11), "Question": "改过的题"}]
    write_jsonl(exam / "mlb" / "cmexam" / "test.jsonl", changed)
    load._build.cache_clear()
    medtasks("run", "--model", "oracle", "--tasks", TASK, "--output_path", "other")
    outcome = medtasks("study", "difficulty", *PANEL[:4], "other")
    assert outcome.code == 2 and "other: mlb_cmexam was run on other documents than in panel/a" in outcome.err


def test_a_run_without_the_task_and_a_panel_of_one_are_refused(medtasks, exam, panel, chip_ctc):
    panel(TASK, {})
    medtasks("run", "--model", "oracle", "--tasks", "bridge_chip_ctc", "--output_path", "else")
    assert "else: mlb_cmexam is not finished" in medtasks("study", "difficulty", PANEL[0], "else").err
    assert "at least two runs" in medtasks("study", "difficulty", PANEL[0]).err
    assert "each named once" in medtasks("study", "difficulty", PANEL[0], PANEL[0]).err
    assert "nowhere/run.json: no such file" in medtasks("study", "difficulty", PANEL[0], "nowhere").err


def test_a_score_that_means_nothing_for_one_document_is_refused(medtasks, data_dir, panel):
    (data_dir / "bridge").mkdir()
    summaries = [
        {**sft_row(n, f"note {n}", "patient improved " * (n + 2), task="MIMIC-IV BHC"), "language": "en"}
        for n in range(3)
    ]
    (data_dir / "bridge" / "MIMIC-IV BHC.SFT.json").write_text(json.dumps(summaries))
    load._build.cache_clear()
    panel("bridge_mimic_iv_bhc", {folder: {"test-0": "patient improved"} for folder in PANEL[:2]}, PANEL[:2])
    outcome = medtasks("study", "difficulty", *PANEL[:2])
    assert outcome.code == 2 and "neither right or wrong nor micro F1" in outcome.err


# ---------------------------------------------------------------------- samples


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


def test_a_mix_that_the_pool_has_not_is_drawn_as_far_as_it_goes_and_said(medtasks, levels, tmp_path):
    outcome = medtasks("study", "sample", levels, "-n", "10")
    assert outcome.code == 1
    assert "not met: the pool has too few of a level" in outcome.out
    assert drawn(outcome, "level") == {"hard": (4, 3, 4), "medium": (4, 5, 4), "easy": (4, 2, 2)}


def test_a_list_keeps_the_tasks_that_are_in_it(medtasks, levels, tmp_path):
    (tmp_path / "samples.json").write_text(json.dumps({"bridge_mie": [1, 2]}))
    medtasks("study", "sample", levels, "-n", "10")
    assert set(json.loads((tmp_path / "samples.json").read_text())) > {"bridge_mie", TASK}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-n", "13"), "--size: 13 questions cannot be drawn: the pool has 12"),
        (("-n", "5", "--by", "few.json"), "11 of its questions have no row"),
        (("-n", "5", "--by", "samples.csv"), "12 of its questions have no row"),
        (("-n", "5", "--by", "none.json"), "none.json"),
    ],
)
def test_what_cannot_be_drawn_is_one_message(medtasks, levels, tmp_path, arguments, message):
    (tmp_path / "samples.csv").write_text("[]")
    (tmp_path / "few.json").write_text('{"questions": [{"id": "q0", "department": []}]}')
    outcome = medtasks("study", "sample", levels, *arguments)
    assert outcome.code == 2 and message in outcome.err and "→" in outcome.err
    assert not (tmp_path / "samples.json").exists()


@pytest.mark.parametrize("content", ["{}", "[1]", '{"questions": []}', "oops"])
def test_a_file_that_holds_no_levels_is_refused(medtasks, tmp_path, content):
    (tmp_path / "levels.json").write_text(content)
    outcome = medtasks("study", "sample", "levels.json", "-n", "5")
    assert outcome.code == 2 and outcome.err.startswith("medtasks: levels.json: ")


# Stratified samples with a target mix of levels: exact where it can be, as close as can be elsewhere.


@st.composite
def pools(draw_):
    """Question -> (level, stratum)."""
    cells = st.tuples(st.sampled_from("abcdef"), st.sampled_from(LEVELS))
    drawn = draw_(st.dictionaries(cells, st.integers(1, 12), min_size=1))
    return {
        f"{stratum}-{level}-{number}": (level, stratum)
        for (stratum, level), n in drawn.items()
        for number in range(n)
    }


def drawn_of(pool, size):
    levels, strata = ({name: of[place] for name, of in pool.items()} for place in (0, 1))
    return draw(levels, strata, size)


@pytest.mark.parametrize(("n", "parts"), [(100, [30, 50, 20]), (150, [45, 75, 30]), (300, [90, 150, 60])])
def test_the_sizes_of_the_paper_split_as_it_says(n, parts):
    assert apportioned(n, RATIO) == parts


@given(st.integers(0, 500), st.lists(st.integers(0, 50), min_size=1).filter(any))
def test_every_part_is_within_one_of_its_exact_share(n, weights):
    parts = apportioned(n, weights)
    assert sum(parts) == n
    pairs = zip(parts, weights, strict=True)
    assert all(abs(part - Fraction(n * weight, sum(weights))) < 1 for part, weight in pairs)


def test_a_level_that_is_short_gives_all_and_the_others_share_the_rest_by_the_ratio():
    assert feasible(100, [9, 500, 500]) == [9, 65, 26]


def least_harm(pool, levels, coverage):
    """The smallest sum of |drawn - share| over strata for given levels, by linear programming."""
    strata = sorted(coverage)
    available = Counter((stratum, level) for level, stratum in pool.values())
    cells = [(stratum, level) for stratum in strata for level in LEVELS]
    n, s = len(cells), len(strata)
    rows = [np.r_[[cell[1] == level for cell in cells], np.zeros(2 * s)] for level in LEVELS]
    for place, stratum in enumerate(strata):
        over = np.eye(s)[place]
        rows.append(np.r_[[cell[0] == stratum for cell in cells], -over, over])
    right = [*(levels[level] for level in LEVELS), *(coverage[stratum] for stratum in strata)]
    bounds = [(0, available[cell]) for cell in cells] + [(0, None)] * (2 * s)
    cost = np.r_[np.zeros(n), np.ones(2 * s)]
    return linprog(cost, A_eq=np.array(rows, dtype=float), b_eq=right, bounds=bounds).fun


@given(pools(), st.data())
def test_the_mix_comes_first_and_coverage_suffers_as_little_as_it_can(pool, data):
    size = data.draw(st.integers(1, len(pool)))
    ids, frame = drawn_of(pool, size)
    assert len(ids) == size and drawn_of(dict(reversed(pool.items())), size)[0] == ids
    by_level, by_stratum = (Counter(pool[name][place] for name in ids) for place in (0, 1))
    levels, strata = (
        {row["name"]: row for row in frame if row["of"] == name} for name in ("level", "department")
    )
    assert {name: row["drawn"] for name, row in levels.items()} == {name: by_level[name] for name in LEVELS}
    assert {name: row["drawn"] for name, row in strata.items()} == {name: by_stratum[name] for name in strata}
    if all(row["wanted"] <= row["pool"] for row in levels.values()):
        assert all(row["drawn"] == row["wanted"] for row in levels.values())
    coverage = {name: row["wanted"] for name, row in strata.items()}
    harm = sum(abs(row["drawn"] - row["wanted"]) for row in strata.values())
    assert harm == pytest.approx(least_harm(pool, by_level, coverage), abs=1e-6)


def test_a_size_that_the_pool_has_not_is_refused():
    pool = {f"{number}": (LEVELS[number % 3], "") for number in range(30)}
    with pytest.raises(MedtasksError, match="31 questions cannot be drawn: the pool has 30"):
        drawn_of(pool, 31)
