"""What judges said of an answer, as page and terminal give it."""

from medtasks_ext.registry import registry
from medtasks_ext.report.answers.column import Flag
from medtasks_ext.report.answers.server import Viewed
from tests.judge.server import Reply, verdict

TASK = "medhelm_qa"


def test_reasons_scores_and_disagreement_of_judges(run, jury, server, medtasks, metrics):
    folder = run("qa")

    def judge(asked, seen):
        harsh = asked.model == "two" and "number 1?" in asked.texts["question"]
        return Reply(verdict(asked.axes, 1 if harsh else 4, f"{asked.model} thinks so"))

    server.script = judge
    medtasks.done("judge", folder, "--jury", jury("one", "two"))
    answers = Viewed([folder], registry()).answers(TASK)
    head = answers.head()
    column = head["columns"][0]
    assert column["judged"] and column["score"] == metrics(folder)["score"]
    disputed = [
        key for key, flags in zip(head["documents"], column["flags"], strict=True) if flags & Flag.DISPUTED
    ]
    assert disputed == ["d1"] and column["totals"]["disputed"] == 1
    assert not any(flags & Flag.WRONG for flags in column["flags"])  # a judge's score is graded

    shown = answers.document(answers.place_of(disputed[0]))["responses"][0]
    ratings = {word["judge"]: set(word["ratings"].values()) for word in shown["judges"]}
    assert ratings == {"one": {4}, "two": {1}} and shown["judged"] == shown["score"]
    printed = medtasks("view", folder, TASK, disputed[0]).out
    assert "two thinks so" in printed and "one thinks so" in printed
