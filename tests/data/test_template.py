"""Templates for data that a user brings."""

import json

import pytest

from medtasks_ext.registry import registry

PRIVATE = [
    item.id for item in registry().datasets.values() if item.metadata.access != "open"
    and not item.blocks["rows"].get("official_name")
]  # fmt: skip


def test_the_example_row_put_into_the_empty_file_can_be_run(medtasks, tmp_path, monkeypatch):
    outcome = medtasks("data", "template", "medhelm_hospice_referral", "-o", "own")
    folder = tmp_path / "own" / "medhelm" / "hospice_referral"
    assert outcome.code == 0 and (folder / "test.jsonl").read_text() == ""
    (folder / "test.jsonl").write_text((folder / "example.jsonl").read_text())
    monkeypatch.setenv("MEDTASKS_DATA_DIR", str(tmp_path / "own"))
    outcome = medtasks(
        "run", "--model", "oracle", "--tasks", "medhelm_hospice_referral", "--output_path", "run"
    )
    assert outcome.code == 0
    result = json.loads((tmp_path / "run" / "tasks" / "medhelm_hospice_referral.json").read_text())
    assert (result["metrics"]["score"], result["n"], result["loaded"]["origin"]) == (1.0, 1, "local")


def test_an_unfilled_template_says_that_it_holds_no_rows(medtasks, tmp_path, monkeypatch):
    medtasks("data", "template", "medhelm_hospice_referral", "-o", "own")
    monkeypatch.setenv("MEDTASKS_DATA_DIR", str(tmp_path / "own"))
    outcome = medtasks("run", "--model", "oracle", "--tasks", "medhelm_hospice_referral")
    assert outcome.code == 2 and "test.jsonl: holds no rows" in outcome.err


def test_data_that_is_there_is_never_touched(medtasks, tmp_path):
    medtasks("data", "template", "medhelm_hospice_referral", "-o", "own")
    path = tmp_path / "own" / "medhelm" / "hospice_referral" / "test.jsonl"
    path.write_text("mine")
    outcome = medtasks("data", "template", "medhelm_hospice_referral", "-o", "own")
    assert path.read_text() == "mine" and f"left  {path.relative_to(tmp_path)} (exists)" in outcome.out


def test_no_empty_file_takes_the_place_of_rows_that_are_downloaded(medtasks, tmp_path, monkeypatch):
    outcome = medtasks("data", "template", "clinicbench", "-o", "own")
    empty = {path.parent.name for path in tmp_path.glob("own/clinicbench/*/test.jsonl")}
    downloaded = {
        item.folder.name
        for item in registry().datasets.values()
        if item.metadata.suite == "clinicbench" and item.blocks["rows"].get("download")
    }
    folders = {path.parent.name for path in tmp_path.glob("own/clinicbench/*/README.md")}
    assert downloaded and empty == folders - downloaded != set()
    assert outcome.out.count("these rows are downloaded") == len(folders & downloaded)
    monkeypatch.setenv("MEDTASKS_DATA_DIR", str(tmp_path / "own"))
    [found] = json.loads(medtasks("data", "status", "clinicbench_pubmedqa", "--json").out)
    assert found["origin"] == "hub"


def test_an_unknown_name_is_refused_with_the_nearest_ones(medtasks):
    outcome = medtasks("data", "template", "medhelm_hospice_referal")
    assert outcome.code == 2 and "did you mean: medhelm_hospice_referral" in outcome.err


@pytest.mark.parametrize("name", PRIVATE)
def test_every_column_of_data_that_users_bring_is_explained(name):
    """Public data explains itself; who fills a file by hand reads the YAML or the template."""
    schemas = registry().datasets[name].blocks["rows"]["schemas"]
    assert isinstance(schemas[0]["columns"], dict), "write the columns as a mapping to what they hold"
    assert all(meaning.strip() for meaning in schemas[0]["columns"].values())
