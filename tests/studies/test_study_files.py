"""Files of studies that ask a jury: what they may say, and how a cell is written."""

from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name

import pytest

import medtasks_lab
from medtasks_ext.cli.tables import spread, texts
from medtasks_ext.errors import MedtasksError
from medtasks_lab.judge.study import study_file

FILES = [
    path
    for path in Path(medtasks_lab.__file__).parent.rglob("*.yaml")
    if path.read_text().startswith("# `medtasks ") and "reader:" in path.read_text()
]


@dataclass
class Row:
    name: str = "a"
    value: float | None = 0.25
    low: float | None = None


@pytest.mark.parametrize(
    ("columns", "row", "cells"),
    [
        ({"a": "{name}"}, Row(), ("a",)),
        ({"a": "{value:.1f}"}, Row(), ("0.2",)),
        ({"a": "{value:.1f}"}, Row(value=None), ("–",)),
        ({"a": ["{value:.2f} [{low:.2f}]", "{value:.2f}"]}, Row(low=0.1), ("0.25 [0.10]",)),
        ({"a": ["{value:.2f} [{low:.2f}]", "{value:.2f}"]}, Row(), ("0.25",)),
        ({"a": ["{value:.2f} [{low:.2f}]", "{value:.2f}"]}, Row(value=None), ("–",)),
    ],
)
def test_a_cell_is_the_first_format_whose_fields_are_all_there(columns, row, cells):
    assert tuple(texts(heading, form).cell(row) for heading, form in columns.items()) == cells


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_file_names_functions_that_there_are(path):
    file = study_file(path)
    assert callable(resolve_name(file.reader)) and callable(resolve_name(file.writer))
    assert file.tables


def test_studies_that_ask_models_are_files():
    names = {"gold", "departments", "judge_evaluation", "probe"}
    assert {path.stem for path in FILES} == names


def test_figures_stand_side_by_side_by_what_they_are_of():
    rows = [
        {"of": of, "by": by, "value": value}
        for of, by, value in (("a", "x", 1), ("b", "y", None), ("a", "y", 2))
    ]
    cells, columns = spread(rows, [texts("of")], "by", "{value}")
    assert [column.heading for column in columns] == ["of", "x", "y"]
    assert cells == [("a", "1", "2"), ("b", "–", "–")]
    cells, columns = spread(rows, [texts("of")], "by", "{value}", {"y": "Y", "z": "Z"}, blank="")
    assert [column.heading for column in columns] == ["of", "Y", "Z"]
    assert cells == [("a", "2", ""), ("b", "–", "")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("what: x\nreader: a\n", "writer"),
        ("what: x\nreader: a\nwriter: b\ntabels: []\n", "tabels"),
        ("what: x\nreader: a\nwriter: b\ntables: [{frame: rows, columns: {}}]\n", "columns"),
    ],
)
def test_a_file_that_is_none_is_named_with_what_is_wrong(tmp_path, content, message):
    path = tmp_path / "study.yaml"
    path.write_text(content)
    with pytest.raises(MedtasksError, match=message) as error:
        study_file(path)
    assert error.value.where == path
