"""BRIDGE-Open: inputs without gold, read from the hub's cache as the hub writes it, and found in sources."""

import json
import zipfile

import pytest

from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts import load_documents
from medtasks_ext.registry import Dataset, registry
from tests.conftest import read_json, sft_row
from tests.run_files import result_of

COMMIT = "c" * 40
CHIP_CTC = registry().datasets["bridge_chip_ctc"].folder


@pytest.fixture
def released(tmp_path, monkeypatch):
    """Write archives of BRIDGE-Open at one commit into the hub's cache: archive, member, rows."""
    repository = tmp_path / "hub" / "datasets--YLab-Open--BRIDGE-Open"
    snapshot = repository / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT)
    monkeypatch.setenv("MEDTASKS_CACHE", str(tmp_path / "cache"))  # what was found at first use
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.file_download.constants.HF_HUB_CACHE", str(tmp_path / "hub"))

    def write(archive: str, member: str, rows: list[dict]) -> None:
        with zipfile.ZipFile(snapshot / archive, "w") as content:
            content.writestr(member, json.dumps(rows))

    write.snapshot = snapshot  # type: ignore[attr-defined]
    return write


def without_gold(texts: list[str]) -> list[dict]:
    rows = [sft_row(n, text, "") for n, text in enumerate(texts)]
    return [{key: value for key, value in row.items() if key != "output"} for row in rows]


@pytest.fixture
def hub(released, data_dir):
    """A release with one task in it; the folder of its files."""
    shots = [sft_row(n, f"示例{n}", "clinical trial criterion: 年龄", split="train") for n in range(5)]
    test = without_gold([f"入组标准{n}" for n in range(6)])
    released("Dataset.zip", "dataset_raw/chip_ctc.SFT.json", test)
    released("Example.zip", "CHIP-CTC.example.json", shots)
    return released.snapshot


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
    metrics = result_of(tmp_path / "run", "bridge_chip_ctc")["metrics"]
    assert "score" not in metrics and "acc" not in metrics and metrics["scored"] == 0
    outcome = medtasks("card", "run", "--layout", "bridge", "-o", "out", "--parts")
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


#: official test rows are found in a rebuilt source, by the inputs that the suite has released
ADE = registry().datasets["bridge_ade_drug_dosage"]
N = 40


def released_doses(released, inputs: list[str]) -> None:
    released("Dataset.zip", "dataset_raw/ADE-Drug dosage.SFT.json", without_gold(inputs))


@pytest.fixture
def source(data_dir):
    """Forty sentences with a dose each, of which the suite's rule would take twenty."""
    folder = data_dir / "bridge" / "ade_drug_dosage" / "original"
    folder.mkdir(parents=True)
    lines = [f"{i}|Drug{i} was given at  {i} mg.|Drug{i}|0|5|{i} mg|20|25" for i in range(N)]
    (folder / "DRUG-DOSE.rel").write_text("\n".join(lines))


def loaded(shots: int = 0):
    return load_documents(ADE, cot=False, shots=shots, origin="local")


def sentence(i: int) -> str:
    return f"Drug{i} was given at {i} mg."


def test_official_rows_are_found_by_their_words_and_have_their_gold(source, released):
    released_doses(released, [sentence(i) for i in (31, 2, 17)])
    splits = loaded(shots=5)
    assert [" ".join(document.input.split()) for document in splits["test"]] == [
        sentence(i) for i in (31, 2, 17)
    ]
    assert all(document["gold"] for document in splits["test"])
    record = splits["test"][0].loaded.record
    assert (record["n_test"], record.get("recovered"), record["rebuilt"]) == (3, [3, 3], False)
    shown = {document.input for document in splits["fewshot"]}
    assert len(shown) == 5 and not shown & {document.input for document in splits["test"]}


def test_the_result_says_how_many_were_found(source, released, medtasks, data_dir):
    released_doses(released, [sentence(4), sentence(5), "Something that the source does not have."])
    outcome = medtasks.done(
        "run", "--tasks", ADE.id, "--model", "oracle", "--data", "local", "--output_path", "run"
    )
    assert f"{ADE.id}: 2 of 3 official rows recovered" in outcome.text
    assert "test rows rebuilt from the source" not in outcome.text


def test_a_source_with_few_of_the_official_rows_is_drawn_by_the_rule(source, released):
    released_doses(released, [sentence(4), "Another.", "A third."])
    record = loaded()["test"][0].loaded.record
    assert (record["n_test"], record.get("recovered"), record["rebuilt"]) == (N - 20, None, True)


def test_without_the_release_nothing_changes_and_nothing_is_downloaded(source):
    record = loaded()["test"][0].loaded.record
    assert (record["n_test"], record.get("recovered"), record["rebuilt"]) == (N - 20, None, True)
