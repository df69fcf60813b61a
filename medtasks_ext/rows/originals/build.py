"""From the files of a source to the suite's rows: items, groups, joins, texts, rendering, repeats, split."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import jinja2

from medtasks_ext.errors import MedtasksError
from medtasks_ext.privacy import excerpt, shows_text, what_happened
from medtasks_ext.process import SEED
from medtasks_ext.rows.expressions import UNFIT, Expression, Template
from medtasks_ext.rows.originals.readers import (
    UNCHANGED,
    WHOLE,
    Record,
    SourceFile,
    files_below,
    lacks,
    matching,
    missing_files,
    records,
)
from medtasks_ext.rows.places import authors_of
from medtasks_ext.rows.row import Origin, Row, Rows
from medtasks_ext.rows.spec import Join, RowsReader, SourceReader

if TYPE_CHECKING:
    from medtasks_ext.registry import Dataset
    from medtasks_ext.rows.spec import Original, Source

#: Words of a text, below which standing in another one is chance: terms, headings, answers of a word.
FEWEST_WORDS = 8

_EAST_ASIAN = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_EAST_ASIAN}]|[^\W{_EAST_ASIAN}]+")


def count_words(text: str, most: int | None = None) -> int:
    """Words as BRIDGE's published lengths count them, at most so many.

    A run of letters, digits and underscores is a word, and so is every Chinese or Japanese character.
    """
    return sum(1 for _ in islice(_WORD.finditer(text), most))


class NormalisedTexts:
    """Texts whose words are parted by single blanks, as are those that are compared with them."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._all = set(texts)
        self._long = list(filter(_is_long, self._all))

    def overlap(self, text: str) -> bool:
        """Whether a text is one of them, or holds one, or stands in one."""
        if text in self._all:
            return True
        return _is_long(text) and any(text in other or other in text for other in self._long)


def _is_long(text: str) -> bool:
    return count_words(text, FEWEST_WORDS) == FEWEST_WORDS


# ----------------------------------------------------------------------
# Records and the rows of other tables that have their key.


def joined(records_read: Iterable[Record], join: Join, files: list[SourceFile]) -> Iterator[Record]:
    """The records that have a row in the table, with its columns, in their order."""
    table: dict[str, list[Row]] = {}
    for row in records(RowsReader(kind="rows"), files, join.files):
        rows = table.setdefault(str(_column(row, join.key)), [])
        if join.every or not rows:
            rows.append({new: _column(row, name) for new, name in join.columns.items()})
    for record in records_read:
        for columns in table.get(str(_column(record, join.key)), []):
            yield Record({**record.fields, **columns}, record.where, record.file)


def drop_duplicates(rows: Iterable[Record], field: str) -> Iterator[Record]:
    seen: set[str] = set()
    for record in rows:
        if (value := str(_column(record, field))) not in seen:
            seen.add(value)
            yield record


def _column(record: Record, name: str) -> Any:
    if name not in record.fields:
        raise lacks(record, name)
    return record.fields[name]


# ----------------------------------------------------------------------
# BRIDGE's rule for sources without a test part.

SHOTS = 5
#: Rows kept out of the test part of a small source.
RESERVED = 20


def n_drawn(n: int) -> int:
    """Test rows out of n: a tenth above 2,000, a fifth from 1,000 on, else all but 20 (BRIDGE, Methods).

    Fractions are rounded up: it has 428 of 4,271 documents of ADE-Extraction, 251 of 2,507 of RuDReC-NER.
    """
    if n > 2000:
        return -(-n // 10)
    if n >= 1000:
        return -(-n // 5)
    return n - RESERVED


def drawn(rows: Sequence[Row], *, where: str) -> tuple[list[Row], list[Row]]:
    """Test rows, in the order of the source, and few-shot pool.

    Which rows BRIDGE drew is not published; this draw has its seed and goes by the text of the inputs.
    """
    size = n_drawn(len(rows))
    if size < 1:
        raise MedtasksError(
            f"{len(rows)} documents are too few: {RESERVED} are reserved", where=where, remedy=WHOLE
        )
    order = sorted(range(len(rows)), key=lambda index: str(rows[index]["input"]))
    test = {order[place] for place in random.Random(SEED).sample(range(len(rows)), size)}
    chosen = [rows[index] for index in sorted(test)]
    rest = [rows[index] for index in order if index not in test]
    return chosen, pool(len(rest), rest.__getitem__, apart_from=chosen)


def pool(
    n: int, row_at: Callable[[int], Row | None], *, apart_from: Sequence[Row], identity: str = "input"
) -> list[Row]:
    """Five random rows of n candidates, or fewer where there are not as many, in their order.

    `row_at` gives None where a candidate is no document. A row of the pool must not say what a test row says,
    whole or in part, by the column `identity`, or else the whole row.
    """

    def words(row: Row) -> str:
        return " ".join(str(row.get(identity, row)).split())

    tested = NormalisedTexts(map(words, apart_from) if n else ())
    chosen: dict[int, Row] = {}
    said: set[str] = set()
    for index in random.Random(SEED).sample(range(n), n):
        row = row_at(index)
        if row is not None and words(row) not in said and not tested.overlap(words(row)):
            said.add(words(row))
            chosen[index] = row
        if len(chosen) == SHOTS:
            break
    return [chosen[index] for index in sorted(chosen)]


_Made = TypeVar("_Made")
#: The place of Jinja that a message names.
_WHERE = "rows.original"


def read_original(
    original: Original,
    files: list[SourceFile],
    *,
    task: str,
    where: str,
    identity: str = "input",
    official: Sequence[str] = (),
) -> tuple[list[Row], list[Row], int]:
    """Test rows, few-shot rows, and how many of the test rows are official ones.

    Documents without an answer are left out before anything is drawn, as the suite's are. `identity`: the
    column by which a few-shot row is recognised among test rows. `official`: released inputs of the suite's
    own test rows; if at least half are found among the documents, the test rows are these.
    """
    row = _Rows(original, files, task)
    test: list[Row] = []
    seen: set[str] = set()
    distinct = original.distinct and original.input is not None
    for number, record in enumerate(_records(original, files, original.test), start=1):
        made = row(record, number, "test")
        if made is not None and not (distinct and made["input"] in seen):
            if distinct:
                seen.add(made["input"])
            test.append(made)
    if not test:
        raise MedtasksError(
            f"no document with an answer in {', '.join(original.test)}", where=where, remedy=WHOLE
        )
    mine = recovered(test, official)
    if original.split == "drawn" and mine:
        chosen = {id(made) for made in mine}
        rest = [made for made in test if id(made) not in chosen]
        return mine, pool(len(rest), rest.__getitem__, apart_from=mine), len(mine)
    test = mine or test
    if original.split == "drawn":
        return *drawn(test, where=where), 0
    others = list(_records(original, files, original.fewshot)) if original.fewshot else []
    fewshot = pool(
        len(others),
        lambda index: row(others[index], index + 1, "train"),
        apart_from=test,
        identity=identity if original.input is None else "input",
    )
    return test, fewshot, len(mine)


def recovered(rows: Sequence[Row], official: Sequence[str]) -> list[Row]:
    """The rows with the words of official inputs, in that order; none where less than half are found."""
    by_input = {" ".join(str(row.get("input")).split()): row for row in rows}
    again = [by_input[words] for text in official if (words := " ".join(text.split())) in by_input]
    return again if 2 * len(again) >= len(official) else []


def _records(original: Original, files: list[SourceFile], patterns: list[str]) -> Iterator[Record]:
    if isinstance(original.reader, SourceReader):
        # imported when needed: EHRSHOT's needs pyarrow, which takes its time
        read = getattr(import_module("medtasks_ext.rows.originals.own"), original.reader.kind)
        # the parts of a source are read apart
        records_read: Iterator[Record] = read(matching(files, patterns) if original.fewshot else files)
    else:
        records_read = records(original.reader, files, patterns)
    if original.each:
        records_read = _items(records_read, original.each)
    if original.group:
        records_read = _groups(records_read, original.group)
    for join in original.join:
        records_read = joined(records_read, join, files)
    if original.first:
        records_read = drop_duplicates(records_read, original.first)
    if original.where:
        accepted = Expression(original.where, _WHERE)
        records_read = (
            record
            for record in records_read
            if _fitting(record, lambda fields: bool(accepted.value(fields)), accepted.text)
        )
    return records_read


class _Rows:
    """Makes the row of a record: its fields and the layout's; with `input`, a document as BRIDGE has it."""

    def __init__(self, original: Original, files: list[SourceFile], task: str) -> None:
        self.original, self.task = original, task
        self.texts = {file.path.stem: file for file in matching(files, original.texts)}
        self.fields = {name: Expression(text, _WHERE) for name, text in original.fields.items()}
        self.templates = {
            name: Template(text, _WHERE)
            for name in ("id", "input", "output")
            if (text := getattr(original, name)) is not None
        }
        self.written = f"{original.id} {original.input} {original.output}"

    def __call__(self, record: Record, number: int, split: str) -> Row | None:
        """The row, or None where the document has no answer. Without `id` the number serves as one."""
        if self.original.input is None:
            return {**record.fields, **self._added(record)}
        if self.texts:
            name = str(record.fields[self.original.group[0]])
            if name not in self.texts:
                what = f"there is no {name if shows_text() else excerpt(name)}.txt"
                raise MedtasksError(what, where=record.where, remedy=WHOLE)
            record = Record({**record.fields, "text": self.texts[name].text()}, record.where)
        output = self._rendered("output", record)
        if not output:
            return None
        return {
            "id": self._rendered("id", record) if "id" in self.templates else str(number),
            "task": self.task,
            "split": split,
            "input": self._rendered("input", record),
            "output": output,
            **self._added(record),
        }

    def _rendered(self, name: str, record: Record) -> str:
        return _fitting(record, self.templates[name].render, self.written).strip().lstrip("\ufeff")

    def _added(self, record: Record) -> Row:
        seen = Record({**record.fields, "file": record.file}, record.where)
        wanted = self.fields.items()
        return {name: _fitting(seen, partial(_defined, field), field.text) for name, field in wanted}


def _defined(wanted: Expression, fields: Mapping[str, Any]) -> Any:
    value = wanted.value(fields)
    if isinstance(value, jinja2.Undefined):
        str(value)  # raises, and says what is not defined
    return value


def _items(records_read: Iterable[Record], name: str) -> Iterator[Record]:
    """A record per item of a list, with the fields of the record that held the list."""
    for record in records_read:
        items = record.fields.get(name)
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise lacks(record, name)
        for number, item in enumerate(items, start=1):
            yield Record({**record.fields, **item, "number": number}, f"{record.where}, {name} {number}")


def _groups(records_read: Iterable[Record], names: list[str]) -> Iterator[Record]:
    """A record per value of the named fields, in order of first occurrence, the records as its `rows`."""
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for record in records_read:
        if missing := [name for name in names if name not in record.fields]:
            raise lacks(record, missing[0])
        groups.setdefault(tuple(record.fields[name] for name in names), []).append(record)
    for key, members in groups.items():
        rows = [member.fields for member in members]
        yield Record({**dict(zip(names, key, strict=True)), "rows": rows}, members[0].where)


def _fitting(record: Record, use: Callable[[Mapping[str, Any]], _Made], written: str) -> _Made:
    try:
        return use(record.fields)
    except UNFIT as error:
        what = f"does not fit the source's schema: {what_happened(error, written)}"
        raise MedtasksError(what, where=record.where, remedy=UNCHANGED) from None


def original_rows(
    origin: Origin,
    dataset: Dataset,
    source: Source,
    places: Sequence[Path],
    where: str,
    *,
    names: Sequence[str] = (),
    revision: str | None = None,
) -> Rows:
    """Rows of a dataset, made from folders or downloaded files, which its source calls `names`."""
    files = files_below(places, names=names)
    absent = [missing_files(files, layout.patterns) for layout in source.original]
    if all(absent):
        what = f"the source's files are not all there: {' | '.join(map(', '.join, absent))}"
        remedy = "put them there as distributed (docs/sources); archives need not be unpacked"
        raise MedtasksError(what, where=where, remedy=remedy)
    layout = source.original[absent.index([])]
    authors = authors_of(dataset, source) if layout.rebuilt else None
    official = authors.released_inputs() if authors else []
    test, fewshot, n_recovered = read_original(
        layout,
        files,
        task=str(source.official_name),
        identity=source.identity,
        where=where,
        official=official,
    )
    return Rows(
        origin,
        test,
        fewshot,
        where,
        revision=revision,
        rebuilt=layout.rebuilt and not n_recovered,
        recovered=(n_recovered, len(official)) if n_recovered else None,
    )
