"""From source rows to documents: the `custom_dataset` functions of all tasks."""

from __future__ import annotations

import gc
import logging
import os
import random
from contextlib import contextmanager
from functools import cache, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
from jinja2 import meta

from medtasks_ext.answers import AnswerFormat, GoldError, UnknownValueError, answer_format
from medtasks_ext.data.documents import Document, Documents, Instruction, Loaded
from medtasks_ext.data.missing import missing_data
from medtasks_ext.data.options import lettered, permuted, split_options
from medtasks_ext.data.sources import Rows, find_origin, forced_origin, load_rows
from medtasks_ext.data.spec import DatasetSpec, RowSchema, dataset_spec
from medtasks_ext.data.strategies import official_to_cot, strategy_line
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import Dataset

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from medtasks_ext.data.files import Row

log = logging.getLogger(__name__)

HELD_OUT = 5
#: Rows of a pool that are kept: prompts carry the first few, in file order.
POOL_ROWS = 100
SEED = 42
_BRIDGE_ROWS = RowSchema(columns=["task", "split", "input", "output"])

_environment = jinja2.Environment(
    undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False
)
_environment.filters.update(split_options=split_options, lettered=lettered)


def zero_shot(**kwargs: Any) -> dict[str, Documents]:
    """Splits `test` and `fewshot` with direct prompts. Called by lm-eval with the task's metadata."""
    return _splits(kwargs, cot=False, shots=int(kwargs.get("shots", 0)))


def cot(**kwargs: Any) -> dict[str, Documents]:
    """Splits with chain-of-thought prompts."""
    return _splits(kwargs, cot=True, shots=0)


def five_shot(**kwargs: Any) -> dict[str, Documents]:
    """Splits with direct prompts; rows are held out for the pool where the source has none."""
    return _splits(kwargs, cot=False, shots=HELD_OUT)


def _splits(kwargs: dict[str, Any], *, cot: bool, shots: int) -> dict[str, Documents]:
    folder = Path(kwargs["config_source"]).parent
    loaded = load_documents(
        folder,
        cot=cot,
        shots=shots,
        origin=forced_origin(kwargs.get("data")),
        system_role=_flag(kwargs.get("system_role", True), "system_role"),
    )
    documents = loaded["test"]
    # nested, so the record survives a model argument of the same name
    kwargs["medtasks"]["loaded"] = documents[0].loaded.record()
    return loaded


def _flag(value: Any, name: str) -> bool:
    if str(value).lower() not in ("true", "false", "0", "1"):
        raise MedtasksError(f"{name} is {value!r}", where="--metadata", remedy="use true or false")
    return str(value).lower() in ("true", "1")


def load_documents(
    folder: Path, *, cot: bool, shots: int = 0, origin: str | None = None, system_role: bool = True
) -> dict[str, Documents]:
    """The splits of one dataset, built once per process whatever the number of groups that name it.

    Args:
        folder: the dataset's folder.
        cot: render the chain-of-thought prompts.
        shots: shots that the prompts will carry; above 0 rows are held out where no pool exists.
        origin: force `local`, `hub` or `sample`.
        system_role: False puts instructions into the first user turn.

    Returns:
        `{"test": documents, "fewshot": documents}`.

    Raises:
        MedtasksError: data that is missing or does not satisfy the task's schema.
    """
    environment = tuple(os.environ.get(name, "") for name in ("MEDTASKS_DATA_DIR", "MEDTASKS_DATA"))
    forced = forced_origin(origin)
    return _build(folder.resolve(), cot, shots, forced, system_role, environment)


@cache
def _build(
    folder: Path, cot: bool, shots: int, forced: Any, system_role: bool, environment: tuple[str, ...]
) -> dict[str, Documents]:
    dataset = Dataset(folder)
    spec = dataset_spec(dataset.config["dataset_kwargs"]["medtasks_dataset"], where=dataset.file)
    origin = find_origin(dataset, spec.source, forced)
    if origin is None:
        raise missing_data(dataset, forced)
    with _collector_paused():
        rows = load_rows(dataset, spec.source, origin)
        return _Builder(dataset, spec, rows, cot=cot, shots=shots, system_role=system_role).build()


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Documents are many and hold no cycles: the garbage collector need not look at them while they grow."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class _Builder:
    """Renders the rows of one dataset for one strategy."""

    def __init__(
        self, dataset: Dataset, spec: DatasetSpec, rows: Rows, *, cot: bool, shots: int, system_role: bool
    ) -> None:
        self.dataset, self.spec, self.rows, self.cot, self.shots = dataset, spec, rows, cot, shots
        self.in_system = spec.prompt.instruction_role == "system" and system_role
        self.in_first_turn = spec.prompt.instruction_role == "system" and not system_role
        self.format: AnswerFormat = answer_format(spec.answer, where=dataset.file)
        self.strategy = strategy_line(dataset.metadata.benchmark, cot=cot)
        self.template = {
            name: _compile(getattr(spec.prompt, name), dataset.file)
            for name in ("instruction", "input", "target")
        }
        self.wording = "official" if rows.instruction else "own"
        self.same_for_all = _reads(spec.prompt.instruction) <= {"strategy", "answer_format"}
        self.own_instruction: str | None = None
        self.systems: dict[str, Instruction] = {}
        self.rebuilt = False
        self.n_dropped = 0
        self.warned: set[str] = set()

    def build(self) -> dict[str, Documents]:
        test = self._fields(self.rows.test, "test")
        pool = self._fields(self.rows.fewshot[:POOL_ROWS], "few-shot", keep_split=False)
        if not test:
            raise MedtasksError(
                "no test row is left",
                where=self.rows.where,
                remedy="rows need split `test` and a gold answer",
            )
        test, pool, n_held_out = self._with_pool(test, pool)
        self._check_disjoint(test, pool)
        test = self._sampled(test)
        if self.spec.source.option_trials > 1:
            test = [trial for row in test for trial in permuted(row, self.spec.source.option_trials)]
        shots = Documents(self._document(row, first=index == 0) for index, row in enumerate(pool))
        documents = Documents(self._document(row, first=not self.shots) for row in test)
        self._check_ids(documents)
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
        fields = []
        for number, row in enumerate(rows, start=1):
            if missing := [column for column in schema.columns if column not in row]:
                raise MedtasksError(
                    f"{split} row {number} has no column {', '.join(missing)}",
                    where=self.rows.where,
                    remedy=f"every row needs: {', '.join(schema.columns)}",
                )
            if keep_split and schema is _BRIDGE_ROWS and row.get("split", "test") != "test":
                continue
            values = dict(row)
            for name, evaluate in derive.items():
                values[name] = _evaluated(
                    evaluate, row, f"{split} row {number}, field {name}", self.rows.where
                )
            values.setdefault("id", str(number))
            values["_row"] = f"{split} row {number}"
            values["_official"] = schema is _BRIDGE_ROWS
            fields.append(values)
        return self._without_blanks(
            fields, "output" if schema is _BRIDGE_ROWS else self.spec.source.skip_blank
        )

    def _schema(self, row: Row) -> RowSchema:
        schemas = [*([_BRIDGE_ROWS] if self.spec.source.official_name else []), *self.spec.source.rows]
        for schema in schemas:
            if all(column in row for column in schema.columns):
                return schema
        closest = min(schemas, key=lambda item: len(set(item.columns) - set(row)))
        missing = [column for column in closest.columns if column not in row]
        raise MedtasksError(
            f"column {', '.join(missing)} is missing (found: {', '.join(row)})",
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
        if pool or not self.shots:
            return test, pool, 0
        if len(test) <= HELD_OUT:
            raise MedtasksError(
                f"{len(test)} test rows are too few to hold {HELD_OUT} out as shots",
                where=self.rows.where,
                remedy="put few-shot rows beside them (fewshot.jsonl)",
            )
        held = random.Random(SEED).sample(range(len(test)), HELD_OUT)
        name = self.spec.source.identity
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
        name = self.spec.source.identity
        seen = {self._identity(row, name): row["_row"] for row in pool}
        for row in test:
            if other := seen.get(self._identity(row, name)):
                raise MedtasksError(
                    f"{other} is also {row['_row']}: an example must not be a test row",
                    where=self.rows.where,
                    remedy="take one of the two out",
                )

    def _identity(self, row: Row, name: str) -> str:
        if name not in row:
            raise MedtasksError(
                f"source.identity names the unknown field {name!r}",
                where=self.dataset.file,
                remedy="name the field that holds the question or text",
            )
        return " ".join(str(row[name]).split())

    def _sampled(self, test: list[Row]) -> list[Row]:
        limit = self.spec.source.max_test
        if not limit or len(test) <= limit:
            return test
        import numpy as np

        # HELM draws with numpy's legacy generator, seed 0, without replacement (`run_spec` adapter)
        chosen = np.random.RandomState(0).choice(len(test), limit, replace=False)
        return [test[index] for index in chosen]

    # ------------------------------------------------------------------ fields -> documents

    def _document(self, row: Row, *, first: bool) -> Document:
        fields = {**row, "strategy": self.strategy, "answer_format": self.spec.answer}
        instruction = self._instruction(fields)
        text = self._render("input", fields)
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
        for extra in ("options", "item", "trial"):
            if extra in row:
                document[extra] = row[extra]
        if self.in_first_turn and not self.shots:
            document["turn"] = "instruction_in_user_turn"
        return document

    def _instruction(self, fields: Row) -> str:
        if self.rows.instruction:
            return self._with_strategy(self.rows.instruction)
        if not self._has_official_instruction(fields):
            if self.own_instruction is None or not self.same_for_all:
                self.own_instruction = self._render("instruction", fields)
            return self.own_instruction
        own = fields["instruction"]
        self.wording = "official"
        if not self.cot:
            return own
        self.wording = "official, own strategy line"
        swapped = official_to_cot(own)
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
        if self.spec.source.official_name and not str(fields.get("output") or "").strip():
            return "", None
        target = self._render("target", fields)
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

    def _bad_gold(self, fields: Row, error: GoldError) -> MedtasksError:
        return MedtasksError(
            f"{fields['_row']} (id {fields['id']}): gold answer: {error}",
            where=self.rows.where,
            remedy="the task's `answer:` block says what a gold answer looks like",
        )

    def _render(self, name: str, fields: Row) -> str:
        try:
            return self.template[name].render(fields)
        except (jinja2.UndefinedError, TypeError, ValueError, KeyError) as error:
            raise MedtasksError(
                f"prompt.{name} cannot be rendered for {fields['_row']}: {error}",
                where=self.rows.where,
                remedy="the row lacks a field that the template uses",
            ) from None

    # ------------------------------------------------------------------ checks and record

    def _check_ids(self, documents: Documents) -> None:
        seen: set[tuple[str, Any]] = set()
        for document in documents:
            key = (document["id"], document.get("trial"))
            if key in seen:
                raise MedtasksError(
                    f"id {document['id']!r} occurs twice",
                    where=self.rows.where,
                    remedy="give each row its own id",
                )
            seen.add(key)

    def _loaded(self, documents: Documents, shots: Documents, n_held_out: int) -> Loaded:
        prompt = self.spec.model_dump_json(include={"prompt", "answer"}) + self.strategy
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
            rows_hash=_digest(f"{row['id']}\x1f{row['prompt']}\x1f{row['target']}" for row in documents),
            rebuilt=self.rebuilt,
            n_test=len(documents),
            n_fewshot=len(shots),
            n_held_out=n_held_out,
            n_without_gold=len(documents) - len(golds),
            n_dropped=self.n_dropped,
            labels=sorted({label for gold in golds for label in self.format.labels_of(gold)})
            if pooled
            else [],
            targets=sorted({document["target"] for document in documents if document["target"]}),
            shots=shots,
        )


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


def _evaluated(evaluate: Callable[..., Any], row: Row, what: str, where: str) -> Any:
    try:
        value = evaluate(**{key: item for key, item in row.items() if isinstance(key, str)})
    except (jinja2.UndefinedError, TypeError, ValueError, KeyError, IndexError) as error:
        raise MedtasksError(
            f"{what}: {error}", where=where, remedy="check that row against the schema"
        ) from None
    if isinstance(value, jinja2.Undefined):
        raise MedtasksError(f"{what} has no value", where=where, remedy="check that row against the schema")
    return value
