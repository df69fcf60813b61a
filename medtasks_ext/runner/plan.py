"""What a run asks, counted before it begins: documents, tokens of prompts, and the most tokens of answers.

Prompts are those of the run. Where the rows of a task are not on this machine, nothing is guessed: its
documents are as many as the suite states, its prompts are not counted, and how to get the rows is said.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry.strategies import by_likelihood
from medtasks_ext.rows.missing import origin_of, where_it_goes
from medtasks_ext.rows.sources import forced_origin
from medtasks_ext.runner.chat import Counter
from medtasks_ext.runner.evaluate import Settings, build_task
from medtasks_ext.runner.requests import ChatTemplate, rendered_prompt

if TYPE_CHECKING:
    from medtasks_ext.harness import Task
    from medtasks_ext.registry import Registry

#: Documents of a task whose prompts are counted; of more, they are drawn evenly and the sum is scaled.
COUNTED = 100
#: The command that downloads what is open.
FETCH = "medtasks data fetch"


@dataclass(frozen=True)
class PlannedTask:
    """What a run asks of one task."""

    task: str
    suite: str
    strategy: str
    documents: int
    counted: int  # documents whose prompts were counted
    prompt_tokens: int | None  # of all of them together; None where the rows are not here
    most_output_tokens: int  # if every answer filled its budget
    sample: bool  # whether sample rows were asked for as the data
    missing: str = ""  # how to get rows that are not here


def plan_task(
    registry: Registry, name: str, settings: Settings, count: Counter, template: ChatTemplate | None
) -> PlannedTask:
    """Count one task; `template` is used where the settings ask for it."""
    dataset, strategy = registry.known(name)
    task, missing = _built(registry, name, settings)
    documents = dataset.n_part * dataset.trials if missing else len(task.eval_docs)
    chosen = [] if missing else _even(task.eval_docs)
    sizes = count([str(rendered_prompt(task, item, settings, template)) for item in chosen])
    budget = 0
    if by_likelihood(strategy):  # behind a prompt stand its possible answers, one after another
        options = [sum(count(task.doc_to_choice(item))) for item in chosen]
        sizes = [size + more for size, more in zip(sizes, options, strict=True)]
    else:
        budget = int(task.config.generation_kwargs["max_gen_toks"])
    return PlannedTask(
        task=name,
        suite=dataset.metadata.suite,
        strategy=strategy,
        documents=documents,
        counted=len(chosen),
        prompt_tokens=None if missing else round(documents * fmean(sizes)),
        most_output_tokens=documents * budget,
        sample=not missing and task.eval_docs[0]["data"] == "sample",
        missing=missing,
    )


def _built(registry: Registry, name: str, settings: Settings) -> tuple[Task, str]:
    """The task with its rows, or with the sample rows and how to get its own."""
    dataset = registry.known(name)[0]
    origin = origin_of(dataset, forced_origin(settings.data))
    missing = where_it_goes(dataset)
    if origin is not None:
        try:
            with _offline():
                return build_task(registry, name, settings), ""
        except MedtasksError:
            if origin in ("local", "sample"):
                raise
        missing = f"{FETCH} {dataset.id}"
    with _offline():
        return build_task(registry, name, replace(settings, data="sample")), missing


@contextmanager
def _offline() -> Iterator[None]:
    """Take downloads from the cache alone: a plan must not fetch gigabytes."""
    from huggingface_hub import constants

    before, variable = constants.HF_HUB_OFFLINE, os.environ.get("HF_HUB_OFFLINE")
    constants.HF_HUB_OFFLINE, os.environ["HF_HUB_OFFLINE"] = True, "1"
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before
        os.environ.pop("HF_HUB_OFFLINE")
        if variable is not None:
            os.environ["HF_HUB_OFFLINE"] = variable


def _even(documents: Sequence[dict[str, object]]) -> list[dict[str, object]]:
    step = max(1, len(documents) / COUNTED)
    return [documents[int(index * step)] for index in range(min(COUNTED, len(documents)))]
