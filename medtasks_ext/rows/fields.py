"""From the columns of a source's rows to the fields that prompts are made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import jinja2
from jinja2 import meta, nodes

from medtasks_ext.errors import MedtasksError, RowError
from medtasks_ext.privacy import describe_columns, what_happened
from medtasks_ext.registry.suites import vocabulary
from medtasks_ext.rows.columns import CellReader, Column, is_blank
from medtasks_ext.rows.expressions import UNFIT, Expression, Template, parsed
from medtasks_ext.rows.places import AuthorsFiles, authors_of
from medtasks_ext.rows.row import REMEDY, ReadRow

if TYPE_CHECKING:
    from pathlib import Path

    from medtasks_ext.registry import Dataset
    from medtasks_ext.rows.columns import Cells
    from medtasks_ext.rows.row import Faults, Row, Rows
    from medtasks_ext.rows.spec import DatasetSpec, Exclusion, RowSchema

#: Rows among which an option that is never right is no chance.
_ENOUGH = 10


@dataclass(frozen=True)
class ReadRows:
    """The rows of a split."""

    rows: list[ReadRow]
    n_dropped: int = 0  # rows left out since their gold is blank
    rebuilt: bool = False  # the schema says that they are not the suite's own
    excluded: dict[str, int] = field(default_factory=dict)  # reason -> rows that the task's file excludes
    n_source: int = 0  # rows of the source, excluded ones among them
    n_alike: int = 0  # rows left out since a later one asks the same


class FieldReader:
    def __init__(self, dataset: Dataset, spec: DatasetSpec, rows: Rows, faults: Faults) -> None:
        self.dataset, self.spec, self.rows, self.faults = dataset, spec, rows, faults
        self.source, self.authors = spec.rows, authors_of(dataset, spec.rows)
        self.schemas = [*([self.authors.schema] if self.authors else []), *self.source.schemas]

    def read(
        self, rows: list[Row], split: str, *, keep_split: bool = True, without: Collection[str] = ()
    ) -> ReadRows:
        """The rows of a split; they leave the list, so that large files are not in memory twice.

        `keep_split`: leave out official rows of another split. `without`: places of rows that are left out.
        Raises RowError of a row unless faults are kept, MedtasksError where rows fit no accepted schema.
        """
        if not rows:
            return ReadRows([])
        rows, n_source = self._named(rows), len(rows)
        where = (self.rows.fewshot_where if split == "few-shot" else None) or self.rows.where
        public = self.rows.origin in ("hub", "release")
        schema = self._schema(rows[0])
        authors = self.authors if self.authors and schema is self.authors.schema else None
        reader = _SchemaReader(
            schema,
            authors,
            self.spec,
            self.dataset,
            where,
            self.faults,
            keep_split=keep_split,
            keeps_blanks=public,
        )
        rows_read: list[ReadRow] = []
        quarantine = Quarantine(self.source.exclude if self.rows.origin == "hub" else [], where)
        rows.reverse()
        for number in range(1, len(rows) + 1):
            row = rows.pop()  # leaves memory once its fields are made
            if quarantine.holds(row):
                continue
            place = f"{split} row {number}"
            if place not in without:
                rows_read += self.faults.tried(place, where, reader.read, row, place) or []
        excluded = quarantine.counts(split)
        rows_read = [row for row in rows_read if row.place not in without]  # one of the items of a row
        n_alike = len(rows_read)
        if schema.distinct:
            rows_read = self._distinct(rows_read, schema.distinct)
        n_alike -= len(rows_read)
        kept = _without_blanks(rows_read, authors.gold if authors else self.source.skip_blank)
        if authors and self.rows.origin == "local":
            self._refuse_partial_gold(rows_read, kept)
        n_blank = reader.n_blank + len(rows_read) - len(kept)
        if n_blank:
            self.faults.notes["left out, since the gold is blank"] += n_blank
        self._note_indices(schema, kept)
        rebuilt = schema.rebuilt and self.rows.origin != "sample"
        return ReadRows(kept, n_blank, rebuilt, excluded, n_source, n_alike)

    def _refuse_partial_gold(self, rows: list[ReadRow], kept: list[ReadRow]) -> None:
        """Note in a check that some rows have no gold answer and others have: a run leaves them out, unseen.

        Where none has one, the rows are those that the authors publish.
        """
        scored, cause = {id(row) for row in kept}, "has no gold answer, and other rows have one"
        remedy = "fill it in, or take the row out: a run leaves it out, as the suite does"
        for row in rows if self.faults.check and len(kept) < len(rows) else ():
            if id(row) not in scored:
                self.faults.add(row.fault(cause, remedy))

    def _distinct(self, rows: list[ReadRow], names: list[str]) -> list[ReadRow]:
        """The rows, of those alike in some fields the last, as the suite does.

        In a check of local rows a different gold answer is a fault of both.
        """
        alike: dict[tuple[str, ...], ReadRow] = {}
        for row in rows:
            key = tuple(str(row.fields[name]) for name in names)
            earlier = alike.get(key)
            if earlier is not None:
                self.faults.notes[f"left out, since a later one has the same {', '.join(names)}"] += 1
                if self.faults.check and self.rows.origin == "local" and self._contradict(earlier, row):
                    cause = f"has the {', '.join(names)} of another row, and another gold answer"
                    for one, other in ((earlier, row), (row, earlier)):
                        remedy = "decide which one is right: runs take the last of them"
                        self.faults.add(one.fault(cause, remedy, f" ({other.place})"))
            alike[key] = row
        return list(alike.values())

    def _contradict(self, one: ReadRow, other: ReadRow) -> bool:
        names = meta.find_undeclared_variables(parsed(self.spec.prompt.target))
        return any(str(one.fields.get(name)) != str(other.fields.get(name)) for name in names)

    def _note_indices(self, schema: RowSchema, rows: list[ReadRow]) -> None:
        """Indices that count from 1 are right indices of other options: only their distribution shows it."""
        indices = [name for name, expression in schema.fields.items() if "as_letters" in expression]
        for name in indices if len(rows) >= _ENOUGH else ():
            if not any("A" in str(row.fields[name]) for row in rows):
                what = f"and none of them has {name} 0, though options are counted from 0"
                self.faults.notes[what] += len(rows)

    def _named(self, rows: list[Row]) -> list[Row]:
        """The rows, their columns in the case of the schema where only that differs."""
        if any(all(column in rows[0] for column in schema.columns) for schema in self.schemas):
            return rows
        for schema in self.schemas:
            folded = {column.casefold(): column for column in (*schema.columns, *schema.optional)}
            names = {name: folded.get(name.strip().casefold(), name) for name in rows[0]}
            if set(schema.columns) <= set(names.values()) and len(set(names.values())) == len(names):
                return [{names.get(name, name): value for name, value in row.items()} for row in rows]
        return rows

    def _schema(self, row: Row) -> RowSchema:
        schemas = self.schemas
        for schema in schemas:
            if all(column in row for column in schema.columns):
                return schema
        closest = min(schemas, key=lambda item: len(set(item.columns) - set(row)))
        missing = [column for column in closest.columns if column not in row]
        what = f"column {', '.join(missing)} is missing ({describe_columns(list(row), missing)})"
        remedy = "accepted schemas: " + " | ".join(", ".join(item.columns) for item in schemas)
        raise MedtasksError(what, where=self.rows.where, remedy=remedy)


def _without_blanks(rows: list[ReadRow], name: str | None) -> list[ReadRow]:
    """Leave out rows with a blank gold, as the official loaders do, unless none has a gold at all."""
    if name is None:
        return rows
    return [row for row in rows if str(row.fields[name] or "").strip()] or rows


class _SchemaReader:
    """Reads the rows of one file, all in one schema.

    `n_blank`: unusable ones with blank gold, so nothing is lost.
    """

    def __init__(
        self,
        schema: RowSchema,
        authors: AuthorsFiles | None,
        spec: DatasetSpec,
        dataset: Dataset,
        where: str,
        faults: Faults,
        *,
        keep_split: bool,
        keeps_blanks: bool,
    ) -> None:
        self.schema, self.dataset, self.where, self.faults = schema, dataset, where, faults
        self.authors, self.keep_split = authors, keep_split
        self.other_languages = vocabulary()["languages"].keys() - {dataset.metadata.language}
        self.blank, self.n_blank = spec.rows.skip_blank, 0
        file: Path = dataset.file
        at = spec.rows.place_of(schema)
        self.derived = {
            name: Expression(text, file, f"{at}.fields.{name}") for name, text in schema.fields.items()
        }
        self.each = Expression(schema.each, file, f"{at}.each") if schema.each else None
        self.wanted = Expression(schema.where, file, f"{at}.where") if schema.where else None
        for key in ("instruction", "input", "target"):  # what columns follow from must be valid
            Template(getattr(spec.prompt, key), file, f"prompt.{key}")
        columns, optional = columns_of(spec, schema)
        self.cells = CellReader(columns, optional, keeps_blanks=keeps_blanks)

    def read(self, row: Row, place: str) -> list[ReadRow]:
        """The row, or the rows that it holds; none where it does not satisfy the schema's condition."""
        rows_read = []
        for at, item in self._items(row, place):
            if self.authors:
                self._check_language(item, at, self.authors)
                if self.keep_split and item.get("split", "test") != "test":
                    continue
            fields = dict(item)
            for name, derive in self.derived.items():
                fields[name] = self._value(derive, item, at, f"field {name}")
            own = item.get("instruction") if self.authors else None
            instruction = own if isinstance(own, str) and own.strip() else None
            rows_read.append(ReadRow(fields, at, self.where, instruction))
        return rows_read

    def _items(self, row: Row, place: str) -> Iterator[tuple[str, Row]]:
        """The row with its place for messages; the items of a row that holds several."""
        columns = self.schema.columns
        if missing := [column for column in columns if column not in row]:
            cause = f"no column {', '.join(missing)}"
            remedy = f"every row needs: {', '.join(columns)}"
            raise self._fault(place, f" has {cause}", missing[0], remedy, cause)
        cells = self.cells.read(row)
        row = cells.row
        if cells.faults:
            self._refuse(cells, place)
            return
        if cells.blanks:
            self.faults.blanks.update(cells.blanks)
        number = place.rpartition(" ")[2]
        whole = {"id": number, **row}
        items = [(place, whole)]
        if self.each:
            objects = self._value(self.each, row, place, "each")
            if not isinstance(objects, list) or not all(isinstance(item, dict) for item in objects):
                raise self._fault(place, ": `each` gives no list of objects", None)
            items = [
                (f"{place}, item {count}", {**whole, **item, "id": f"{whole['id']}-{count}"})
                for count, item in enumerate(objects, start=1)
            ]
        for at, item in items:
            if self.wanted is None or self._value(self.wanted, item, at, "where"):
                yield at, item
            else:
                self.faults.notes["left out, since they do not satisfy the schema's condition"] += 1

    def _refuse(self, cells: Cells, place: str) -> None:
        if self.blank in cells.row and is_blank(cells.row[self.blank]):
            self.n_blank += 1
            return
        for name, found, cause, remedy in cells.faults:
            what = f", column {name} {found}, {cause.partition(', ')[2]}"
            self.faults.add(self._fault(place, what, name, remedy, f"column {name} {cause}"))

    def _value(self, wanted: Expression, row: Row, place: str, name: str) -> Any:
        try:
            value = wanted.of_row(row)
        except UNFIT as error:
            what = f": {what_happened(error, wanted.text)}"
        else:
            if not isinstance(value, jinja2.Undefined):
                return value
            what = " has no value"
        raise self._fault(place, f", {name}{what}", name.removeprefix("field "))

    def _check_language(self, row: Row, place: str, authors: AuthorsFiles) -> None:
        given = str(row.get("language") or "").lower()
        if authors.languages.get(given, given) in self.other_languages:
            what = f" is in language {given!r}, the task in {self.dataset.metadata.language!r}"
            raise self._fault(place, what, "language", "put the task's own file there")

    def _fault(
        self, place: str, what: str, column: str | None, remedy: str = REMEDY, cause: str = ""
    ) -> RowError:
        return RowError(
            f"{place}{what}", row=place, column=column, where=self.where, remedy=remedy, cause=cause
        )


class Quarantine:
    def __init__(self, exclusions: list[Exclusion], where: str) -> None:
        self.exclusions, self.where = exclusions, where
        self._found: Counter[int] = Counter()
        self._when = [
            Expression(item.when, where, f"rows.exclude.{number}.when")
            for number, item in enumerate(exclusions)
        ]

    def holds(self, row: Row) -> bool:
        for index, when in enumerate(self._when):
            if when.of_row_or_none(row):
                self._found[index] += 1
                return True
        return False

    def counts(self, split: str) -> dict[str, int]:
        """Reason -> rows; MedtasksError where the download has other rows than those that were excluded."""
        for index, item in enumerate(self.exclusions):
            if split == "test" and self._found[index] > item.most:
                raise MedtasksError(
                    f"{self._found[index]} test rows are excluded ({item.reason}), {item.most} were expected",
                    where=self.where,
                    remedy="the download is not what it was: fetch it again (`medtasks data fetch`)",
                )
        return {
            item.reason: self._found[index]
            for index, item in enumerate(self.exclusions)
            if self._found[index]
        }


#: Filters that leave a value of a closed list what it is.
_HARMLESS = ("trim", "string")
#: Answers that are one of the letters or labels that the format lists.
_ONE_OF = ("exact_letter", "verified_letter", "option_letter", "label", "label_word", "relation_label")


def columns_of(spec: DatasetSpec, schema: RowSchema) -> tuple[dict[str, Column], dict[str, Column]]:
    """The schema's columns and its optional ones, with all that the task file says of them.

    Three things are derived. A map of a template that a column looks up, `{'1': 'A', '0': 'B'}[label]`,
    lists the column's values. So does the answer format, where the gold answer is the column. And the column
    whose blank rows are left out (`skip_blank`) may be blank.
    """
    columns = {name: _declared(schema, name) for name in schema.columns}
    optional = {name: _declared(schema, name) for name in schema.optional}
    if "id" not in columns:
        said = schema.types.get("id")
        optional["id"] = _declared(schema, "id") if said else Column(type="id")
    for name, values in _closed(spec, schema).items():
        column = columns.get(name) or optional.get(name)
        if column and column.type == "text" and column.values is None:
            (columns if name in columns else optional)[name] = column.model_copy(update={"values": values})
    if blank := spec.rows.skip_blank:
        source = _last(f"{{{{ {schema.fields[blank]} }}}}") if blank in schema.fields else blank
        if source in columns:
            columns[source] = columns[source].model_copy(update={"nullable": True})
    return columns, optional


def _declared(schema: RowSchema, name: str) -> Column:
    said = schema.types.get(name)
    if isinstance(said, Column):
        return said
    if isinstance(said, list):
        return Column(values=said)
    return Column(type=said or "text")


def _closed(spec: DatasetSpec, schema: RowSchema) -> dict[str, list[Any]]:
    """Column -> the values that maps and the answer format list for it."""
    prompt, closed = spec.prompt, dict[str, list[Any]]()
    derived = {name: f"{{{{ {text} }}}}" for name, text in schema.fields.items()}
    for text in (*derived.values(), prompt.instruction, prompt.input, prompt.target):
        for name, keys in _maps(text):
            if name not in derived:
                closed.setdefault(name, keys)
    gold = _last(prompt.target)
    given = spec.answer.get("prefix") is None  # else the gold column holds more than the label
    if gold in derived:
        gold, given = _last(derived[gold]), True
    answers = [*spec.answer.get("letters", ()), *spec.answer.get("labels", ())]
    if answers and given and gold is not None and gold in schema.columns and spec.answer["kind"] in _ONE_OF:
        closed.setdefault(gold, answers)
    return closed


def _maps(text: str) -> Iterator[tuple[str, list[Any]]]:
    """The columns by which constant maps are looked up, with the keys."""
    if "[" not in text:  # most texts have none, and parsing takes a millisecond
        return
    for item in parsed(text).find_all(nodes.Getitem):
        name = _column(item.arg)
        if name is None or not isinstance(item.node, nodes.Dict):
            continue
        keys = [pair.key for pair in item.node.items]
        if all(isinstance(key, nodes.Const) and isinstance(key.value, str) for key in keys):
            yield name, [key.value for key in keys if isinstance(key, nodes.Const)]


def _column(node: nodes.Node) -> str | None:
    while isinstance(node, nodes.Filter) and node.name in _HARMLESS and node.node is not None:
        node = node.node
    return node.name if isinstance(node, nodes.Name) else None


def _last(text: str) -> str | None:
    """The column that a template shows, alone or behind and before constant text."""
    shown = [node for output in parsed(text).find_all(nodes.Output) for node in output.nodes]
    shown = [
        part
        for node in shown
        for part in (node.nodes if isinstance(node, nodes.Concat) else [node])
        if not isinstance(part, nodes.TemplateData | nodes.Const)
    ]
    return _column(shown[0]) if len(shown) == 1 else None
