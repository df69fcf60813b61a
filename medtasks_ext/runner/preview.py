"""One document as a model gets it, with a chat template or without; how answers are read and scored."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from medtasks_ext.errors import MedtasksError
from medtasks_ext.models import Oracle, Says
from medtasks_ext.registry.strategies import by_likelihood
from medtasks_ext.runner.evaluate import (
    ChatTemplate,
    Settings,
    build_task,
    evaluate_task,
    official_budget,
    rendered_prompt,
)
from medtasks_ext.runs.manifest import Choice

if TYPE_CHECKING:
    from medtasks_ext.harness import LM, Task
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Registry

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
        raise MedtasksError(what, where="--document", remedy="count from 0")
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
        "prompt": rendered_prompt(task, document, asked, template),
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
