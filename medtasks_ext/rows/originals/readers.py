"""brat standoff: a text and, beside it, its annotations (https://brat.nlplab.org/standoff.html)."""

from __future__ import annotations

import csv
import io
import re
import warnings
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypedDict

from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import parse_json
from medtasks_ext.privacy import describe_columns, excerpt
from medtasks_ext.rows.files import parse_rows
from medtasks_ext.rows.filters import spans
from medtasks_ext.rows.originals.tree import AGAIN, UNCHANGED, WHOLE, SourceFile, matching, only
from medtasks_ext.rows.row import Row
from medtasks_ext.rows.spec import (
    BratReader,
    CasReader,
    InlineReader,
    LinesReader,
    Reader,
    RowsReader,
    TableReader,
    TokensReader,
    XmlReader,
)

if TYPE_CHECKING:
    from openpyxl.cell import Cell
    from typing_extensions import NotRequired

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


# ----------------------------------------------------------------------
# UIMA CAS in JSON (INCEpTION, WebAnno): a text and its annotations by offset.


def read_cas(reader: CasReader, file: SourceFile) -> list[Annotated]:
    """The document of a file, or its passages, without relations."""
    try:
        features = parse_json(file.text("utf-8"))["%FEATURE_STRUCTURES"]
        text = next(item["sofaString"] for item in features if item["%TYPE"] == "uima.cas.Sofa")
        entities = [
            Entity(type=item[reader.feature], start=item["begin"], end=item["end"])
            for item in features
            if item["%TYPE"] == reader.type and item.get(reader.feature)
        ]
    except (ValueError, KeyError, TypeError, StopIteration):
        raise MedtasksError("is not a UIMA CAS in JSON", where=file.where, remedy=UNCHANGED) from None
    if any(not 0 <= item["start"] <= item["end"] <= len(text) for item in entities):
        raise MedtasksError("has an annotation outside its text", where=file.where, remedy=UNCHANGED)
    for item in entities:
        item["text"] = " ".join(text[item["start"] : item["end"]].split())
    ordered = sorted(entities, key=lambda item: (item["start"], item["end"]))
    document = Annotated(id=file.path.name.partition(".")[0], text=text, entities=ordered)
    return lines_of(document, reader.words) if reader.words else [document]


# ----------------------------------------------------------------------
# The cells of the first sheet of an .xlsx or .xls file, as texts.


def sheet_cells(file: SourceFile) -> Iterator[list[str]]:
    """Rows of cells, all of the same length; empty cells are empty texts."""
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
        raise MedtasksError("is not an .xlsx workbook", where=file.where, remedy=AGAIN) from None
    return ([_text(cell, book.epoch) for cell in row] for row in sheet.iter_rows())


def _old_cells(file: SourceFile) -> Iterator[list[str]]:
    import xlrd

    try:
        sheet = xlrd.open_workbook(file_contents=file.read()).sheet_by_index(0)
    except xlrd.XLRDError:
        raise MedtasksError("is not an .xls workbook", where=file.where, remedy=AGAIN) from None
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


_TAGGED = re.compile(r"<(\w+)>([^<>]*)</\1>")
_TAG = re.compile(r"</?\w+>")


@dataclass(frozen=True)
class Record:
    fields: Mapping[str, Any]
    where: str
    file: str = ""


def records(reader: Reader, files: list[SourceFile], patterns: list[str]) -> Iterator[Record]:
    """The records of all files that the patterns name, in order."""
    if isinstance(reader, BratReader):
        yield from _brat(reader, files, patterns)
        return
    if isinstance(reader, LinesReader):
        yield from _lines(reader, matching(files, patterns))
        return
    for file in matching(files, patterns):
        match reader:
            case RowsReader():
                rows: Iterable[Mapping[str, Any]] = rows_of(file)
            case TableReader():
                rows = _table(reader, file)
            case TokensReader():
                rows = _tokens(reader, file)
            case CasReader():
                rows = read_cas(reader, file)
            case XmlReader():
                rows = _xml(reader, file)
            case InlineReader():
                rows = _inline(reader, file)
        for number, fields in enumerate(rows, start=1):
            yield Record(fields, f"{file.where}, record {number}", file.path.stem)


def lacks(record: Record, name: str) -> MedtasksError:
    what = f"{name} is missing or not as expected ({describe_columns(list(record.fields), [name])})"
    return MedtasksError(what, where=record.where, remedy=UNCHANGED)


def rows_of(file: SourceFile) -> Iterable[Row]:
    if file.path.suffix == ".csv":
        return _csv(file)
    return parse_rows(file.read(), file.path.suffix, file.where)


def _csv(file: SourceFile) -> Iterator[Row]:
    """Rows as they are read: the largest files hold gigabytes of notes."""
    with file.stream() as content:
        lines = io.TextIOWrapper(content, encoding="utf-8-sig", newline="")
        try:
            reader = csv.reader(lines)
            columns = next(reader, [])
            for number, cells in enumerate(reader, start=1):
                if any(cells):
                    yield _row(columns, cells, file, number + 1)
        except (UnicodeDecodeError, csv.Error) as error:
            what = f"is not a CSV file in UTF-8 ({error})"
            remedy = "put the authors' file there, not converted"
            raise MedtasksError(what, where=file.where, remedy=remedy) from None


def _lines(reader: LinesReader, files: list[SourceFile]) -> Iterator[Record]:
    columns = {
        name: list(io.StringIO(only(files, pattern).text(), newline=None))
        for name, pattern in reader.columns.items()
    }
    sizes = {name: len(lines) for name, lines in columns.items()}
    place = files[0].where
    if len(set(sizes.values())) > 1:
        raise MedtasksError(
            "files that belong together have different numbers of lines: "
            + ", ".join(f"{name} {size}" for name, size in sizes.items()),
            where=place,
            remedy=UNCHANGED,
        )
    for number, texts in enumerate(zip(*columns.values(), strict=True), start=1):
        fields = dict(zip(columns, (text.strip() for text in texts), strict=True))
        yield Record({"id": str(number), **fields}, f"{place}, line {number}", files[0].path.stem)


def _brat(reader: BratReader, files: list[SourceFile], patterns: list[str]) -> Iterator[Record]:
    texts = matching(files, patterns)
    annotations = {file.path.with_suffix(""): file for file in files if file.path.suffix == ".ann"}
    folders = {file.path.parent for file in texts}
    named = {file.path.with_suffix("") for file in texts}
    for path, file in annotations.items():
        if path.parent in folders and path not in named:
            raise MedtasksError(f"has no {path.name}.txt beside it", where=file.where, remedy=WHOLE)
    for text in texts:
        annotation = annotations.get(text.path.with_suffix(""))
        if annotation is None:
            raise MedtasksError(f"has no {text.path.stem}.ann beside it", where=text.where, remedy=WHOLE)
        document = read_brat(text, annotation)
        by_line = reader.unit == "line" or reader.words
        for item in lines_of(document, reader.words) if by_line else [document]:
            yield Record(item, text.where)


def _cells(
    file: SourceFile, separator: str, encoding: str = "utf-8-sig", *, quoted: bool
) -> Iterator[list[str]]:
    if file.path.suffix in (".xlsx", ".xls"):
        yield from sheet_cells(file)
        return
    text = file.text(encoding)
    if quoted:
        yield from csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    else:
        yield from (line.rstrip("\r").split(separator) for line in text.split("\n"))


def _table(reader: TableReader, file: SourceFile) -> Iterator[Row]:
    columns = reader.columns
    for number, cells in enumerate(
        _cells(file, reader.separator, reader.encoding, quoted=reader.quoted), start=1
    ):
        if not any(cell.strip() for cell in cells):
            continue
        if not columns:
            columns = [cell.strip() for cell in cells]
            continue
        yield _row(columns, cells, file, number)


def _row(columns: list[str], cells: list[str], file: SourceFile, number: int) -> Row:
    if len(cells) != len(columns):
        what = f"line {number} has {len(cells)} cells, not {len(columns)} ({', '.join(columns)})"
        raise MedtasksError(what, where=file.where, remedy=UNCHANGED)
    return dict(zip(columns, cells, strict=True))


def _tokens(reader: TokensReader, file: SourceFile) -> Iterator[Row]:
    blocks: list[list[Row]] = [[]]
    for number, cells in enumerate(_cells(file, "\t", quoted=False), start=1):
        if not any(cell.strip() for cell in cells):
            if reader.unit == "block" and blocks[-1]:
                blocks.append([])
        elif not (reader.comment and cells[0].startswith(reader.comment)):
            blocks[-1].append(_row(reader.columns, [cell.strip() for cell in cells], file, number))
    for number, block in enumerate((block for block in blocks if block), start=1):
        words = [row["token"] for row in block]
        yield {
            "id": file.path.stem if reader.unit == "file" else str(number),
            "folder": file.path.parent.name,
            "text": " ".join(words),
            "entities": spans(words, [row["tag"] for row in block], scheme=reader.scheme),
        }


def _xml(reader: XmlReader, file: SourceFile) -> Iterator[Row]:
    try:
        root = ElementTree.fromstring(file.read())
    except ElementTree.ParseError as error:
        raise MedtasksError(f"is not valid XML ({error})", where=file.where, remedy=AGAIN) from None
    for element in root.iter(reader.element) if reader.element else [root]:
        yield {**element.attrib, **{child.tag: _child(child, reader.attribute) for child in element}}


def _child(element: ElementTree.Element, attribute: str | None) -> Any:
    """Its text, or its elements' names and their attribute."""
    if attribute and len(element):
        return {child.tag: child.attrib[attribute] for child in element if attribute in child.attrib}
    return "".join(element.itertext()).strip()


def _inline(reader: InlineReader, file: SourceFile) -> Iterator[Row]:
    for number, line in enumerate(io.StringIO(file.text(), newline=None), start=1):
        if not line.strip():
            continue
        if _TAG.search(_TAGGED.sub("", line)):
            raise MedtasksError(
                f"line {number} has a tag without its counterpart", where=file.where, remedy=UNCHANGED
            )
        entities = [{"type": kind, "text": text.strip()} for kind, text in _TAGGED.findall(line)]
        yield {"id": str(number), "text": _TAG.sub("", line).strip(), "entities": entities}
