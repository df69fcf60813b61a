"""What a run asks of a task, counted before it begins: documents, tokens of prompts, and the most of answers.

Prompts are those of the run. Where the rows of a task are not on this machine, nothing is guessed: its
documents are as many as the suite states, its prompts are not counted, and how to get the rows is said.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any
from unittest.mock import patch

from medtasks_ext.errors import MedtasksError
from medtasks_ext.harness import Task
from medtasks_ext.registry import Registry
from medtasks_ext.registry.strategies import by_likelihood
from medtasks_ext.rows.sources import forced_origin, origin_of, where_it_goes
from medtasks_ext.runner.evaluate import ChatTemplate, Settings, build_task, rendered_prompt
from medtasks_ext.runner.preview import Counter, counter_of
from medtasks_ext.version import install_words

#: Of UTF-8, where no tokenizer is at hand.
BYTES_PER_TOKEN = 4
#: Documents of a task whose prompts are counted; of more, they are drawn evenly and the sum is scaled.
COUNTED = 100
#: The command that downloads what is open.
FETCH = "medtasks data fetch"


def count_bytes(texts: Sequence[str]) -> list[int]:
    """Tokens where no tokenizer is at hand: one for four bytes of UTF-8, or a part of them.

    In English these are four characters; in Chinese, a token is 1.3 characters then, and not four.
    """
    return [-(-len(text.encode(errors="replace")) // BYTES_PER_TOKEN) for text in texts]


def token_counter(model: str, *, provider: bool, trusted: bool) -> tuple[Counter, Any, str]:
    """How tokens of a model are counted, its tokenizer, and why that is not at hand where it is None."""
    if provider:
        return count_bytes, None, "a provider's tokenizer is not read here"
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    try:
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(model, trust_remote_code=trusted)
    except ImportError:
        return count_bytes, None, f"transformers is not installed ({install_words('hf')})"
    except Exception as error:  # each tokenizer fails in its own way
        why = str(error).splitlines()[0]
        if Path(model).expanduser().is_dir():
            raise MedtasksError(
                f"holds no tokenizer that can be loaded ({why})",
                where=model,
                remedy="put the tokenizer's files beside the weights (tokenizer.json, tokenizer_config.json)",
            ) from None
        return count_bytes, None, why
    return counter_of(tokenizer) or count_bytes, tokenizer, ""


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
    own_prompts: bool  # whether its rows are asked with ours, as far as their prompts are on this machine
    missing: str = ""  # how to get rows that are not here


def plan_task(
    registry: Registry, name: str, settings: Settings, count: Counter, template: ChatTemplate | None
) -> PlannedTask:
    """Count one task; `template` is used where the settings ask for it."""
    dataset, strategy = registry.known(name)
    task, missing = _built(registry, name, settings)
    n = len(task.eval_docs)
    documents = dataset.n_part * dataset.trials if missing else n
    requests = documents * task.repeats
    sample = not missing and task.eval_docs[0]["data"] == "sample"
    counted = 0 if missing else min(COUNTED, n)
    chosen = [task.eval_docs[int(index * max(1, n / COUNTED))] for index in range(counted)]
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
        counted=counted,
        prompt_tokens=None if missing else round(requests * fmean(sizes)),
        most_output_tokens=requests * budget,
        sample=sample,
        own_prompts=not sample
        and (not missing or not dataset.suite.files)  # prompts of the authors' rows come with these
        and task.eval_docs[0].loaded.record["instruction"] == "own",
        missing=missing,
    )


def _built(registry: Registry, name: str, settings: Settings) -> tuple[Task, str]:
    """The task with its rows, or with the sample rows and how to get its own."""
    from huggingface_hub import constants

    dataset = registry.known(name)[0]
    origin, missing = origin_of(dataset, forced_origin(settings.data)), where_it_goes(dataset)
    # downloads come from the cache alone: a plan must not fetch gigabytes
    with patch.object(constants, "HF_HUB_OFFLINE", True), patch.dict(os.environ, HF_HUB_OFFLINE="1"):
        if origin is not None:
            try:
                return build_task(registry, name, settings), ""
            except MedtasksError:
                if origin in ("local", "sample"):
                    raise
            missing = f"{FETCH} {dataset.id}"
        return build_task(registry, name, replace(settings, data="sample")), missing
