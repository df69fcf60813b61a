"""Before a run: one document as a model gets it and how answers to it are read; what a run asks, counted.

Where the rows of a task are not on this machine, nothing is guessed: its documents are as many as the suite
states, its prompts are not counted, and how to get the rows is said.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from medtasks_ext.errors import MedtasksError
from medtasks_ext.models import Oracle, Says
from medtasks_ext.registry.strategies import by_likelihood
from medtasks_ext.rows.sources import forced_origin, origin_of, where_it_goes
from medtasks_ext.runner.evaluate import (
    ChatTemplate,
    Settings,
    answer_budget,
    build_task,
    evaluate_task,
    official_budget,
    prompts_of,
)
from medtasks_ext.runs.manifest import Choice
from medtasks_ext.version import install_words

if TYPE_CHECKING:
    from medtasks_ext.harness import LM, Task
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Registry

#: Of UTF-8, where no tokenizer is at hand.
BYTES_PER_TOKEN = 4
#: Documents of a task whose prompts are counted; of more, they are drawn evenly and the sum is scaled.
COUNTED = 100
#: The command that downloads what is open.
FETCH = "medtasks data fetch"
#: Texts -> the number of tokens of each, without special tokens.
Counter = Callable[[Sequence[str]], list[int]]


def renderer_of(tokenizer: Any, **switches: Any) -> Callable[..., str]:
    """How a tokenizer lays turns out, as lm-eval's models have it do so; `switches` go to its template."""

    def render(turns: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        text: str = tokenizer.apply_chat_template(
            turns,
            tokenize=False,
            add_generation_prompt=add_generation_prompt,
            continue_final_message=not add_generation_prompt,
            **switches,
        )
        return text

    return render


def counter_of(tokenizer: Any) -> Counter | None:
    """How a tokenizer counts; None for one that is not transformers'."""
    if not callable(tokenizer):
        return None

    def count(texts: Sequence[str]) -> list[int]:
        if not texts:
            return []
        return list(map(len, tokenizer(list(texts), add_special_tokens=False, verbose=False)["input_ids"]))

    return count


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


def preview(
    registry: Registry,
    name: str,
    settings: Settings,
    *,
    place: int = 0,
    template: ChatTemplate | None = None,
    response: str | None = None,
) -> Json:
    """What `medtasks preview --json` says of one document.

    `name`: of the task, with its strategy's suffix. `settings`: of a run; rows and words are taken from them.
    `place`: of the document, from 0. `template`: chat template of the model. `response`: one to read and
    score beside the gold and an empty one.
    """
    task = build_task(registry, name, settings)
    if not 0 <= place < len(task.eval_docs):
        what = f"{name} has documents 0 to {len(task.eval_docs) - 1}, not {place}"
        raise MedtasksError(what, where="document", remedy="count from 0")
    document = task.eval_docs[place]
    dataset, strategy = registry.known(name)
    chosen = by_likelihood(strategy)
    if chosen and response is not None:
        what = "no response is read where likelihood is asked"
        raise MedtasksError(what, where="--response", remedy=f"leave it out, or preview {dataset.id}")
    models: dict[str, LM] = {} if chosen else {"gold answer": Oracle(), "empty answer": Says("")}
    if not document["target"] and document["gold"] is None:
        models.pop("gold answer", None)
    if response is not None:
        models["your answer"] = Says(response)
    options = task.doc_to_choice(document) if chosen else ()
    asked = replace(settings, apply_chat_template=template is not None)
    budget = None if chosen else official_budget(dataset, strategy)
    return {
        "task": name,
        "strategy": strategy,
        "loaded": document.loaded.record,  # origin, file, counts, prompt hash
        "place": place,
        "id": document["id"],
        "prompt": prompts_of(task, [document], asked, template)[0],
        "target": document["target"],  # the gold answer as it is written in prompts
        "gold": document["gold"],  # as it is compared
        "shots": int(task.config.num_fewshot or 0),
        "generation": {} if chosen else dict(task.config.generation_kwargs or {}),
        "judged": bool(dataset.blocks.get("judge")),
        "official_budget": budget.words if budget else "",  # of a model that does not reason
        "trial": document.get("trial"),  # which of several askings of one question this is
        "answers": [_answer(task, settings, place, title, model) for title, model in models.items()],
        "options": [f"{task.config.target_delimiter}{one}" for one in options],
    }


def _answer(task: Task, settings: Settings, place: int, name: str, model: LM) -> Json:
    """A response, how it is read, and the value of each metric on this document alone."""
    task.set_config("repeats", 1)
    outcome = evaluate_task(model, task, settings, Choice(samples=(place,)))
    (sample,) = outcome.samples
    (read,) = sample["filtered_resps"]
    # of a question that is asked several times, one asking has plain means alone
    plain = {item["metric"] for item in task.config.metric_list or () if item.get("aggregation") == "mean"}
    return {
        "name": name,
        "response": sample["resps"][0][0],
        "parsed": read["answer"],
        **{key: read[key] for key in ("valid", "reader", "span", "why")},
        # those that a document has by itself, and to which it contributes
        "metrics": {
            key: float(value)
            for key, value in outcome.metrics.items()
            if isinstance(value, int | float)
            and math.isfinite(value)
            and ("trial" not in sample["doc"] or key in plain)
            and sample.get(key) not in ((0, 0), [0, 0])  # `mean_of_some` does not count it
        },
    }


def plan_task(
    registry: Registry, name: str, settings: Settings, count: Counter, template: ChatTemplate | None
) -> Json:
    """What a run asks of one task; `template` is used where the settings ask for it."""
    dataset, strategy = registry.known(name)
    task, missing = _built(registry, name, settings)
    n = len(task.eval_docs)
    documents = dataset.n_part * dataset.trials if missing else n
    requests = documents * task.repeats
    sample = not missing and task.eval_docs[0]["data"] == "sample"
    counted = 0 if missing else min(COUNTED, n)
    chosen = [task.eval_docs[int(index * max(1, n / COUNTED))] for index in range(counted)]
    sizes, budget = count(prompts_of(task, chosen, settings, template)), answer_budget(task)
    if by_likelihood(strategy):  # behind a prompt stand its possible answers, one after another
        options = [sum(count(task.doc_to_choice(item))) for item in chosen]
        sizes, budget = [size + more for size, more in zip(sizes, options, strict=True)], 0
    return {
        "task": name,
        "suite": dataset.metadata.suite,
        "strategy": strategy,
        "documents": documents,
        "counted": counted,  # documents whose prompts were counted
        # of all of them together; None where the rows are not here
        "prompt_tokens": None if missing else round(requests * fmean(sizes)),
        "most_output_tokens": requests * budget,  # if every answer filled its budget
        "sample": sample,  # whether sample rows were asked for as the data
        # whether its rows are asked with ours, as far as their prompts are on this machine: prompts of the
        # authors' rows come with these
        "own_prompts": not sample
        and (not missing or not dataset.suite.files)
        and task.eval_docs[0].loaded.record["instruction"] == "own",
        "missing": missing,  # how to get rows that are not here
    }


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
