"""JSON that somebody else wrote, and CSV for people: read within limits, and no cell is a formula."""

import csv
import json
import re
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from medtasks_ext import jsonfile
from medtasks_ext.answers.reader import items
from medtasks_ext.answers.reader.words import reply_of
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import MAX_DEPTH, JsonError, parse_json
from medtasks_ext.rows.files import read_rows
from medtasks_ext.tables import as_written, plain

#: marks of a trace and of a turn, which cut an answer wherever they stand: `</think>`, `<|im_end|>`
MARK = re.compile(r"<.*>|\[/?think\]|◁.*▷|assistantfinal", re.IGNORECASE | re.DOTALL)


def values_with(text: st.SearchStrategy[str]) -> st.SearchStrategy[object]:
    """Values of JSON with these texts, as names of fields too."""
    return st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text,
        lambda inner: st.lists(inner) | st.dictionaries(text, inner),
    )


VALUES = values_with(st.text())
TEXTS_OF_ANSWERS = st.text().filter(lambda text: not MARK.search(text))
VALUES_OF_ANSWERS = values_with(TEXTS_OF_ANSWERS)


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


@given(VALUES)
def test_what_json_wrote_is_read_back(value):
    text = json.dumps(value)
    assert parse_json(text) == parse_json(text.encode(), strict=True) == value


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (nested(MAX_DEPTH + 1), "nested too deeply"),
        ('{"a":' * 100_000, "nested too deeply"),
        ("9" * 5_000, "thousands of digits"),
        (b'{"a": "\xff"}', "not UTF-8"),
    ],
)
def test_limits_do_not_depend_on_how_deep_the_caller_stands(content, reason):
    with pytest.raises(JsonError, match=reason) as caught:
        parse_json(content)
    assert caught.value.line == 0


@pytest.mark.parametrize("content", ['["aaaaaaaaaa"]', b'["aaaaaaaaaa"]'])
def test_a_text_beyond_the_size_is_refused_before_it_is_read(content, monkeypatch, tmp_path):
    monkeypatch.setattr(jsonfile, "MAX_SIZE", len(content))
    assert parse_json(content) == ["aaaaaaaaaa"]
    monkeypatch.setattr(jsonfile, "MAX_SIZE", len(content) - 1)
    with pytest.raises(JsonError, match="more than"):
        parse_json(content)
    (tmp_path / "rows.json").write_text('[{"a": "aaaaaaaaaaaa"}]')
    with pytest.raises(MedtasksError, match="more than") as caught:
        list(read_rows(tmp_path / "rows.json"))
    assert caught.value.remedy


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', '{"a": NaN}', "[Infinity]"])
def test_strict_reading_refuses_what_has_two_meanings(text):
    parse_json(text)
    with pytest.raises(JsonError):
        parse_json(text, strict=True)


def in_answer(text: str) -> list[tuple[object, items.Span]]:
    """What the reader of models' answers finds, which forgives slips."""
    return items.values(text, reply_of(text))


@given(st.lists(VALUES_OF_ANSWERS) | st.dictionaries(TEXTS_OF_ANSWERS, VALUES_OF_ANSWERS))
def test_json_without_slips_is_the_same_to_the_reader_of_answers(value):
    text = json.dumps(value)
    assert [value for value, _ in in_answer(text)] == [parse_json(text)]


@pytest.mark.parametrize("cut", (1, 7, 20, 39))
def test_records_before_the_place_where_an_answer_breaks_off_are_read(cut):
    records = [{"entity": f"e{number}", "type": "dis"} for number in range(4)]
    text = json.dumps(records)
    [(found, _)] = in_answer(text[:-cut])
    assert found[:2] == records[:2] and all(isinstance(item, dict) for item in found)


SLIPS = {
    "single quotes": "[{'a': 'it is 5', 'b': null}]",
    "a comma too many": '[{"a": "it is 5", "b": null,},]',
    "full width": "［｛“a”： “it is 5”， “b”： null｝］",
    "a comment": '[{"a": "it is 5", // as said\n "b": null}]',
    "keys without quotes": '[{a: "it is 5", b: null}]',
}


@pytest.mark.parametrize("text", SLIPS.values(), ids=SLIPS)
def test_slips_are_forgiven(text):
    assert [value for value, _ in in_answer(f"Result: {text} as asked")] == [[{"a": "it is 5", "b": None}]]


PIECES = ["[", "{", "]", "}", '"', "'", ":", ",", '"a":', "{'a':", "1", "//a\n", "\\", "x ", "\n", "9" * 50]


def calls_of(text: str) -> int:
    """Calls of functions, Python's own included, that one reading takes."""
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    reply = reply_of(text)
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        items.values(text, reply)
    finally:
        sys.setprofile(before)
    return calls


@settings(deadline=None, max_examples=40)
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=6).map("".join))
def test_reading_an_answer_takes_no_more_steps_than_its_length_allows(unit):
    """Steps are counted, not seconds: sixteen times the text takes at most some sixteen times the steps."""
    once, more = calls_of(unit * 50), calls_of(unit * 800)
    assert more <= 20 * once + 2_000


# CSV for people: no cell is a formula, and numbers stay numbers.


FORMULAS = ["=cmd|calc!A0", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "-", "=1", "-x", "+49 30 1"]
OTHERS = ["", "a=b", "-1", "-0.5", "+3", "-1e-3", "-inf", 0.5, -1, None, True, "'x", " =1"]


@pytest.mark.parametrize("cell", FORMULAS)
def test_what_a_spreadsheet_would_compute_is_shown_as_text_and_can_be_read_back(cell):
    assert plain(cell) == f"'{cell}" and as_written(plain(cell)) == cell


@pytest.mark.parametrize("cell", OTHERS)
def test_everything_else_stays(cell):
    assert plain(cell) is cell and (not isinstance(cell, str) or as_written(cell) == cell)


def test_reports_and_tables_of_a_model_with_a_hostile_name(medtasks, chip_ctc):
    asked = ("--tasks", "bridge_chip_ctc", "--model_args", "model==cmd|calc!A0", "--output_path", "run")
    assert medtasks("run", "--model", "oracle", *asked).code == 0
    assert medtasks("report", "run", "-o", "report", "--published", "none").code == 0
    assert medtasks("compare", "run", "run", "-o", "compare").code in (0, 1, 2)
    tables = [*Path("report").glob("*.csv"), *Path("compare").glob("*.csv")]
    assert tables
    for table in tables:
        with table.open(newline="", encoding="utf-8-sig") as file:
            for cell in (cell for row in csv.reader(file) for cell in row):
                assert plain(cell) == cell, (table, cell)
