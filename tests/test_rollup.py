"""A roll-up is the mean of its parts and says what it lacks; names that were asked have one each.

Beside the score stand its interval, and what guesses and perfect answers get.
"""

import csv
import shutil
from collections import Counter
from math import prod

import pytest

from medtasks_ext.registry import registry
from medtasks_ext.results.document_scores import chance_score
from medtasks_ext.results.reading import read_results
from medtasks_ext.results.result_frame import asked_frame
from medtasks_ext.results.rollup import Finished, Members, Row, roll_up_one
from tests.conftest import command, edited_json
from tests.run_files import result_of, results_file, samples_of

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


def test_f1_is_of_the_counts_that_guesses_have_on_average(run):
    golds = Counter(document["gold"] for document in documents(run, "clinicbench_gad"))
    precision, recall = golds["yes"] / golds.total(), 0.5
    by_hand = 2 * precision * recall / (precision + recall)
    assert result_of(run, "clinicbench_gad")["chance"] == pytest.approx(by_hand)


def test_likelihoods_are_guessed_among_the_options_that_are_compared(medtasks, tmp_path):
    medtasks("run", "--data", "sample", "--model", "oracle", "--tasks", "clinicbench_medqa_ll", "-o", "run")
    options = [len(item["options"]) for item in documents(tmp_path / "run", "clinicbench_medqa_ll")]
    by_hand = sum(1 / n for n in options) / len(options)
    assert result_of(tmp_path / "run", "clinicbench_medqa_ll")["chance"] == pytest.approx(by_hand)


@pytest.mark.parametrize("task", ["medhelm_medec", "medhelm_mediqa", "clinicbench_hoc", "commons_igakuqa"])
def test_texts_lists_and_judged_answers_have_no_chance_level(task):
    assert chance_score(registry().datasets[task], "zero_shot", [{"gold": "x"}]) is None


def test_a_group_has_a_level_where_each_of_its_scored_tasks_has_one():
    def rolled_up(**levels):
        finished = {
            name: Finished(metrics={"score": 0.5}, intervals={}, n=4, chance=level, ceiling=1.0)
            for name, level in levels.items()
        }
        return roll_up_one(Members("g", tuple("abcd"), (("a",), ("b", "c"))), finished)

    row = rolled_up(a=0.5, b=0.25, c=0.0, d=None)  # d does not count
    assert (row.chance, row.ceiling) == ((0.5 + 0.125) / 2, 1.0)
    assert rolled_up(a=0.5, b=0.25).chance == (0.5 + 0.25) / 2
    assert rolled_up(a=0.5, b=None, c=0.25).chance is None
    assert rolled_up(d=0.5).chance is None


def test_runs_of_one_model_are_joined_with_all_that_was_asked(medtasks, run, tmp_path):
    medtasks("run", "--data", "sample", "--model", "random-label", "--tasks", "bridge_mie", "-o", "more")
    [entry] = read_results([run, tmp_path / "more"], registry()).entries
    assert entry.asked == (ACROSS, WORDS, TRIALS, "clinicbench", "bridge_mie")


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


def roll_up(name, tasks, metrics, sizes, parts=None) -> Row:
    finished = {
        task: Finished(metrics=item, intervals={}, n=sizes.get(task, 0)) for task, item in metrics.items()
    }
    return roll_up_one(Members(name, tuple(tasks), tuple(map(tuple, parts or [tasks]))), finished)


def test_a_group_with_missing_tasks_is_partial_and_one_without_scores_has_none():
    metrics = {"a": {"score": 0.5, "valid": 1.0}, "b": {"valid": 0.5}}
    row = roll_up("g", ["a", "b", "c"], metrics, {"a": 4, "b": 6})
    assert (row.score, row.n_scored, row.n_tasks, row.n_documents, row.partial) == (0.5, 1, 3, 10, True)
    assert row.valid == 0.75 and not row.sample
    assert roll_up("g", ["a", "b"], {**metrics, "b": {"SAMPLE_DATA": 1.0}}, {}).sample
    assert roll_up("g", ["b"], metrics, {}).score is None


def test_a_mean_over_parts_counts_each_part_once_whatever_its_size():
    metrics = {"a": {"score": 1.0}, "b": {"score": 0.5}, "c": {"score": 0.0}, "d": {"valid": 1.0}}
    row = roll_up("g", list("abcd"), metrics, {}, parts=[["a"], ["b", "c"], ["d"]])
    assert (row.score, row.n_scored, row.n_tasks, row.partial) == ((1.0 + 0.25) / 2, 3, 4, True)


def test_tasks_outside_the_parts_are_run_without_counting():
    metrics = {"a": {"score": 1.0}, "b": {"score": 0.0}}
    row = roll_up("g", ["a", "b"], metrics, {"a": 2, "b": 3}, parts=[["a"]])
    assert (row.score, row.n_scored, row.n_tasks, row.n_documents) == (1.0, 1, 1, 5)
