"""What a run will take, before it begins: documents, tokens, GPU hours. Estimates by stated rules.

Prompts are those of the run, counted on some documents of each task where its rows are at hand. Elsewhere
the suite's number of documents and the bundled sample rows stand in.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from medtasks_ext.data.missing import origin_of
from medtasks_ext.data.sources import forced_origin
from medtasks_ext.errors import MedtasksError
from medtasks_ext.runner.evaluate import build_task
from medtasks_ext.runner.prompts import rendered_prompt

if TYPE_CHECKING:
    from lm_eval.api.task import Task

    from medtasks_ext.data.documents import Document
    from medtasks_ext.registry import Dataset, Registry
    from medtasks_ext.runner.evaluate import Settings
    from medtasks_ext.runner.model_size import Size
    from medtasks_ext.runner.prompts import ChatTemplate, Counter

#: Documents of a task whose prompts are counted; of more, they are drawn evenly and the sum is scaled.
DRAWN = 100
#: Output tokens by assumption: a free text without a reference, reasoning that a prompt asks for, the trace
#: of a model that reasons by itself.
FREE_TEXT, STEP_BY_STEP, TRACE = 400, 300, 2000

#: Characters per token where the model's tokenizer is not at hand: least squares over the prompts of all
#: bundled sample rows, tokenised with Mistral's tekken (130,000 tokens, 2024). By language its sums are
#: then met within a fifth.
CHARACTERS_PER_TOKEN = {"other scripts": 3.8, "Cyrillic": 3.1, "Chinese and Japanese": 0.9}
_CYRILLIC = re.compile(r"[\u0400-\u04ff]")
_EAST_ASIAN = re.compile(r"[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]")

#: BF16 operations per second of an H100 SXM without sparsity, by NVIDIA's data sheet.
PEAK = 989e12
#: Shares of that peak that a full vLLM batch is assumed to reach: on prompts, on output.
PROMPT_SHARE, OUTPUT_SHARE = 0.4, 0.1
#: Weights on a GPU of 80 GB, the rule of `model_configs`.
GIGABYTES_PER_GPU, BYTES_PER_PARAMETER = 64, 2


@dataclass(frozen=True)
class OutputRule:
    """What decides how much a model writes.

    Attributes:
        reasons: whether it reasons by itself before it answers.
        budget: tokens that an answer may have at most; None for the task's own.
    """

    reasons: bool = False
    budget: int | None = None


@dataclass(frozen=True)
class TaskPlan:
    """What one task will take.

    Attributes:
        documents: to ask.
        prompt_tokens: of all of them together.
        output_tokens: expected.
        most_output_tokens: if every answer filled its budget.
        at_hand: whether the rows are here; otherwise sample rows stood in for their texts.
        counted: documents whose tokens were counted.
        sample: whether sample rows were asked for as the data.
    """

    task: str
    suite: str
    strategy: str
    documents: int
    prompt_tokens: int
    output_tokens: int
    most_output_tokens: int
    at_hand: bool
    counted: int
    sample: bool = False


def plan_task(
    registry: Registry,
    name: str,
    settings: Settings,
    count: Counter,
    chat_template: ChatTemplate | None,
    rule: OutputRule,
) -> TaskPlan:
    """Estimate one task.

    Args:
        registry: of tasks.
        name: of the task.
        settings: of the run.
        count: the model's tokenizer, or what stands in for it.
        chat_template: the model's, used where the settings ask for it.
        rule: of its output.

    Raises:
        MedtasksError: local data that is malformed.
    """
    dataset, strategy = registry.tasks[name]
    task, at_hand = _built(registry, name, settings)
    chosen = _drawn(task.eval_docs)
    prompts = count([str(rendered_prompt(task, item, settings, chat_template)) for item in chosen])
    budget = rule.budget or int(task.config.generation_kwargs["max_gen_toks"])
    outputs = [min(size, budget) for size in _output(chosen, count, rule)]
    n = len(task.eval_docs) if at_hand else _published_number(dataset)
    return TaskPlan(
        task=name,
        suite=dataset.metadata.benchmark,
        strategy=strategy,
        documents=n,
        prompt_tokens=round(n * sum(prompts) / len(chosen)),
        output_tokens=round(n * sum(outputs) / len(chosen)),
        most_output_tokens=n * budget,
        at_hand=at_hand,
        counted=len(chosen),
        sample=at_hand and chosen[0]["data"] == "sample",
    )


def _built(registry: Registry, name: str, settings: Settings) -> tuple[Task, bool]:
    """The task with its own rows if they are on this machine, else with the sample rows."""
    origin = origin_of(registry.tasks[name][0], forced_origin(settings.data))
    if origin is not None:
        try:
            with _offline():
                return build_task(registry, name, settings), True
        except MedtasksError:
            if origin in ("local", "sample"):
                raise
    return build_task(registry, name, replace(settings, data="sample")), False


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


def _drawn(documents: Sequence[Document]) -> list[Document]:
    step = max(1, len(documents) / DRAWN)
    return [documents[int(index * step)] for index in range(min(DRAWN, len(documents)))]


def _published_number(dataset: Dataset) -> int:
    """Documents that the suite states; a question is asked once for each order of its options."""
    source = dataset.config["dataset_kwargs"]["medtasks_dataset"]["source"]
    return dataset.metadata.n_test * int(source.get("option_trials") or 1)


def _output(documents: Sequence[Document], count: Counter, rule: OutputRule) -> list[int]:
    """Output tokens of each document, before the budget: its gold answer and what comes before it."""
    before = TRACE if rule.reasons else STEP_BY_STEP if documents[0]["cot"] else 0
    golds = count([document["target"] for document in documents])
    return [before + (gold + 1 if gold else FREE_TEXT) for gold in golds]  # 1: the end token


def count_by_script(texts: Sequence[str]) -> list[int]:
    """Tokens by the number of characters of each script."""
    other, cyrillic, east_asian = CHARACTERS_PER_TOKEN.values()
    counts = []
    for text in texts:
        n_cyrillic, n_east_asian = len(_CYRILLIC.findall(text)), len(_EAST_ASIAN.findall(text))
        rest = len(text) - n_cyrillic - n_east_asian
        counts.append(round(rest / other + n_cyrillic / cyrillic + n_east_asian / east_asian))
    return counts


# ---------------------------------------------------------------------- GPUs


def gpus_for(size: Size) -> int:
    """The smallest power of two of GPUs of 80 GB that holds the weights."""
    gpus = 1
    while size.total * BYTES_PER_PARAMETER / gpus >= GIGABYTES_PER_GPU * 1e9:
        gpus *= 2
    return gpus


def gpu_hours(size: Size, prompt_tokens: int, output_tokens: int) -> float:
    """Hours of one H100: two operations per active parameter and token, at the assumed shares of its peak."""
    work = prompt_tokens / PROMPT_SHARE + output_tokens / OUTPUT_SHARE
    return 2 * size.active * work / PEAK / 3600
