"""Rubrics and dialogues that cannot be used: one message each, no text of a patient, nothing lost."""

import pytest
import yaml

from medtasks_ext.prompts.load import _build
from tests.conftest import sample_rows, write_jsonl
from tests.judge.server import Reply, Server, coded
from tests.run_files import result_of

TASK = "healthbench_full"
SECRET = "Frau Kaltenbrunner"


@pytest.fixture(autouse=True)
def text_is_not_shown(monkeypatch):
    monkeypatch.delenv("MEDTASKS_SHOW_TEXT")


@pytest.fixture
def write(data_dir):
    """Put local rows there, changed by a function; the processes of a user read them anew."""

    def put(change=lambda rows: None):
        _build.cache_clear()
        kept = sample_rows(TASK)
        change(kept)
        write_jsonl(data_dir / "healthbench/full/test.jsonl", kept)
        return kept

    return put


@pytest.fixture
def jury(tmp_path):
    """A jury of one judge on loopback that finds every criterion met; the server counts its requests."""
    met = Reply(coded({"decision": {"explanation": "as told", "criteria_met": True}}))
    with Server(lambda asked, seen: met) as server:
        path = tmp_path / "jury.yaml"
        judge = {"name": "grader", "model": "m", "base_url": server.url}
        path.write_text(yaml.safe_dump({"judges": [judge]}))
        server.file = path
        yield server


def one_message(outcome, *said):
    """Checks that a command failed with one message that says all that, and quotes no row."""
    assert outcome.code != 0 and "Traceback" not in outcome.text and SECRET not in outcome.text
    for text in said:
        assert outcome.text.count(text) == 1, outcome.text


def refuted(medtasks, *said):
    one_message(medtasks("run", "--model", "oracle", "--tasks", TASK), *said)
    one_message(medtasks("data", "check"), *said)


def test_a_rubric_without_positive_points(medtasks, write):
    def only_penalties(rows):
        for item in rows[1]["rubrics"]:
            item |= {"points": -abs(item["points"]), "criterion": f"Names {SECRET}"}

    write(only_penalties)
    refuted(medtasks, "test row 2: no point has a positive weight", "at least one is above 0")


def test_a_dialogue_that_ends_with_the_assistant(medtasks, write):
    write(lambda rows: rows[0]["prompt"].append({"role": "assistant", "content": f"Yes, {SECRET}."}))
    refuted(medtasks, "test row 1: the last turn is the assistant's", "ends with a user's turn")


def test_a_criterion_that_is_changed_after_judging(medtasks, write, jury, tmp_path):
    def metrics():
        return result_of("run", TASK)["metrics"]

    def judge():
        medtasks.done("judge", "--jury", jury.file, "--prompts", "own")

    rows = write()
    n = sum(len(row["rubrics"]) for row in rows)
    assert medtasks("run", "--model", "oracle", "--tasks", TASK, "--output_path", "run").code == 0
    judge()
    before = metrics()
    assert len(jury.asked) == n and before["judged"] == 1

    write(lambda rows: rows[0]["rubrics"][0].update(criterion=f"Greets {SECRET}", points=7))
    judge()  # a run is judged by the rows that it was asked with
    assert len(jury.asked) == n and metrics() == before
    done = medtasks("rescore", "run")
    assert done.text.count(f"{TASK}: what was judged of 1 of {len(rows)} answers has changed since") == 1
    assert "medtasks judge run asks only about these" in done.text and SECRET not in done.text
    assert metrics()["judged"] == pytest.approx(1 - 1 / len(rows)) and metrics()["judgements_missing"] == 1

    write()  # the former rows: the former judgements count again, and nobody is asked
    done = medtasks("rescore", "run")
    assert "has changed since" not in done.text
    assert len(jury.asked) == n and metrics() == before

    write(lambda rows: rows[0]["rubrics"][0].update(criterion=f"Greets {SECRET}", points=7))
    assert medtasks("rescore", "run").code == 0
    judge()
    assert len(jury.asked) == n + 1 and metrics()["judged"] == 1
