"""Frames: one schema each, which the documentation lists and every output has."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
import yaml

from medtasks_ext.errors import MedtasksError
from medtasks_ext.results.conditions import facts
from medtasks_ext.results.frames import FRAMES, names, records, schema, table
from medtasks_ext.runs.conditions import Conditions

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("frame", FRAMES)
def test_each_column_says_what_it_means(frame):
    found = schema(frame)
    assert found.names == names(frame) and len({*found.names}) == len(found.names)
    assert all(field.metadata[b"meaning"] for field in found)


def test_each_condition_that_is_compared_has_a_column():
    assert set(names("conditions")) == {"entry", "task", *facts(Conditions())}


def test_a_frame_has_all_columns_and_no_other_type():
    columns = {name: [] for name in names("labels")}
    assert table("labels", columns).schema.equals(schema("labels"), check_metadata=True)
    with pytest.raises(KeyError):
        table("labels", {"entry": []})
    with pytest.raises(pa.ArrowInvalid):
        table("labels", {**columns, "tasks": ["many"]})


def test_records_inside_lists_become_lists_in_json():
    row = {name: [None] for name in names("standings")}
    row |= {"rivals": [[("a", 0.5)]], "reasons": [[("budget", 3)]]}
    [found] = records(table("standings", row))
    assert found["rivals"] == [["a", 0.5]] and found["reasons"] == {"budget": 3}
    assert found["rank_range"] is None
    assert json.loads(json.dumps(found)) == found


def test_an_axis_with_the_name_of_another_column_is_refused(tmp_path, monkeypatch):
    folder = tmp_path / "wards"
    folder.mkdir()
    said = {
        "title": "WardBench", "about": "wards", "citation": "", "axes": {"source": {"values": {"er": "ER"}}},
        "groups": {"source": ""}, "partition": ["source"], "main_axes": ["source"], "sections": "source",
        "assigned_by": "medtasks", "datasets": [],
    }  # fmt: skip
    (folder / "suite.yaml").write_text(yaml.safe_dump(said), encoding="utf-8")
    monkeypatch.setenv("MEDTASKS_TASKS", str(tmp_path))
    with pytest.raises(MedtasksError, match=r"axes\.source: tables of results have") as caught:
        schema("results")
    assert str(folder / "suite.yaml") in str(caught.value)
