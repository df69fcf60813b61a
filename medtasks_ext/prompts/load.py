"""From source rows to documents: prompts, gold answers, few-shot pools."""

from __future__ import annotations

import json
import logging
import os
import random
from collections import Counter
from dataclasses import dataclass, field
from functools import cache, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
from jinja2 import meta

from medtasks_ext.answers import AnswerFormat, GoldError, UnknownValueError, answer_format
from medtasks_ext.collector import collector_paused
from medtasks_ext.errors import MedtasksError, RowError
from medtasks_ext.privacy import columns_found, excerpt, public_rows, shows_text, what_happened
from medtasks_ext.prompts.documents import Document, Documents, Instruction, Loaded
from medtasks_ext.prompts.strategies import official_to_cot, strategy_line
from medtasks_ext.registry import Dataset
from medtasks_ext.registry.departments import read_departments
from medtasks_ext.registry.suites import vocabulary
from medtasks_ext.rows.databases import find_database
from medtasks_ext.rows.docx import blocks
from medtasks_ext.rows.masking import masked
from medtasks_ext.rows.missing import missing_data
from medtasks_ext.rows.objects import json_objects
from medtasks_ext.rows.options import as_letters, check_options, lettered, permuted, split_options
from medtasks_ext.rows.originals.spans import spans
from medtasks_ext.rows.points import PointsError, read_points
from medtasks_ext.rows.sources import Origin, Rows, find_origin, forced_origin, load_rows
from medtasks_ext.rows.spec import DatasetSpec, RowSchema, dataset_spec
from medtasks_ext.seed import SEED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from medtasks_ext.rows.files import Row

log = logging.getLogger(__name__)

HELD_OUT = 5
#: Rows of a pool that are kept: prompts carry the first few, in file order.
POOL_ROWS = 100
_SHOWN = 3  # faults that a message spells out
_MEND_POINTS = (
    "mend the scoring points of these rows: each has a text and a weight above 0; where a row has a total, "
    "its weights add up to it (docs/judging.md)"
)
_OFFICIAL_ROWS = RowSchema(columns=["task", "split", "input", "output"])
#: Language codes that official files use besides ISO 639-1.
_OTHER_CODES = {"cn": "zh", "jp": "ja"}

_environment = jinja2.Environment(
    undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False
)
_environment.filters.update(
    blocks=blocks, split_options=split_options, lettered=lettered, masked=masked, spans=spans
)
_environment.filters.update(as_letters=as_letters, json_objects=json_objects)


def flag(value: Any, name: str) -> bool:
    """A switch of `--metadata`.

    Raises:
        MedtasksError: the value is neither true nor false.
    """
    if str(value).lower() not in ("true", "false", "0", "1"):
        raise MedtasksError(f"{name} is {value!r}", where="--metadata", remedy="use true or false")
    return str(value).lower() in ("true", "1")


def load_documents(
    dataset: Dataset, *, cot: bool, shots: int = 0, origin: str | None = None, system_role: bool = True
) -> dict[str, Documents]:
    """The splits of one dataset, built once per process whatever the number of groups that name it.

    Args:
        dataset: the dataset.
        cot: render the chain-of-thought prompts.
        shots: shots that the prompts will carry; above 0 rows are held out where no pool exists.
        origin: force `local`, `hub` or `sample`.
        system_role: False puts instructions into the first user turn.

    Returns:
        `{"test": documents, "fewshot": documents}`.

    Raises:
        MedtasksError: data that is missing or does not satisfy the task's schema.
    """
    said = json.dumps([dataset.id, dataset.blocks, dataset.config["about"]], ensure_ascii=False, default=str)
    environment = tuple(os.environ.get(name, "") for name in ("MEDTASKS_DATA_DIR", "MEDTASKS_DATA"))
    forced = forced_origin(origin)
    return _build(_Wanted(dataset, said, cot, shots, forced, system_role, environment))


@dataclass(frozen=True)
class _Wanted:
    """What documents follow from; of the dataset, what is said counts, not who says so."""

    dataset: Dataset
    said: str
    cot: bool
    shots: int
    forced: Origin | None
    system_role: bool
    environment: tuple[str, ...]


@cache
def _build(wanted: _Wanted) -> dict[str, Documents]:
    return _documents(
        wanted.dataset,
        wanted.forced,
        cot=wanted.cot,
        shots=wanted.shots,
        system_role=wanted.system_role,
    )


@dataclass
class RowCheck:
    """What a look at all rows of a dataset found.

    Attributes:
        test: documents of the rows without faults.
        fewshot: the pool.
        faults: what is wrong. A fault that concerns no single row leaves no documents.
        blanks: column -> rows in which a column that must be there holds nothing.
    """

    test: Documents = field(default_factory=Documents)
    fewshot: Documents = field(default_factory=Documents)
    faults: list[MedtasksError] = field(default_factory=list)
    blanks: Counter[str] = field(default_factory=Counter)


def check_rows(dataset: Dataset, origin: str | None = None) -> RowCheck:
    """Read all rows of a dataset as zero-shot prompts, and note what is wrong. Nothing is cached."""
    found = RowCheck()
    try:
        forced = forced_origin(origin)
        splits = _documents(dataset, forced, cot=False, shots=0, system_role=True, check=found)
    except MedtasksError as error:
        found.faults = found.faults or [error]
        return found
    found.test, found.fewshot = splits["test"], splits["fewshot"]
    return found


def _documents(
    dataset: Dataset,
    forced: Origin | None,
    *,
    cot: bool,
    shots: int,
    system_role: bool,
    check: RowCheck | None = None,
) -> dict[str, Documents]:
    spec = dataset_spec(dataset.blocks, where=dataset.file)
    origin = find_origin(dataset, spec.rows, forced)
    if origin is None:
        raise missing_data(dataset, forced)
    with collector_paused(), public_rows(origin != "local"):
        rows = load_rows(dataset, spec.rows, origin)
        builder = _Builder(dataset, spec, rows, cot=cot, shots=shots, system_role=system_role, check=check)
        return builder.build()


class _Builder:
    """Renders the rows of one dataset for one strategy.

    A row that is not as it should be is an error, or, in a check, is left out and noted.
    """

    def __init__(
        self,
        dataset: Dataset,
        spec: DatasetSpec,
        rows: Rows,
        *,
        cot: bool,
        shots: int,
        system_role: bool,
        check: RowCheck | None = None,
    ) -> None:
        self.dataset, self.spec, self.rows, self.cot, self.shots = dataset, spec, rows, cot, shots
        self.check = check
        self.in_system = spec.prompt.instruction_role == "system" and system_role
        self.in_first_turn = spec.prompt.instruction_role == "system" and not system_role
        self.format: AnswerFormat = answer_format(spec.answer, where=dataset.file)
        self.strategy = strategy_line(dataset, spec, cot=cot)
        self.template = {
            name: _compile(getattr(spec.prompt, name), dataset.file)
            for name in ("instruction", "input", "cue", "target")
        }
        if spec.judge:
            self.template["question"] = _compile(spec.judge.question or spec.prompt.input, dataset.file)
        self.cluster = _expression(spec.rows.cluster or "none", dataset.file)
        self.wording = "official" if rows.instruction else "own"
        self.same_for_all = _reads(spec.prompt.instruction) <= {"strategy", "answer_format"}
        self.own_instruction: str | None = None
        self.systems: dict[str, Instruction] = {}
        wanted = spec.rows.database
        self.database = find_database(dataset, wanted, rows.origin) if wanted else None
        self.rebuilt = rows.rebuilt
        self.n_dropped = 0
        self.warned: set[str] = set()

    def build(self) -> dict[str, Documents]:
        test = self._fields(self.rows.test, "test")
        fewshot = self.rows.fewshot
        if self.spec.rows.draw_fewshot:
            fewshot = random.Random(SEED).sample(fewshot, min(len(fewshot), POOL_ROWS))
        pool = self._fields(fewshot[:POOL_ROWS], "few-shot", keep_split=False)[:POOL_ROWS]
        if not test:
            raise MedtasksError(
                "no test row is left",
                where=self.rows.where,
                remedy="rows need split `test` and a gold answer",
            )
        if pool and len(pool) < self.shots:
            raise MedtasksError(
                f"{self.shots} shots asked for, the few-shot pool has {len(pool)} rows",
                where=self.rows.fewshot_where or self.rows.where,
                remedy="complete the file, or ask for fewer shots (--num_fewshot)",
            )
        test, pool, n_held_out = self._with_pool(test, pool)
        self._check_disjoint(test, pool)
        test = self._sampled(test)
        if trials := self.spec.rows.option_trials:
            if trials > 1:  # answers are compared by content
                test, pool = self._with_options(test), self._with_options(pool)
            test = [trial for row in test for trial in permuted(row, trials)]
            pool = [permuted(row, 1)[0] for row in pool]
        shots = self._rendered(pool, first=lambda index: index == 0)
        self._check_shots(shots)
        test = self._with_points(self._with_own_ids(test))
        documents = self._rendered(test, first=lambda index: not self.shots)
        loaded = self._loaded(documents, shots, n_held_out)
        for document in (*documents, *shots):
            document.loaded = loaded
        return {"test": documents, "fewshot": shots}

    # ------------------------------------------------------------------ rows -> fields

    def _fields(self, rows: list[Row], split: str, *, keep_split: bool = True) -> list[Row]:
        if not rows:
            return []
        schema = self._schema(rows[0])
        self.rebuilt = self.rebuilt or (schema.rebuilt and self.rows.origin != "sample")
        derive = {name: _expression(text, self.dataset.file) for name, text in schema.fields.items()}
        listed = _expression(schema.each, self.dataset.file) if schema.each else None
        wanted = _expression(schema.where, self.dataset.file) if schema.where else None

        def values_of(row: Row, place: str) -> list[Row]:
            found = []
            for where, item in self._items(row, place, schema, listed, wanted):
                if schema is _OFFICIAL_ROWS:
                    self._check_language(item, where)
                    if keep_split and item.get("split", "test") != "test":
                        continue
                values = dict(item)
                for name, evaluate in derive.items():
                    values[name] = self._evaluated(
                        evaluate, item, where, f"field {name}", schema.fields[name]
                    )
                values["_row"] = where
                values["_official"] = schema is _OFFICIAL_ROWS
                found.append(values)
            return found

        fields: list[Row] = []
        for number, row in enumerate(rows, start=1):
            place = f"{split} row {number}"
            fields += self._tried(place, values_of, row, place) or []
        if schema.distinct:
            alike = {tuple(str(values[name]) for name in schema.distinct): values for values in fields}
            fields = list(alike.values())
        blank = "output" if schema is _OFFICIAL_ROWS else self.spec.rows.skip_blank
        return self._without_blanks(fields, blank)

    def _items(
        self,
        row: Row,
        place: str,
        schema: RowSchema,
        listed: Callable[..., Any] | None,
        wanted: Callable[..., Any] | None,
    ) -> Iterator[tuple[str, Row]]:
        """The row with its place for messages; the items of a row that holds several."""
        if missing := [column for column in schema.columns if column not in row]:
            raise RowError(
                f"{place} has no column {', '.join(missing)}",
                row=place,
                column=missing[0],
                where=self._file(place),
                remedy=f"every row needs: {', '.join(schema.columns)}",
            )
        if self.check is not None:
            self.check.blanks.update(name for name in schema.columns if _is_blank(row[name]))
        number = place.rpartition(" ")[2]
        whole = {"id": number, **row}
        items = [(place, whole)]
        if listed:
            found = self._evaluated(listed, row, place, "each", schema.each or "")
            if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
                raise RowError(
                    f"{place}: `each` gives no list of objects",
                    row=place,
                    where=self._file(place),
                    remedy="check that row against the schema",
                )
            items = [
                (f"{place}, item {count}", {**whole, **item, "id": f"{whole['id']}-{count}"})
                for count, item in enumerate(found, start=1)
            ]
        for where, item in items:
            if wanted is None or self._evaluated(wanted, item, where, "where", schema.where or ""):
                yield where, item

    def _tried(self, place: str, make: Callable[..., Any], *values: Any, **named: Any) -> Any:
        """What is made of a row; None where it has a fault that was noted."""
        try:
            return make(*values, **named)
        except RowError as error:
            self._fault(error)
        except MedtasksError:
            raise
        except Exception as error:  # a value of a kind that nobody thought of
            self._fault(
                RowError(
                    f"{place} cannot be used: {what_happened(error)}",
                    row=place,
                    where=self._file(place),
                    remedy="check that row against the schema",
                )
            )

    def _evaluated(
        self, evaluate: Callable[..., Any], row: Row, place: str, name: str, expression: str
    ) -> Any:
        try:
            value = evaluate({"row": row, **row})
        except (jinja2.UndefinedError, TypeError, ValueError, KeyError, IndexError) as error:
            what = f": {what_happened(error, expression)}"
        else:
            if not isinstance(value, jinja2.Undefined):
                return value
            what = " has no value"
        raise RowError(
            f"{place}, {name}{what}",
            row=place,
            column=name.removeprefix("field "),
            where=self._file(place),
            remedy="check that row against the schema",
        )

    def _fault(self, fault: RowError) -> None:
        if self.check is None:
            raise fault
        self.check.faults.append(fault)

    def _file(self, place: str) -> str:
        """The file that holds the row at that place."""
        return (self.rows.fewshot_where if place.startswith("few-shot") else None) or self.rows.where

    def _check_shots(self, shots: Documents) -> None:
        for row, shot in enumerate(shots[: self.shots], start=1):
            if self.spec.judge and not shot["target"].strip():  # elsewhere nothing may be the answer
                raise MedtasksError(
                    f"few-shot row {row} has no answer to show",
                    where=self.rows.fewshot_where or self.rows.where,
                    remedy="put few-shot rows with answers there",
                )

    def _check_language(self, row: Row, what: str) -> None:
        given, own = str(row.get("language") or "").lower(), self.dataset.metadata.language
        if _OTHER_CODES.get(given, given) in vocabulary()["languages"].keys() - {own}:
            raise RowError(
                f"{what} is in language {given!r}, the task in {own!r}",
                row=what,
                column="language",
                where=self._file(what),
                remedy="put the task's own file there",
            )

    def _schema(self, row: Row) -> RowSchema:
        schemas = [*([_OFFICIAL_ROWS] if self.spec.rows.official_name else []), *self.spec.rows.schemas]
        for schema in schemas:
            if all(column in row for column in schema.columns):
                return schema
        closest = min(schemas, key=lambda item: len(set(item.columns) - set(row)))
        missing = [column for column in closest.columns if column not in row]
        raise MedtasksError(
            f"column {', '.join(missing)} is missing ({columns_found(list(row), missing)})",
            where=self.rows.where,
            remedy="accepted schemas: " + " | ".join(", ".join(item.columns) for item in schemas),
        )

    def _without_blanks(self, fields: list[Row], name: str | None) -> list[Row]:
        """Leave out rows with a blank gold, as the official loaders do, unless none has a gold at all."""
        if name is None:
            return fields
        kept = [row for row in fields if str(row[name] or "").strip()]
        if kept:
            self.n_dropped += len(fields) - len(kept)
        return kept or fields

    # ------------------------------------------------------------------ test rows and pool

    def _with_pool(self, test: list[Row], pool: list[Row]) -> tuple[list[Row], list[Row], int]:
        always = self.spec.rows.held_out == "always"
        if pool or not (self.shots or always):
            return test, pool, 0
        if len(test) <= HELD_OUT and not self.shots:
            return test, pool, 0  # nothing would be left to score
        if len(test) <= HELD_OUT:
            raise MedtasksError(
                f"{len(test)} test rows are too few to hold {HELD_OUT} out as shots",
                where=self.rows.where,
                remedy="put few-shot rows beside them (fewshot.jsonl)",
            )
        held = random.Random(SEED).sample(range(len(test)), HELD_OUT)
        name = self.spec.rows.identity
        alike = {self._identity(test[index], name) for index in held}
        log.warning(
            "%s: no few-shot pool; %d of %d test rows serve as shots", self.dataset.id, HELD_OUT, len(test)
        )
        return (
            # rows with the same text as a shot cannot be scored, either
            [row for row in test if self._identity(row, name) not in alike],
            [test[index] for index in sorted(held)],
            HELD_OUT,
        )

    def _check_disjoint(self, test: list[Row], pool: list[Row]) -> None:
        name = self.spec.rows.identity
        seen = {self._identity(row, name): row["_row"] for row in pool}
        for row in test:
            if other := seen.get(self._identity(row, name)):
                self._fault(
                    RowError(
                        f"{other} is also {row['_row']}: an example must not be a test row",
                        row=row["_row"],
                        column=name,
                        where=self.rows.where,
                        remedy="take one of the two out",
                    )
                )

    def _identity(self, row: Row, name: str) -> str:
        if name not in row:
            raise MedtasksError(
                f"rows.identity names the unknown field {name!r}",
                where=self.dataset.file,
                remedy="name the field that holds the question or text",
            )
        return _words(row[name])

    def _sampled(self, test: list[Row]) -> list[Row]:
        limit, field = self.spec.rows.max_test, self.spec.rows.runs
        if not limit:
            return test
        runs: dict[str, list[Row]] = {}
        for row in test:
            runs.setdefault(str(row[field]) if field else "", []).append(row)
        return [row for rows in runs.values() for row in drawn(rows, limit)]

    def _with_options(self, rows: list[Row]) -> list[Row]:
        checked = (self._tried(row["_row"], check_options, row, self._where(row)) for row in rows)
        return [row for row in checked if row is not None]

    def _with_own_ids(self, rows: list[Row]) -> list[Row]:
        """The rows, no two of which have the same id."""
        seen: dict[tuple[str, Any], str] = {}
        kept = []
        for row in rows:
            key = (str(row["id"]), row.get("trial"))
            if key not in seen:
                seen[key] = row["_row"]
                kept.append(row)
                continue
            named = f"id {excerpt(key[0])}" if shows_text() else "the same id"
            self._fault(
                RowError(
                    f"{named} occurs twice: {seen[key]} and {row['_row']}",
                    row=row["_row"],
                    column="id",
                    where=self.rows.where,
                    remedy="give each row its own id",
                )
            )
        return kept

    # ------------------------------------------------------------------ fields -> documents

    def _rendered(self, rows: list[Row], *, first: Callable[[int], bool]) -> Documents:
        made = (
            self._tried(row["_row"], self._document, row, first=first(index))
            for index, row in enumerate(rows)
        )
        return Documents(document for document in made if document is not None)

    def _document(self, row: Row, *, first: bool) -> Document:
        fields = {**row, "strategy": self.strategy, "answer_format": self.spec.answer}
        if self.database:
            fields["schema"] = self.database.schema
        instruction = self._instruction(fields)
        text = alone = self._render("input", fields)
        if self.spec.prompt.cue and not self.cot:
            text = f"{text}\n{self._render('cue', fields)}"
        if self.in_first_turn:
            text = f"Input:\n{text}"
            text = f"{instruction}\n\n{text}" if first else text
        elif not self.in_system:
            text = f"{instruction}\n\n{text}"
        target, gold = self._gold(fields)
        document = Document(
            id=str(row["id"]),
            system=self._system(instruction if self.in_system else ""),
            prompt=text,
            target=target,
            gold=gold,
            cot=self.cot,
            data=self.rows.origin,
        )
        document.input, document.row = alone, row["_row"]
        for extra in ("options", "item", "trial"):
            if extra in row:
                document[extra] = row[extra]
        cluster = _value_or_none(self.cluster, row)
        if cluster is not None and _words(cluster):
            document["cluster"] = _digest([_words(cluster)])  # it may be a whole note
        if row.get("department") and self.dataset.suite.departments:
            document["department"] = self._departments(row)
        if self.spec.rows.runs:
            document["run"] = str(row[self.spec.rows.runs])
        if self.spec.judge:
            document["question"] = self._render("question", fields)
        if "_points" in row:
            document["points"] = row["_points"]
        if self.in_first_turn and not self.shots:
            document["turn"] = "instruction_in_user_turn"
        return document

    def _with_points(self, test: list[Row]) -> list[Row]:
        """The rows with the scoring points of each, where the task has some."""
        judge = self.spec.judge
        if judge is None or judge.points is None:
            return test
        points, total = (
            _expression(text or "none", self.dataset.file) for text in (judge.points, judge.total)
        )
        faults = {}
        for row in test:
            try:
                row["_points"] = read_points(_value_or_none(points, row), _value_or_none(total, row))
            except PointsError as error:
                faults[row["_row"]] = f"{self._place(row)}: {error}"
        if faults and self.check is None:
            shown = list(faults.values())
            more = f"; and {len(shown) - _SHOWN} more rows" if len(shown) > _SHOWN else ""
            raise MedtasksError("; ".join(shown[:_SHOWN]) + more, where=self.rows.where, remedy=_MEND_POINTS)
        for place, what in faults.items():
            self._fault(
                RowError(what, row=place, column="points", where=self.rows.where, remedy=_MEND_POINTS)
            )
        return [row for row in test if row["_row"] not in faults]

    def _departments(self, row: Row) -> list[str]:
        try:
            return read_departments(row["department"])
        except ValueError as error:
            raise RowError(
                f"{self._place(row)}: department: {error}",
                row=row["_row"],
                column="department",
                where=self._where(row),
                remedy="name one to three of medtasks_ext/registry/departments.yaml, or 'No Department'",
            ) from None

    def _where(self, row: Row) -> str:
        """The file that the row is in."""
        return self._file(row["_row"])

    @staticmethod
    def _place(row: Row) -> str:
        """The row for messages; an id may name a patient."""
        return f"{row['_row']} (id {row['id']})" if shows_text() else row["_row"]

    def _instruction(self, fields: Row) -> str:
        if self.rows.instruction:
            return self._with_strategy(self.rows.instruction)
        if not self._has_official_instruction(fields):
            if self.own_instruction is None or not self.same_for_all:
                self.own_instruction = self._render("instruction", fields).rstrip()
            return self.own_instruction
        own = fields["instruction"]
        self.wording = "official"
        if not self.cot:
            return own
        self.wording = "official, own strategy line"
        swapped = official_to_cot(own, self.strategy)
        if swapped is None:
            self._warn_once("%s: %s keeps the direct prompt under CoT", self.dataset.id, fields["_row"])
        return swapped or own

    def _system(self, text: str) -> Instruction:
        """One object for all documents that share the text."""
        return self.systems.setdefault(text, Instruction(text))

    @staticmethod
    def _has_official_instruction(fields: Row) -> bool:
        own = fields.get("instruction") if fields["_official"] else None
        return isinstance(own, str) and bool(own.strip())

    def _with_strategy(self, instruction: str) -> str:
        """The data holder's own wording: plain text in which only the strategy line is placed."""
        if "{{ strategy }}" in instruction:
            return instruction.replace("{{ strategy }}", self.strategy)
        return f"{instruction}\n{self.strategy}" if self.cot else instruction

    def _gold(self, fields: Row) -> tuple[str, Any]:
        if self.spec.rows.official_name and not str(fields.get("output") or "").strip():
            return "", None
        target = self._render("target", fields)
        if self.spec.judge and self.spec.judge.points and not target.strip():
            return "", None  # the points decide; a reference is only shown
        try:
            return target, self.format.read_gold(target, fields)
        except UnknownValueError as error:
            if not self._has_official_instruction(fields):
                raise self._bad_gold(fields, error) from None
            # the official scorer checks no values, and its own instruction may list others than ours
            self._warn_once("%s: %s: %s; accepted as official", self.dataset.id, fields["_row"], error)
            return target, self.format.read_gold(target, {**fields, "any_value": True})
        except GoldError as error:
            raise self._bad_gold(fields, error) from None

    def _warn_once(self, message: str, *values: object) -> None:
        """Say it for the first row that it concerns, not for thousands."""
        if message not in self.warned:
            self.warned.add(message)
            log.warning(message, *values)

    def _bad_gold(self, fields: Row, error: GoldError) -> RowError:
        columns = sorted(_reads(self.spec.prompt.target))
        return RowError(
            f"{self._place(fields)}: gold answer: {error}",
            row=fields["_row"],
            column=columns[0] if len(columns) == 1 else None,
            where=self._where(fields),
            remedy="the task's `answer:` block says what a gold answer looks like",
        )

    def _render(self, name: str, fields: Row) -> str:
        try:
            return self.template[name].render(fields)
        except (jinja2.UndefinedError, TypeError, ValueError, KeyError) as error:
            judge = self.spec.judge
            question = (judge and judge.question) or self.spec.prompt.input
            template = getattr(self.spec.prompt, name, question)
            raise RowError(
                f"prompt.{name} cannot be rendered for {fields['_row']}: {what_happened(error, template)}",
                row=fields["_row"],
                where=self._where(fields),
                remedy="the row lacks a field that the template uses",
            ) from None

    # ------------------------------------------------------------------ record

    def _loaded(self, documents: Documents, shots: Documents, n_held_out: int) -> Loaded:
        shown = self.spec.model_dump_json(include={"prompt", "answer"}, exclude={"answer": {"kind"}})
        prompt = shown + self.strategy
        if self.wording != "own":
            prompt = self.rows.instruction or documents[0]["system"] or documents[0]["prompt"]
        golds = [document["gold"] for document in documents if document["gold"] is not None]
        pooled = self.format.has_label_pool
        return Loaded(
            task=self.dataset.id,
            language=self.dataset.metadata.language,
            origin=self.rows.origin,
            where=self.rows.where,
            revision=self.rows.revision,
            instruction=self.wording,
            prompt_hash=_digest([prompt]),
            rows_hash=_digest(map(_row_text, documents)),
            rebuilt=self.rebuilt,
            database=self.database.digest if self.database else None,
            n_test=len(documents),
            n_fewshot=len(shots),
            n_held_out=n_held_out,
            n_without_gold=sum(item["gold"] is None and "points" not in item for item in documents),
            n_dropped=self.n_dropped,
            labels=sorted({label for gold in golds for label in self.format.labels_of(gold)})
            if pooled
            else [],
            targets=sorted({document["target"] for document in documents if document["target"]}),
            database_file=str(self.database.path) if self.database else None,
            shots=shots,
        )


def drawn(rows: list[Row], limit: int) -> list[Row]:
    """At most `limit` rows, in the order in which HELM draws them (`downsample_eval_instances`)."""
    if len(rows) <= limit:
        return rows
    import numpy as np

    return [rows[index] for index in np.random.RandomState(0).choice(len(rows), limit, replace=False)]


def _words(value: Any) -> str:
    """A value as text in which only words count."""
    return " ".join(str(value).split())


def _is_blank(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _row_text(document: Document) -> str:
    parts = [document["id"], document["prompt"], document["target"]]
    if "points" in document:
        parts.append(json.dumps(document["points"], ensure_ascii=False))
    return "\x1f".join(parts)


def _digest(texts: Iterable[str]) -> str:
    digest = sha256()
    for text in texts:
        digest.update(text.encode(errors="surrogatepass") + b"\x1e")
    return digest.hexdigest()[:12]


@lru_cache(maxsize=2048)
def _compile(template: str, where: Path) -> jinja2.Template:
    try:
        compiled = _environment.from_string(template)
        compiled.globals = dict(compiled.globals)  # a chain of maps would be copied slowly at each rendering
        return compiled
    except jinja2.TemplateError as error:
        raise MedtasksError(f"prompt template: {error}", where=where, remedy="mend the Jinja there") from None


def _reads(template: str) -> set[str]:
    """The variables that a template reads."""
    return meta.find_undeclared_variables(_environment.parse(template))


@lru_cache(maxsize=2048)
def _expression(text: str, where: Path) -> Callable[..., Any]:
    try:
        return _environment.compile_expression(text, undefined_to_none=False)
    except jinja2.TemplateError as error:
        raise MedtasksError(
            f"field expression {text!r}: {error}", where=where, remedy="mend the Jinja there"
        ) from None


def _value_or_none(evaluate: Callable[..., Any], row: Row) -> Any:
    """The value of an expression; None where the row does not have what it names."""
    try:
        value = evaluate({"row": row, **row})
    except (jinja2.UndefinedError, TypeError, ValueError, KeyError, IndexError):
        return None
    return None if isinstance(value, jinja2.Undefined) else value
