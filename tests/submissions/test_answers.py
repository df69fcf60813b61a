"""The answers of a submission: what stands beside the record, and what the check makes of it."""

import functools
import json
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtasks_ext.answers import answer_format
from medtasks_ext.answers.reasoning import unclosed_reasoning
from medtasks_ext.prompts.documents import document_key
from medtasks_ext.report.submissions import read_answers
from medtasks_ext.report.submissions.make import final_answer
from tests.conftest import read_json, rewrite_answers
from tests.run_files import samples_file
from tests.submissions.conftest import CLOSED_COUNTS, OPEN_COUNTS, OPEN_MEAN, PLACE, SECRET_TEXT


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


def test_answers_that_are_taken_away_prove_nothing(medtasks, submission):
    shutil.rmtree(submission / "answers")
    said = levels(medtasks)
    assert "self-reported: 4 of 4" in said and "no answers were given" in said


@pytest.fixture
def lm_eval(rows, built_tasks, monkeypatch):
    """Plain `lm_eval` on these rows, into the folder `plain`, without an index of its own tasks."""
    from lm_eval import tasks
    from lm_eval.__main__ import cli_evaluate

    import medtasks_ext.models  # noqa: F401  # `random-label`

    monkeypatch.setattr(tasks, "TaskManager", functools.partial(tasks.TaskManager, include_defaults=False))

    def ask(*names: str) -> None:
        arguments = ["lm_eval", "--model", "random-label", "--tasks", ",".join(names),
                     "--model_args", "pretrained=Org/random-label", "--include_path",
                     str(built_tasks), "--output_path", "plain", "--log_samples"]  # fmt: skip
        monkeypatch.setattr("sys.argv", arguments)
        cli_evaluate()

    return ask


def test_samples_of_plain_lm_eval_are_taken(medtasks, lm_eval):
    lm_eval(OPEN_MEAN, CLOSED_COUNTS)
    medtasks.done("card", "--layout", "medtasks", "plain", "-o", PLACE)
    said = levels(medtasks)
    assert "answers checked: 1 of 2, self-reported: 1 of 2" in said


def test_likelihoods_of_options_are_no_answers(medtasks, run):
    run("run", "--ask", "likelihood", tasks=OPEN_MEAN, model="oracle")
    written = medtasks("card", "--layout", "medtasks", "run", "-o", PLACE.replace("random-label", "oracle"))
    assert written.code == 0 and "trust: self-reported: 1 of 1" in written.out
