"""The files of a source, in folders or archives as its owner distributes them, and the records in them."""

from __future__ import annotations

import csv
import gzip
import io
import re
import xml.etree.ElementTree as ElementTree
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, time, timedelta
from functools import cached_property, partial
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import parse_json
from medtasks_ext.privacy import describe_columns, excerpt
from medtasks_ext.rows.files import open_archive, parse_rows, workbook
from medtasks_ext.rows.filters import spans
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

#: What helps where a file is not in its form, where one is missing, and where a download is damaged.
UNCHANGED = "put the authors' files there, unchanged"
WHOLE, AGAIN = "put the complete source there", "download it again"


@dataclass(frozen=True)
class SourceFile:
    name: str  # its path inside the source, with forward slashes; gzipped files are named without `.gz`
    where: str  # its place for messages
    opener: Callable[[], IO[bytes]]  # opens its content, unzipped

    @cached_property
    def path(self) -> PurePosixPath:
        return PurePosixPath(self.name)

    def read(self) -> bytes:
        with self.stream() as content:
            return content.read()

    @contextmanager
    def stream(self) -> Iterator[IO[bytes]]:
        try:
            with self.opener() as content:
                yield content
        except (
            OSError,
            EOFError,  # a gzip file that ends too early
            zipfile.BadZipFile,
            zlib.error,
            RuntimeError,  # encrypted members
        ) as error:
            remedy = "check permissions or download it again"
            raise MedtasksError(f"cannot be read ({error})", where=self.where, remedy=remedy) from None

    def text(self, encoding: str = "utf-8-sig") -> str:
        """The content as text, its line ends as they are, since annotations count characters."""
        try:
            return self.read().decode(encoding)
        except UnicodeDecodeError as error:
            what = f"is not {encoding} text (byte {error.start})"
            remedy = "put the authors' file there, not converted"
            raise MedtasksError(what, where=self.where, remedy=remedy) from None


def files_below(places: Iterable[Path], *, names: Iterable[str] = ()) -> list[SourceFile]:
    """All files in folders and zip archives, sorted by name; `names`: of single files in the source."""
    called = dict(zip(places, names, strict=False))
    files: list[SourceFile] = []
    for place in places:
        inside = {path: path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file()}
        for path, name in ({place: called.get(place, place.name)} if place.is_file() else inside).items():
            if Path(name).suffix.lower() != ".zip":
                files.append(_source_file(name, str(path), lambda path=path: path.open("rb")))  # type: ignore[misc]
                continue
            archive = open_archive(path)
            files += [
                _source_file(member, f"{path}!{member}", partial(archive.open, member))
                for member in archive.namelist()
                if not member.endswith("/")
            ]
    # what a desktop leaves in archives and folders is no file of the source
    ours = (file for file in files if not ("__MACOSX" in file.path.parts or file.path.name.startswith(".")))
    return sorted(ours, key=lambda file: file.name)


def _source_file(name: str, where: str, opener: Callable[[], IO[bytes]]) -> SourceFile:
    if not name.lower().endswith(".gz"):
        return SourceFile(name, where, opener)
    return SourceFile(name[:-3], where, lambda: cast("IO[bytes]", gzip.open(opener())))


def missing_files(files: Iterable[SourceFile], patterns: Iterable[str]) -> list[str]:
    listed = list(files)
    return [pattern for pattern in patterns if not any(file.path.match(pattern) for file in listed)]


def matching(files: Iterable[SourceFile], patterns: Iterable[str]) -> list[SourceFile]:
    """The files that one of the patterns names, in the order of the patterns.

    A pattern is compared with the last parts of a path, so it holds wherever the archive was unpacked.
    """
    listed = list(files)
    by_name = {file.name: file for pattern in patterns for file in listed if file.path.match(pattern)}
    return list(by_name.values())


def only(files: Iterable[SourceFile], pattern: str) -> SourceFile:
    """The one file that the pattern names; MedtasksError of none, or of more than one."""
    matched = matching(files, [pattern])
    if len(matched) != 1:
        where = ", ".join(file.where for file in matched) or "the source's folder"
        what, remedy = (
            f"{len(matched)} files are named {pattern}, there must be one",
            "put the files of this dataset there, and of no other",
        )
        raise MedtasksError(what, where=where, remedy=remedy)
    return matched[0]


# ---------------------------------------------------------------------- annotated texts
# brat standoff: a text and, beside it, its annotations (https://brat.nlplab.org/standoff.html). An entity has
# `type`, `start` and `end` in characters, and `text`; of brat also `id`, `parts`, `note`, `attributes` and
# the `relations` that go out from it, each with `type`, `source` and `target`.

_BRAT = "put the authors' .txt and .ann files there, unchanged"
_ID = re.compile(r"[TRAM#]\d")
_SPAN = re.compile(r"(\S+) (\d+ \d+(?:;\d+ \d+)*)")


def _read_brat(text_file: SourceFile, annotation_file: SourceFile) -> Row:
    """One document with its entities in the order of the text; MedtasksError where the two disagree."""
    text = text_file.text("utf-8")
    entities: dict[str, Row] = {}
    later: list[tuple[str, list[str]]] = []
    for number, line in enumerate(annotation_file.text("utf-8").split("\n"), start=1):
        cells, where = line.rstrip("\r").split("\t"), f"{annotation_file.where}, line {number}"
        if not _ID.match(cells[0]):
            continue
        if cells[0].startswith("T"):
            entities[cells[0]] = _entity(cells, text, where)
        else:
            later.append((where, cells))
    relations: list[Row] = []
    for where, cells in later:
        if len(cells) < 2:
            raise MedtasksError("is not a brat annotation", where=where, remedy=_BRAT)
        kind, *arguments = cells[1].split()
        if cells[0].startswith("R"):
            if len(arguments) != 2:
                raise MedtasksError("a relation needs two arguments", where=where, remedy=_BRAT)
            ends = [argument.partition(":")[2] for argument in arguments]
            if unknown := [name for name in ends if name not in entities]:
                what = f"refers to {excerpt(unknown[0])}, which is not annotated"
                raise MedtasksError(what, where=where, remedy=_BRAT)
            source, target = (entities[name] for name in ends)
            relations.append({"type": kind, "source": source, "target": target})
            source["relations"].append(relations[-1])
        elif arguments and arguments[0] in entities:  # notes may be on relations, which nothing here needs
            if cells[0].startswith("#"):
                entities[arguments[0]]["note"] = cells[2].strip() if len(cells) > 2 else ""
            else:
                entities[arguments[0]]["attributes"][kind] = " ".join(arguments[1:])
    return _annotated(text_file.path.stem, text, entities.values(), relations)


def _annotated(name: str, text: str, entities: Iterable[Row], relations: list[Row]) -> Row:
    ordered = sorted(entities, key=lambda entity: (entity["start"], entity["end"]))
    return {"id": name, "text": text, "entities": ordered, "relations": relations}


def _entity(cells: list[str], text: str, where: str) -> Row:
    match = _SPAN.fullmatch(cells[1].strip()) if len(cells) > 2 else None
    if not match:
        raise MedtasksError("is not a brat annotation", where=where, remedy=_BRAT)
    offsets = [tuple(map(int, part.split())) for part in match[2].split(";")]
    words = "\t".join(cells[2:])
    if any(not start <= end <= len(text) for start, end in offsets):
        what = f"annotation {cells[0]} is outside the text of {len(text)} characters"
        raise MedtasksError(what, where=where, remedy=_BRAT)
    parts = [" ".join(text[start:end].split()) for start, end in offsets]
    there, said = " ".join(" ".join(parts).split()), " ".join(words.split())
    # brat writes the line ends of an annotation into its file, so that its line ends at the first of them
    is_cut = any("\n" in text[start:end] for start, end in offsets) and there.startswith(said)
    if there != said and not is_cut:
        has = f"the text has {excerpt(' '.join(parts), 60)} there"
        what = f"annotation {cells[0]} says {excerpt(words, 60)}, {has}"
        raise MedtasksError(what, where=where, remedy=_BRAT)
    place = {"type": match[1], "start": offsets[0][0], "end": offsets[-1][1], "parts": parts}
    said_of_it = {"text": there if is_cut else words.strip(), "note": "", "attributes": {}, "relations": []}
    return {"id": cells[0], **place, **said_of_it}


def _passages(document: Row, words: int | None) -> Iterator[Row]:
    """The document cut into its lines that are not blank, each with the annotations that begin in it.

    Lines that follow each other are joined, as long as they have no more words than `words`.
    """
    lines: list[str] = []
    for line in document["text"].split("\n"):
        if lines and words is not None and len(lines[-1].split()) + len(line.split()) <= words:
            lines[-1] += "\n" + line
        else:
            lines.append(line)
    start = 0
    for number, line in enumerate(lines, start=1):
        end = start + len(line)
        if line.strip():
            inside = [entity for entity in document["entities"] if start <= entity["start"] <= end]
            relations = [
                item
                for item in document["relations"]
                if all(start <= item[role]["start"] <= end for role in ("source", "target"))
            ]
            yield _annotated(f"{document['id']}-{number}", line.strip(), inside, relations)
        start = end + 1


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
        document = _read_brat(text, annotation)
        by_line = reader.unit == "line" or reader.words
        for item in _passages(document, reader.words) if by_line else [document]:
            yield Record(item, text.where)


def _cas(reader: CasReader, file: SourceFile) -> Iterable[Row]:
    """UIMA CAS in JSON (INCEpTION, WebAnno): the document of a file, or its passages."""
    try:
        features = parse_json(file.text("utf-8"))["%FEATURE_STRUCTURES"]
        text = next(item["sofaString"] for item in features if item["%TYPE"] == "uima.cas.Sofa")
        entities = [
            {"type": item[reader.feature], "start": item["begin"], "end": item["end"]}
            for item in features
            if item["%TYPE"] == reader.type and item.get(reader.feature)
        ]
    except (ValueError, KeyError, TypeError, StopIteration):
        raise MedtasksError("is not a UIMA CAS in JSON", where=file.where, remedy=UNCHANGED) from None
    if any(not 0 <= item["start"] <= item["end"] <= len(text) for item in entities):
        raise MedtasksError("has an annotation outside its text", where=file.where, remedy=UNCHANGED)
    for item in entities:
        item["text"] = " ".join(text[item["start"] : item["end"]].split())
    document = _annotated(file.path.name.partition(".")[0], text, entities, [])
    return _passages(document, reader.words) if reader.words else [document]


# ---------------------------------------------------------------------- records of files


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
        rows = _OF_FILE[type(reader)](reader, file)
        for number, fields in enumerate(rows, start=1):
            yield Record(fields, f"{file.where}, record {number}", file.path.stem)


def _rows(_: RowsReader, file: SourceFile) -> Iterable[Row]:
    is_csv = file.path.suffix == ".csv"
    return _csv(file) if is_csv else parse_rows(file.read(), file.path.suffix, file.where)


def lacks(record: Record, name: str) -> MedtasksError:
    what = f"{name} is missing or not as expected ({describe_columns(list(record.fields), [name])})"
    return MedtasksError(what, where=record.where, remedy=UNCHANGED)


def _csv(file: SourceFile) -> Iterator[Row]:
    """Rows as they are read: the largest files hold gigabytes of notes."""
    with file.stream() as content:
        lines = io.TextIOWrapper(content, encoding="utf-8-sig", newline="")
        try:
            reader = csv.reader(lines)
            columns = next(reader, [])
            for number, cells in enumerate(reader, start=2):
                if any(cells):
                    yield _row(columns, cells, file, number)
        except (UnicodeDecodeError, csv.Error) as error:
            what = f"is not a CSV file in UTF-8 ({error})"
            remedy = "put the authors' file there, not converted"
            raise MedtasksError(what, where=file.where, remedy=remedy) from None


def _lines(reader: LinesReader, files: list[SourceFile]) -> Iterator[Record]:
    columns = {
        name: list(io.StringIO(only(files, pattern).text(), newline=None))
        for name, pattern in reader.columns.items()
    }
    place = files[0].where
    if len({len(lines) for lines in columns.values()}) > 1:
        sizes = ", ".join(f"{name} {len(lines)}" for name, lines in columns.items())
        what = f"files that belong together have different numbers of lines: {sizes}"
        raise MedtasksError(what, where=place, remedy=UNCHANGED)
    for number, texts in enumerate(zip(*columns.values(), strict=True), start=1):
        fields = dict(zip(columns, (text.strip() for text in texts), strict=True))
        yield Record({"id": str(number), **fields}, f"{place}, line {number}", files[0].path.stem)


def cells_of(
    file: SourceFile, separator: str = "\t", encoding: str = "utf-8-sig", *, quoted: bool = False
) -> Iterator[list[str]]:
    """The cells of each line of a text, or of each row of a workbook's first sheet."""
    if file.path.suffix in (".xlsx", ".xls"):
        sheet = workbook(file.read(), file.where, AGAIN).get_sheet_by_index(0)
        yield from ([_stored(cell) for cell in row] for row in sheet.to_python(skip_empty_area=False))
        return
    text = file.text(encoding)
    if quoted:
        yield from csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    else:
        yield from (line.rstrip("\r").split(separator) for line in text.split("\n"))


def _stored(value: Any) -> str:
    """What the file holds, whatever the cell looks like: a date is a number of days, a truth value 1 or 0."""
    from openpyxl.utils.datetime import to_excel

    if isinstance(value, date | time | timedelta):
        value = to_excel(value)
    if isinstance(value, bool | float) and value == int(value):
        value = int(value)
    return str(value)


def _table(reader: TableReader, file: SourceFile) -> Iterator[Row]:
    columns = reader.columns
    lines = cells_of(file, reader.separator, reader.encoding, quoted=reader.quoted)
    for number, cells in enumerate(lines, start=1):
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
    for number, cells in enumerate(cells_of(file), start=1):
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

    def child_of(element: ElementTree.Element) -> Any:
        """Its text, or its elements' names and their attribute."""
        if (name := reader.attribute) and len(element):
            return {child.tag: child.attrib[name] for child in element if name in child.attrib}
        return "".join(element.itertext()).strip()

    for element in root.iter(reader.element) if reader.element else [root]:
        yield {**element.attrib, **{child.tag: child_of(child) for child in element}}


_TAGGED = re.compile(r"<(\w+)>([^<>]*)</\1>")
_TAG = re.compile(r"</?\w+>")


def _inline(_: InlineReader, file: SourceFile) -> Iterator[Row]:
    for number, line in enumerate(io.StringIO(file.text(), newline=None), start=1):
        if not line.strip():
            continue
        if _TAG.search(_TAGGED.sub("", line)):
            what = f"line {number} has a tag without its counterpart"
            raise MedtasksError(what, where=file.where, remedy=UNCHANGED)
        entities = [{"type": kind, "text": text.strip()} for kind, text in _TAGGED.findall(line)]
        yield {"id": str(number), "text": _TAG.sub("", line).strip(), "entities": entities}


_OF_FILE: dict[type[Reader], Callable[[Any, SourceFile], Iterable[Row]]] = {
    RowsReader: _rows,
    TableReader: _table,
    TokensReader: _tokens,
    CasReader: _cas,
    XmlReader: _xml,
    InlineReader: _inline,
}

# ---------------------------------------------------------------------- annotated texts in one file

_BIO = re.compile(r"O|[BIES](?:-\S+)?")


def annotated_rows(text: str) -> list[Row]:
    """The documents of a text in the form of PubTator, or with a token and its tag (BIO) in each line.

    Each has `text` and `entities`. None of a text in another form.
    """
    blocks = [block.split("\n") for block in re.split(r"\n\s*\n", text.replace("\r\n", "\n").strip())]
    if all("|t|" in block[0] for block in blocks):
        return [_of_pubtator(block) for block in blocks]
    rows: list[Row] = []
    for block in blocks:
        lines = (line for line in block if not line.startswith(("#", "-DOCSTART-")))
        cells = [line.split("\t" if "\t" in line else None) for line in lines]
        if not all(len(line) > 1 and _BIO.fullmatch(line[-1].strip()) for line in cells):
            return []
        if cells:
            tokens, tags = [line[0] for line in cells], [line[-1].strip() for line in cells]
            rows.append({"text": " ".join(tokens), "entities": spans(tokens, tags)})
    return rows


def _of_pubtator(lines: list[str]) -> Row:
    parts = [line.split("|", 2) for line in lines if re.match(r"[^|\t]+\|[ta]\|", line)]
    cells = [line.split("\t") for line in lines]
    return {
        "id": parts[0][0],
        "text": "\n".join(part[2] for part in parts),
        "entities": [
            {"start": int(line[1]), "end": int(line[2]), "text": line[3], "type": line[4]}
            for line in cells
            if len(line) > 4 and line[1].isdigit() and line[2].isdigit()
        ],
    }
