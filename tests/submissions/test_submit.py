"""`medtasks card --layout medtasks`: what of a run may be public, and nothing else."""

import functools
import json
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtasks_ext.answers import answer_format
from medtasks_ext.answers.reasoning import unclosed_reasoning
from medtasks_ext.prompts.documents import document_key
from medtasks_ext.report.submissions import final_answer, read_answers
from tests.conftest import read_json, rewrite_answers
from tests.run_files import edited, result_of, results_file, samples_file
from tests.submissions.conftest import CLOSED_COUNTS, OPEN_COUNTS, OPEN_MEAN, PLACE, SECRET_TEXT, TASKS


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


# What a run was asked with is in its submission and on the site, and no text of the user's.


def test_settings_that_were_added_are_in_the_submission_and_on_the_site(medtasks, run, tmp_path):
    run("run", "--gen_kwargs", "repetition_penalty=1.8", "--system_instruction", "Most answers are yes.",
        "--apply_chat_template", tasks=CLOSED_COUNTS)  # fmt: skip
    assert medtasks("card", "--layout", "medtasks", "run", "-o", PLACE).code == 0
    record = (tmp_path / PLACE / "submission.json").read_text(encoding="utf-8")
    assert '"repetition_penalty": 1.8' in record and "Most answers" not in record
    assert '"system_instruction": "text-' in record and '"engines"' in record
    root = PLACE.partition("/")[0]
    assert medtasks("dev", "site", "--submissions", root, "-o", "site").code == 0
    [page] = (tmp_path / "site" / "models").glob("org-random-label-*.html")
    text = page.read_text(encoding="utf-8")
    assert "generation settings" in text and "system instruction" in text
    assert "Most answers" not in text
