"""The cells of the first sheet of an .xlsx or .xls file, as texts."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from medtasks_ext.errors import MedtasksError

if TYPE_CHECKING:
    from openpyxl.cell import Cell

    from medtasks_lab.originals.tree import SourceFile


def sheet_cells(file: SourceFile) -> Iterator[list[str]]:
    """Rows of cells, all of the same length; empty cells are empty texts.

    Raises:
        MedtasksError: the file is no workbook.
    """
    if file.path.suffix == ".xls":
        return _old_cells(file)
    from openpyxl import load_workbook

    content = io.BytesIO(file.read())
    try:
        with warnings.catch_warnings():  # about parts of the book that hold no text of cells
            warnings.simplefilter("ignore")
            book = load_workbook(content, data_only=True)
        sheet = book.worksheets[0]
    except Exception:  # openpyxl has no error of its own: a damaged part raises one of a dozen
        raise MedtasksError(
            "is not an .xlsx workbook", where=file.where, remedy="download it again"
        ) from None
    return ([_text(cell, book.epoch) for cell in row] for row in sheet.iter_rows())


def _old_cells(file: SourceFile) -> Iterator[list[str]]:
    import xlrd

    try:
        sheet = xlrd.open_workbook(file_contents=file.read()).sheet_by_index(0)
    except xlrd.XLRDError:
        raise MedtasksError("is not an .xls workbook", where=file.where, remedy="download it again") from None
    return ([str(value) for value in sheet.row_values(row)] for row in range(sheet.nrows))


def _text(cell: Cell, epoch: datetime) -> str:
    """What the file holds, whatever the cell looks like: a date is a number of days, a truth value 1 or 0."""
    from openpyxl.utils.datetime import to_excel

    value = cell.value
    if cell.data_type == "d":
        days = to_excel(value, epoch)
        value = int(days) if days == int(days) else days
    elif isinstance(value, bool):
        value = int(value)
    return "" if value is None else str(value)
