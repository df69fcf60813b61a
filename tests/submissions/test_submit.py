"""`medtasks card --layout medtasks`: what of a run may be public, and nothing else."""

import json

import pytest

from tests.conftest import read_json
from tests.run_files import edited, result_of, results_file
from tests.submissions.conftest import OPEN_COUNTS, PLACE, SECRET_TEXT, TASKS


def test_scores_and_conditions_are_those_of_the_run(submission, tmp_path):
    record = read_json(submission / "submission.json")
    assert sorted(record["tasks"]) == sorted(TASKS)
    for task, item in record["tasks"].items():
        stored = result_of(tmp_path / "run", task)
        assert item["score"] == pytest.approx(stored["metrics"]["score"], abs=1e-12)
        assert item["valid"] == stored["metrics"]["valid"] and item["n"] == stored["n"]
        assert item["interval"] == pytest.approx(list(stored["intervals"]["score"].values())[:2], abs=1e-9)
        asked = item["conditions"]
        assert asked["wording"] == "own" and asked["n_of_suite"] > item["n"]
    assert (record["model"], record["date"]) == ("Org/random-label", "2026-05-01")


def test_no_text_no_id_and_no_hash_of_a_row_is_in_it(submission):
    content = (submission / "submission.json").read_text()
    assert not [text for text in (SECRET_TEXT, "test-1", "fentanyl", "issue:") if text in content]


def test_what_a_user_wrote_freely_and_places_stay_at_home(medtasks, run, tmp_path):
    freely = ("--system_instruction", f"You help {SECRET_TEXT}.")
    run("run", *freely, "--model_args", "adapter=/home/me/secret,k=2")
    assert medtasks("card", "--layout", "medtasks", "run", "-o", PLACE).code == 0
    text = (tmp_path / PLACE / "submission.json").read_text()
    assert SECRET_TEXT not in text and "/home/me" not in text and str(tmp_path) not in text
    assert "text-" in text


def test_a_key_of_the_environment_is_never_written(medtasks, run, monkeypatch, tmp_path):
    run("run", "--model_args", "note=hunter2hunter2")
    monkeypatch.setenv("SOME_API_KEY", "hunter2hunter2")
    assert medtasks("card", "--layout", "medtasks", "run", "-o", PLACE).code == 0
    assert "hunter2hunter2" not in (tmp_path / PLACE / "submission.json").read_text()


def test_own_words_and_a_part_of_the_rows_are_said_by_the_conditions(medtasks, run, tmp_path):
    run("run", "--limit", "5")
    assert medtasks("card", "--layout", "medtasks", "run", "-o", PLACE).code == 0
    for item in read_json(tmp_path / PLACE / "submission.json")["tasks"].values():
        asked = item["conditions"]
        assert (asked["documents"], asked["wording"], item["n"]) == ("the first 5", "own", 5)


REFUSED = {
    "sample rows": (("--data", "sample"), PLACE, "synthetic sample rows"),
    "another model": ((), "submissions/Org/gpt-9/2026-05-01", "is a run of random-label"),
    "no date": ((), "submissions/Org/random-label/yesterday", "is not ORG/MODEL/DATE"),
    "a date that is none": ((), "submissions/Org/random-label/2026-02-30", "is not ORG/MODEL/DATE"),
    "a name that is none": ((), "submissions/<b>/random-label/2026-02-03", "is not ORG/MODEL/DATE"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_submitted_is_refused_and_nothing_is_left(medtasks, run, tmp_path, case):
    more, place, words = REFUSED[case]
    run("run", *more)
    refused = medtasks("card", "--layout", "medtasks", "run", "-o", place)
    assert refused.code == 2 and words in refused.err and "→" in refused.err
    assert not list(tmp_path.glob("submissions/*/*/*"))


def test_a_folder_that_was_changed_after_the_run_is_refused_and_the_file_named(medtasks, run, tmp_path):
    changed = results_file(run())
    with edited(changed.parent, OPEN_COUNTS) as content:
        content["metrics"]["score"] = 0.99
    refused = medtasks("card", "--layout", "medtasks", "run", "-o", PLACE)
    assert refused.code == 2 and changed.name in refused.err and "rescore" in refused.err
    assert not (tmp_path / PLACE).exists()


def test_a_place_that_is_taken_is_kept(medtasks, submission):
    before = read_json(submission / "submission.json")
    assert medtasks("card", "--layout", "medtasks", "run", "-o", PLACE).code == 2
    assert read_json(submission / "submission.json") == before


def test_facts_of_the_model_are_taken_and_unknown_ones_refused(medtasks, run, tmp_path):
    """They are written into the file that `card` wrote."""
    run()
    medtasks.done("card", "--layout", "medtasks", "run", "-o", PLACE)
    file = tmp_path / PLACE / "submission.json"
    for fact, code in (("parameters_b", 0), ("colour", 1)):
        content = read_json(file)
        content["about"] |= {fact: 8}
        file.write_text(json.dumps(content), encoding="utf-8")
        outcome = medtasks("rescore", "--check", PLACE)
        assert (outcome.code, fact in outcome.text) == (code, code == 1), outcome.text
