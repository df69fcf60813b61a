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
from medtasks_ext.rows.columns import CellReader, Column, is_blank
from medtasks_ext.rows.expressions import UNFIT, Expression, Template, parsed
from medtasks_ext.rows.places import authors_of
from medtasks_ext.rows.row import REMEDY, Point, ReadRow

if TYPE_CHECKING:
    from medtasks_ext.registry import Dataset
    from medtasks_ext.rows.columns import Cells
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
        schema = self._schema(rows[0])
        reader = _SchemaReader(self, schema, where, keep_split=keep_split)
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
        # as the official loaders do, unless none has a gold at all
        scored = [row for row in rows_read if blank is None or str(row.fields[blank] or "").strip()]
        kept = scored or rows_read
        if reader.authors and self.rows.origin == "local":
            self._refuse_partial_gold(rows_read, kept)
        n_blank = reader.n_blank + len(rows_read) - len(kept)
        if n_blank:
            self.faults.notes["left out, since the gold is blank"] += n_blank
        self._note_indices(schema, kept)
        rebuilt = schema.rebuilt and self.rows.origin != "sample"
        reasons = {item.reason: excluded[item.when] for item, _ in exclusions if excluded[item.when]}
        return ReadRows(kept, n_blank, rebuilt, reasons, n_source, n_alike)

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
        gold = meta.find_undeclared_variables(parsed(self.spec.prompt.target))
        what = f"the {', '.join(names)} of another row, and another gold answer"
        alike: dict[tuple[str, ...], ReadRow] = {}
        for row in rows:
            key = tuple(str(row.fields[name]) for name in names)
            if earlier := alike.get(key):
                self.faults.notes[f"left out, since a later one has the same {', '.join(names)}"] += 1
                contradict = any(str(earlier.fields.get(x)) != str(row.fields.get(x)) for x in gold)
                if contradict and self.faults.check and self.rows.origin == "local":
                    for one, other in ((earlier, row), (row, earlier)):
                        remedy = "decide which one is right: runs take the last of them"
                        self.faults.add(one.fault(f"has {what}", remedy, f" ({other.place})"))
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

    def __init__(self, of: FieldReader, schema: RowSchema, where: str, *, keep_split: bool) -> None:
        self.schema, self.dataset, self.where, self.faults = schema, of.dataset, where, of.faults
        self.authors = of.authors if of.authors and schema is of.authors.schema else None
        self.keep_split = keep_split
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
        public = of.rows.origin in ("hub", "release")
        self.cells = CellReader(*columns_of(of.spec, schema), keeps_blanks=public)

    def read(self, row: Row, place: str) -> list[ReadRow]:
        """The row, or the rows that it holds; none where it does not satisfy the schema's condition."""
        rows_read = []
        for at, item in self._items(row, place):
            if self.authors:
                given = str(item.get("language") or "").lower()
                if self.authors.languages.get(given, given) in self.other_languages:
                    what = f" is in language {given!r}, the task in {self.dataset.metadata.language!r}"
                    raise self._fault(at, what, "language", "put the task's own file there")
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
_SHOWN = 3  # faults that a message spells out
_POINTS = (
    "mend the scoring points of these rows: each has a text and a weight above 0; where a row has a total, "
    "its weights add up to it (docs/judges.md)"
)
_POINTS_WITH_PENALTIES = (
    "mend the criteria of these rows: each has a text and a weight, above 0 for what an answer should have "
    "and below 0 for what it should not; at least one is above 0 (docs/judges.md)"
)


class PointsError(RowValueError):
    """Points that cannot be scored; the message says why."""


def read_points(value: Any, total: Any = None, *, penalties: bool = False) -> list[Point]:
    """The scoring points of a row: {id, text, weight}, `tags` if there are some; else PointsError.

    `value`: list of {text, weight} with positive weights, negative ones with `penalties`; `id` and `tags` are
    optional (ids are then p1, p2, ... by place), other keys are left out. `total`: what the weights must add
    up to; None: whatever they add up to is the whole.
    """
    if not isinstance(value, list) or not value:
        raise PointsError("no scoring points")
    points = [_point(item, place, penalties=penalties) for place, item in enumerate(value, start=1)]
    if all(point["weight"] < 0 for point in points):
        raise PointsError("no point has a positive weight")
    ids = [point["id"] for point in points]
    if repeated := [name for name in ids if ids.count(name) > 1]:
        raise PointsError(f"two points have the id {repeated[0]}")
    if total is None:
        return points
    if not _is_positive(total):
        raise PointsError(f"the total of the weights is {excerpt(total)}")
    if not math.isclose(whole := math.fsum(point["weight"] for point in points), total, rel_tol=1e-9):
        raise PointsError(f"the weights add up to {whole:g}, not to {total:g}")
    return points


def with_points(rows: list[ReadRow], judging: Judging | None, faults: Faults, file: Path) -> list[ReadRow]:
    if judging is None or judging.points is None:
        return rows
    points = Expression(judging.points, file, "judge.points")
    total = Expression(judging.total or "none", file, "judge.total")
    remedy = _POINTS_WITH_PENALTIES if judging.penalties else _POINTS
    faulty: dict[str, RowError] = {}
    for row in rows:
        try:
            given, whole = points.of_row_or_none(row.fields), total.of_row_or_none(row.fields)
            row.points = read_points(given, whole, penalties=judging.penalties)
        except PointsError as error:
            what = f"{row.named}: {error}"
            fault = RowError(what, row=row.place, column="points", where=row.where, remedy=remedy)
            faulty[row.place] = fault
    if faulty and not faults.check:
        shown = [fault.what for fault in faulty.values()]
        more = f"; and {len(shown) - _SHOWN} more rows" if len(shown) > _SHOWN else ""
        raise MedtasksError("; ".join(shown[:_SHOWN]) + more, where=rows[0].where, remedy=remedy)
    for fault in faulty.values():
        faults.add(fault)
    return [row for row in rows if row.place not in faulty]


def _point(item: Any, place: int, *, penalties: bool) -> Point:
    if not isinstance(item, dict):
        raise PointsError(f"point {place} is no object")
    name, text, weight = str(item.get("id", f"p{place}")), item.get("text"), item.get("weight")
    if not _ID.fullmatch(name):
        raise PointsError(f"the id of point {place} is {excerpt(name, 80)} (letters, digits, _ . -)")
    if not isinstance(text, str) or not text.strip():
        raise PointsError(f"point {place} has no text")
    if not (_is_positive(weight) or (penalties and _is_positive(weight, -1))):
        raise PointsError(f"the weight of point {place} is {excerpt(weight)}")
    point: Point = {"id": name, "text": text.strip(), "weight": weight}
    if tags := item.get("tags"):
        if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
            raise PointsError(f"the tags of point {place} are no list of texts")
        point["tags"] = list(dict.fromkeys(tags))
    return point


def _is_positive(value: Any, sign: int = 1) -> TypeGuard[float]:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 < sign * value < _HEAVIEST
