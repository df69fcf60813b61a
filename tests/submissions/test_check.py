"""`medtasks rescore --check`: what was edited by hand, or does not belong there, is named and refused."""

import pytest

from medtasks_ext.report.submissions import MOST_BYTES
from tests.conftest import edited_json
from tests.submissions.conftest import CLOSED_MEAN, OPEN_COUNTS, OPEN_MEAN, PLACE


def edited(folder, change):
    """Change the record of a submission."""
    with edited_json(folder / "submission.json") as content:
        change(content)


def top(**values):
    return lambda folder: edited(folder, lambda content: content.update(values))


def task(name, **values):
    return lambda folder: edited(folder, lambda content: content["tasks"][name].update(values))


def conditions(name, **values):
    return lambda folder: edited(folder, lambda content: content["tasks"][name]["conditions"].update(values))


EDITS = {
    "another score": (task(OPEN_MEAN, score=0.99), f"tasks.{OPEN_MEAN}: the score is 0.99, and the answers"),
    "another interval": (task(OPEN_COUNTS, interval=[0.98, 0.99]), "the lower end is 0.98"),
    "another readable share": (task(OPEN_COUNTS, valid=0.5), "the share of readable answers is 0.5"),
    "another model": (top(model="Org/gpt-9"), "is of Org/gpt-9"),
    "another date": (top(date="2026-05-02"), "is of Org/random-label, 2026-05-02"),
    "a task that is none": (
        lambda folder: edited(folder, lambda all_: all_["tasks"].update(x_y=all_["tasks"][OPEN_MEAN])),
        "tasks.x_y: no task is called so",
    ),
    "another strategy": (conditions(OPEN_MEAN, strategy="cot"), "strategy: is cot"),
    "a smaller suite": (conditions(OPEN_MEAN, n_of_suite=12), "n_of_suite: is 12"),
    "another number of documents": (task(OPEN_MEAN, n=11), f"tasks.{OPEN_MEAN}.n: 11 documents, and 12"),
    "sample rows": (conditions(CLOSED_MEAN, origin="sample"), "synthetic sample"),
    "a long text": (top(called="x" * 300), "holds a text of 300 characters"),
    "several lines": (top(versions={"a": "b\nc"}), "or of several lines"),
    "an unknown key": (top(colour="red"), "colour: extra inputs are not permitted"),
    "another format": (top(schema=3), "schema: input should be 5"),
    "no JSON": (lambda folder: (folder / "submission.json").write_text("{"), "invalid json"),
    "a further file": (lambda folder: (folder / "notes.txt").write_text("x"), "notes.txt: is no file of a"),
    "a folder in it": (lambda folder: (folder / "more").mkdir(), "more: is no file of a submission"),
    "answers to closed data": (
        lambda folder: (folder / "answers" / f"{CLOSED_MEAN}.json").write_text("[]"),
        f"answers/{CLOSED_MEAN}.json: is no file of a",
    ),
    "answers that are none": (
        lambda folder: (folder / "answers" / f"{OPEN_MEAN}.json").write_text('[["one", 2]]'),
        f"{OPEN_MEAN}.json: 0.1: input should be a valid string",
    ),
    "a link in it": (lambda folder: (folder / "link").symlink_to("/etc"), "link: is no file of a submission"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_is_named_and_how_it_is_mended(medtasks, submission, edit):
    change, words = EDITS[edit]
    change(submission)
    found = medtasks("rescore", "--check", PLACE)
    assert found.code == 1, found.text
    assert words in found.out and "→ " in found.out and "✗ " in found.out


def test_a_huge_file_is_refused_before_it_is_read(medtasks, submission):
    with (submission / "submission.json").open("r+b") as file:
        file.truncate(MOST_BYTES + 1)
    assert (
        f"submission.json: is larger than {MOST_BYTES:,} bytes" in medtasks("rescore", "--check", PLACE).out
    )


def test_a_folder_that_is_a_link_is_refused(medtasks, submission):
    moved = submission.rename(submission.with_name("2026-06-01"))
    submission.symlink_to(moved)
    assert "is a symbolic link" in medtasks("rescore", "--check", PLACE).out


def test_a_message_quotes_nothing_that_a_terminal_would_obey(medtasks, submission):
    top(**{"\x1b[31m red": 1})(submission)
    found = medtasks("rescore", "--check", PLACE)
    assert found.code == 1 and "\x1b" not in found.text


def test_a_place_that_is_none_is_said(medtasks, submission):
    assert "is not ORG/MODEL/DATE" in medtasks("rescore", "--check", "submissions").out
    assert (
        "submission.json: no such file" in medtasks("rescore", "--check", PLACE.replace("05-01", "05-03")).out
    )
