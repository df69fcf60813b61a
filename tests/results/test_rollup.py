"""A roll-up is the mean of its parts and says what it lacks; names that were asked have one each.

Beside the score stand its interval, and what guesses and perfect answers get.
"""

import csv
import json
import shutil
from math import prod

import pytest

from medtasks_ext.registry import registry
from medtasks_ext.results.reading import read_results
from medtasks_ext.results.result_frame import asked_frame
from tests.conftest import command, edited_json, read_json
from tests.run_files import result_of, results_file, results_of, samples_of

ACROSS, WORDS, TRIALS = "medtasks_spec_cardiology", "bridge_mednli", "mlb_cmexam"
NUMBERS = ("score", "interval_low", "interval_high", "chance", "ceiling")


@pytest.fixture
def run(made_once):
    names = f"{ACROSS},{WORDS},{TRIALS},clinicbench"

    def fill(folder):
        command("run", "--data", "sample", "--model", "random-label", "--tasks", names, "-o", folder / "run")

    return made_once("asked", fill) / "run"


def rows_of(run):
    return {
        row["name"]: row
        for row in asked_frame(read_results([run], registry()).entries, registry()).to_pylist()
    }


def documents(run, task):
    return [sample["doc"] for sample in samples_of(run, task)]


def test_names_stand_as_they_were_said_with_the_figures_of_any_group(medtasks, run, tmp_path):
    rows = rows_of(run)
    assert list(rows) == [ACROSS, WORDS, TRIALS, "clinicbench"]
    medtasks.done("report", run, "-o", "out")
    with (tmp_path / "out" / "groups.csv").open(encoding="utf-8") as file:
        [suite] = [
            item for item in csv.DictReader(file) if (item["axis"], item["value"]) == ("suite", "clinicbench")
        ]
    for name in ("score", "interval_low", "interval_high", "ceiling"):
        assert rows["clinicbench"][name] == pytest.approx(float(suite[name]), abs=1e-12)
    assert rows["clinicbench"]["chance"] is None and suite["chance"] == ""
    record = result_of(run, WORDS)
    low, high = (record["intervals"]["score"][end] for end in NUMBERS[1:3])
    by_hand = [record["metrics"]["score"], low, high, 1 / 3, 1]
    assert [rows[WORDS][name] for name in NUMBERS] == pytest.approx(by_hand)
    assert (rows[WORDS]["tasks"], rows[WORDS]["documents"]) == (1, 10)
    with (tmp_path / "out" / "asked.csv").open(encoding="utf-8") as file:
        assert [(item["entry"], item["name"]) for item in csv.DictReader(file)] == [
            ("random-label", name) for name in rows
        ]
    members = [result_of(run, name) for name in registry().leaves(ACROSS)]
    assert rows[ACROSS]["score"] == pytest.approx(
        sum(item["metrics"]["score"] for item in members) / len(members)
    )
    assert rows[ACROSS]["chance"] is None and any(item["chance"] for item in members)


def test_a_question_in_several_orders_is_guessed_anew_in_each(run):
    questions = {}
    for document in documents(run, TRIALS):
        questions.setdefault(document["item"], []).append(
            (len(document["gold"]) == 1) / len(document["options"])
        )
    assert len({*questions}) * 3 == len(documents(run, TRIALS))
    by_hand = sum(map(prod, questions.values())) / len(questions)
    assert 0 < by_hand < 0.01 and rows_of(run)[TRIALS]["chance"] == pytest.approx(by_hand)


def test_of_plain_lm_eval_the_names_that_stand_in_no_group_were_asked(run, tmp_path):
    plain = shutil.copytree(run, tmp_path / "plain")
    (plain / "run.json").unlink()
    with edited_json(plain / results_file(run).name) as content:
        del content["medtasks"]
    theirs, ours = rows_of(plain), rows_of(run)
    assert theirs.keys() <= {*ours} and {"clinicbench", ACROSS} <= theirs.keys()
    assert theirs["clinicbench"]["score"] == pytest.approx(ours["clinicbench"]["score"])
    [entry] = read_results([plain], registry()).entries
    assert entry.experiments[WORDS].chance == pytest.approx(1 / 3)


GROUP = ("--tasks", "bridge_de,bridge_mie,mlb_cmexam", "--data", "sample", "--output_path", "run")


def printed(outcome, name: str) -> str:
    return next(line for line in outcome.out.splitlines() if line.split()[:1] == [name])


def test_every_score_has_its_interval_in_print_and_in_the_results_the_same_after_a_rescore(
    medtasks, tmp_path
):
    outcome = medtasks.done("run", "--model", "random-label", *GROUP)
    assert "score [95 % interval]" in outcome.out
    results = results_of(tmp_path / "run")
    tasks, groups = results["medtasks"]["tasks"], results["medtasks"]["groups"]
    for name, record in (
        ("bridge_de", groups["bridge_de"]),
        ("bridge_mie", tasks["bridge_mie"]["intervals"]["score"]),
        ("mlb_cmexam", tasks["mlb_cmexam"]["intervals"]["score"]),
    ):
        score = results["results"][name]["score,answer"]
        low, high = record["interval_low"], record["interval_high"]
        assert low <= score <= high and record["interval_method"].startswith("Wilson")
        assert f"{score:.4f} [{low:.3f}, {high:.3f}]" in printed(outcome, name)
    bridge, mlb = (result_of(tmp_path / "run", name) for name in ("bridge_mie", "mlb_cmexam"))
    assert bridge["intervals"].keys() == bridge["metrics"].keys() - {"scored", "SAMPLE_DATA"}
    for name, record in bridge["intervals"].items():
        assert record["interval_low"] <= bridge["metrics"][name] <= record["interval_high"], name
        official = record["t_interval_of_bootstrap_mean"]
        assert official["low"] <= official["mean"] <= official["high"]
        assert official["high"] - official["low"] < 0.1 * (record["interval_high"] - record["interval_low"])
    assert all("t_interval_of_bootstrap_mean" not in record for record in mlb["intervals"].values())
    for file in (tmp_path / "run" / "tasks").glob("*.npy"):
        file.unlink()
    medtasks.done("rescore", "run")
    assert results_of(tmp_path / "run")["medtasks"] == results["medtasks"]


def test_one_document_has_no_interval_and_rows_without_gold_have_no_score(medtasks, chip_ctc, tmp_path):
    outcome = medtasks("run", "--model", "oracle", "--limit", 1, *GROUP)
    assert "1.0000 [–]" in printed(outcome, "bridge_de")
    assert "[–]: no interval, since a task has fewer than two documents" in outcome.out
    record = result_of(tmp_path / "run", "bridge_mie")["intervals"]["score"]
    assert record["interval_low"] is record["interval_high"] is None
    path = chip_ctc / "bridge" / "CHIP-CTC.SFT.json"
    path.write_text(json.dumps([{**row, "output": ""} for row in read_json(path)]))
    outcome = medtasks("run", "--model", "dummy", "--tasks", "bridge_chip_ctc", "--output_path", "no")
    assert printed(outcome, "bridge_chip_ctc").split()[1] == "–" and "[–]" not in outcome.out
    intervals = result_of(tmp_path / "no", "bridge_chip_ctc")["intervals"]
    assert 0 == intervals["valid"]["interval_low"] < intervals["valid"]["interval_high"] < 1
    assert "score" not in intervals
