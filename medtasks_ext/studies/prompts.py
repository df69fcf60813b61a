"""Which of several wordings is asked: each on the same rows of the few-shot pool, the best mean over models.

ClinicBench (section 3.1) does not say of which rows. Here they are of the few-shot pool, so that no test row
helps to choose the prompt that it is asked in.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from medtasks_ext.atomic import write_text
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import write_json, write_lines
from medtasks_ext.process import SEED
from medtasks_ext.results.reading import read_results
from medtasks_ext.rows.fields import FieldReader
from medtasks_ext.rows.row import Faults
from medtasks_ext.rows.sources import find_origin, load_rows
from medtasks_ext.rows.spec import dataset_spec
from medtasks_ext.studies.said import study

if TYPE_CHECKING:
    from medtasks_ext.registry import Dataset, Registry
    from medtasks_ext.rows.row import Row


def write_wordings(folder: Path, dataset: Dataset, wordings: Mapping[str, str]) -> tuple[int, int]:
    """Write `FOLDER/NAME` for each wording: data as MEDTASKS_DATA_DIR holds it; rows, and those of the pool.

    An empty wording is that of the task.
    """
    pool, wanted = _pool(dataset), study("prompts")["rows"]
    drawn = random.Random(SEED).sample(pool, min(wanted + 5, len(pool)))
    asked, shots = drawn[:wanted], drawn[wanted:]  # without these, rows that are asked would serve as shots
    for name, wording in wordings.items():
        place = folder / name / dataset.metadata.suite / dataset.folder.name
        place.mkdir(parents=True)
        write_lines(place / "test.jsonl", asked)
        if shots:
            write_lines(place / "fewshot.jsonl", shots)
        if wording:
            write_text(place / "instruction.txt", wording)
    return len(asked), len(pool)


def _pool(dataset: Dataset) -> list[Row]:
    spec = dataset_spec(dataset)
    origin = None if spec.rows.database is not None else find_origin(dataset, spec.rows, None)
    if origin is None:
        what = "its rows are not at hand, or its answers are run on a database"
        raise MedtasksError(what, where=dataset.id, remedy=f"medtasks data fetch {dataset.id}")
    rows = load_rows(dataset, spec.rows, origin)

    def said(row: Row, split: str) -> set[str]:
        read = FieldReader(dataset, spec, rows, Faults()).read([dict(row)], split)
        return {str(item.fields[spec.rows.identity]) for item in read.rows}

    asked = {key for row in list(rows.test) for key in said(row, "test")}
    if pool := [row for row in list(rows.fewshot) if (keys := said(row, "few-shot")) and not keys & asked]:
        return pool
    what = "has no few-shot pool beside its test rows, and test rows must not choose their own prompt"
    raise MedtasksError(what, where=dataset.id, remedy="put such rows into fewshot.jsonl beside test.jsonl")


def chosen(folder: Path, task: str, wordings: Mapping[str, str], known: Registry) -> dict[str, Any]:
    """The wording with the best mean over models, each asked all wordings on all rows; `selection.json`."""
    scores, sample = dict[str, dict[str, float]](), False
    for name in wordings:
        runs = folder / name / "runs"
        for entry in read_results([runs], known).entries if runs.is_dir() else ():
            item = entry.experiments.get(task)
            if item is None or item.score is None or item.covered < 1:
                continue
            if item.n >= (item.conditions.n_here or 0):
                scores.setdefault(name, {})[entry.label] = item.score
                sample |= entry.sample
    models = {model for of in scores.values() for model in of}
    for name in wordings:
        if not models or (missing := models - scores.get(name, {}).keys()):
            what = f"has no score of {min(missing) if models else 'any model'} on all rows"
            remedy = f"run {task} to the end with this wording; judged tasks need `medtasks judge`"
            raise MedtasksError(what, where=folder / name / "runs", remedy=remedy)
    means = {name: fmean(scores[name].values()) for name in wordings}
    best = [name for name, mean in means.items() if mean == max(means.values())]
    found = {"task": task, "chosen": best[0], "tied": best[1:] and best, "means": means, "scores": scores}
    write_json(folder / "selection.json", {**found, "prompt": wordings[best[0]], "SAMPLE_DATA": sample})
    return {**found, "SAMPLE_DATA": sample}
