"""Rows of an XML file."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from typing import TYPE_CHECKING

from medtasks_ext.errors import MedtasksError

if TYPE_CHECKING:
    from medtasks_ext.rows.files import Row


def element_rows(content: bytes, where: str) -> list[Row]:
    """A row per child of the root: its attributes, and its children by name.

    A child without attributes and children of its own is its text; others are lists of such
    dictionaries, also where there is only one.

    Raises:
        MedtasksError: the content is not XML.
    """
    try:
        root = ElementTree.fromstring(content)
    except ElementTree.ParseError as error:
        raise MedtasksError(f"is not valid XML ({error})", where=where, remedy="download it again") from None
    return [_fields(element) for element in root]


def _fields(element: ElementTree.Element) -> Row:
    fields: Row = dict(element.attrib)
    for child in element:
        if len(child) or child.attrib:
            fields.setdefault(child.tag, []).append(_fields(child))
        else:
            fields[child.tag] = (child.text or "").strip()
    return fields
