"""Which of several wordings is asked: candidates on rows of the few-shot pool, the best mean over models.

ClinicBench (section 3.1) writes three prompts for each of its clinical tasks, asks three models 100 rows in
each, and keeps the best. It does not say of which rows. Here they are of the few-shot pool, so that no test
row helps to choose the prompt that it is asked in.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml
from pydantic import Field, ValidationError, field_validator, model_validator

from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import read_json, write_json
from medtasks_ext.registry.suites import TERMS, vocabulary
from medtasks_ext.registry.yamlfile import Config, read_yaml
from medtasks_ext.rows.faults import Faults
from medtasks_ext.rows.fields import FieldReader
from medtasks_ext.rows.sources import find_origin, load_rows
from medtasks_ext.rows.spec import RowSchema, dataset_spec
from medtasks_ext.seed import SEED
from medtasks_ext.strict import Strict, faults_of

if TYPE_CHECKING:
    from medtasks_ext.registry import Dataset, Registry
    from medtasks_ext.results.experiments import Entry
    from medtasks_ext.rows.row import Origin, Row, Rows
    from medtasks_ext.rows.spec import DatasetSpec

#: The paper's numbers of candidates, rows and models.
CANDIDATES, ROWS, MODELS = 3, 100, 3
PLAN, CHOICE = "candidates.json", "selection.json"
SCHEMA = 1
#: What of `rows` says how rows become fields; the rest says where they come from.
_READING = (
    *("schemas", *RowSchema.model_fields, "identity", "cluster"),
    *("skip_blank", "runs", "option_trials", "cut"),
)
#: What of `about` a dataset of no suite may say.
_ABOUT = (
    *("name", "summary", "language", "task_type", "document_types", "specialties", "stage", "access", "url"),
    *("licence", "primary_metric"),
)
#: The lists of the vocabulary that a folder of datasets may add to.
_KINDS = ("task_types", "specialties", "stages", "document_types")
_REMEDY = "docs/evaluate.md has a file of candidates"


class Candidate(Strict):
    """One wording: what differs from the task's own prompt."""

    name: str = Field(pattern=r"^[a-z0-9]+$")  # how tasks and tables name it
    prompt: Config = {}  # keys of the task file's `prompt`; none for the task's own words


class Candidates(Strict):
    """A file of candidates, and how one of them is chosen."""

    task: str  # of the dataset whose prompt is chosen
    rows: int = Field(default=ROWS, ge=1)  # of the pool
    seed: int = SEED  # of their draw
    candidates: list[Candidate] = Field(min_length=2)

    @field_validator("candidates")
    @classmethod
    def _distinct(cls, candidates: list[Candidate]) -> list[Candidate]:
        names = [item.name for item in candidates]
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"two candidates are named {repeated[0]}")
        return candidates

    @model_validator(mode="after")
    def _differ(self) -> Candidates:
        prompts = [json.dumps(item.prompt, sort_keys=True) for item in self.candidates]
        if len(set(prompts)) < len(prompts):
            raise ValueError("two candidates have the same words")
        return self


def read_candidates(path: Path) -> Candidates:
    """Read a file of candidates.

    Raises:
        MedtasksError: it is none.
    """
    if not path.is_file():
        raise MedtasksError("no such file", where=path, remedy=_REMEDY)
    try:
        return Candidates(**read_yaml(path))
    except (ValidationError, TypeError) as error:
        what = "; ".join(faults_of(error, "candidates")) if isinstance(error, ValidationError) else str(error)
        raise MedtasksError(what, where=path, remedy=_REMEDY) from None


# ---------------------------------------------------------------------- tasks of the candidates


@dataclass(frozen=True)
class SelectionPlan:
    """What was written for the candidates."""

    task: str  # whose prompt is chosen
    tasks: dict[str, str]  # candidate -> its task
    n: int  # rows of the pool that each is asked
    of: int  # rows that the pool has
    seed: int


def write_candidates(
    folder: Path, given: Candidates, registry: Registry, origin: Origin | None
) -> SelectionPlan:
    """Write a task for each candidate, and rows of the pool as its test rows.

    `FOLDER/tasks` is for `--tasks-dir`, `FOLDER/data` for `MEDTASKS_DATA_DIR`.

    Raises:
        MedtasksError: the task is unknown, its rows are not at hand, or it has no few-shot pool.
    """
    if given.task not in registry.datasets:
        raise MedtasksError(
            f"no dataset {given.task!r}", where="candidates.task", remedy="`medtasks ls` lists the names"
        )
    dataset = registry.datasets[given.task]
    spec = dataset_spec(dataset)
    if spec.rows.database is not None:
        raise MedtasksError(
            "its answers are run on a database", where=given.task, remedy="choose its prompt by hand"
        )
    pool = _pool(dataset, spec, origin)
    chosen = random.Random(given.seed).sample(pool, min(given.rows, len(pool)))
    tasks = {item.name: f"{dataset.id}_{item.name}" for item in given.candidates}
    for item in given.candidates:
        name = tasks[item.name]
        _write_task(folder / "tasks" / name, name, dataset, item, len(chosen))
        rows = folder / "data" / "own" / name / "test.jsonl"
        rows.parent.mkdir(parents=True, exist_ok=True)
        lines = (json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in chosen)
        rows.write_text("".join(lines), encoding="utf-8")
    _write_vocabulary(folder / "tasks" / "vocabulary.yaml", dataset, registry)
    plan = SelectionPlan(dataset.id, tasks, len(chosen), len(pool), given.seed)
    write_json(folder / PLAN, {"schema": SCHEMA, **vars(plan)})
    return plan


def _pool(dataset: Dataset, spec: DatasetSpec, forced: Origin | None) -> list[Row]:
    """The raw rows of the few-shot pool that are no test rows."""
    origin = find_origin(dataset, spec.rows, forced)
    if origin is None:
        raise MedtasksError(
            "its rows are not at hand", where=dataset.id, remedy=f"medtasks data get {dataset.id}"
        )
    rows = load_rows(dataset, spec.rows, origin)
    asked = {key for row in list(rows.test) for key in _identities(row, "test", dataset, spec, rows)}
    pool = [
        row
        for row in list(rows.fewshot)
        if (keys := _identities(row, "few-shot", dataset, spec, rows)) and not keys & asked
    ]
    if not pool:
        raise MedtasksError(
            "has no few-shot pool beside its test rows, and test rows must not choose their own prompt",
            where=dataset.id,
            remedy="put rows of the same kind into fewshot.jsonl beside test.jsonl",
        )
    return pool


def _identities(row: Row, split: str, dataset: Dataset, spec: DatasetSpec, rows: Rows) -> set[str]:
    """By what a raw row is recognised; one may hold several questions."""
    read = FieldReader(dataset, spec, rows, Faults()).read([dict(row)], split, keep_split=False)
    return {str(item.fields[spec.rows.identity]) for item in read.rows}


def _write_task(folder: Path, name: str, dataset: Dataset, item: Candidate, n: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    config = dataset.config
    content = {
        "task": name,
        "dataset": f"own/{name}",
        "rows": {key: value for key, value in config["rows"].items() if key in _READING},
        "prompt": {**config["prompt"], **item.prompt},
        **{key: config[key] for key in ("answer", "judge", "generation_kwargs") if key in config},
        "about": {
            **{key: value for key, value in dataset.record.items() if key in _ABOUT},
            "citation": "none",
            "n_test": n,
        },
        "metadata": {"version": "1-A"},
    }
    text = yaml.safe_dump(content, allow_unicode=True, sort_keys=False, width=1000)
    head = f"# Candidate {item.name} for the prompt of {dataset.id}, on rows of its few-shot pool.\n"
    function = "class: !function medtasks_ext.task.MedicalTask\n"
    (folder / "task.yaml").write_text(head + function + text, encoding="utf-8")


def _write_vocabulary(path: Path, dataset: Dataset, registry: Registry) -> None:
    """The values of shared axes that the suite alone has, for datasets of no suite."""
    about, shared = dataset.record, vocabulary()
    terms: dict[str, dict[str, str]] = {}
    for axis, kind in TERMS.items():
        given = about.get(axis, ())
        for value in given if isinstance(given, list) else [given]:
            if kind in _KINDS and value not in shared[kind]:
                terms.setdefault(kind, {})[value] = registry.titles[axis][value]
    if terms:
        path.write_text(yaml.safe_dump(terms, allow_unicode=True, sort_keys=False), encoding="utf-8")


# ---------------------------------------------------------------------- the choice


@dataclass(frozen=True)
class Selection:
    """The candidates by their mean over models."""

    plan: SelectionPlan
    scores: dict[str, dict[str, float]]  # candidate -> model -> score, 0-1
    means: dict[str, float]  # candidate -> mean over models
    chosen: str  # the first of the best

    @property
    def tied(self) -> list[str]:
        """Candidates with the best mean, where several have it."""
        best = [name for name, mean in self.means.items() if mean == self.means[self.chosen]]
        return best if len(best) > 1 else []


def read_plan(folder: Path) -> SelectionPlan:
    """What `write_candidates` wrote.

    Raises:
        MedtasksError: the folder holds nothing of the kind.
    """
    path = folder / PLAN
    if not path.is_file():
        raise MedtasksError(
            f"holds no {PLAN}", where=folder, remedy="`medtasks prompts candidates FILE -o DIR` writes it"
        )
    content = read_json(path)
    try:
        if content.pop("schema") != SCHEMA:
            raise ValueError
        return SelectionPlan(**content)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise MedtasksError(
            "is no plan of candidates", where=path, remedy="`medtasks prompts candidates` writes it anew"
        ) from None


def select(plan: SelectionPlan, entries: Sequence[Entry]) -> Selection:
    """Choose the candidate with the best mean over models, each asked all candidates on all rows.

    Raises:
        MedtasksError: a model lacks a candidate, or was asked a part of the rows.
    """
    if not entries:
        raise MedtasksError("no runs are named", remedy="run the candidates with each model first")
    scores: dict[str, dict[str, float]] = {name: {} for name in plan.tasks}
    for entry in entries:
        for name, task in plan.tasks.items():
            item = entry.experiments.get(task)
            if item is None or item.score is None:
                raise MedtasksError(
                    f"has no score of candidate {name}",
                    where=entry.label,
                    remedy=f"run {task} with this model; judged tasks need `medtasks judge`",
                )
            if item.coverage.answers < (item.coverage.here or 0) or item.covered < 1:
                raise MedtasksError(
                    f"was asked a part of candidate {name}: {item.coverage.words}",
                    where=entry.label,
                    remedy="run it to the end: all candidates need the same rows",
                )
            scores[name][entry.label] = item.score
    means = {name: float(np.mean(list(of.values()))) for name, of in scores.items()}
    return Selection(plan, scores, means, max(means, key=means.__getitem__))


def write_selection(folder: Path, selection: Selection, candidates: Mapping[str, Any]) -> Path:
    """`FOLDER/selection.json`: which candidate is asked, and why."""
    path = folder / CHOICE
    write_json(
        path,
        {
            "schema": SCHEMA,
            "task": selection.plan.task,
            "chosen": selection.chosen,
            "tied": selection.tied,
            "prompt": candidates[selection.chosen],
            "means": selection.means,
            "scores": selection.scores,
            "rows_of_the_pool": selection.plan.n,
            "seed": selection.plan.seed,
        },
    )
    return path
