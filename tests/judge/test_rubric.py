"""Weighted criteria of a row, each judged by itself: points, penalties, tags, and what a reply must be."""

import pytest

from medtasks_ext.prompts.load import _build
from tests.conftest import rewrite_answers, sample_rows, write_jsonl
from tests.judge.server import Reply, coded
from tests.run_files import result_of

TASK = "healthbench_full"


def weight(asked):
    return float(asked.texts["item"].partition("]")[0].removeprefix("["))


def says(met):
    return lambda asked, seen: Reply(
        coded({"decision": {"explanation": "as told", "criteria_met": met(asked)}})
    )


@pytest.fixture
def judged(medtasks, jury, server, tmp_path):
    """The results of a run on the sample rows, judged by a script."""

    def run(met, folder="run"):
        server.script = says(met)
        medtasks.done(
            "run", "--model", "oracle", "--tasks", TASK, "--data", "sample", "--output_path", folder
        )
        medtasks.done("judge", folder, "--jury", jury("grader"), "--prompts", "own")
        return result_of(tmp_path / folder, TASK)["metrics"]

    return run


def by_hand(points, met):
    """The rule of HealthBench's authors, written anew: what is met, over all that can be gained."""
    return sum(p for p in points if met(p)) / sum(p for p in points if p > 0)


def test_points_are_added_up_as_the_authors_do(judged):
    def met(points):
        return points > 6 or -7 < points < 0

    metrics, rows = judged(lambda asked: met(weight(asked))), sample_rows(TASK)
    scores = [by_hand([item["points"] for item in row["rubrics"]], met) for row in rows]
    assert min(scores) < max(scores)
    assert metrics["score"] == pytest.approx(sum(scores) / len(scores))
    for theme in {tag for row in rows for tag in row["example_tags"]}:
        own = [score for score, row in zip(scores, rows, strict=True) if theme in row["example_tags"]]
        assert metrics[f"jury_{theme.replace(':', '_')}"] == pytest.approx(max(0, sum(own) / len(own)))
    for axis in {tag for row in rows for item in row["rubrics"] for tag in item["tags"] if "axis:" in tag}:
        parts = [[item["points"] for item in row["rubrics"] if axis in item["tags"]] for row in rows]
        values = [by_hand(points, met) for points in parts if any(point > 0 for point in points)]
        expected = min(1, max(0, sum(values) / len(values)))
        assert metrics[f"jury_{axis.replace(':', '_')}"] == pytest.approx(expected)


# Rubrics and dialogues that cannot be used: one message each, no text of a patient, nothing lost.


SECRET = "Frau Kaltenbrunner"


@pytest.fixture
def write(data_dir, monkeypatch):
    """Put local rows there, changed by a function; the processes of a user show no text."""
    monkeypatch.delenv("MEDTASKS_SHOW_TEXT")

    def put(change=lambda rows: None):
        _build.cache_clear()
        kept = sample_rows(TASK)
        change(kept)
        write_jsonl(data_dir / "healthbench/full/test.jsonl", kept)
        return kept

    return put


def test_a_criterion_that_is_changed_after_judging(medtasks, write, jury, server):
    server.script = says(lambda asked: True)

    def metrics():
        return result_of("run", TASK)["metrics"]

    def judge():
        medtasks.done("judge", "--jury", jury("grader"), "--prompts", "own")

    rows = write()
    n = sum(len(row["rubrics"]) for row in rows)
    assert medtasks("run", "--model", "oracle", "--tasks", TASK, "--output_path", "run").code == 0
    judge()
    before = metrics()
    assert len(server.asked) == n and before["judged"] == 1

    write(lambda rows: rows[0]["rubrics"][0].update(criterion=f"Greets {SECRET}", points=7))
    judge()  # a run is judged by the rows that it was asked with
    assert len(server.asked) == n and metrics() == before
    done = medtasks("rescore", "run")
    assert done.text.count(f"{TASK}: what was judged of 1 of {len(rows)} answers has changed since") == 1
    assert "medtasks judge run asks only about these" in done.text and SECRET not in done.text
    assert metrics()["judged"] == pytest.approx(1 - 1 / len(rows)) and metrics()["judgements_missing"] == 1

    write()  # the former rows: the former judgements count again, and nobody is asked
    done = medtasks("rescore", "run")
    assert "has changed since" not in done.text
    assert len(server.asked) == n and metrics() == before

    write(lambda rows: rows[0]["rubrics"][0].update(criterion=f"Greets {SECRET}", points=7))
    assert medtasks("rescore", "run").code == 0
    judge()
    assert len(server.asked) == n + 1 and metrics()["judged"] == 1


def test_each_criterion_is_a_request_and_the_mean_is_never_less_than_nothing(judged, server):
    metrics = judged(lambda asked: weight(asked) > 0)
    assert metrics["score"] == 1 and metrics["judged"] == 1 and metrics["judgements_missing"] == 0
    assert len(server.asked) == sum(len(row["rubrics"]) for row in sample_rows(TASK))
    texts = server.asked[0].texts
    assert set(texts) == {"question", "item", "response"} and texts["question"].startswith("user: ")
    assert judged(lambda asked: weight(asked) < 0, "penalties")["score"] == 0


def only_penalties(rows):
    for item in rows[1]["rubrics"]:
        item |= {"points": -abs(item["points"]), "criterion": f"Names {SECRET}"}


def ends_with_the_assistant(rows):
    rows[0]["prompt"].append({"role": "assistant", "content": f"Yes, {SECRET}."})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (only_penalties, ("test row 2: no point has a positive weight", "a weight, above 0")),
        (
            ends_with_the_assistant,
            ("test row 1: the last turn is the assistant's", "ends with a user's turn"),
        ),
    ],
)
def test_rows_that_cannot_be_judged_are_one_message_without_their_text(medtasks, write, change, said):
    write(change)
    for command in (("run", "--model", "oracle", "--tasks", TASK), ("data", "check")):
        outcome = medtasks(*command)
        assert outcome.code != 0 and "Traceback" not in outcome.text and SECRET not in outcome.text
        assert [outcome.text.count(text) for text in said] == [1, 1], outcome.text


# What the length of an answer takes off its score or adds to it, as a task file says.


def test_the_adjusted_score_stands_beside_the_score_and_is_cut_at_nothing(medtasks, tmp_path, server, jury):
    task = "healthbench_professional_chats"
    rows = sample_rows(task)
    command = ("run", "--model", "oracle", "--tasks", task, "--data", "sample", "--output_path", "run")
    medtasks.done(*command)
    server.script = says(lambda asked: weight(asked) > 6)
    scores = [
        by_hand([item["points"] for item in row["rubric_items"]], lambda points: points > 6) for row in rows
    ]
    for lengths in ([100 + 900 * place for place in range(len(rows))], [60_000] * len(rows)):
        texts = {row["id"]: "ä" * n for row, n in zip(rows, lengths, strict=True)}
        rewrite_answers(tmp_path / "run", task, texts)
        assert medtasks("rescore", "run").code == 0
        medtasks.done("judge", "--jury", jury("one"), "--prompts", "own")
        stored, offsets = result_of("run", task), [0.0147 * (n - 2000) / 500 for n in lengths]
        adjusted = sum(score - off for score, off in zip(scores, offsets, strict=True)) / len(rows)
        assert stored["metrics"]["score"] == pytest.approx(sum(scores) / len(rows))
        assert stored["metrics"]["score_length_adjusted"] == pytest.approx(max(0, adjusted))
        interval = stored["intervals"]["score_length_adjusted"]
        assert adjusted < 0 or interval["interval_low"] < adjusted < interval["interval_high"]
