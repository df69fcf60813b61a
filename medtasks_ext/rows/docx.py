"""The paragraphs of a Word file, with the colours of their text."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from medtasks_ext.errors import MedtasksError

if TYPE_CHECKING:
    from docx.text.paragraph import Paragraph


def paragraphs(content: bytes, where: str) -> list[dict[str, Any]]:
    """The paragraphs of the body, those of tables aside, in order.

    Returns:
        `{"text": str, "colours": [str]}` each; colours are the distinct hexadecimal RGB values that
        runs of text are given directly (`FF0000`), not those of styles and themes.

    Raises:
        MedtasksError: the content is no .docx file.
    """
    from docx import Document

    try:
        found = Document(io.BytesIO(content)).paragraphs
    except Exception:  # python-docx has no error for damaged files: a part that is missing is a KeyError
        raise MedtasksError("is not a Word (.docx) file", where=where, remedy="download it again") from None
    return [{"text": paragraph.text, "colours": _colours(paragraph)} for paragraph in found]


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


def _colours(paragraph: Paragraph) -> list[str]:
    given = [str(run.font.color.rgb) for run in paragraph.runs if run.font.color.rgb is not None]
    return list(dict.fromkeys(given))
