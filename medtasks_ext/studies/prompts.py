"""Which of several wordings is asked: candidates on rows of the few-shot pool, the best mean over models.

ClinicBench (section 3.1) writes three prompts for each of its clinical tasks, asks three models 100 rows in
each, and keeps the best. It does not say of which rows. Here they are of the few-shot pool, so that no test
row helps to choose the prompt that it is asked in.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import yaml

from medtasks_ext.atomic import write_text
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import read_json, write_json, write_lines
from medtasks_ext.registry.suites import TERMS, vocabulary
from medtasks_ext.registry.yamlfile import read_yaml
from medtasks_ext.rows.faults import Faults
from medtasks_ext.rows.fields import FieldReader
from medtasks_ext.rows.sources import find_origin, load_rows
from medtasks_ext.rows.spec import RowSchema, dataset_spec
from medtasks_ext.seed import SEED

if TYPE_CHECKING:
    from medtasks_ext.registry import Dataset, Registry
    from medtasks_ext.results.experiments import Entry
    from medtasks_ext.rows.row import Origin, Row

#: The paper's numbers of candidates, rows and models.
CANDIDATES, ROWS, MODELS = 3, 100, 3
PLAN = "candidates.json"
#: What of `rows` says how rows become fields; the rest says where they come from.
_READING = (
    *("schemas", *RowSchema.model_fields, "identity", "cluster"),
    *("skip_blank", "runs", "option_trials", "cut"),
)
#: What of `about` a dataset of no suite may say, and the lists of its vocabulary.
_ABOUT = (
    *("name", "summary", "language", "task_type", "document_types", "specialties", "stage", "access"),
    *("url", "licence", "primary_metric"),
)
_KINDS = ("task_types", "specialties", "stages", "document_types")


def read_candidates(path: Path) -> dict[str, Any]:
    """A file of candidates: `task`, `candidates: [{name, prompt}]`, and `rows`, `seed` where they are others.

    Raises:
        MedtasksError: it is none, or two candidates have one name or the same words.
    """
    if not path.is_file():
        raise MedtasksError("no such file", where=path, remedy="docs/evaluate.md has a file of candidates")
    try:
        given = {"rows": ROWS, "seed": SEED, **read_yaml(path)}
        prompts = {str(item["name"]): dict(item.get("prompt") or {}) for item in given["candidates"]}
        words = {json.dumps(prompt, sort_keys=True) for prompt in prompts.values()}
        named = all(name.isascii() and name.isalnum() and name.islower() for name in prompts)
        n = len(given["candidates"])
        if n < 2 or len(prompts) < n or len(words) < n or not named or int(given["rows"]) < 1:
            raise ValueError
        return {
            "task": str(given["task"]),
            "rows": int(given["rows"]),
            "seed": given["seed"],
            "prompts": prompts,
        }
    except (KeyError, TypeError, ValueError, AttributeError):
        raise MedtasksError(
            "needs a task and two or more candidates, each with a name (a-z, 0-9) and words of its own",
            where=path,
            remedy="docs/evaluate.md has a file of candidates",
        ) from None


def write_candidates(
    folder: Path, given: Mapping[str, Any], registry: Registry, origin: Origin | None
) -> dict[str, Any]:
    """Write a task for each candidate, and rows of the pool as its test rows.

    `FOLDER/tasks` is for `--tasks-dir`, `FOLDER/data` for `MEDTASKS_DATA_DIR`.

    Raises:
        MedtasksError: the task is unknown, its rows are not at hand, or it has no few-shot pool.
    """
    if given["task"] not in registry.datasets:
        raise MedtasksError(
            f"no dataset {given['task']!r}", where="task", remedy="`medtasks ls` lists the names"
        )
    dataset = registry.datasets[given["task"]]
    pool = _pool(dataset, origin)
    chosen = random.Random(given["seed"]).sample(pool, min(given["rows"], len(pool)))
    tasks = {name: f"{dataset.id}_{name}" for name in given["prompts"]}
    config, about = dataset.config, {key: dataset.record[key] for key in _ABOUT if key in dataset.record}
    for candidate, name in tasks.items():
        content = {
            "task": name,
            "dataset": f"own/{name}",
            "rows": {key: value for key, value in config["rows"].items() if key in _READING},
            "prompt": {**config["prompt"], **given["prompts"][candidate]},
            **{key: config[key] for key in ("answer", "judge", "generation_kwargs") if key in config},
            "about": {**about, "citation": "none", "n_test": len(chosen)},
            "metadata": {"version": "1-A"},
        }
        head = f"# Candidate {candidate} for the prompt of {dataset.id}, on rows of its few-shot pool.\n"
        _write_yaml(
            folder / "tasks" / name / "task.yaml",
            content,
            f"{head}class: !function medtasks_ext.task.MedicalTask\n",
        )
        rows = folder / "data" / "own" / name
        rows.mkdir(parents=True, exist_ok=True)
        write_lines(rows / "test.jsonl", chosen)
    shared, terms = vocabulary(), dict[str, dict[str, str]]()
    for axis, kind in TERMS.items():  # values of shared axes that the suite alone has
        values = about.get(axis, ())
        for value in values if isinstance(values, list) else [values]:
            if kind in _KINDS and value not in shared[kind]:
                terms.setdefault(kind, {})[value] = registry.titles[axis][value]
    if terms:
        _write_yaml(folder / "tasks" / "vocabulary.yaml", terms)
    plan = {**given, "task": dataset.id, "tasks": tasks, "n": len(chosen), "of": len(pool)}
    write_json(folder / PLAN, plan)
    return plan


def _write_yaml(path: Path, content: Any, head: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, head + yaml.safe_dump(content, allow_unicode=True, sort_keys=False, width=1000))


def _pool(dataset: Dataset, forced: Origin | None) -> list[Row]:
    """The raw rows of the few-shot pool that are no test rows."""
    spec = dataset_spec(dataset)
    origin = None if spec.rows.database is not None else find_origin(dataset, spec.rows, forced)
    if origin is None:
        what = "its rows are not at hand, or its answers are run on a database"
        raise MedtasksError(what, where=dataset.id, remedy=f"medtasks data fetch {dataset.id}")
    rows = load_rows(dataset, spec.rows, origin)

    def said(row: Row, split: str) -> set[str]:
        read = FieldReader(dataset, spec, rows, Faults()).read([dict(row)], split, keep_split=False)
        return {str(item.fields[spec.rows.identity]) for item in read.rows}

    asked = {key for row in list(rows.test) for key in said(row, "test")}
    pool = [row for row in list(rows.fewshot) if (keys := said(row, "few-shot")) and not keys & asked]
    if not pool:
        raise MedtasksError(
            "has no few-shot pool beside its test rows, and test rows must not choose their own prompt",
            where=dataset.id,
            remedy="put rows of the same kind into fewshot.jsonl beside test.jsonl",
        )
    return pool


def select(folder: Path, entries: Sequence[Entry]) -> dict[str, Any]:
    """Choose the candidate with the best mean over models, each asked all candidates on all rows.

    Raises:
        MedtasksError: the folder is not what `write_candidates` wrote, or a model lacks rows of a candidate.
    """
    plan, means, scores = read_json(folder / PLAN), dict[str, float](), dict[str, dict[str, float]]()
    for name, task in plan["tasks"].items():
        for entry in entries:
            item = entry.experiments.get(task)
            whole = item and item.coverage.answers >= (item.coverage.here or 0) and item.covered >= 1
            if item is None or item.score is None or not whole:
                raise MedtasksError(
                    f"has no score of candidate {name} on all rows",
                    where=entry.label,
                    remedy=f"run {task} with this model to the end; judged tasks need `medtasks judge`",
                )
            scores.setdefault(name, {})[entry.label] = item.score
        if not entries:
            raise MedtasksError("no runs are named", remedy="run the candidates with each model first")
        means[name] = fmean(scores[name].values())
    best = [name for name, mean in means.items() if mean == max(means.values())]
    chosen = {"chosen": best[0], "tied": best[1:] and best, "prompt": plan["prompts"][best[0]]}
    selection = {
        "task": plan["task"],
        **chosen,
        "means": means,
        "scores": scores,
        "rows_of_the_pool": plan["n"],
    }
    write_json(folder / "selection.json", selection)
    return selection
