"""brat standoff: a text and, beside it, its annotations (https://brat.nlplab.org/standoff.html)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypedDict

from medtasks_ext.errors import MedtasksError
from medtasks_ext.privacy import excerpt

if TYPE_CHECKING:
    from typing_extensions import NotRequired

    from medtasks_ext.rows.originals.tree import SourceFile

_REMEDY = "put the authors' .txt and .ann files there, unchanged"
_ID = re.compile(r"[TRAM#]\d")
_SPAN = re.compile(r"(\S+) (\d+ \d+(?:;\d+ \d+)*)")


class _Placed(TypedDict):
    type: str
    start: int
    end: int


class Entity(_Placed, total=False):
    """Of a file that is not brat, type and place alone. Offsets count characters."""

    id: str
    text: str
    parts: list[str]  # the text piece by piece
    note: str
    attributes: dict[str, str]
    relations: list[Relation]  # those that go out from it


class Relation(TypedDict):
    type: str
    source: Entity
    target: Entity


class Annotated(TypedDict):
    id: str
    text: str
    entities: list[Entity]
    relations: NotRequired[list[Relation]]


def read_brat(text_file: SourceFile, annotation_file: SourceFile) -> Annotated:
    """One document with its entities in the order of the text; MedtasksError where the two disagree."""
    text = text_file.text("utf-8")
    entities: dict[str, Entity] = {}
    later: list[tuple[int, list[str]]] = []
    for number, line in enumerate(annotation_file.text("utf-8").split("\n"), start=1):
        cells = line.rstrip("\r").split("\t")
        if not _ID.match(cells[0]):
            continue
        if cells[0].startswith("T"):
            entities[cells[0]] = _entity(cells, text, f"{annotation_file.where}, line {number}")
        else:
            later.append((number, cells))
    relations = []
    for number, cells in later:
        where = f"{annotation_file.where}, line {number}"
        if len(cells) < 2:
            raise MedtasksError("is not a brat annotation", where=where, remedy=_REMEDY)
        kind, *arguments = cells[1].split()
        if cells[0].startswith("R"):
            if len(arguments) != 2:
                raise MedtasksError("a relation needs two arguments", where=where, remedy=_REMEDY)
            source, target = (_known(entities, item.partition(":")[2], where) for item in arguments)
            relation = Relation(type=kind, source=source, target=target)
            relations.append(relation)
            source["relations"].append(relation)
        elif arguments and arguments[0] in entities:  # notes may be on relations, which nothing here needs
            if cells[0].startswith("#"):
                entities[arguments[0]]["note"] = cells[2].strip() if len(cells) > 2 else ""
            else:
                entities[arguments[0]]["attributes"][kind] = " ".join(arguments[1:])
    ordered = sorted(entities.values(), key=lambda entity: (entity["start"], entity["end"]))
    return {"id": text_file.path.stem, "text": text, "entities": ordered, "relations": relations}


def lines_of(document: Annotated, words: int | None = None) -> list[Annotated]:
    """The document cut into its lines that are not blank, each with the annotations that begin in it.

    Lines that follow each other are joined, as long as they have no more words than `words`.
    """
    lines: list[Annotated] = []
    start = 0
    for number, line in enumerate(_joined(document["text"].split("\n"), words), start=1):
        end = start + len(line)
        if line.strip():
            inside = [entity for entity in document["entities"] if start <= entity["start"] <= end]
            relations = [
                item
                for item in document.get("relations", [])
                if start <= item["source"]["start"] <= end and start <= item["target"]["start"] <= end
            ]
            found = Annotated(id=f"{document['id']}-{number}", text=line.strip(), entities=inside)
            lines.append({**found, "relations": relations})
        start = end + 1
    return lines


def _joined(lines: list[str], words: int | None) -> list[str]:
    if words is None:
        return lines
    documents = lines[:1]
    for line in lines[1:]:
        if len(documents[-1].split()) + len(line.split()) <= words:
            documents[-1] += "\n" + line
        else:
            documents.append(line)
    return documents


def _entity(cells: list[str], text: str, where: str) -> Entity:
    match = _SPAN.fullmatch(cells[1].strip()) if len(cells) > 2 else None
    if not match:
        raise MedtasksError("is not a brat annotation", where=where, remedy=_REMEDY)
    offsets = [tuple(map(int, part.split())) for part in match[2].split(";")]
    words = "\t".join(cells[2:])
    if any(not start <= end <= len(text) for start, end in offsets):
        what = f"annotation {cells[0]} is outside the text of {len(text)} characters"
        raise MedtasksError(what, where=where, remedy=_REMEDY)
    parts = [" ".join(text[start:end].split()) for start, end in offsets]
    there, said = " ".join(" ".join(parts).split()), " ".join(words.split())
    # brat writes the line ends of an annotation into its file, so that its line ends at the first of them
    is_cut = any("\n" in text[start:end] for start, end in offsets) and there.startswith(said)
    if there != said and not is_cut:
        has = f"the text has {excerpt(' '.join(parts), 60)} there"
        what = f"annotation {cells[0]} says {excerpt(words, 60)}, {has}"
        raise MedtasksError(what, where=where, remedy=_REMEDY)
    return {
        "id": cells[0],
        "type": match[1],
        "text": there if is_cut else words.strip(),
        "parts": parts,
        "start": offsets[0][0],
        "end": offsets[-1][1],
        "note": "",
        "attributes": {},
        "relations": [],
    }


def _known(entities: dict[str, Entity], name: str, where: str) -> Entity:
    if name not in entities:
        raise MedtasksError(f"refers to {excerpt(name)}, which is not annotated", where=where, remedy=_REMEDY)
    return entities[name]
