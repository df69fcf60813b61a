"""Outcomes say whose they are, over resumed runs and later scores."""

from pathlib import Path

import pytest

from medtasks_ext.prompts import load
from medtasks_ext.registry import forget
from tests.conftest import outcomes, read_json
from tests.run_files import result_of

TASK = "bridge_chip_ctc"
RUN = ("run", "--tasks", TASK, "--output_path", "run")


@pytest.fixture
def run(medtasks, chip_ctc, tmp_path) -> Path:
    assert medtasks(*RUN, "--model", "random-label").code == 0
    return tmp_path / "run"


def edited(file: Path, *changes: tuple[str, str]) -> None:
    text = file.read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    file.write_text(text, encoding="utf-8")


def edited_rows(data: Path, change: tuple[str, str]) -> None:
    edited(data / "bridge" / "CHIP-CTC.SFT.json", change)
    load._build.cache_clear()


def test_a_later_score_keeps_the_words_that_were_asked(medtasks, tasks_of, tmp_path):
    file = tasks_of("medhelm/medqa") / "medhelm" / "medqa" / "task.yaml"
    call = (
        "run",
        "--tasks",
        "medhelm_medqa",
        "--data",
        "sample",
        "--model",
        "oracle",
        "--output_path",
        "run",
    )
    assert medtasks(*call).code == 0
    before = result_of(tmp_path / "run", "medhelm_medqa")["conditions"]
    edited(file, ("instruction: Answer", "instruction: With care, answer"), ("{version: ", "{version: 9"))
    forget()
    load._build.cache_clear()
    assert medtasks("rescore", "run").code == 0
    after = result_of(tmp_path / "run", "medhelm_medqa")["conditions"]
    assert after == {**before, "version": f"9{before['version']}"}
    assert medtasks(*call).code == 0  # which asks the words of now
    assert result_of(tmp_path / "run", "medhelm_medqa")["conditions"]["prompt"] != before["prompt"]


def test_a_resumed_run_says_what_it_asks_from_then_on(medtasks, run, chip_ctc):
    before = read_json(run / "run.json")["tasks"][TASK]["bound"]
    edited_rows(chip_ctc, ("入组标准第7条", "入组标准第七条"))
    assert medtasks(*RUN, "--model", "random-label").code == 0
    after = read_json(run / "run.json")["tasks"][TASK]["bound"]
    assert len(outcomes(run)) == 9 and {name for name in before if before[name] != after[name]} == {
        "rows_hash"
    }


def test_the_manifest_is_made_again_from_the_records_without_asking(medtasks, run):
    before = result_of(run, TASK)
    (run / "run.json").unlink()
    outcome = medtasks(*RUN, "--model", "random-label")
    assert outcome.code == 0 and "8 of 8 documents have an answer" in outcome.err
    assert result_of(run, TASK) == before
