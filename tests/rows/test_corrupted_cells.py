"""No corrupted cell changes a prompt or a gold answer without a fault or a note.

Every column of every dataset's sample rows is corrupted in every way, in every other row; the rest must stay
as it was. Every day a part of it runs, at night the whole.
"""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from itertools import combinations
from zlib import crc32

import pytest

from medtasks_ext.prompts.load import RowCheck, check_rows
from medtasks_ext.registry import Dataset, registry
from medtasks_ext.rows.columns import Column
from medtasks_ext.rows.fields import columns_of
from medtasks_ext.rows.places import authors_of
from medtasks_ext.rows.spec import DatasetSpec, dataset_spec
from tests.conftest import sample_rows, write_jsonl

DATASETS = list(registry().datasets)
PARTS = 12  # of which one runs every day

Row = dict[str, object]


#: kind -> the corrupted value; None where the value is of no kind that can be corrupted so
CORRUPTIONS = {
    "NaN": lambda value: float("nan"),
    "null": lambda value: None,
    "blank": lambda value: "  ",
    "the text nan": lambda value: "nan",
    "a number": lambda value: 7.25,
    "a list": lambda value: None if isinstance(value, list) else [value],
    "an object": lambda value: {"x": value},
    "a list of nothing": lambda value: [None, float("nan")],
}
#: likewise, by whether the column is one of truth values, or may hold text
OF_TRUTH = {"Ja": lambda value: "Ja", "Y": lambda value: "Y"}
NOT_OF_TRUTH = {"a truth value": lambda value: True}
NOT_OF_TEXT = {
    "a text": lambda value: "; ".join(map(str, value)) if isinstance(value, list) else None,
    "an object as text": lambda value: str(value) if isinstance(value, dict) else None,
}
#: likewise, for columns whose values are listed
OF_LABELS = {
    "another case": lambda value: value.swapcase() if isinstance(value, str) else None,
    "another label": lambda value: f"{value}zz",
    "a yes": lambda value: "yes, surely",
}


class Corruptible:
    def __init__(self, dataset: Dataset, folder) -> None:
        self.dataset = dataset
        self.spec: DatasetSpec = dataset_spec(dataset)
        self.rows = sample_rows(dataset.id)
        self.place = folder / dataset.metadata.suite / dataset.folder.name
        self.place.mkdir(parents=True)
        if database := self.spec.rows.database:
            with closing(sqlite3.connect(self.place / database.file)) as connection:
                connection.executescript((dataset.folder / database.sample).read_text())
        authors = authors_of(dataset, self.spec.rows)
        schemas = [*([authors.schema] if authors else []), *self.spec.rows.schemas]
        schema = next(item for item in schemas if all(name in self.rows[0] for name in item.columns))
        needed, optional = columns_of(self.spec, schema)
        self.columns: dict[str, Column] = {**needed, **optional}
        self.sound = documents(self.check(self.rows))

    def check(self, rows: list[Row]) -> RowCheck:
        write_jsonl(self.place / "test.jsonl", rows)
        return check_rows(self.dataset, "local")

    def silent(self, corrupt) -> list[int]:
        """Rows that changed, or are gone, without a word.

        Args:
            corrupt: makes another row of a row; None where it does not apply.
        """
        rows, changed = [], []
        for number, row in enumerate(self.rows, start=1):
            other = corrupt(row) if number % 2 else None
            if other is not None:
                changed.append(number)
            rows.append(row if other is None else other)
        if not changed:
            return []
        found = self.check(rows)
        if any(getattr(fault, "row", None) is None for fault in found.faults):
            return []  # the file is refused as a whole
        named = {int(fault.row.split(",")[0].rpartition(" ")[2]) for fault in found.faults}
        noted = sum(found.blanks.values()) + sum(found.notes.values())
        after = documents(found)
        return [
            number
            for number in changed
            if number not in named and not noted and after.get(number) != self.sound.get(number)
        ]

    def corruptions(self, name: str) -> dict[str, Callable]:
        column = self.columns.get(name, Column())
        fits = {"object": "an object", "number": "a number"}.get(column.type)
        unfit = {kind: make for kind, make in CORRUPTIONS.items() if kind != fits}
        return {
            **unfit,
            **(OF_TRUTH if column.type == "boolean" else NOT_OF_TRUTH),
            **({} if column.type in ("lines", "options") else NOT_OF_TEXT),
            **(OF_LABELS if column.values is not None or column.type == "integer" else {}),
        }

    def are_alike(self, one: str, two: str) -> bool:
        """Whether no reader could tell that cells of both have changed places."""
        columns = [self.columns.get(name, Column()) for name in (one, two)]
        kinds = {type(row[name]) for row in self.rows for name in (one, two) if row.get(name) is not None}
        return len(kinds) == 1 and all(column.values is None and column.pattern is None for column in columns)


def documents(found: RowCheck) -> dict[int, list[tuple]]:
    """Row -> what a model is asked and what is compared with its answer."""
    of_row: dict[int, list[tuple]] = {}
    for item in found.test:
        number = int(item.row.split(",")[0].rpartition(" ")[2])
        shown = [
            item.get(key) for key in ("system", "prompt", "target", "gold", "question", "points", "options")
        ]
        of_row.setdefault(number, []).append(tuple(shown))
    return of_row


def corrupted(of: Corruptible, only) -> list[str]:
    """What stays silent: column, kind and rows."""
    silent = []
    names = dict.fromkeys(name for row in of.rows for name in row)
    for name in names:
        for kind, make in of.corruptions(name).items():
            if only(f"{name} {kind}"):
                rows = of.silent(lambda row, make=make, name=name: replaced(row, name, make))
                silent += [f"{name}: {kind} in rows {rows}"] * bool(rows)
    for one, two in combinations(names, 2):
        if not of.are_alike(one, two) and only(f"{one} {two}"):
            rows = of.silent(lambda row, one=one, two=two: {**row, one: row.get(two), two: row.get(one)})
            silent += [f"{one} and {two} swapped in rows {rows}"] * bool(rows)
    return silent


def replaced(row: Row, name: str, make) -> Row | None:
    value = make(row[name]) if name in row else None
    return None if value is None and make is not CORRUPTIONS["null"] else {**row, name: value}


@pytest.mark.parametrize("parts", [PARTS, pytest.param(1, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("name", DATASETS)
def test_a_corrupted_cell_is_named(data_dir, name, parts):
    def chosen(what: str) -> bool:
        return crc32(f"{name} {what}".encode()) % parts == 0

    assert corrupted(Corruptible(registry().datasets[name], data_dir), chosen) == []
