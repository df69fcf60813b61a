"""BRIDGE-Open: inputs without gold, read from the hub's cache as the hub writes it."""

import json
import zipfile

import pytest

from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts import load_documents
from medtasks_ext.registry import Dataset, registry
from tests.conftest import read_json, sft_row

COMMIT = "c" * 40
CHIP_CTC = registry().datasets["bridge_chip_ctc"].folder


@pytest.fixture
def hub(data_dir, tmp_path, monkeypatch):
    """A hub cache that holds BRIDGE-Open at one commit, with one task in it."""
    repository = tmp_path / "hub" / "datasets--YLab-Open--BRIDGE-Open"
    snapshot = repository / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT)
    test = [
        {key: value for key, value in sft_row(n, f"入组标准{n}", "").items() if key != "output"}
        for n in range(6)
    ]
    shots = [sft_row(n, f"示例{n}", "clinical trial criterion: 年龄", split="train") for n in range(5)]
    for archive, member, rows in (
        ("Dataset.zip", "dataset_raw/chip_ctc.SFT.json", test),
        ("Example.zip", "CHIP-CTC.example.json", shots),
    ):
        with zipfile.ZipFile(snapshot / archive, "w") as content:
            content.writestr(member, json.dumps(rows))
    monkeypatch.setenv("MEDTASKS_CACHE", str(tmp_path / "cache"))  # what was found at first use
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.file_download.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    return snapshot


def test_inputs_are_read_without_gold_and_the_commit_is_recorded(hub):
    splits = load_documents(Dataset(CHIP_CTC), cot=False, shots=5, origin="release")
    assert [document["gold"] for document in splits["test"]] == [None] * 6
    assert len(splits["fewshot"]) == 5
    loaded = splits["test"][0].loaded.record
    assert (loaded["origin"], loaded.get("revision"), loaded["n_without_gold"]) == ("release", COMMIT, 6)


def test_a_run_says_before_it_starts_that_there_is_no_gold_and_prints_no_score(hub, medtasks, tmp_path):
    outcome = medtasks.done(
        "run", "--model", "oracle", "--tasks", "bridge_chip_ctc", "--data", "release", "--output_path", "run"
    )
    assert "no gold answers for 1 of 1 tasks (bridge_chip_ctc)" in outcome.err
    assert "`medtasks card --layout bridge` writes the leaderboard's files" in outcome.err
    metrics = read_json(tmp_path / "run" / "tasks" / "bridge_chip_ctc.json")["metrics"]
    assert "score" not in metrics and "acc" not in metrics and metrics["scored"] == 0
    outcome = medtasks("card", "run", "--layout", "bridge", "-o", "out", "--own-words")
    written = list((tmp_path / "out").rglob("*.result.json"))
    assert outcome.code == 0 and len(read_json(written[0])) == 6


def test_a_task_that_bridge_open_does_not_hold_is_reported_missing(hub, medtasks):
    outcome = medtasks(
        "run", "--model", "oracle", "--tasks", "bridge_chip_ctc,bridge_mie", "--data", "release"
    )
    assert outcome.code == 1 and "no data for 1 of 2 tasks" in outcome.err and "bridge_mie" in outcome.err


def test_without_the_archive_at_hand_the_message_names_it(data_dir, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(MedtasksError, match=r"YLab-Open/BRIDGE-Open@main/Dataset\.zip"):
        load_documents(Dataset(CHIP_CTC), cot=False, origin="release")


def test_a_damaged_archive_is_named(hub):
    (hub / "Dataset.zip").write_bytes(b"no archive")
    with pytest.raises(MedtasksError, match="is not a zip archive"):
        load_documents(Dataset(CHIP_CTC), cot=False, origin="release")
