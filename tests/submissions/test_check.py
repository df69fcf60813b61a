"""`medtasks rescore --check`: what was edited by hand, or does not belong there, is named and refused."""

import os
import re

import pytest

from medtasks_ext.registry import forget, registry
from medtasks_ext.report.site.boards import gather_site
from medtasks_ext.report.submissions import MOST_BYTES, read_answers, read_record, undetected
from tests.conftest import edited_json
from tests.judge import conftest as judged
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
    "another model": (top(model="Org/gpt-9"), "is of Org/gpt-9"),
    "a task that is none": (
        lambda folder: edited(folder, lambda all_: all_["tasks"].update(x_y=all_["tasks"][OPEN_MEAN])),
        "tasks.x_y: no task is called so",
    ),
    "a smaller suite": (conditions(OPEN_MEAN, n_of_suite=12), "n_of_suite: is 12"),
    "sample rows": (conditions(CLOSED_MEAN, origin="sample"), "synthetic sample"),
    "a long text": (top(called="x" * 300), "holds a text of 300 characters"),
    "no JSON": (lambda folder: (folder / "submission.json").write_text("{"), "invalid json"),
    "answers to closed data": (
        lambda folder: (folder / "answers" / f"{CLOSED_MEAN}.json").write_text("[]"),
        f"answers/{CLOSED_MEAN}.json: is no file of a",
    ),
    "answers that are none": (
        lambda folder: (folder / "answers" / f"{OPEN_MEAN}.json").write_text('[["one", 2]]'),
        f"{OPEN_MEAN}.json: 0.1: input should be a valid string",
    ),
    "a key that a terminal would obey": (top(**{"\x1b[31m red": 1}), "or of several lines"),
    "a huge file": (
        lambda folder: os.truncate(folder / "submission.json", MOST_BYTES + 1),
        f"submission.json: is larger than {MOST_BYTES:,} bytes",
    ),
    "a link in it": (lambda folder: (folder / "link").symlink_to("/etc"), "link: is no file of a submission"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_is_named_and_how_it_is_mended(medtasks, submission, edit):
    change, words = EDITS[edit]
    change(submission)
    found = medtasks("rescore", "--check", PLACE)
    assert found.code == 1, found.text
    assert words in found.out and "→ " in found.out and "✗ " in found.out and "\x1b" not in found.text


# Forgeries that the check refuses: the forger knows all code, and makes hashes and records fit.
#
# What no check can tell is said to readers (`undetected.yaml`), and is no part of this table.


def first(**changes):
    return lambda items: [items[0]._replace(**changes), *items[1:]]


def traded(items):
    """Each answer under the document of the next one."""
    return [
        item._replace(answer=other.answer) for item, other in zip(items, [*items[1:], items[0]], strict=True)
    ]


def fewer(content):
    """The record says that the better half of the rows was all there is."""
    for name in (OPEN_MEAN, OPEN_COUNTS):
        item = content["tasks"][name]
        item["n"] //= 2
        item["conditions"] |= {"n": item["n"], "n_here": item["n"]}


def nothing(_):
    pass


#: what is done to the answers of each task, and to the record -> words of the check
FORGERIES = {
    "an answer that is another one": (first(answer="none of them"), nothing, "and the answers give"),
    "planted scores of honest answers": (
        lambda items: items,
        lambda content: content["tasks"][OPEN_MEAN].update(score=1.0),
        "the score is 1.0, and the answers give",
    ),
    "a prompt that is another one": (first(prompt="0" * 32), nothing, "1 of 12 prompts are others here"),
    "a document that is not there": (first(document="x"), nothing, "to documents that are not here"),
    "an answer less": (lambda items: items[1:], nothing, "answers to 11 documents, and the record says 12"),
    "an answer twice": (lambda items: [*items[1:], items[1]], nothing, "answers to 11 documents"),
    "another order": (lambda items: items[::-1], nothing, "stand in another order"),
    "answers out of place": (traded, nothing, "and the answers give"),
    "cherry-picked documents": (
        lambda items: items[: len(items) // 2],
        fewer,
        "number of rows 6, and here 12",
    ),
    "other rows": (
        lambda items: items,
        lambda content: content["tasks"][OPEN_MEAN]["conditions"].update(rows="0" * 12),
        "other documents: rows 000000000000, and here",
    ),
    "other words": (
        lambda items: items,
        lambda content: content["tasks"][OPEN_MEAN]["conditions"].update(prompt="0" * 12),
        "other documents: words 000000000000, and here",
    ),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_is_refused_and_named(medtasks, submission, name):
    change, record, words = FORGERIES[name]
    found = {task: change(read_answers(submission, task)) for task in (OPEN_MEAN, OPEN_COUNTS)}
    read_record(submission).write(submission, found)
    edited(submission, record)
    refused = medtasks("rescore", "--check", PLACE)
    assert refused.code == 1, refused.text
    assert words in refused.out and f"tasks.{OPEN_MEAN}" in refused.out


# Submissions of judged tasks: answers are checked, and the verdicts stay the submitter's.


server, quick_pauses, tasks, run, jury = (
    judged.server, judged.quick_pauses, judged.tasks, judged.run, judged.jury,
)  # fmt: skip
JUDGED_PLACE, TASK = "submissions/Org/oracle/2026-05-01", "medhelm_qa"


@pytest.fixture
def judged_submission(run, jury, medtasks, tmp_path):
    forget()
    run("qa")
    assert medtasks("judge", "--jury", jury("one", "two")).code == 0
    written = medtasks.done("card", "--layout", "medtasks", "run", "-o", JUDGED_PLACE)
    assert "trust: answers checked, verdicts as submitted: 1 of 1" in written.out
    yield tmp_path / JUDGED_PLACE
    forget()


def test_a_planted_verdict_is_not_seen_and_has_no_rank(medtasks, judged_submission, tmp_path):
    """What cannot be detected must not count."""
    edited(judged_submission, lambda content: content["tasks"][TASK].update(score=1.0, interval=[1.0, 1.0]))
    checked = medtasks("rescore", "--check", JUDGED_PLACE)
    assert checked.code == 0 and "answers checked, verdicts as submitted" in checked.out
    [line] = gather_site(registry(), tmp_path / "submissions", published=False).lines
    item = line.entry.experiments[TASK]
    assert item.score == 1.0 and not line.is_proven(item)
    assert any("verdicts of judges" in words for words in undetected())


@pytest.mark.parametrize(("model", "equal"), [("random-label", True), ("oracle", False)])
def test_random_documents_are_asked_again_of_the_model(medtasks, submission, tmp_path, model, equal):
    (tmp_path / "model.yaml").write_text(f"model: {model}\n")
    said = medtasks.done("rescore", "--spot-check", "9", "--config", "model.yaml", PLACE).out
    asked, same, scored = map(int, re.findall(r"\d+", said.splitlines()[-1]))
    assert said.splitlines()[-1].startswith("in all: ") and asked == 9 and same <= scored <= 9
    assert (same == 9) is equal
    one = medtasks.done("rescore", "--spot-check", "2", "--config", "model.yaml", PLACE).out
    assert one.splitlines()[-1].startswith("in all: 2 asked again")
