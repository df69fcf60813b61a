"""The paragraphs of a Word file, with the colours of their text."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, TypedDict

from medtasks_ext.errors import MedtasksError

if TYPE_CHECKING:
    from docx.text import paragraph as word


class Paragraph(TypedDict):
    """A paragraph of a document."""

    text: str
    #: the distinct hexadecimal RGB values that runs of text are given directly (`FF0000`), not those of
    #: styles and themes
    colours: list[str]


class Block(TypedDict):
    """Paragraphs that belong together."""

    head: str  # the stripped first one
    body: str  # the stripped others, on a line each
    colours: list[str]  # of the others


def paragraphs(content: bytes, where: str) -> list[Paragraph]:
    """The paragraphs of the body, those of tables aside, in order.

    Raises:
        MedtasksError: the content is no .docx file.
    """
    from docx import Document

    try:
        found = Document(io.BytesIO(content)).paragraphs
    except Exception:  # python-docx has no error for damaged files: a part that is missing is a KeyError
        raise MedtasksError("is not a Word (.docx) file", where=where, remedy="download it again") from None
    return [Paragraph(text=item.text, colours=_colours(item)) for item in found]


def blocks(found: Iterable[Paragraph], pattern: str) -> list[Block]:
    """Paragraphs in blocks, each beginning with a paragraph whose stripped text matches the pattern there.

    What precedes the first block is left out.
    """
    begins, parts = re.compile(pattern), list[tuple[str, list[str], list[str]]]()
    for paragraph in found:
        text = paragraph["text"].strip()
        if begins.match(text):
            parts.append((text, [], []))
        elif parts:
            _, body, colours = parts[-1]
            body.append(text)
            colours += [item for item in paragraph["colours"] if item not in colours]
    return [Block(head=head, body="\n".join(body).strip(), colours=colours) for head, body, colours in parts]


def _colours(paragraph: word.Paragraph) -> list[str]:
    given = [str(run.font.color.rgb) for run in paragraph.runs if run.font.color.rgb is not None]
    return list(dict.fromkeys(given))
