"""Templates for data that a user brings."""

import json

import pytest

from medtasks_ext.registry import registry
from medtasks_ext.rows.sources import source_of

PRIVATE = [
    item.id for item in registry().datasets.values() if item.metadata.access != "open"
    and not item.blocks["rows"].get("official_name")
]  # fmt: skip


HOSPICE = "medhelm_hospice_referral"


def filled(medtasks, tmp_path, name: str, form: str):
    """The folder of a template whose example rows are put where rows belong."""
    assert medtasks("data", "template", name, "-o", "own", "--format", form).code == 0
    dataset = registry().datasets[name]
    folder = tmp_path / "own" / dataset.metadata.suite / dataset.folder.name
    assert sorted(path.name for path in folder.iterdir()) == ["README.md", f"example.{form}"]
    (folder / f"test.{form}").write_bytes((folder / f"example.{form}").read_bytes())
    return folder


@pytest.mark.usefixtures("made_rows")
@pytest.mark.parametrize("form", ["jsonl", "csv", "xlsx"])
@pytest.mark.parametrize("name", [HOSPICE, "mlb_maexam", "medhelm_ehrshot", "bridge_mie", "medhelm_n2c2_ct"])
def test_the_example_rows_put_where_rows_belong_can_be_run(medtasks, tmp_path, monkeypatch, name, form):
    filled(medtasks, tmp_path, name, form)
    [record] = json.loads(medtasks("data", "check", "own", "--json").out)["datasets"]
    assert record["faults"] == [] and record["n_usable"] == record["n_test"] > 0


def test_an_unfilled_template_holds_no_rows_and_hides_none(medtasks, tmp_path, monkeypatch):
    medtasks("data", "template", HOSPICE, "-o", "own")
    outcome = medtasks("data", "check", "own")
    assert outcome.code == 1 and "nothing was found there" in outcome.out and "?" not in outcome.out


def test_data_that_is_there_is_never_touched(medtasks, tmp_path):
    folder = filled(medtasks, tmp_path, HOSPICE, "csv")
    (folder / "test.csv").write_text("mine")
    medtasks("data", "template", HOSPICE, "-o", "own", "--format", "csv")
    assert (folder / "test.csv").read_text() == "mine"


def test_the_readme_says_types_and_values(medtasks, tmp_path):
    text = (filled(medtasks, tmp_path, "medhelm_ehrshot", "csv") / "README.md").read_text()
    assert "| `boolean_value` | true or false | true or false |" in text
    assert "| `subject` | one of: guo_readmission, new_hypertension, lab_anemia |" in text
    assert "(optional) |" in text


def test_rows_that_are_downloaded_are_said_to_be(medtasks, tmp_path):
    outcome = medtasks("data", "template", "clinicbench_pubmedqa", "medhelm_clear", "-o", "own")
    assert outcome.out.count("these rows are downloaded; yours would replace them") == 1


def test_another_format_is_refused(medtasks):
    outcome = medtasks("data", "template", HOSPICE, "--format", "ods")
    assert outcome.code == 2 and "use csv, xlsx or jsonl" in outcome.err


@pytest.mark.parametrize("name", PRIVATE)
def test_every_column_of_data_that_users_bring_is_explained(name):
    """Public data explains itself; who fills a file by hand reads the YAML or the template."""
    schema = source_of(registry().datasets[name]).schemas[0]
    assert isinstance(schema.columns, dict), "write the columns as a mapping to what they hold"
    assert all(meaning.strip() for meaning in schema.columns.values())
