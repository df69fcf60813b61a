"""UIMA CAS in JSON (INCEpTION, WebAnno): a text and its annotations by offset."""

from __future__ import annotations

from typing import TYPE_CHECKING

from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import parse_json
from medtasks_lab.originals.brat import Annotated, Entity, lines_of

if TYPE_CHECKING:
    from medtasks_ext.rows.spec import CasReader
    from medtasks_lab.originals.tree import SourceFile


def read_cas(reader: CasReader, file: SourceFile) -> list[Annotated]:
    """The document of a file, or its passages, without relations.

    Raises:
        MedtasksError: the file is no CAS, or an annotation lies outside the text.
    """
    try:
        features = parse_json(file.text("utf-8"))["%FEATURE_STRUCTURES"]
        text = next(item["sofaString"] for item in features if item["%TYPE"] == "uima.cas.Sofa")
        entities = [
            Entity(type=item[reader.feature], start=item["begin"], end=item["end"])
            for item in features
            if item["%TYPE"] == reader.type and item.get(reader.feature)
        ]
    except (ValueError, KeyError, TypeError, StopIteration):
        raise MedtasksError(
            "is not a UIMA CAS in JSON", where=file.where, remedy="put the authors' file there, unchanged"
        ) from None
    if any(not 0 <= item["start"] <= item["end"] <= len(text) for item in entities):
        raise MedtasksError(
            "has an annotation outside its text",
            where=file.where,
            remedy="put the authors' file there, unchanged",
        )
    for item in entities:
        item["text"] = " ".join(text[item["start"] : item["end"]].split())
    ordered = sorted(entities, key=lambda item: (item["start"], item["end"]))
    document = Annotated(id=file.path.name.partition(".")[0], text=text, entities=ordered)
    return lines_of(document, reader.words) if reader.words else [document]
