"""Columns of the page's data: packed and unpacked they are what they were."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtasks_ext.report.payload import number, packed
from tests.report.made import unpacked


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ([0] * 5 + [1] * 7, "runs"), ([None] * 20, "runs"), ([True] * 9 + [False] * 9, "runs"),
        ([0.5] * 9 + [None] * 9 + [0.5], "runs"), ([*range(3, 40)], "steps"),
        ([*range(20), *range(20), 7, *range(30)], "steps"), (["bridge", "mlb", None, "medhelm"] * 9, None),
        ([1, 0, 1, 1, 0, 0, 1, 0, 1] * 3, None),
        ([0.1, 0.2, 0.3], None), ([], None),
    ],
)  # fmt: skip
def test_a_column_comes_back_as_it_was(column, kind):
    found = packed(column)
    assert (next(iter(found)) if isinstance(found, dict) else None) == kind
    content = json.loads(json.dumps({"column": found}))
    back = unpacked(content)["column"]
    assert back == column and [*map(type, back)] == [*map(type, column)]
    if column:
        assert len(json.dumps(found)) <= len(json.dumps(column))


@given(st.floats(-1, 1) | st.integers(-1_000_000, 1_000_000).map(lambda n: n / 1_000_000))
def test_a_number_of_the_page_shows_the_digits_of_the_score(score):
    assert f"{number(score):.3f}" == f"{score:.3f}"
