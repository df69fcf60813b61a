"""From the columns of a source's rows to the fields that prompts are made of, and to scoring points."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

import jinja2
from jinja2 import meta, nodes

from medtasks_ext.errors import MedtasksError, RowError
from medtasks_ext.privacy import RowValueError, describe_columns, excerpt, what_happened
from medtasks_ext.registry.suites import vocabulary
from medtasks_ext.rows.columns import CellError, Column, checker, is_missing
from medtasks_ext.rows.expressions import UNFIT, Expression, Template, parsed
from medtasks_ext.rows.places import authors_of
from medtasks_ext.rows.row import REMEDY, Point, ReadRow

if TYPE_CHECKING:
    from medtasks_ext.registry import Dataset
    from medtasks_ext.rows.row import Faults, Row, Rows
    from medtasks_ext.rows.spec import DatasetSpec, Judging, RowSchema

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

    def read(self, rows: list[Row], split: str, without: Collection[str] = ()) -> ReadRows:
        """The rows of a split; they leave the list, so that large files are not in memory twice.

        `without`: places of rows that are left out. Raises RowError of a row unless faults are kept,
        MedtasksError where rows fit no accepted schema.
        """
        if not rows:
            return ReadRows([])
        rows, n_source = self._named(rows), len(rows)
        where = (self.rows.fewshot_where if split == "few-shot" else None) or self.rows.where
        schema = self._schema(rows[0])
        reader = _SchemaReader(self, schema, where)
        rows_read: list[ReadRow] = []
        exclusions = [
            (item, Expression(item.when, where, f"rows.exclude.{number}.when"))
            for number, item in enumerate(self.source.exclude if self.rows.origin == "hub" else ())
        ]
        excluded: Counter[str] = Counter()
        rows.reverse()
        for number in range(1, len(rows) + 1):
            row = rows.pop()  # leaves memory once its fields are made
            if taken := next((item.when for item, when in exclusions if when.of_row_or_none(row)), None):
                excluded[taken] += 1
                continue
            place = f"{split} row {number}"
            if place not in without:
                rows_read += self.faults.tried(place, where, reader.read, row, place) or []
        for item, _ in exclusions if split == "test" else ():
            if (n := excluded[item.when]) > item.most:
                what = f"{n} test rows are excluded ({item.reason}), {item.most} were expected"
                remedy = "the download is not what it was: fetch it again (`medtasks data fetch`)"
                raise MedtasksError(what, where=where, remedy=remedy)
        rows_read = [row for row in rows_read if row.place not in without]  # one of the items of a row
        n_alike = len(rows_read)
        if schema.distinct:
            rows_read = self._distinct(rows_read, schema.distinct)
        n_alike -= len(rows_read)
        blank = reader.authors.gold if reader.authors else self.source.skip_blank
        lacking = [row for row in rows_read if blank and not str(row.fields[blank] or "").strip()]
        if len(lacking) == len(rows_read):  # the rows that the authors publish have no gold at all
            lacking = []
        left = {id(row) for row in lacking}
        kept = [row for row in rows_read if id(row) not in left]
        remedy = "fill it in, or take the row out: a run leaves it out, as the suite does"
        if reader.authors and self.rows.origin == "local" and self.faults.check:
            for unscored in lacking:
                self.faults.add(unscored.fault("has no gold answer, and other rows have one", remedy))
        if n_blank := reader.n_blank + len(lacking):
            self.faults.notes["left out, since the gold is blank"] += n_blank
        self._note_indices(schema, kept)
        rebuilt = schema.rebuilt and self.rows.origin != "sample"
        reasons = {item.reason: excluded[item.when] for item, _ in exclusions if excluded[item.when]}
        return ReadRows(kept, n_blank, rebuilt, reasons, n_source, n_alike)

    def _distinct(self, rows: list[ReadRow], names: list[str]) -> list[ReadRow]:
        """The rows, of those alike in some fields the last, as the suite does.

        In a check of local rows a different gold answer is a fault of both.
        """
        gold = meta.find_undeclared_variables(parsed(self.spec.prompt.target))
        same, remedy = ", ".join(names), "decide which one is right: runs take the last of them"
        alike: dict[tuple[str, ...], ReadRow] = {}
        for row in rows:
            key = tuple(str(row.fields[name]) for name in names)
            if earlier := alike.get(key):
                self.faults.notes[f"left out, since a later one has the same {same}"] += 1
                contradict = any(str(earlier.fields.get(x)) != str(row.fields.get(x)) for x in gold)
                if contradict and self.faults.check and self.rows.origin == "local":
                    for one, other in ((earlier, row), (row, earlier)):
                        cause = f"has the {same} of another row, and another gold answer"
                        self.faults.add(one.fault(cause, remedy, f" ({other.place})"))
            alike[key] = row
        return list(alike.values())

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


class _SchemaReader:
    """Reads the rows of one file, all in one schema.

    `n_blank`: unusable ones with blank gold, so nothing is lost.
    """

    def __init__(self, of: FieldReader, schema: RowSchema, where: str) -> None:
        self.schema, self.dataset, self.where, self.faults = schema, of.dataset, where, of.faults
        self.authors = of.authors if of.authors and schema is of.authors.schema else None
        self.other_languages = vocabulary()["languages"].keys() - {of.dataset.metadata.language}
        self.blank, self.n_blank = of.source.skip_blank, 0
        file, at = of.dataset.file, of.source.place_of(schema)
        self.derived = {
            name: Expression(text, file, f"{at}.fields.{name}") for name, text in schema.fields.items()
        }
        self.each = Expression(schema.each, file, f"{at}.each") if schema.each else None
        self.wanted = Expression(schema.where, file, f"{at}.where") if schema.where else None
        for key in ("instruction", "input", "target"):  # what columns follow from must be valid
            Template(getattr(of.spec.prompt, key), file, f"prompt.{key}")
        needed, self.optional = columns_of(of.spec, schema)
        both = {**self.optional, **needed}
        self.columns = [(name, column, checker(column)) for name, column in both.items()]
        #: a blank text is left as it is, as in pinned files that their suite reads so
        self.keeps_blanks = of.rows.origin in ("hub", "release")

    def read(self, row: Row, place: str) -> list[ReadRow]:
        """The row, or the rows that it holds; none where it does not satisfy the schema's condition."""
        columns = self.schema.columns
        if missing := [column for column in columns if column not in row]:
            cause = f"no column {', '.join(missing)}"
            remedy = f"every row needs: {', '.join(columns)}"
            raise self._fault(place, f" has {cause}", missing[0], remedy, cause)
        cells = self._cells(row, place)
        if cells is None:
            return []
        items = [(place, {"id": place.rpartition(" ")[2], **cells})]
        if self.each:
            objects, whole = self._value(self.each, cells, place, "each"), items[0][1]
            if not isinstance(objects, list) or not all(isinstance(item, dict) for item in objects):
                raise self._fault(place, ": `each` gives no list of objects", None)
            items = [
                (f"{place}, item {count}", {**whole, **item, "id": f"{whole['id']}-{count}"})
                for count, item in enumerate(objects, start=1)
            ]
        return [made for at, item in items if (made := self._made(at, item))]

    def _cells(self, row: Row, place: str) -> Row | None:
        """The row with values of their types; None of one with faults.

        A cell that holds nothing is empty text, or None, or, if it is optional, not there.
        """
        read, blanks, faults = dict(row), list[str](), list[RowError]()
        for name, column, check in self.columns:
            if name not in row:
                continue
            value = row[name]
            if not is_missing(value, column.missing):
                try:
                    read[name] = check(value)
                except CellError as error:
                    what, remedy = column.fault(value, str(error))
                    faults.append(self._fault(place, f", column {name} {what}", name, remedy))
            elif (
                name in self.optional and name != "id"
            ):  # rows without ids are numbered, but not some of them
                del read[name]
                blanks.append(name)
            else:
                is_text = column.type in ("text", "lines")
                read[name] = "" if is_text else None
                if column.nullable or (is_text and self.keeps_blanks):
                    blanks.append(name)
                else:
                    what = f", column {name} holds nothing, expected {column.expected}"
                    faults.append(self._fault(place, what, name, "fill the cell, or take the row out"))
        if not faults:
            self.faults.blanks.update(blanks)
            return read
        if self.blank in read and is_missing(read[self.blank]):
            self.n_blank += 1
            return None
        for fault in faults:
            self.faults.add(fault)
        return None

    def _made(self, place: str, item: Row) -> ReadRow | None:
        if self.wanted and not self._value(self.wanted, item, place, "where"):
            self.faults.notes["left out, since they do not satisfy the schema's condition"] += 1
            return None
        instruction = None
        if self.authors:
            given = str(item.get("language") or "").lower()
            if self.authors.languages.get(given, given) in self.other_languages:
                what = f" is in language {given!r}, the task in {self.dataset.metadata.language!r}"
                raise self._fault(place, what, "language", "put the task's own file there")
            if place.startswith("test") and item.get("split", "test") != "test":
                return None
            own = item.get("instruction")
            instruction = own if isinstance(own, str) and own.strip() else None
        fields = dict(item)
        for name, derive in self.derived.items():
            fields[name] = self._value(derive, item, place, f"field {name}")
        return ReadRow(fields, place, self.where, instruction)

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

    def _fault(
        self, place: str, what: str, column: str | None, remedy: str = REMEDY, cause: str = ""
    ) -> RowError:
        return RowError(
            f"{place}{what}", row=place, column=column, where=self.where, remedy=remedy, cause=cause
        )


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


# ----------------------------------------------------------------------
# Scoring points that come with a row: what an answer must hold, each met or not, with its weight.

#: An id stands in prompts and is a key of a verdict.
_ID = re.compile(r"[\w.-]{1,64}")
_HEAVIEST = 1e9  # a weight beyond it is a slip
_POINTS = (
    "mend the scoring points of these rows: each has a text and a weight, above 0, or below 0 for a penalty; "
    "where a row has a total, its weights add up to it (docs/judges.md)"
)


def read_points(value: Any, total: Any = None, *, penalties: bool = False) -> list[Point]:
    """The scoring points of a row: {id, text, weight}, `tags` if there are some; else RowValueError.

    `value`: list of {text, weight} with positive weights, negative ones with `penalties`; `id` and `tags` are
    optional (ids are then p1, p2, ... by place), other keys are left out. `total`: what the weights must add
    up to; None: whatever they add up to is the whole.
    """
    if not isinstance(value, list) or not value:
        raise RowValueError("no scoring points")
    points = [_point(item, place, penalties=penalties) for place, item in enumerate(value, start=1)]
    ids, whole = [point["id"] for point in points], math.fsum(point["weight"] for point in points)
    if all(point["weight"] < 0 for point in points):
        raise RowValueError("no point has a positive weight")
    if repeated := [name for name in ids if ids.count(name) > 1]:
        raise RowValueError(f"two points have the id {repeated[0]}")
    if total is not None and not _is_positive(total):
        raise RowValueError(f"the total of the weights is {excerpt(total)}")
    if total is not None and not math.isclose(whole, total, rel_tol=1e-9):
        raise RowValueError(f"the weights add up to {whole:g}, not to {total:g}")
    return points


def with_points(rows: list[ReadRow], judging: Judging | None, faults: Faults, file: Path) -> list[ReadRow]:
    if judging is None or judging.points is None:
        return rows
    points = Expression(judging.points, file, "judge.points")
    total = Expression(judging.total or "none", file, "judge.total")
    sound: list[ReadRow] = []
    for row in rows:
        try:
            given, whole = points.of_row_or_none(row.fields), total.of_row_or_none(row.fields)
            row.points = read_points(given, whole, penalties=judging.penalties)
            sound.append(row)
        except RowValueError as error:
            what = f"{row.named}: {error}"
            faults.add(RowError(what, row=row.place, column="points", where=row.where, remedy=_POINTS))
    return sound


def _point(item: Any, place: int, *, penalties: bool) -> Point:
    if not isinstance(item, dict):
        raise RowValueError(f"point {place} is no object")
    name, text, weight = str(item.get("id", f"p{place}")), item.get("text"), item.get("weight")
    if not _ID.fullmatch(name):
        raise RowValueError(f"the id of point {place} is {excerpt(name, 80)} (letters, digits, _ . -)")
    if not isinstance(text, str) or not text.strip():
        raise RowValueError(f"point {place} has no text")
    if not (_is_positive(weight) or (penalties and _is_positive(weight, -1))):
        raise RowValueError(f"the weight of point {place} is {excerpt(weight)}")
    point: Point = {"id": name, "text": text.strip(), "weight": weight}
    if tags := item.get("tags"):
        if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
            raise RowValueError(f"the tags of point {place} are no list of texts")
        point["tags"] = list(dict.fromkeys(tags))
    return point


def _is_positive(value: Any, sign: int = 1) -> TypeGuard[float]:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 < sign * value < _HEAVIEST
