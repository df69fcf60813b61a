"""The paragraphs of a Word file, with the colours of their text (ECMA-376, part 1, 17.3)."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ElementTree
import zipfile
from typing import TYPE_CHECKING, Any

from medtasks_ext.errors import MedtasksError

if TYPE_CHECKING:
    from collections.abc import Iterable

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_CHARACTERS = {f"{_W}tab": "\t", f"{_W}cr": "\n", f"{_W}noBreakHyphen": "-"}


def paragraphs(content: bytes, where: str) -> list[dict[str, Any]]:
    """The paragraphs of the body, those of tables aside, in order.

    Returns:
        `{"text": str, "colours": [str]}` each; colours are the distinct hexadecimal RGB values that
        runs of text are given directly (`FF0000`), not those of styles and themes.

    Raises:
        MedtasksError: the content is no .docx file.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            body = ElementTree.fromstring(archive.read("word/document.xml")).find(f"{_W}body")
    except (zipfile.BadZipFile, KeyError, ElementTree.ParseError):
        body = None
    if body is None:
        raise MedtasksError("is not a Word (.docx) file", where=where, remedy="download it again")
    return [
        {"text": _text(paragraph), "colours": _colours(paragraph)} for paragraph in body.findall(f"{_W}p")
    ]


def blocks(found: Iterable[dict[str, Any]], pattern: str) -> list[dict[str, Any]]:
    """Paragraphs in blocks, each beginning with a paragraph whose stripped text matches the pattern there.

    Returns:
        `{"head": str, "body": str, "colours": [str]}` each: the stripped first paragraph, the stripped
        others on a line each, and the colours of the others. What precedes the first block is left out.
    """
    begins, parts = re.compile(pattern), list[dict[str, Any]]()
    for paragraph in found:
        text = paragraph["text"].strip()
        if begins.match(text):
            parts.append({"head": text, "body": [], "colours": []})
        elif parts:
            parts[-1]["body"].append(text)
            parts[-1]["colours"] += [
                item for item in paragraph["colours"] if item not in parts[-1]["colours"]
            ]
    return [{**part, "body": "\n".join(part["body"]).strip()} for part in parts]


def _text(paragraph: ElementTree.Element) -> str:
    """The text of the paragraph's runs, of those in hyperlinks, too."""
    runs = [
        run
        for child in paragraph
        for run in ([child] if child.tag == f"{_W}r" else child.findall(f"{_W}r"))
        if child.tag in (f"{_W}r", f"{_W}hyperlink")
    ]
    return "".join(_piece(piece) for run in runs for piece in run)


def _piece(piece: ElementTree.Element) -> str:
    if piece.tag == f"{_W}t":
        return piece.text or ""
    if piece.tag == f"{_W}br":  # breaks of pages and columns are no text
        return "\n" if piece.get(f"{_W}type", "textWrapping") == "textWrapping" else ""
    return _CHARACTERS.get(piece.tag, "")


def _colours(paragraph: ElementTree.Element) -> list[str]:
    given = [colour.get(f"{_W}val", "") for colour in paragraph.findall(f"{_W}r/{_W}rPr/{_W}color")]
    return list(dict.fromkeys(given))
