"""Submissions of judged tasks: answers are checked, and the verdicts stay the submitter's."""

import pytest

from medtasks_ext.registry import forget, registry
from medtasks_ext.report.site.boards import gather_site
from medtasks_ext.report.submissions import undetected
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
    assert medtasks("judge", "--jury", jury("one", "two")).code == 0
    written = medtasks.done("card", "--layout", "medtasks", "run", "-o", PLACE)
    assert "trust: answers checked, verdicts as submitted: 1 of 1" in written.out
    yield tmp_path / PLACE
    forget()


def test_a_planted_verdict_is_not_seen_and_has_no_rank(medtasks, submission, tmp_path):
    """What cannot be detected must not count."""
    edited(submission, lambda content: content["tasks"][TASK].update(score=1.0, interval=[1.0, 1.0]))
    checked = medtasks("rescore", "--check", PLACE)
    assert checked.code == 0 and "answers checked, verdicts as submitted" in checked.out
    [line] = gather_site(registry(), tmp_path / "submissions", published=False).lines
    item = line.entry.experiments[TASK]
    assert item.score == 1.0 and not line.is_proven(item)
    assert any("verdicts of judges" in words for words in undetected())
