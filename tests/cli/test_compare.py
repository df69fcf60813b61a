"""`medtasks compare`: what changed between two runs, and between several ways to ask one model."""

import csv
import json
from itertools import combinations, product

import numpy as np
import pytest
from scipy.stats import binomtest

from medtasks_ext.registry import registry
from medtasks_ext.results.models import published_rows
from medtasks_ext.results.published import published_entries, reference_folder
from tests.conftest import write_jsonl
from tests.report.made import write_run
from tests.run_files import samples_file

TASK, OTHER = "medhelm_hospice_referral", "medhelm_clinic_referral"
QUESTION = {"hospice_referral": "prompt", "clinic_referral": "question"}
N = 30


@pytest.fixture
def run(medtasks, data_dir):
    """Calls `medtasks run` on local rows of two tasks."""
    for name, question in QUESTION.items():
        rows = [{question: "Eligible?", "context": f"note {n}", "label": "AB"[n % 2]} for n in range(N)]
        write_jsonl(data_dir / "medhelm" / name / "test.jsonl", rows)

    def call(folder, *more, model="random-label", tasks=f"{TASK},{OTHER}"):
        medtasks.done("run", "--model", model, "--tasks", tasks, "--output_path", folder, *more)

    return call


def scores(folder, task):
    """Document -> score, read from the records of the run."""
    lines = samples_file(folder, task).read_text().splitlines()
    return {str(item["doc"]["id"]): item["score"] for item in map(json.loads, lines)}


def compared(medtasks, *arguments):
    outcome = medtasks.done("compare", *arguments, "--json")
    return json.loads(outcome.out)


def test_a_change_is_that_of_the_documents_and_tested_by_mcnemar(medtasks, run, tmp_path):
    run("guess"), run("oracle", model="oracle")
    found = compared(medtasks, "guess", "oracle", "-o", "out")
    for line in found["tasks"]:
        one, other = scores(tmp_path / "guess", line["name"]), scores(tmp_path / "oracle", line["name"])
        gained = sum(other[key] > one[key] for key in one)
        assert line["before"] == pytest.approx(np.mean(list(one.values())))
        assert line["difference"] == pytest.approx(gained / N) and (line["gained"], line["lost"]) == (
            gained,
            0,
        )
        assert line["p"] == pytest.approx(binomtest(gained, gained).pvalue / 2)  # mid-p
        assert line["interval_low"] <= line["difference"] <= line["interval_high"]
    assert all(line["p_holm"] >= line["p_bh"] >= line["p"] for line in found["tasks"])
    [whole] = [line for line in found["groups"] if line["name"] == "medhelm"]
    assert whole["before"] == pytest.approx(np.mean([line["before"] for line in found["tasks"]]))
    assert (whole["tasks"], whole["of"]) == (2, sum(map(len, registry().parts("medhelm"))))
    with (tmp_path / "out" / "flipped.csv").open() as file:
        flipped = {row["document"] for row in csv.DictReader(file) if row["task"] == TASK}
    assert flipped == {key for key, value in scores(tmp_path / "guess", TASK).items() if not value}


def test_runs_of_unlike_extent_are_compared_on_the_documents_they_share(medtasks, run, tmp_path):
    run("few", "--limit", "10"), run("oracle", model="oracle")
    line = next(item for item in compared(medtasks, "few", "oracle")["tasks"] if item["name"] == TASK)
    assert (line["documents"], line["documents_of_one_alone"]) == (10, N - 10)
    assert line["before"] == pytest.approx(np.mean(list(scores(tmp_path / "few", TASK).values())))


def test_where_the_rows_changed_only_equal_documents_are_compared(medtasks, run, tmp_path, monkeypatch):
    run("before", tasks=TASK)
    rows = [{"prompt": "Eligible?", "context": f"note {n}", "label": "AB"[n % 2]} for n in range(20)]
    rows += [{"prompt": "Eligible?", "context": f"other note {n}", "label": "A"} for n in range(15)]
    write_jsonl(tmp_path / "newer" / "medhelm" / "hospice_referral" / "test.jsonl", rows)
    monkeypatch.setenv("MEDTASKS_DATA_DIR", str(tmp_path / "newer"))
    run("after", model="oracle", tasks=TASK)
    [line] = compared(medtasks, "before", "after")["tasks"]
    assert (line["documents"], line["documents_of_one_alone"]) == (20, 10 + 15)
    assert "rows" in line["differs"]


def test_synthetic_rows_are_marked_and_never_compared_with_real_ones(medtasks, run):
    run("real")
    run("synthetic", "--data", "sample", model="oracle")
    assert "SAMPLE" not in medtasks("compare", "real", "real").out
    outcome = medtasks("compare", "real", "synthetic")
    assert outcome.code == 2 and "synthetic sample rows" in outcome.err
    run("guess", "--data", "sample")
    assert "SAMPLE DATA" in medtasks("compare", "guess", "synthetic").out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("guess",), "two entries are compared; here are 1: random-label"),
        (("guess", "guess"), "the same results"),
        (("guess", "nowhere"), "no run and no published model is called 'nowhere'"),
        (("guess", "elsewhere"), "no scored task in common"),
    ],
)
def test_what_cannot_be_compared_is_said_in_one_message(medtasks, run, arguments, message):
    run("guess", tasks=TASK), run("oracle", model="oracle", tasks=TASK)
    run("elsewhere", model="oracle", tasks=OTHER)
    outcome = medtasks("compare", *arguments)
    assert outcome.code == 2 and message in outcome.err


def test_of_many_models_each_pair_has_a_row_for_each_name_that_was_asked(medtasks, run):
    models = ("random-label", "oracle", "dummy")
    for model in models:
        medtasks("run", "--model", model, "--tasks", f"medhelm_admin,{TASK}", "-o", model)
    found = compared(medtasks, *models)
    pairs = [f"{one} → {other}" for one, other in combinations(models, 2)]
    rows = found["asked"]
    assert [(row["name"], row["pair"]) for row in rows] == [
        (name, pair) for name in ("medhelm_admin", TASK) for pair in pairs
    ]
    for row in rows[3:]:  # as two runs are compared
        of_task = next(item for item in found["tasks"] if (item["pair"], item["name"]) == (row["pair"], TASK))
        same = ("before", "after", "difference", "interval_low", "interval_high", "p", "method")
        assert [row[name] for name in same] == [of_task[name] for name in same]
    raw = sorted(row["p"] for row in rows)
    holm = [
        max(min(1, p * (len(raw) - before)) for before, p in enumerate(raw[: place + 1]))
        for place in range(len(raw))
    ]
    assert sorted(row["p_holm"] for row in rows) == pytest.approx(holm)


def test_of_a_published_model_the_difference_stands_without_an_interval(medtasks, run):
    run("guess", tasks=TASK)
    row, *more = compared(medtasks, "guess", "o3-mini")["asked"]
    [entry] = published_rows("o3-mini", published_entries(registry()))
    printed = entry.experiments[TASK].score
    assert (more, row["name"], row["after"]) == ([], TASK, printed)
    assert row["difference"] == pytest.approx(printed - row["before"])
    assert (row["interval_low"], row["p"], row["p_holm"]) == (None, None, None)
    assert row["method"].startswith("interval of the difference unknown: no document of o3-mini")
    outcome = medtasks.done("compare", "guess", "o3-mini")
    assert "[unknown]" in outcome.out and "0 of 1 names changed" in outcome.out


def test_a_task_whose_document_scores_are_lost_is_named_and_the_others_compared(medtasks, run, tmp_path):
    run("guess"), run("oracle", model="oracle")
    (tmp_path / "guess" / "tasks" / f"{TASK}.parquet").unlink()
    outcome = medtasks("compare", "guess", "oracle")
    assert outcome.code == 0 and "medtasks rescore RUN" in outcome.err
    assert OTHER in outcome.out and TASK not in outcome.out


# Published models without a run of one's own.


def test_a_report_of_published_models_alone_has_the_printed_figures(medtasks, tmp_path):
    outcome = medtasks("report", "--published", "bridge", "-o", "out")
    assert outcome.code == 0 and "the best of 98 published models" in outcome.out
    with (reference_folder() / "bridge_overall.csv").open(encoding="utf-8") as file:
        printed = {row["model"]: row for row in csv.DictReader(file)}
    with (tmp_path / "out" / "groups.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["axis"] == "suite" and row["value"] == "bridge"]
    known = {row["model"]: row for row in rows if row["model"] in printed and row["strategy"] == "zero_shot"}
    assert len(known) == 95
    for model, row in known.items():
        low = float(printed[model]["zero_shot_ci_low"]) / 100
        assert float(row["paper_interval_low"]) == pytest.approx(low) and not row["interval_low"]
    assert "0.4484 [0.441, 0.456]p" in outcome.out and "]p: the interval that" in outcome.out
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "Published results: BRIDGE" in page


@pytest.mark.parametrize(
    ("models", "message"),
    [
        (("gpt-4o", "nonesuch-9000"), "no run and no published model is called 'nonesuch-9000'"),
        (("gpt-4o", "o1-7"), "similar: HuatuoGPT-o1-"),
        (("gpt4o", "o1"), "similar: GPT-4o"),
        (("GPT-4", "gpt-oss-20b"), "have no scored task in common"),
    ],
)
def test_a_name_that_no_paper_has_is_refused_with_similar_ones(medtasks, models, message):
    outcome = medtasks("compare", *models)
    assert outcome.code == 2 and message in outcome.err


A, B = "bridge_ade_identification", "bridge_chip_ctc"
RIGHT = [1.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0, 0.0]
WRONG = [0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0]
HALF = [0.5, 0.25, 1.0, 0.5, 0.75, 0.5]


def reported(medtasks, *folders):
    return json.loads(medtasks.done("report", *folders, "--published", "none", "--json").out)


def exact(differences):
    sums = [abs(np.dot(signs, differences)) for signs in product((1, -1), repeat=len(differences))]
    return np.mean(np.array(sums) >= abs(np.sum(differences)) - 1e-12)


def test_strategies_of_one_run_are_tested_in_pairs_and_small_groups_exactly(medtasks, tmp_path):
    scores = {A: WRONG, B: HALF, f"{A}_cot": RIGHT, f"{B}_cot": HALF, f"{A}_5shot": WRONG, f"{B}_5shot": HALF}
    write_run(tmp_path / "run", "ORG/a", scores)
    found = compared(medtasks, "run")
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
    [one] = [line for line in compared(medtasks, "b", "a")["groups"] if line["name"] == "bridge"]
    [other] = reported(medtasks, "a", "b")["pairs"]
    assert (one["p"], one["p_holm"]) == pytest.approx((other["p_value"], other["p_holm"]))
    steps = [*(np.array(RIGHT) - WRONG) / 16, *(np.array(HALF) - HALF[::-1]) / 12]
    assert one["p"] == pytest.approx(exact(steps))
    write_run(tmp_path / "c", "ORG/c", {f"{A}_cot": HALF})
    assert "no task with a score: ORG/a → ORG/c; ORG/b → ORG/c" in medtasks.done("compare", *"abc").out


def test_two_wordings_of_one_model_are_compared_and_not_ranked(medtasks, tmp_path):
    for name, scores, prompt in (("plain", WRONG, "p1"), ("other", RIGHT, "p2")):
        write_run(tmp_path / name, "ORG/a", {A: scores}, loaded={"prompt_hash": prompt})
    assert [row["differs"] for row in compared(medtasks, "plain", "other")["tasks"]] == ["wording"]
    assert reported(medtasks, "plain", "other")["pairs"] == []
