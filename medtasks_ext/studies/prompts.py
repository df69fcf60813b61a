"""Which of several wordings is asked: candidates on rows of the few-shot pool, the best mean over models.

ClinicBench (section 3.1) does not say of which rows. Here they are of the few-shot pool, so that no test row
helps to choose the prompt that it is asked in.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import yaml

from medtasks_ext.atomic import write_text
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import read_json, write_json, write_lines
from medtasks_ext.registry.suites import TERMS, vocabulary
from medtasks_ext.rows.faults import Faults
from medtasks_ext.rows.fields import FieldReader
from medtasks_ext.rows.sources import find_origin, load_rows
from medtasks_ext.rows.spec import RowSchema, dataset_spec
from medtasks_ext.seed import SEED
from medtasks_ext.studies.said import study

if TYPE_CHECKING:
    from medtasks_ext.registry import Dataset, Registry
    from medtasks_ext.results.experiments import Entry
    from medtasks_ext.rows.row import Row

PLAN = "candidates.json"
#: What of `rows` says how rows become fields; the rest says where they come from.
_READ = {*RowSchema.model_fields, "schemas", "identity", "cluster", "skip_blank"}
_READ |= {"runs", "option_trials", "cut"}
#: What of `about` a dataset of no suite may say: facts, and values of axes, some of the suite's vocabulary.
_AXES = ("task_type", "document_types", "specialties", "stage")
_ABOUT = {*_AXES, "name", "summary", "language", "access", "url", "licence", "primary_metric"}


def write_candidates(folder: Path, dataset: Dataset, prompts: Any, registry: Registry) -> dict[str, Any]:
    """Write a task for each prompt (name -> its keys) to `FOLDER/tasks`, its rows to `FOLDER/data`."""
    if not (
        isinstance(prompts, dict)
        and all(isinstance(prompt, dict) for prompt in prompts.values())
        and all(str(name).isalnum() and str(name).isascii() and name == name.lower() for name in prompts)
        and len({str(prompt) for prompt in prompts.values()}) == len(prompts) >= 2
    ):
        what = "needs two or more, each with a name (a-z, 0-9) and words of its own"
        raise MedtasksError(what, where="candidates", remedy="docs/evaluate.md has a file of candidates")
    pool, wanted = _pool(dataset), study("prompts")["rows"]
    chosen = random.Random(SEED).sample(pool, min(wanted, len(pool)))
    tasks, config = {name: f"{dataset.id}_{name}" for name in prompts}, dataset.config
    about = {key: value for key, value in dataset.record.items() if key in _ABOUT}
    content = {
        "rows": {key: value for key, value in config["rows"].items() if key in _READ},
        **{key: config[key] for key in ("answer", "judge", "generation_kwargs") if key in config},
        "about": {**about, "citation": "none", "n_test": len(chosen)},
        "metadata": {"version": "1-A"},
    }
    for candidate, name in tasks.items():
        prompt = {**config["prompt"], **prompts[candidate]}
        task = {"task": name, "dataset": f"own/{name}", "prompt": prompt, **content}
        _write(
            folder / "tasks" / name / "task.yaml", task, "class: !function medtasks_ext.task.MedicalTask\n"
        )
        rows = folder / "data" / "own" / name / "test.jsonl"
        rows.parent.mkdir(parents=True, exist_ok=True)
        write_lines(rows, chosen)
    terms = dict[str, dict[str, str]]()
    for axis in _AXES:  # values of shared axes that suites alone have
        known = vocabulary()[TERMS[axis]]
        terms[TERMS[axis]] = {key: said for key, said in registry.titles[axis].items() if key not in known}
    _write(folder / "tasks" / "vocabulary.yaml", terms)
    plan = {"task": dataset.id, "prompts": prompts, "tasks": tasks, "n": len(chosen), "of": len(pool)}
    write_json(folder / PLAN, plan)
    return plan


def _write(path: Path, content: Any, head: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, head + yaml.safe_dump(content, allow_unicode=True, sort_keys=False, width=1000))


def _pool(dataset: Dataset) -> list[Row]:
    """The raw rows of the few-shot pool that are no test rows."""
    spec = dataset_spec(dataset)
    origin = None if spec.rows.database is not None else find_origin(dataset, spec.rows, None)
    if origin is None:
        what = "its rows are not at hand, or its answers are run on a database"
        raise MedtasksError(what, where=dataset.id, remedy=f"medtasks data fetch {dataset.id}")
    rows = load_rows(dataset, spec.rows, origin)

    def said(row: Row, split: str) -> set[str]:
        read = FieldReader(dataset, spec, rows, Faults()).read([dict(row)], split, keep_split=False)
        return {str(item.fields[spec.rows.identity]) for item in read.rows}

    asked = {key for row in list(rows.test) for key in said(row, "test")}
    if pool := [row for row in list(rows.fewshot) if (keys := said(row, "few-shot")) and not keys & asked]:
        return pool
    what = "has no few-shot pool beside its test rows, and test rows must not choose their own prompt"
    raise MedtasksError(what, where=dataset.id, remedy="put such rows into fewshot.jsonl beside test.jsonl")


def select(folder: Path, entries: Sequence[Entry]) -> dict[str, Any]:
    """Choose the candidate with the best mean over models, each asked all candidates on all rows."""
    plan, scores = read_json(folder / PLAN), dict[str, dict[str, float]]()
    for name, task in plan["tasks"].items():
        for entry in entries:
            item = entry.experiments.get(task)
            whole = item and item.n >= (item.conditions.n_here or 0) and item.covered >= 1
            if item is None or item.score is None or not whole:
                what = f"has no score of candidate {name} on all rows"
                remedy = f"run {task} with this model to the end; judged tasks need `medtasks judge`"
                raise MedtasksError(what, where=entry.label, remedy=remedy)
            scores.setdefault(name, {})[entry.label] = item.score
    if not scores:
        raise MedtasksError("no runs are named", remedy="run the candidates with each model first")
    means = {name: fmean(of.values()) for name, of in scores.items()}
    best = [name for name, mean in means.items() if mean == max(means.values())]
    chosen = {"chosen": best[0], "tied": best[1:] and best, "prompt": plan["prompts"][best[0]]}
    figures = {"means": means, "scores": scores, "rows_of_the_pool": plan["n"]}
    write_json(folder / "selection.json", selection := {"task": plan["task"], **chosen, **figures})
    return selection
