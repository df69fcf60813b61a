"""CSV for people: no cell is a formula, and numbers stay numbers."""

import csv
from pathlib import Path

import pytest

import medtasks_ext
from medtasks_ext.tables import as_written, csv_table, plain, write_csv

FORMULAS = ["=cmd|calc!A0", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "-", "=1", "-x", "+49 30 1"]
OTHERS = ["", "a=b", "-1", "-0.5", "+3", "-1e-3", "-inf", 0.5, -1, None, True, "'x", " =1"]


@pytest.mark.parametrize("cell", FORMULAS)
def test_what_a_spreadsheet_would_compute_is_shown_as_text_and_can_be_read_back(cell):
    assert plain(cell) == f"'{cell}" and as_written(plain(cell)) == cell


@pytest.mark.parametrize("cell", OTHERS)
def test_everything_else_stays(cell):
    assert plain(cell) is cell and (not isinstance(cell, str) or as_written(cell) == cell)


def test_a_table_has_its_columns_and_cells(tmp_path):
    rows = [{"model": "=1+1", "score": -0.5}, {"model": 'm,\n"x"', "score": None}]
    write_csv(tmp_path / "t.csv", rows)
    with (tmp_path / "t.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [["model", "score"], ["'=1+1", "-0.5"], ['m,\n"x"', ""]]
    assert csv_table([]) == "" and csv_table([], ["a"]) == "a\r\n"


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


def test_all_csv_goes_through_one_writer():
    """The report's lines quote by `plain`."""
    packages = [Path(package.__file__).parent for package in (medtasks_ext,)]
    found = {
        str(path.relative_to(package))
        for package in packages
        for path in package.rglob("*.py")
        if "csv.writer(" in path.read_text() or "DictWriter(" in path.read_text()
    }
    assert found == {"tables.py"}
