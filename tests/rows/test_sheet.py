"""Workbooks: cells as the file holds them, whatever they look like in a spreadsheet program."""

import io
from datetime import datetime

import openpyxl
import pytest
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont

from medtasks_ext.rows.originals.readers import SourceFile, cells_of
from tests.rows.test_formats import HEADER, OLD_WORKBOOK, ROWS


def cells(book: openpyxl.Workbook) -> list[list[str]]:
    content = io.BytesIO()
    book.save(content)
    return list(cells_of(SourceFile("a.xlsx", "a.xlsx", lambda: io.BytesIO(content.getvalue()))))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("  two\nlines ", "  two\nlines "), (4, "4"), (3.5, "3.5"), (123456789012, "123456789012"),
        (True, "1"), (False, "0"),
        (datetime(2020, 5, 1), "43952"),  # "1-5" that a program took for a date
        (CellRichText("a ", TextBlock(InlineFont(b=True), "bold"), " word"), "a bold word"),
    ],
)  # fmt: skip
def test_a_cell_is_the_text_that_the_file_holds(value, text):
    book = openpyxl.Workbook()
    book.active.append(["x", value])
    assert cells(book) == [["x", text]]


def test_rows_are_equally_long_and_cells_that_the_file_leaves_out_are_empty():
    book = openpyxl.Workbook()
    book.active["C1"], book.active["A3"] = "end", "start"
    assert cells(book) == [["", "", "end"], ["", "", ""], ["start", "", ""]]


def test_the_first_sheet_is_the_one_that_a_reader_sees_first():
    book = openpyxl.Workbook()
    book.active.append(["second"])
    book.create_sheet("front", 0).append(["first"])
    assert cells(book) == [["first"]]


def test_of_an_old_workbook_the_first_sheet_is_read_too():
    file = SourceFile("a.xls", "a.xls", lambda: io.BytesIO(OLD_WORKBOOK.read_bytes()))
    assert list(cells_of(file)) == [HEADER, *ROWS]
