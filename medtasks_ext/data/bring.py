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
from medtasks_ext.errors import MedtasksError
from medtasks_ext.rows.files import SUFFIXES, Table, csv_records, decoded, parse_rows, sheets_of, table_of
from medtasks_ext.rows.originals.readers import annotated_rows
from medtasks_ext.rows.places import authors_of, row_file
from medtasks_ext.rows.row import Row
from medtasks_ext.rows.sources import source_of

if TYPE_CHECKING:
    from medtasks_ext.registry import Dataset
    from medtasks_ext.rows.spec import RowSchema


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
    source = source_of(dataset)
    authors = authors_of(dataset, source)
    schemas = [*source.schemas, *([authors.schema] if authors else [])]
    known = {name for schema in schemas for name in (*schema.columns, *schema.optional)}
    if unknown := [name for name in options.columns if name not in known]:
        what = f"--map names {', '.join(unknown)}, which is no column of {dataset.id}"
        remedy = "accepted: " + " | ".join(", ".join(schema.columns) for schema in schemas)
        raise MedtasksError(what, where=file, remedy=remedy)
    tables = _tables(file, {*known, *options.columns.values()}, options)
    columns, not_read = _columns_of_tables(tables, schemas, options, file)
    schema = next(item for item in schemas if set(item.columns) <= columns.keys())
    needed = [columns[name] for name in schema.columns]
    ours = {theirs: name for name, theirs in columns.items()}
    made, left_out, sheets = list[Row](), dict[str, list[str]](), dict[str, int]()
    for sheet, table in tables.items():
        if sheet in not_read:
            continue
        # sums and remarks below a table
        bare = {at for at, row in table.rows if all(row.get(name) in (None, "") for name in needed)}
        lacking = {"holds nothing in the columns that are needed": sorted(bare)} if bare else {}
        for why, numbers in {**table.left_out, **lacking}.items():
            places = [f"{sheet}:{number}" if sheet else str(number) for number in numbers]
            left_out.setdefault(why, []).extend(places)
        made += [
            {ours.get(name, name): cell for name, cell in row.items() if name in ours or name not in columns}
            for at, row in table.rows
            if at not in bare
        ]
        sheets |= {sheet: len(table.rows)} if sheet else {}
    if not made:
        raise MedtasksError("holds no rows", where=file, remedy="name the complete file")
    _map_values(made, options.values, file)
    path = folder / f"{options.split}.jsonl"
    with private_files(dataset.metadata.access != "open"), atomic_file(path) as out:
        for row in made:
            out.write(json.dumps(row, ensure_ascii=False, default=str).encode() + b"\n")
    if there and there != path:  # a file of another form would come first
        there.unlink()
    return Brought(path, len(made), columns, sheets, not_read, left_out)


def _columns_of_tables(
    tables: Mapping[str, Table], schemas: Sequence[RowSchema], options: ImportOptions, file: Path
) -> tuple[dict[str, str], dict[str, str]]:
    """Column of the dataset -> column of the file, and sheet -> why it is not read."""
    found: dict[str, dict[str, str]] = {}
    failed: dict[str, MedtasksError] = {}
    for sheet, table in tables.items():
        try:
            found[sheet] = _columns(table.header, schemas, options.columns, file)
        except MedtasksError as error:
            failed[sheet] = error
    if failed and (options.sheets or not found):
        raise next(iter(failed.values()))
    if not found:
        raise MedtasksError("holds no rows", where=file, remedy="name the complete file")
    first, columns = next(iter(found.items()))
    if other := [sheet for sheet, these in found.items() if these != columns]:
        what = f"sheets {first} and {other[0]} have other names of columns"
        raise MedtasksError(what, where=file, remedy="import one of them: --sheet NAME")
    return columns, {sheet: error.what for sheet, error in failed.items()}


def _columns(
    header: Sequence[str], schemas: Sequence[RowSchema], given: Mapping[str, str], file: Path
) -> dict[str, str]:
    if absent := [theirs for theirs in given.values() if theirs not in header]:
        what = f"--map names {', '.join(absent)}, which is no column of the file"
        raise MedtasksError(what, where=file, remedy="see its header")
    folded = {name.strip().casefold(): name for name in header}
    lacking: list[list[str]] = []
    for schema in schemas:
        every = (*schema.columns, *schema.optional)
        names = {name: given.get(name) or folded.get(name.casefold(), "") for name in every}
        missing = [name for name in schema.columns if not names[name]]
        if not missing:
            return {name: theirs for name, theirs in names.items() if theirs}
        lacking.append(missing)
    best = min(lacking, key=len)
    close = {name: get_close_matches(name, header, n=1, cutoff=0.5) for name in best}
    near = [f"--map {name}={names[0]}" for name, names in close.items() if names]
    what = f"the file has no column {', '.join(best)}"
    example = " ".join(near) or f"--map {best[0]}=NAME"
    remedy = f"say which of its {len(header)} columns it is: {example}"
    raise MedtasksError(what, where=file, remedy=remedy)


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


def rows_of(file: Path, wanted: Collection[str], options: ImportOptions) -> list[Row]:
    """The rows of the table of a file that has most of the wanted columns."""
    known = {name.casefold() for name in wanted}
    tables = _tables(file, wanted, options).values()
    best = max(tables, key=lambda table: len(known & {name.casefold() for name in table.header}))
    return [row for _, row in best.rows]


#: Files of texts with their annotations.
_MARKED = (".txt", ".conll", ".iob", ".bio", ".pubtator")


def _tables(file: Path, wanted: Collection[str], options: ImportOptions) -> dict[str, Table]:
    """The tables of a file by sheet, or the one table; `wanted` columns tell the header from titles."""
    suffix, where, names = file.suffix.lower(), str(file), {name.strip().casefold() for name in wanted}
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
        return {
            "" if len(sheets) == 1 else name: table_of(records, where, names, skip_ragged=options.skip_ragged)
            for name, records in sheets.items()
            if name in (options.sheets or sheets)
        }
    if options.sheets:
        raise MedtasksError("has no sheets", where=file, remedy="it has one table: leave --sheet out")
    text = decoded(content, where) if suffix in (".csv", ".tsv", *_MARKED) else ""
    rows = annotated_rows(text) if text and suffix != ".csv" else []
    if suffix in (".csv", ".tsv") and not rows:
        records, separator = csv_records(text, where, names)
        return {"": table_of(records, where, names, separator, skip_ragged=options.skip_ragged)}
    rows = rows or parse_rows(content, suffix, where)
    return {"": Table([*rows[0]] if rows else [], [*enumerate(rows, start=1)], {})}


def _content(file: Path, encoding: str | None) -> bytes:
    check_regular(file)
    try:
        content = file.read_bytes()
        return content if encoding is None else content.decode(encoding).encode()
    except OSError as error:
        why, remedy = error.strerror or str(error), "check path and permissions"
    except LookupError:
        why, remedy = f"no encoding has the name {encoding}", "name one such as cp1252 or latin-1"
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        why, remedy = f"line {line} is not {encoding}", "name another encoding, or save the file as UTF-8"
    raise MedtasksError(f"cannot be read ({why})", where=file, remedy=remedy)
