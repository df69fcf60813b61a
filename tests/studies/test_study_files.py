"""Tables of studies: how a cell is written, and how figures stand side by side."""

from dataclasses import dataclass

import pytest

from medtasks_ext.cli.tables import spread, texts


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
