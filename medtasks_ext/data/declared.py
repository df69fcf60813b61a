"""What the files of a dataset folder say, checked without importing or rendering anything that they name."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

from pydantic import ValidationError

from medtasks_ext.answers import AnswerFormat, answer_format
from medtasks_ext.answers.formats import any_format, enter_kind
from medtasks_ext.atomic import check_regular
from medtasks_ext.errors import MedtasksError, near, some
from medtasks_ext.jsonfile import numbered_lines
from medtasks_ext.registry import Dataset, Metadata, Registry, Suite
from medtasks_ext.registry.columns import BESIDE, entries_of
from medtasks_ext.registry.functions import TASK_CLASS, check_function, functions_of, unsafe_keys
from medtasks_ext.registry.groups import PLACEHOLDER
from medtasks_ext.registry.metadata import COMMON, is_no_name
from medtasks_ext.registry.suites import LANGUAGE_OF_COUNTRY, NO_SUITE
from medtasks_ext.registry.tasks import BLOCKS, TASK_FILE, TASK_KEYS
from medtasks_ext.rows.expressions import syntax_faults
from medtasks_ext.rows.spec import DatasetSpec, dataset_spec, spec_model
from medtasks_ext.strict import Config, fault_of, nearest_faults

#: What names another commit whenever the source changes.
_MOVING = ("main", "master", "HEAD", "head", "latest", "dev", "develop")
#: Comparability version `N-X`.
VERSION = "[0-9]+-[A-Z]"
#: Rows that a sample has at least.
MIN_TEST, MIN_FEWSHOT = 6, 5
#: What a dataset folder may hold.
_SUFFIXES = (".yaml", ".lock", ".jsonl", ".json", ".bib", ".sql", ".md")

#: (what holds, what finds problems, whether later steps need it)
Step = tuple[str, Callable[[], Iterator[str]], bool]


@dataclass(frozen=True)
class Check:
    what: str  # what holds if there is no problem
    problems: list[str] = field(default_factory=list)  # what is wrong and how it is mended, one each
    done: bool = True  # False where an earlier problem has to be mended first


class DeclaredFolder:
    """One dataset folder, read as data. Methods that are steps give problems, in words."""

    def __init__(self, registry: Registry, dataset: Dataset) -> None:
        self.registry, self.dataset = registry, dataset

    def steps(self) -> list[Step]:
        return [
            *self.static_steps(),
            ("sample rows are JSON objects, and say their split", self.sample_lines, False),
        ]

    def static_steps(self) -> list[Step]:
        """Those that every check begins with."""
        return [
            (f"{TASK_FILE} can be read, and says all that it must", self.task_file, True),
            ("functions and templates are those that a task file may use", self.programs, True),
            ("nothing is left to fill in", self.placeholders, False),
            ("access, download and version agree", self.facts, False),
        ]

    def checks(self) -> list[Check]:
        found: list[Check] = []
        blocked = False
        for what, find, is_needed in self.steps():
            if blocked:
                found.append(Check(what, done=False))
                continue
            try:
                problems = list(find())
                blocked = is_needed and bool(problems)
            except MedtasksError as error:
                problems, blocked = [str(error)], True
            found.append(Check(what, [self.shortened(problem) for problem in problems]))
        return found

    def shortened(self, problem: str) -> str:
        """A message with paths as seen from the folder, on lines of its own depth."""
        problem = problem.replace(f"{self.dataset.folder}/", "").replace(f"{self.registry.root}/", "")
        return problem.replace("\n  →", " →")

    # ------------------------------------------------------------------ files

    @cached_property
    def _spec(self) -> DatasetSpec:
        return dataset_spec(self.dataset)

    @cached_property
    def _form(self) -> AnswerFormat:
        return answer_format(self._spec.answer, where=self.dataset.file)

    def task_file(self) -> Iterator[str]:
        config = self.dataset.config
        for key in config.keys() - TASK_KEYS.keys():
            yield f"{TASK_FILE}: {key}: unknown key{near(key, TASK_KEYS)}"
        for key, remedy in _NEEDED.items():
            if key not in (*BLOCKS, *config):
                yield f"{TASK_FILE}: {key}: missing key → {remedy}"
        if config.get("class") not in (None, f"!function {TASK_CLASS}"):
            yield f"{TASK_FILE}: class: not the class of all tasks → write `!function {TASK_CLASS}`"
        if config.get("strategy") not in (None, "zero_shot"):
            yield (
                f"{TASK_FILE}: strategy: this file is asked zero-shot"
                " → leave the key out; `medtasks dev build` writes the files of the others"
            )
        folder = self.dataset.key
        if not re.fullmatch(r"[\w.-]+", self.dataset.folder.name):
            name = re.sub(r"[^\w.-]+", "_", self.dataset.folder.name)
            yield f"{self.dataset.folder.name}: no name of a folder of tasks → rename it: {name}"
        elif config.get("dataset") not in (None, folder):
            yield f"{TASK_FILE}: dataset: {config['dataset']!r} is not this folder → write {folder}"
        answer, metadata = config.get("answer"), config.get("metadata")
        if isinstance(metadata, dict):
            for key in metadata.keys() - {"version"}:
                yield f"{TASK_FILE}: metadata.{key}: unknown key{near(str(key), ['version'])}"
        yield from self._facts()
        suite, task = self.dataset.suite.id, config.get("task")
        if suite != NO_SUITE and isinstance(task, str) and not task.startswith(f"{suite}_"):
            yield f"{TASK_FILE}: task: {task!r} does not begin with {suite}_ → rename it"
        yield from _faults(spec_model(self.dataset).model_validate, self.dataset.blocks, "", _NEEDED)
        if isinstance(answer, dict):
            faults = list(_answer_faults(answer))
            yield from faults
            try:
                _ = faults or (self.dataset.process_results, self.dataset.metric_list)
            except MedtasksError as error:
                yield f"{TASK_FILE}: {error.what} → {error.remedy}"
            if not faults and (lacking := answer_format(self.dataset.blocks["answer"]).unknown_language()):
                code = LANGUAGE_OF_COUNTRY.get(self.dataset.metadata.language.lower())
                meant = f"language: did you mean {code}, the language, and not the country? " if code else ""
                yield f"{TASK_FILE}: {meant}{lacking}"

    def _facts(self) -> Iterator[str]:
        try:
            Metadata.read(self.dataset.record, self.dataset.facts)
        except ValidationError as error:
            for item in error.errors():
                file, root = self.dataset.place_of(str(item["loc"][0]))
                yield f"{file.name}: {_worded(item, root, _meanings())}"
        except MedtasksError as error:
            yield f"{TASK_FILE}: {error.what} → {error.remedy}"

    def placeholders(self) -> Iterator[str]:
        files = [file for file in sorted(self.dataset.folder.iterdir()) if file.suffix in (".yaml", ".sql")]
        for file in files:
            check_regular(file)
            for number, line in enumerate(file.read_text(encoding="utf-8").split("\n"), start=1):
                if PLACEHOLDER in line:
                    text = line[line.index(PLACEHOLDER) :].strip(" '\"}")
                    yield f"{file.name}, line {number}: {text}"
        if self.dataset.sample_file.is_file():
            lines = list(numbered_lines(self.dataset.sample_file, remedy="write sample rows"))
            if left := [number for number, line in lines if PLACEHOLDER in line]:
                yield (
                    f"sample.jsonl: {len(left)} of {len(lines)} rows are placeholders (lines {some(left)})"
                    " → write invented rows; never real or altered patient data"
                )

    def facts(self) -> Iterator[str]:
        """Facts that contradict each other."""
        access, download = self.dataset.metadata.access, self._spec.rows.download
        if download and download.terms is None and access != "open":
            yield (
                f"{TASK_FILE}: rows.download is there, but access is {access}"
                " → only open data may be downloaded without terms: name them under rows.download.terms"
            )
        said = "revision" in download.model_fields_set if download else False
        if download and said and download.revision in _MOVING and not self.dataset.is_pinned:
            yield (
                f"{TASK_FILE}: rows.download.revision: {download.revision} is another commit tomorrow"
                f" → write the commit, 40 digits; then `medtasks dev lock --data {self.dataset.id}`"
            )
        if download and (same := [name for name in download.fewshot if name in download.test]):
            yield (
                f"{TASK_FILE}: rows.download.fewshot: {same[0].rpartition('/')[2]} is the test rows' file"
                " → name the source's other part; where it has none, leave fewshot out"
            )
        licence = self.dataset.metadata.licence
        if licence.evidence is None and is_no_name(licence.note):
            yield (
                f"card.yaml: licence: {licence.note!r} is no licence of SPDX and no record"
                f"{near(licence.note.upper(), COMMON)}"
                " → write an id of https://spdx.org/licenses, or the record that docs/add_a_dataset.md shows"
            )
        if not re.fullmatch(VERSION, self.dataset.version):
            yield (f"{TASK_FILE}: metadata.version is {self.dataset.version!r} → write N-X, for example 1-A")
        known = entries_of([self.dataset])
        for key in self.dataset.metadata.axis("citation"):
            if key not in known and not key.startswith(PLACEHOLDER):
                file, root = self.dataset.place_of("citation")
                place = f"{file.name}: {root + '.' if root else ''}citation"
                yield f"{place}: {key} has no entry → write it into {BESIDE} here"

    def programs(self) -> Iterator[str]:
        config = self.dataset.config
        for reference in functions_of(config):
            try:
                check_function(reference)
            except MedtasksError as error:
                yield f"{TASK_FILE}: {error.what} → {error.remedy}"
        yield from (f"{TASK_FILE}: {what} → {remedy}" for what, remedy in unsafe_keys(config))
        for place, text, is_expression in _jinja(self._spec):
            for what in syntax_faults(text, expression=is_expression):
                yield f"{TASK_FILE}: {place}: {what} → mend the Jinja there"
        for file in sorted(self.dataset.folder.iterdir()):
            if file.is_symlink() or (file.is_file() and file.suffix not in _SUFFIXES):
                yield f"{file.name}: no file of a dataset folder, and never read → take it out"

    def sample_lines(self) -> Iterator[str]:
        file, splits = self.dataset.sample_file, Counter[Any]()
        for number, line in numbered_lines(file, remedy="write sample rows"):
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                row = None
            if not isinstance(row, dict):
                yield f"{file.name}, line {number}: no JSON object → write one row a line"
            else:
                splits[str(row.get("_split"))] += 1
        if lacking := [name for name in ("fewshot", "test") if not splits[name]]:
            yield f"{file.name}: no row of `_split` {' and '.join(lacking)} → write such rows"


def suite_faults(suite: Suite) -> Iterator[str]:
    published = suite.published
    named = [published.entries, published.costs] if published else []
    for reference in filter(None, [*named, suite.leaderboard, suite.official_interval]):
        try:
            check_function(reference, where=suite.where)
        except MedtasksError as error:
            yield str(error)


#: Keys that every task file has, and what belongs there.
_NEEDED = {
    "class": f"write `!function {TASK_CLASS}`",
    "task": "name the task: SUITE_DATASET",
    "dataset": "name the folder: SUITE/DATASET",
    **dict.fromkeys(("rows", "prompt", "answer"), "see the example in CONTRIBUTING.md"),
    "metadata": "write `version: 1-A` below it",
}


def _faults(
    read: Callable[[Any], Any],
    block: Any,
    root: str,
    meanings: Mapping[str, str] | None = None,
    skip: int = 0,
) -> Iterator[str]:
    """What a model finds wrong with a block; `skip`: leading parts of an error's place that are no keys.

    `meanings`: key -> what belongs there, said of keys that are missing.
    """
    try:
        read(block)
    except ValidationError as error:
        for item in nearest_faults(error):
            yield f"{TASK_FILE}: {_worded({**item, 'loc': item['loc'][skip:]}, root, meanings)}"


def _worded(fault: Any, root: str, meanings: Mapping[str, str] | None) -> str:
    place = fault["loc"]
    meaning = (meanings or {}).get(str(place[0])) if fault["type"] == "missing" and place else None
    return fault_of(fault, root, _known_keys()) + (f" → {meaning}" if meaning else "")


@cache
def _meanings() -> dict[str, str]:
    facts = Metadata.model_json_schema()["properties"]
    return {key: part["description"] for key, part in facts.items() if "description" in part}


@cache
def _known_keys() -> set[str]:
    """Every key that a task file or a card may have somewhere."""
    made = (DatasetSpec.model_json_schema(), Metadata.model_json_schema(), any_format().json_schema())
    parts = [part for schema in made for part in (schema, *schema["$defs"].values())]
    return {"version", *TASK_KEYS}.union(*(part.get("properties", ()) for part in parts))


def _answer_faults(answer: Config) -> Iterator[str]:
    try:
        enter_kind(answer.get("kind"))
    except MedtasksError as error:
        yield f"{TASK_FILE}: answer.kind: {error}"
        return
    known = list(any_format().json_schema()["discriminator"]["mapping"])
    if (kind := answer.get("kind")) not in known:
        yield (
            f"{TASK_FILE}: answer.kind: unknown kind {kind!r}{near(str(kind), known)}"
            f" → one of: {', '.join(known)}"
        )
        return
    yield from _faults(any_format().validate_python, answer, "answer", skip=1)


def _jinja(spec: DatasetSpec) -> Iterator[tuple[str, str, bool]]:
    """(place, text, whether it is an expression) of all Jinja of a task file but that of `official`."""
    rows, written = spec.rows, ("id", "input", "output")
    yield "rows.cluster", rows.cluster or "", True
    parts: list[tuple[str, Any, tuple[str, ...], tuple[str, ...]]] = [
        ("prompt", spec.prompt, ("instruction", "input", "cue", "target"), ("messages",)),
        ("judge", spec.judge, ("question",), ("points", "row_tags", "total")),
        *((rows.place_of(schema), schema, (), ("each", "where")) for schema in rows.schemas),
        *((f"rows.exclude.{n}", item, (), ("when",)) for n, item in enumerate(rows.exclude)),
        *((f"rows.original.{n}", item, written, ("where",)) for n, item in enumerate(rows.original)),
    ]
    for place, part, templates, expressions in parts:
        for name in (*templates, *expressions) if part else ():
            yield f"{place}.{name}", getattr(part, name) or "", name in expressions
        yield from ((f"{place}.fields.{x}", text, True) for x, text in getattr(part, "fields", {}).items())
