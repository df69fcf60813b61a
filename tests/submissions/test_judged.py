"""Submissions of judged tasks: answers are checked, and the verdicts stay the submitter's."""

import json
from dataclasses import replace

import pytest

from medtasks_ext.registry import forget, registry
from medtasks_lab.site.gather import gather_site
from medtasks_lab.submissions.flags import undetected
from tests.forgeries.forgery import Forgery
from tests.judge import conftest as judged
from tests.submissions.test_check import edited

server, quick_pauses, tasks, run, jury = (
    judged.server, judged.quick_pauses, judged.tasks, judged.run, judged.jury,
)  # fmt: skip
PLACE, TASK = "submissions/Org/oracle/2026-05-01", "medhelm_qa"


@pytest.fixture
def submission(run, jury, medtasks, tmp_path):
    forget()
    run("qa")
    assert medtasks("judge", "run", "--jury", jury("one", "two")).code == 0
    written = medtasks("submit", "run", "-o", PLACE, "--address", "https://example.org/a.parquet")
    assert written.code == 0, written.text
    yield tmp_path / PLACE
    forget()


def check(medtasks):
    return medtasks("submit", "--check", PLACE, "--answers", "run.answers.parquet")


def test_verdicts_stand_as_submitted_and_prove_nothing(medtasks, submission):
    checked = check(medtasks)
    assert checked.code == 0, checked.text
    assert "answers checked, verdicts as submitted" in checked.out
    record = json.loads((submission / "submission.json").read_text())
    assert record["tasks"][TASK]["trust"] == "answers checked"


def test_a_planted_verdict_is_not_seen_and_has_no_rank(medtasks, submission, tmp_path):
    """What cannot be detected must not count before a second site has looked."""
    forgery = Forgery.read(submission, tmp_path / "run.answers.parquet", registry())
    known = forgery.documents[TASK]
    assert known.value == pytest.approx(0.75)
    better = replace(
        known.scores, scores=known.scores.scores / 0.75, counts=known.scores.counts / [0.75, 1.0]
    )
    forgery.documents[TASK] = replace(known, scores=better)
    forgery.model = "Forger/Perfect"
    forgery.sum_up()
    folder = forgery.write(tmp_path / "submissions", tmp_path / "data")
    checked = medtasks("submit", "--check", folder)
    assert checked.code == 0 and "answers checked, verdicts as submitted" in checked.out
    lines = gather_site(registry(), tmp_path / "submissions", published=False).lines
    [line] = [item for item in lines if item.entry.model == "Forger/Perfect"]
    item = line.entry.experiments[TASK]
    assert item.score == pytest.approx(1.0) and not line.is_proven(item)
    assert "planted_verdicts" in undetected()


def test_an_answer_to_which_the_verdicts_do_not_belong_is_seen(medtasks, submission):
    edited(submission, lambda content: content["tasks"][TASK].update(answers="0" * 32))
    found = check(medtasks)
    assert found.code == 1 and "other answers than submission.json names" in found.out
    assert "answers that do not give the scores" in found.out
