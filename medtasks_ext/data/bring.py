"""`medtasks data import`: a file that a user has becomes the row file of a dataset.

Hospitals export tables with titles above the header, or in several sheets.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks_ext.atomic import atomic_file, check_regular, private_files
from medtasks_ext.errors import MedtasksError, some
from medtasks_ext.rows.files import SUFFIXES, csv_records, decoded, parse_rows, sheets_of, table_rows
from medtasks_ext.rows.originals.readers import annotated_rows
from medtasks_ext.rows.places import authors_of, row_file
from medtasks_ext.rows.row import Row
from medtasks_ext.rows.sources import source_of

if TYPE_CHECKING:
    from medtasks_ext.registry import Dataset


@dataclass(frozen=True)
class ImportOptions:
    """What the user says of a file."""

    split: str = "test"  # `test` or `fewshot`
    # column of the dataset -> column of the file, where the names differ by more than case
    columns: Mapping[str, str] = field(default_factory=dict)
    # column of the dataset -> value in the file -> value of the dataset
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    sheets: Sequence[str] = ()  # that are read; none: all that fit
    encoding: str | None = None  # of a text file that is not UTF-8
    replace: bool = False  # whether rows that are there may be replaced
    skip_ragged: bool = False  # whether records with more cells than the header are left out


@dataclass
class Brought:
    """What became of a file."""

    path: Path  # the row file
    n: int  # rows in it
    columns: dict[str, str]  # column of the dataset -> column of the file that it was made of
    sheets: dict[str, int]  # sheet -> rows that were taken from it, where the file has several
    not_read: dict[str, str]  # sheet -> why it was not read
    left_out: dict[str, list[str]]  # reason -> records that are in no row file


def bring(file: Path, dataset: Dataset, root: Path, options: ImportOptions) -> Brought:
    """Write `SUITE/DATASET/SPLIT.jsonl` of a file in any form; its owner's alone, unless data is open."""
    folder = root / dataset.metadata.suite / dataset.folder.name
    there = row_file(folder, options.split)
    if there and there.stat().st_size and not options.replace:
        raise MedtasksError("exists already", where=there, remedy="use --replace to overwrite it")
    names = _Names(dataset, file, options.columns)
    tables = tables_of(file, names.known, options)
    taken, columns, not_read = _fitting(tables, names, options.sheets, file)
    rows = [row for table in taken for row in table.rows]
    if not rows:
        raise MedtasksError("holds no rows", where=file, remedy="name the complete file")
    left_out: dict[str, list[str]] = {}
    for why, places in (item for table in taken for item in table.left_out.items()):
        left_out.setdefault(why, []).extend(places)
    rows = _without_remarks(rows, names.needed(columns), left_out)
    ours = {theirs: name for name, theirs in columns.items()}
    made = [
        {
            ours.get(name, name): cell
            for name, cell in row.cells.items()
            if name in ours or name not in columns
        }
        for row in rows
    ]
    _map_values(made, options.values, file)
    path = folder / f"{options.split}.jsonl"
    with private_files(dataset.metadata.access != "open"), atomic_file(path) as out:
        for row in made:
            out.write(json.dumps(row, ensure_ascii=False, default=str).encode() + b"\n")
    if there and there != path:  # a file of another form would come first
        there.unlink()
    return Brought(
        path,
        len(made),
        columns,
        {table.sheet: len(table.rows) for table in taken if table.sheet},
        not_read,
        left_out,
    )


def _content(file: Path, encoding: str | None) -> bytes:
    check_regular(file)
    try:
        content = file.read_bytes()
        if encoding is None:
            return content
        return content.decode(encoding).encode()
    except OSError as error:
        why, remedy = error.strerror or str(error), "check path and permissions"
    except LookupError:
        why, remedy = f"no encoding has the name {encoding}", "name one such as cp1252 or latin-1"
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        why, remedy = f"line {line} is not {encoding}", "name another encoding, or save the file as UTF-8"
    raise MedtasksError(f"cannot be read ({why})", where=file, remedy=remedy)


# ---------------------------------------------------------------------- columns


class _Names:
    """The names of columns that a dataset reads; `given`: its column -> that of the file, by the user."""

    def __init__(self, dataset: Dataset, file: Path, given: Mapping[str, str]) -> None:
        source = source_of(dataset)
        authors = authors_of(dataset, source)
        self.file, self.given = file, given
        self.schemas = [*source.schemas, *([authors.schema] if authors else [])]
        self.ours = {name for schema in self.schemas for name in (*schema.columns, *schema.optional)}
        if unknown := [name for name in given if name not in self.ours]:
            what = f"--map names {', '.join(unknown)}, which is no column of {dataset.id}"
            remedy = "accepted: " + " | ".join(", ".join(schema.columns) for schema in self.schemas)
            raise MedtasksError(what, where=file, remedy=remedy)

    @property
    def known(self) -> set[str]:
        return {*self.ours, *self.given.values()}

    def needed(self, columns: Mapping[str, str]) -> list[str]:
        schema = next(item for item in self.schemas if set(item.columns) <= columns.keys())
        return [columns[name] for name in schema.columns]

    def columns(self, header: Sequence[str]) -> dict[str, str]:
        folded = {name.strip().casefold(): name for name in header}
        if absent := [theirs for theirs in self.given.values() if theirs not in header]:
            what = f"--map names {', '.join(absent)}, which is no column of the file"
            raise MedtasksError(what, where=self.file, remedy="see its header")
        best: list[str] | None = None
        for schema in self.schemas:
            names = {
                name: self.given.get(name) or folded.get(name.casefold())
                for name in (*schema.columns, *schema.optional)
            }
            missing = [name for name in schema.columns if not names[name]]
            if not missing:
                return {name: theirs for name, theirs in names.items() if theirs}
            if best is None or len(missing) < len(best):
                best = missing
        assert best is not None  # a source has a schema
        near = [
            f"{name}={close[0]}"
            for name in best
            if (close := get_close_matches(name, header, n=1, cutoff=0.5))
        ]
        example = " ".join(f"--map {item}" for item in near) or f"--map {best[0]}=NAME"
        what = f"the file has no column {', '.join(best)}"
        remedy = f"say which of its {len(header)} columns it is: {example}"
        raise MedtasksError(what, where=self.file, remedy=remedy)


def _fitting(
    tables: Sequence[Table], names: _Names, sheets: Sequence[str], file: Path
) -> tuple[list[Table], dict[str, str], dict[str, str]]:
    """The tables that are taken, their columns, and why others are not."""
    found: list[tuple[Table, dict[str, str]]] = []
    not_read: dict[str, str] = {}
    failed: MedtasksError | None = None
    for table in tables:
        if sheets and table.sheet not in sheets:
            not_read[table.sheet] = "not named"
            continue
        try:
            found.append((table, names.columns(table.header)))
        except MedtasksError as error:
            not_read[table.sheet], failed = error.what, failed or error
    if not found or (sheets and failed):
        raise failed or MedtasksError("holds no rows", where=file, remedy="name the complete file")
    columns = found[0][1]
    if other := [table.sheet for table, these in found if these != columns]:
        what = f"sheets {found[0][0].sheet} and {other[0]} have other names of columns"
        raise MedtasksError(what, where=file, remedy="import one of them: --sheet NAME")
    return [table for table, _ in found], columns, not_read


# ---------------------------------------------------------------------- rows


def _without_remarks(
    rows: list[PlacedRow], needed: Sequence[str], left_out: dict[str, list[str]]
) -> list[PlacedRow]:
    """The rows that hold something in a column that is needed: others are sums and remarks."""
    bare = [all(row.cells.get(name) in (None, "") for name in needed) for row in rows]
    if any(bare):
        places = [row.place for row, is_bare in zip(rows, bare, strict=True) if is_bare]
        left_out["holds nothing in the columns that are needed"] = places
    return [row for row, is_bare in zip(rows, bare, strict=True) if not is_bare]


def _map_values(rows: Sequence[Row], values: Mapping[str, Mapping[str, str]], file: Path) -> None:
    for name, pairs in values.items():
        if not any(name in row for row in rows):
            what = f"--map-value names {name}, which is no column here"
            raise MedtasksError(what, where=file, remedy="name it as the dataset does")
        used = set()
        for row in rows:
            said = str(row.get(name) or "").strip()
            if said in pairs:
                row[name] = pairs[said]
                used.add(said)
        if unused := [value for value in pairs if value not in used]:
            what = f"no row has the value {unused[0]!r} in column {name}"
            remedy = "write --map-value COLUMN:THEIRS=OURS with the value as it stands in the file"
            raise MedtasksError(what, where=file, remedy=remedy)


#: Files of texts with their annotations.
_MARKED = (".txt", ".conll", ".iob", ".bio", ".pubtator")
_RAGGED = "has more cells than the header"
#: Records among which the header is looked for.
_TITLES = 20


@dataclass(frozen=True)
class PlacedRow:
    """A row of the file, and the record that it is, for messages."""

    number: int  # record of the file or sheet, the first one is 1
    sheet: str  # empty where there is one table
    cells: Row

    @property
    def place(self) -> str:
        return f"{self.sheet}:{self.number}" if self.sheet else str(self.number)


@dataclass
class Table:
    """One table of a file."""

    sheet: str  # its name; empty where the file has no sheets
    header: list[str]  # names of the columns
    rows: list[PlacedRow]  # below the header
    left_out: dict[str, list[str]] = field(default_factory=dict)  # reason -> records that are no rows

    def leave(self, number: int, why: str) -> None:
        self.left_out.setdefault(why, []).append(PlacedRow(number, self.sheet, {}).place)


def rows_of(file: Path, wanted: Collection[str], options: ImportOptions) -> list[Row]:
    """The rows of the table of a file that has most of the wanted columns."""
    tables = tables_of(file, wanted, options)
    known = {name.casefold() for name in wanted}
    best = max(tables, key=lambda table: len(known & {name.casefold() for name in table.header}))
    return [row.cells for row in best.rows]


def tables_of(file: Path, wanted: Collection[str], options: ImportOptions) -> list[Table]:
    """The tables of a file; `wanted` names of columns tell the header from titles above it."""
    suffix, where = file.suffix.lower(), str(file)
    if suffix not in (*SUFFIXES, *_MARKED):
        what = f"a file {file.suffix or 'without suffix'} cannot be read"
        remedy = f"export it as one of: {', '.join((*SUFFIXES, *_MARKED))}"
        raise MedtasksError(what, where=file, remedy=remedy)
    content = _content(file, options.encoding)
    if suffix in (".xlsx", ".xls"):
        sheets = sheets_of(content, where)
        if absent := [name for name in options.sheets if name not in sheets]:
            what, remedy = f"has no sheet {absent[0]}", f"its sheets: {', '.join(sheets)}"
            raise MedtasksError(what, where=file, remedy=remedy)
        named = {"" if len(sheets) == 1 else name: records for name, records in sheets.items()}
        return [_table(name, records, wanted, where, options) for name, records in named.items()]
    if options.sheets:
        raise MedtasksError("has no sheets", where=file, remedy="it has one table: leave --sheet out")
    text = decoded(content, where) if suffix in (".tsv", *_MARKED) else ""
    rows = annotated_rows(text) if text else []
    if suffix in (".csv", ".tsv") and not rows:
        names = {name.strip().casefold() for name in wanted}
        records, _ = csv_records(text or decoded(content, where), where, names)
        return [_table("", records, wanted, where, options)]
    rows = rows or parse_rows(content, suffix, where)
    placed = [PlacedRow(number, "", row) for number, row in enumerate(rows, start=1)]
    return [Table("", list(rows[0]) if rows else [], placed)]


def _table(
    sheet: str, records: Sequence[Sequence[str]], wanted: Collection[str], where: str, options: ImportOptions
) -> Table:
    """The rows of records whose header is the one of the first that has most of the wanted names."""
    known = {name.strip().casefold() for name in wanted}
    while records and not any(records[-1]):  # sheets end in empty records, which are nobody's rows
        records = records[:-1]
    scores = [len(known & {cell.strip().casefold() for cell in record}) for record in records[:_TITLES]]
    first = next((place for place, record in enumerate(records) if any(record)), 0)
    at = scores.index(max(scores)) if any(scores) else first
    header = [cell.strip() for cell in records[at]] if records else []
    table = Table(sheet, header, [])
    for number, record in enumerate(records[:at], start=1):
        table.leave(number, "stands above the header" if any(record) else "is empty")
    taken: list[tuple[int, list[str]]] = []
    for number, record in enumerate(records[at + 1 :], start=at + 2):
        cells = [*record]
        if not any(cell.strip() for cell in cells):
            table.leave(number, "is empty")
        elif [cell.strip() for cell in cells] == header:
            table.leave(number, "is the header again")
        elif any(cell and not (header + [""] * len(cells))[place] for place, cell in enumerate(cells)):
            table.leave(number, _RAGGED)
        else:
            taken.append((number, cells))
    if (ragged := table.left_out.get(_RAGGED)) and not options.skip_ragged:
        places = f"record {some(ragged)}"
        what = f"{len(ragged)} of {len(records)} records have more cells than the header ({places})"
        remedy = "quote cells that hold the separator, or leave these records out: --skip-ragged"
        raise MedtasksError(what, where=where, remedy=remedy)
    rows = table_rows([header, *(cells for _, cells in taken)], where)
    table.rows = [PlacedRow(number, sheet, row) for (number, _), row in zip(taken, rows, strict=True)]
    return table
