"""Official test rows found in a rebuilt source, by the inputs that the suite has released."""

import json
import zipfile

import pytest

from medtasks_ext.prompts import load_documents
from medtasks_ext.registry import registry
from tests.conftest import sft_row

TASK = registry().datasets["bridge_ade_drug_dosage"]
N = 40


@pytest.fixture
def source(data_dir):
    """Forty sentences with a dose each, of which the suite's rule would take twenty."""
    folder = data_dir / "bridge" / "ade_drug_dosage" / "original"
    folder.mkdir(parents=True)
    lines = [f"{i}|Drug{i} was given at  {i} mg.|Drug{i}|0|5|{i} mg|20|25" for i in range(N)]
    (folder / "DRUG-DOSE.rel").write_text("\n".join(lines))


@pytest.fixture
def released(tmp_path, monkeypatch):
    """Write the suite's release into the hub's cache, with these inputs."""

    def write(inputs: list[str]) -> None:
        repository = tmp_path / "hub" / "datasets--YLab-Open--BRIDGE-Open"
        snapshot = repository / "snapshots" / ("c" * 40)
        snapshot.mkdir(parents=True)
        (repository / "refs").mkdir()
        (repository / "refs" / "main").write_text("c" * 40)
        rows = [{**sft_row(n, text, ""), "split": "test"} for n, text in enumerate(inputs)]
        for row in rows:
            del row["output"]
        with zipfile.ZipFile(snapshot / "Dataset.zip", "w") as archive:
            archive.writestr("dataset_raw/ADE-Drug dosage.SFT.json", json.dumps(rows))

    monkeypatch.setenv("MEDTASKS_CACHE", str(tmp_path / "cache"))  # what was found at first use
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.file_download.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    return write


def loaded(shots: int = 0):
    return load_documents(TASK, cot=False, shots=shots, origin="local")


def sentence(i: int) -> str:
    return f"Drug{i} was given at {i} mg."


def test_official_rows_are_found_by_their_words_and_have_their_gold(source, released):
    released([sentence(i) for i in (31, 2, 17)])
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
    released([sentence(4), sentence(5), "Something that the source does not have."])
    outcome = medtasks.done(
        "run", "--tasks", TASK.id, "--model", "oracle", "--data", "local", "--output_path", "run"
    )
    assert f"{TASK.id}: 2 of 3 official rows recovered" in outcome.text
    assert "test rows rebuilt from the source" not in outcome.text


def test_a_source_with_few_of_the_official_rows_is_drawn_by_the_rule(source, released):
    released([sentence(4), "Another.", "A third."])
    record = loaded()["test"][0].loaded.record
    assert (record["n_test"], record.get("recovered"), record["rebuilt"]) == (N - 20, None, True)


def test_without_the_release_nothing_changes_and_nothing_is_downloaded(source):
    record = loaded()["test"][0].loaded.record
    assert (record["n_test"], record.get("recovered"), record["rebuilt"]) == (N - 20, None, True)
