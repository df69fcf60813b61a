"""The cells of an .xlsx file's first sheet, as texts (ECMA-376, part 1, 18.3 and 18.4)."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ElementTree
import zipfile
from typing import TYPE_CHECKING

from medtasks_ext.errors import MedtasksError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from medtasks_ext.data.originals.tree import SourceFile

_NS = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"


def sheet_cells(file: SourceFile) -> Iterator[list[str]]:
    """Rows of cells; cells that the file leaves out are empty texts, and so is the end of a short row.

    Raises:
        MedtasksError: the file is no .xlsx workbook.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(file.read())) as book:
            names = book.namelist()
            shared: list[str] = []
            if "xl/sharedStrings.xml" in names:
                strings = ElementTree.fromstring(book.read("xl/sharedStrings.xml"))
                shared = [_text(item) for item in strings.iter(f"{_NS}si")]
            first = min(name for name in names if re.fullmatch(r"xl/worksheets/sheet\d+\.xml", name))
            sheet = ElementTree.fromstring(book.read(first))
    except (zipfile.BadZipFile, KeyError, ValueError, ElementTree.ParseError):
        raise MedtasksError(
            "is not an .xlsx workbook", where=file.where, remedy="download it again"
        ) from None
    rows = [
        {_column(cell.get("r", "")): _value(cell, shared) for cell in row.iter(f"{_NS}c")}
        for row in sheet.iter(f"{_NS}row")
    ]
    width = max((max(row, default=0) for row in rows), default=0)
    return ([row.get(place, "") for place in range(1, width + 1)] for row in rows)


def _text(item: ElementTree.Element) -> str:
    """The text of a string item, its phonetic guides left out."""
    runs = [child for child in item if child.tag in (f"{_NS}t", f"{_NS}r")]
    return "".join(part.text or "" for run in runs for part in run.iter(f"{_NS}t"))


def _column(reference: str) -> int:
    place = 0
    for letter in reference.rstrip("0123456789"):
        place = place * 26 + ord(letter) - ord("A") + 1
    return place


def _value(cell: ElementTree.Element, shared: list[str]) -> str:
    if cell.get("t") == "inlineStr":
        inline = cell.find(f"{_NS}is")
        return "" if inline is None else _text(inline)
    value = cell.find(f"{_NS}v")
    if value is None or value.text is None:
        return ""
    return shared[int(value.text)] if cell.get("t") == "s" else value.text
