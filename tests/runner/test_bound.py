"""Outcomes say whose they are: what was renamed or moved does not fit, also where all was sealed anew."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from medtasks_ext.prompts import load
from medtasks_ext.registry import forget, registry
from medtasks_ext.runner.verify import verify
from medtasks_ext.runs import Manifest, OutcomeLog, RunLease, read_outcomes
from medtasks_ext.runs.seal import FILE
from tests.conftest import unsealed

TASK = "bridge_chip_ctc"
RESPONSES, SAMPLES, RESULT = f"responses/{TASK}.jsonl", f"samples_{TASK}.jsonl", f"tasks/{TASK}.json"
RUN = ("run", "--tasks", TASK, "--output_path", "run")


@pytest.fixture
def run(medtasks, chip_ctc, tmp_path) -> Path:
    assert medtasks(*RUN, "--model", "random-label").code == 0
    return tmp_path / "run"


def sealed_anew(run: Path) -> None:
    """Make all seals again, as a forger can who leaves the chains of answers as they are."""
    unsealed(run)
    with RunLease(run, "a forger", "written"):
        pass


def named(run: Path) -> dict[str, str]:
    return {change.file: change.what for change in verify(run, registry()).changes}


def edited(file: Path, *changes: tuple[str, str]) -> None:
    text = file.read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    file.write_text(text, encoding="utf-8")


def edited_rows(data: Path, change: tuple[str, str]) -> None:
    edited(data / "bridge" / "CHIP-CTC.SFT.json", change)
    load._build.cache_clear()


def test_an_untouched_run_verifies_also_where_it_was_sealed_anew(run):
    assert named(run) == {}
    sealed_anew(run)
    assert named(run) == {}


def test_a_model_that_was_renamed_is_not_the_one_that_answered(run):
    edited(run / "run.json", ('"model": "random-label"', '"model": "ORG/OTHER"'))
    sealed_anew(run)
    assert named(run) == {
        RESPONSES: "line 1: is of the model random-label, and run.json names ORG/OTHER",
        SAMPLES: "line 1: its request does not follow from run.json's model and the prompt",
    }


def test_settings_that_were_changed_are_not_those_that_were_asked(run):
    manifest = json.loads((run / "run.json").read_text())
    settings = manifest["identity"]["settings"]
    settings["data"] = "hub" if settings["data"] is None else None
    (run / "run.json").write_text(json.dumps(manifest))
    sealed_anew(run)
    assert list(named(run)) == [RESPONSES] and "other settings" in named(run)[RESPONSES]


def test_answers_that_were_moved_from_another_run_do_not_fit(medtasks, run, tmp_path):
    assert medtasks(*RUN[:-1], "other", "--model", "oracle").code == 0
    other = tmp_path / "other"
    for name in (RESPONSES, SAMPLES, RESULT, f"tasks/{TASK}.npy", f"tasks/{TASK}.parquet", "results.json"):
        shutil.copyfile(other / name, run / name)
    manifest, theirs = (json.loads((folder / "run.json").read_text()) for folder in (run, other))
    (run / "run.json").write_text(json.dumps({**manifest, "tasks": theirs["tasks"]}))
    sealed_anew(run)
    found = named(run)
    assert "is of the model oracle" in found[RESPONSES] and SAMPLES in found


def test_a_prompt_that_was_changed_in_the_samples_is_not_the_one_that_was_sent(run):
    edited(run / SAMPLES, ("入组标准第0条", "入组标准第9条"))
    sealed_anew(run)
    assert "does not follow" in named(run)[SAMPLES]


@pytest.mark.parametrize(
    ("key", "said"), [("origin", "sample"), ("rows_hash", "0" * 12), ("instruction", "official")]
)
def test_rows_and_words_of_a_result_are_those_that_were_asked(run, key, said):
    record = json.loads((run / RESULT).read_text())
    record["loaded"][key] = said
    (run / RESULT).write_text(json.dumps(record))
    sealed_anew(run)
    assert re.fullmatch(rf"says {key} {said} \(asked: .+\)", named(run)[RESULT])


def test_a_score_over_rows_that_changed_later_is_noted_and_no_change(medtasks, run, chip_ctc):
    edited_rows(chip_ctc, ("clinical trial criterion: 睡眠", "clinical trial criterion: 护理"))
    assert medtasks("rescore", "run").code == 0
    found = verify(run, registry())
    assert found.changes == []
    assert any(note.startswith(f"{RESULT}: scored later with rows_hash") for note in found.notes)


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
    result = tmp_path / "run" / "tasks" / "medhelm_medqa.json"
    before = json.loads(result.read_text())["conditions"]["asked"]
    edited(file, ("instruction: Answer", "instruction: With care, answer"), ("{version: ", "{version: 9"))
    forget()
    load._build.cache_clear()
    assert medtasks("rescore", "run").code == 0
    after = json.loads(result.read_text())["conditions"]["asked"]
    assert after == {**before, "version": f"9{before['version']}"}
    found = verify(tmp_path / "run", registry())
    assert found.changes == [] and not any("scored later" in note for note in found.notes)
    assert medtasks(*call).code == 0  # which asks the words of now
    assert json.loads(result.read_text())["conditions"]["asked"]["wording"] != before["wording"]


def test_a_resumed_run_says_what_it_asks_from_then_on(medtasks, run, chip_ctc):
    edited_rows(chip_ctc, ("入组标准第7条", "入组标准第七条"))
    assert medtasks(*RUN, "--model", "random-label").code == 0
    said = [item.of for item in read_outcomes(run / "responses", TASK)]
    assert len(said) == 9 and [index for index, of in enumerate(said) if of] == [0, 8]
    assert said[0] is not None and said[8] is not None and said[0].rows_hash != said[8].rows_hash
    assert named(run) == {} and verify(run, registry()).notes == []


def as_before(run: Path) -> None:
    """Take the lines that say whose answers they are out, as an earlier version wrote the folder."""
    manifest = Manifest.read(run)
    stored = list(read_outcomes(run / "responses", TASK))
    (run / RESPONSES).unlink()
    log = OutcomeLog(run / "responses", TASK)
    for item in stored:
        log.append(replace(item, of=None))
    log.close()
    entry = manifest.tasks[TASK].model_copy(update={"sealed": {log.path.name: log.seal}, "bound": None})
    manifest.tasks[TASK], manifest.schema_version = entry, 4
    manifest.write(run)
    sealed_anew(run)


def test_a_folder_of_an_earlier_version_is_read_and_marked_and_nothing_is_asked_again(medtasks, run):
    as_before(run)
    printed = medtasks("verify", "run")
    assert printed.code == 0 and f"whose outcomes they are: {RESPONSES}\n" in printed.out
    keys = [item.key for item in read_outcomes(run / "responses", TASK)]
    assert medtasks(*RUN, "--model", "random-label").code == 0
    assert [item.key for item in read_outcomes(run / "responses", TASK)] == keys
    assert json.loads((run / "run.json").read_text())["schema"] == 5 and named(run) == {}
    (run / RESULT).unlink()
    assert medtasks(*RUN, "--model", "random-label").code == 0  # a schema of now, and the same answers
    assert [item.key for item in read_outcomes(run / "responses", TASK)] == keys and named(run) == {}


def test_a_forger_who_computes_everything_anew_shows_against_a_root_that_was_kept_alone(medtasks, run):
    kept = Manifest.read(run).roots[-1].digest
    shutil.rmtree(run)
    assert medtasks(*RUN, "--model", "oracle").code == 0  # in place of all chains, keys and seals
    assert named(run) == {} and (run / FILE).is_file()
    found = medtasks("verify", "run", "--root", kept)
    assert found.code == 1 and "the folder never had the root" in found.out
