"""`medtasks data import`: a file that a user has becomes the row file of a dataset."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks_ext.atomic import atomic_file
from medtasks_ext.errors import MedtasksError
from medtasks_ext.rows.authors import authors_of
from medtasks_ext.rows.files import SUFFIXES, parse_rows
from medtasks_ext.rows.missing import source_of
from medtasks_ext.rows.places import row_file
from medtasks_ext.rows.row import Row

if TYPE_CHECKING:
    from medtasks_ext.registry import Dataset


@dataclass(frozen=True)
class Brought:
    """What became of a file."""

    path: Path  # the row file that was written
    n_rows: int  # rows in it
    columns: dict[str, str]  # column of the dataset -> column of the file that it was made of


def bring(
    file: Path, dataset: Dataset, root: Path, *, split: str, given: Mapping[str, str], encoding: str | None
) -> Brought:
    """Write `SUITE/DATASET/SPLIT.jsonl` of a file in any form that is read.

    Args:
        file: the user's own.
        dataset: whose rows it holds.
        root: data folder.
        split: `test` or `fewshot`.
        given: column of the dataset -> column of the file, where the names differ by more than case.
        encoding: of a text file that is not UTF-8.

    Raises:
        MedtasksError: the file cannot be read, lacks a column, or the dataset has such rows already.
    """
    if file.suffix.lower() not in SUFFIXES:
        raise MedtasksError(
            f"a file {file.suffix or 'without suffix'} cannot be read",
            where=file,
            remedy=f"export it as one of: {', '.join(SUFFIXES)}",
        )
    folder = root / dataset.metadata.suite / dataset.folder.name
    there = row_file(folder, split)
    if there and there.stat().st_size:
        raise MedtasksError("is there already", where=there, remedy="move it away first")
    rows = parse_rows(_content(file, encoding), file.suffix, str(file))
    if not rows:
        raise MedtasksError("holds no rows", where=file, remedy="name the complete file")
    columns = _columns(dataset, rows[0], given, file)
    ours = {theirs: name for name, theirs in columns.items()}
    path = folder / f"{split}.jsonl"
    with atomic_file(path) as out:
        for row in rows:
            kept = {
                ours.get(name, name): value
                for name, value in row.items()
                if name in ours or name not in columns
            }
            out.write(json.dumps(kept, ensure_ascii=False, default=str).encode() + b"\n")
    return Brought(path, len(rows), columns)


def _content(file: Path, encoding: str | None) -> bytes:
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


def _columns(dataset: Dataset, row: Row, given: Mapping[str, str], file: Path) -> dict[str, str]:
    """The columns of the schema that the file fits best, each with the file's own name of it."""
    source = source_of(dataset)
    folded = {name.strip().casefold(): name for name in row}
    best: tuple[int, list[str]] | None = None
    if absent := [theirs for theirs in given.values() if theirs not in row]:
        raise MedtasksError(
            f"--map names {', '.join(absent)}, which is no column of the file",
            where=file,
            remedy="see its header",
        )
    authors = authors_of(dataset, source)
    schemas = [*source.schemas, *([authors.schema] if authors else [])]
    known = {name for schema in schemas for name in (*schema.columns, *schema.optional)}
    if unknown := [name for name in given if name not in known]:
        raise MedtasksError(
            f"--map names {', '.join(unknown)}, which is no column of {dataset.id}",
            where=file,
            remedy="accepted: " + " | ".join(", ".join(schema.columns) for schema in schemas),
        )
    for schema in schemas:
        names = {
            name: given.get(name) or folded.get(name.casefold())
            for name in (*schema.columns, *schema.optional)
        }
        missing = [name for name in schema.columns if not names[name]]
        if not missing:
            return {name: theirs for name, theirs in names.items() if theirs}
        if best is None or len(missing) < best[0]:
            best = len(missing), missing
    assert best is not None  # a source has a schema
    near = [
        f"{name}={close[0]}" for name in best[1] if (close := get_close_matches(name, row, n=1, cutoff=0.5))
    ]
    example = " ".join(f"--map {item}" for item in near) or f"--map {best[1][0]}=NAME"
    raise MedtasksError(
        f"the file has no column {', '.join(best[1])}",
        where=file,
        remedy=f"say which of its {len(row)} columns it is: {example}",
    )
