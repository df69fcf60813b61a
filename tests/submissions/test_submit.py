"""`medtasks card --layout medtasks`: what of a run may be public, and nothing else."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtasks_ext.answers import answer_format
from medtasks_ext.answers.reasoning import unclosed_reasoning
from medtasks_ext.prompts.documents import document_key
from medtasks_ext.report.submissions import final_answer, read_answers
from tests.conftest import read_json, rewrite_answers
from tests.run_files import result_of, samples_file
from tests.submissions.conftest import OPEN_COUNTS, OPEN_MEAN, PLACE, SECRET_TEXT, TASKS


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


# The answers of a submission: what stands beside the record, and what the check makes of it.


def levels(medtasks):
    """What the check says of the submission."""
    found = medtasks.done("rescore", "--check", PLACE)
    return found.out


def test_answers_to_open_data_alone_are_given_and_checked(medtasks, submission):
    found = {path.stem: read_answers(submission, path.stem) for path in (submission / "answers").iterdir()}
    assert found.keys() == {OPEN_MEAN, OPEN_COUNTS}
    tasks = read_json(submission / "submission.json")["tasks"]
    assert all(len(found[name]) == tasks[name]["n"] for name in found)
    assert all(item.prompt for items in found.values() for item in items)
    said = levels(medtasks)
    assert "answers checked: 2 of 4, self-reported: 2 of 4" in said and "its data is not open" in said


def test_reasoning_is_left_out(medtasks, run, tmp_path):
    folder = run(tasks=OPEN_MEAN)
    thought = f"I wonder about {SECRET_TEXT}."
    first = samples_file(folder, OPEN_MEAN).read_text().partition("\n")[0]
    document = document_key(json.loads(first)["doc"])
    rewrite_answers(folder, OPEN_MEAN, {document: f"<think>{thought}</think>\nB"})
    assert medtasks("rescore", "run").code == 0
    written = medtasks("card", "--layout", "medtasks", "run", "-o", PLACE)
    assert written.code == 0 and "trust: answers checked: 1 of 1" in written.out
    [file] = (tmp_path / PLACE / "answers").iterdir()
    [item] = [one for one in read_answers(tmp_path / PLACE, OPEN_MEAN) if one.document == document]
    assert item.answer == "<think></think>\nB" and thought not in file.read_text()


_PIECES = st.sampled_from(
    ["<think>", "</think>", "</THINK>", "<THINK>", "＜/think＞", "A", " B", "\n", "Result: ", "yes", "İ",
     "assistantfinal", "</thinking>", "answer: no", "．", "[/THINK]", "42"]
)  # fmt: skip
_FORMATS = [
    {"kind": "exact_letter", "letters": ["A", "B"]},
    {"kind": "option_letter", "letters": ["A", "B"]},
    {"kind": "label", "prefix": "answer", "labels": ["yes", "no"], "longest_first": False},
    {"kind": "text"},
    {"kind": "free_text"},
]


@given(st.lists(_PIECES, max_size=9).map("".join), st.sampled_from(_FORMATS), st.booleans())
def test_an_answer_without_its_reasoning_is_read_as_the_whole_is(text, form, cot):
    reader = answer_format(form)
    final = final_answer(text)
    assert len(final) <= len(text) and final_answer(final) == final
    assert unclosed_reasoning([text]) == unclosed_reasoning([final])
    document = {"options": ["one", "two"], "gold": "A", "target": "A", "cot": cot}
    one, other = (reader.read(item, document, cot=cot) for item in (text, final))
    assert (one.answer, one.valid) == (other.answer, other.valid)
