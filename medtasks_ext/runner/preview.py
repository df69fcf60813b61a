"""One document as a model gets it, with a chat template or without; how answers are read and scored."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtasks_ext.atomic import check_regular
from medtasks_ext.errors import MedtasksError
from medtasks_ext.models import Oracle, Says
from medtasks_ext.prompts.template import rendering
from medtasks_ext.registry.strategies import by_likelihood
from medtasks_ext.runner.evaluate import (
    Settings,
    build_task,
    evaluate_task,
    official_budget,
    rendered_prompt,
    takes_system_turn,
)
from medtasks_ext.runs.manifest import Choice
from medtasks_ext.version import install_words

if TYPE_CHECKING:
    from medtasks_ext.harness import LM, Task
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Registry

#: Texts -> the number of tokens of each, without special tokens.
Counter = Callable[[Sequence[str]], list[int]]
_AT_ONCE = 1024


@dataclass(frozen=True)
class Chat:
    """How a conversation becomes a prompt."""

    name: str  # of the tokenizer or file
    render: Callable[..., str]  # turns -> prompt; takes `add_generation_prompt`
    count: Counter | None = None  # texts -> number of tokens of each; None without a tokenizer


def chat_of(name: str) -> Chat:
    """The chat template of a file, or of a tokenizer: a folder, or a name on the Hugging Face hub.

    A tokenizer's is rendered by transformers as lm-eval's models do.
    """
    path, where = Path(name), f"--tokenizer {name}"
    if path.suffix == ".jinja" or (path.exists() and not path.is_dir()):
        check_regular(path)
        try:
            return Chat(name, rendering(path.read_text(encoding="utf-8"), {}, where))
        except (OSError, UnicodeDecodeError) as error:
            what = f"cannot be read ({getattr(error, 'strerror', None) or 'not UTF-8 text'})"
            raise MedtasksError(what, where=where, remedy="name a chat_template.jinja") from None
    try:
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(name)
    except ImportError:
        what = "tokenizers are read by transformers, which is not installed"
        remedy = f"{install_words('hf')}, or give a file with only the template"
        raise MedtasksError(what, where=where, remedy=remedy) from None
    except (OSError, ValueError, KeyError) as error:
        what = f"no tokenizer can be read ({str(error).splitlines()[0]})"
        remedy = "name a folder with tokenizer.json, a model on the hub, or a file with a chat template"
        raise MedtasksError(what, where=where, remedy=remedy) from None
    if not tokenizer.chat_template:
        remedy = "leave it out: a base model gets the prompt without one; or name a file with a template"
        raise MedtasksError("the tokenizer has no chat template", where=where, remedy=remedy)
    return Chat(name, renderer_of(tokenizer), counter_of(tokenizer))


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
        blocks = (list(texts[start : start + _AT_ONCE]) for start in range(0, len(texts), _AT_ONCE))
        counted = (tokenizer(block, add_special_tokens=False, verbose=False) for block in blocks)
        return [len(ids) for block in counted for ids in block["input_ids"]]

    return count


def preview(
    registry: Registry,
    name: str,
    settings: Settings,
    *,
    place: int = 0,
    chat: Chat | None = None,
    response: str | None = None,
) -> Json:
    """What `medtasks preview --json` says of one document.

    `name`: of the task, with its strategy's suffix. `settings`: of a run; rows and words are taken from them.
    `place`: of the document in the test file, from 0. `chat`: chat template to apply. `response`: a response
    to read and score beside the gold and an empty one.
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
    budget = None if chosen else official_budget(dataset, strategy)
    return {
        "task": name,
        "strategy": strategy,
        "loaded": document.loaded.record,  # origin, file, counts, prompt hash
        "place": place,
        "id": document["id"],
        "prompt": rendered_prompt(task, document, settings, None),  # as a base model gets it
        "target": document["target"],  # the gold answer as it is written in prompts
        "gold": document["gold"],  # as it is compared
        "shots": int(task.config.num_fewshot or 0),
        "generation": {} if chosen else dict(task.config.generation_kwargs or {}),
        "judged": bool(dataset.blocks.get("judge")),
        "official_budget": budget.words if budget else "",  # of a model that does not reason
        "trial": document.get("trial"),  # which of several askings of one question this is
        **(_with_chat(registry, name, settings, place, chat) if chat else {}),
        "answers": [_answer(task, settings, place, title, model) for title, model in models.items()],
        "options": [f"{task.config.target_delimiter}{one}" for one in options],
    }


def _with_chat(registry: Registry, name: str, settings: Settings, place: int, chat: Chat) -> Json:
    """The prompt as an instruct model gets it; a template may refuse a system turn, as in a run."""
    system_turn = takes_system_turn(chat.render)
    templated = replace(settings, apply_chat_template=True, system_role=system_turn)
    task = build_task(registry, name, templated)
    try:
        prompt = rendered_prompt(task, task.eval_docs[place], templated, chat.render)
    except MedtasksError:
        raise
    except Exception as error:  # templates refuse in their own ways
        what, remedy = f"the template cannot be applied: {error}", "name that of an instruct model"
        raise MedtasksError(what, where=chat.name, remedy=remedy) from None
    tokens = chat.count([prompt])[0] if chat.count else None
    return {"chat_prompt": prompt, "system_turn": system_turn, "tokens": tokens}


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
