"""One document as a model gets it, with a chat template or without; how answers are read and scored."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtasks_ext.atomic import check_regular
from medtasks_ext.errors import MedtasksError
from medtasks_ext.models import Oracle, Says
from medtasks_ext.prompts.shots import after
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
    from medtasks_ext.prompts.documents import Document, LoadedRecord
    from medtasks_ext.registry import Registry
    from medtasks_ext.strict import Config

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
    path = Path(name)
    if path.suffix in (".jinja", ".json") or (path.exists() and not path.is_dir()):
        return _file_chat(path)
    try:
        from transformers import AutoTokenizer
    except ImportError:
        raise MedtasksError(
            "tokenizers are read by transformers, which is not installed",
            where=f"--tokenizer {name}",
            remedy=f"{install_words('hf')}, or give a file with only the template",
        ) from None
    try:
        tokenizer = AutoTokenizer.from_pretrained(name)
    except (OSError, ValueError, KeyError) as error:
        raise MedtasksError(
            f"no tokenizer can be read ({str(error).splitlines()[0]})",
            where=f"--tokenizer {name}",
            remedy="name a folder with tokenizer.json, a model on the hub, or a file with a chat template",
        ) from None
    if not tokenizer.chat_template:
        raise MedtasksError(
            "the tokenizer has no chat template",
            where=f"--tokenizer {name}",
            remedy="leave it out: a base model gets the prompt without one; or name a file with a template",
        )
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


def _file_chat(file: Path) -> Chat:
    """A chat template from a file, rendered as transformers does (`utils/chat_template_utils.py`)."""
    where = f"--tokenizer {file}"
    check_regular(file)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        what = f"cannot be read ({getattr(error, 'strerror', None) or 'not UTF-8 text'})"
        remedy = "name a chat_template.jinja or tokenizer_config.json"
        raise MedtasksError(what, where=where, remedy=remedy) from None
    tokens: dict[str, str] = {}
    if file.suffix == ".json":
        try:
            config = json.loads(text)
            text = config["chat_template"]
            if isinstance(text, list):
                text = {item["name"]: item["template"] for item in text}["default"]
        except (json.JSONDecodeError, KeyError, TypeError):
            what, remedy = "holds no `chat_template`", "name the chat_template.jinja beside it"
            raise MedtasksError(what, where=where, remedy=remedy) from None
        special = {key: value for key, value in config.items() if key.endswith("_token") and value}
        tokens = {key: str(of["content"] if isinstance(of, dict) else of) for key, of in special.items()}
    return Chat(str(file), rendering(text, tokens, where))


def counter_of(tokenizer: Any) -> Counter | None:
    """How a tokenizer counts; None for one that is not transformers'."""
    if not callable(tokenizer):
        return None

    def count(texts: Sequence[str]) -> list[int]:
        return [
            len(ids)
            for start in range(0, len(texts), _AT_ONCE)
            for ids in tokenizer(
                list(texts[start : start + _AT_ONCE]), add_special_tokens=False, verbose=False
            )["input_ids"]
        ]

    return count


@dataclass(frozen=True)
class PreviewAnswer:
    """A response and what is made of it."""

    name: str  # whose response it is
    response: str  # the whole text
    parsed: Any  # the answer that is scored; None where there is none
    valid: bool  # whether it could be read
    reader: str  # whose reading that is: `official`, or `shared` where the suite has released none
    span: tuple[int, int] | None  # (first, last + 1) of it in the response, where the reader says so
    why: str  # by which sign it was found
    #: metric -> its value on this document alone; `score` is missing where judges give it
    metrics: dict[str, float]


@dataclass(frozen=True)
class Preview:
    """One document in one strategy."""

    task: str  # with the strategy's suffix
    strategy: str  # zero_shot, cot, five_shot or likelihood
    loaded: LoadedRecord  # what was loaded (origin, file, counts, prompt hash)
    place: int  # of the document in the test file, from 0
    id: str  # of the document
    prompt: str  # without a chat template, as a base model gets it
    target: str  # the gold answer as it is written in prompts; empty where there is none
    gold: Any  # the gold answer as it is compared
    shots: int  # examples in the prompt
    generation: Config  # lm-eval's settings of the request; none where likelihood is asked
    judged: bool  # whether judges give the score
    #: tokens for a model that does not reason, in words; empty where they are those of `generation`
    official_budget: str = ""
    trial: int | None = None  # which of several askings of one question this is
    chat_prompt: str | None = None  # with the chat template, if one is given
    #: whether the template takes a system turn; else the instruction is in the first user turn
    system_turn: bool = True
    #: of `chat_prompt`, special tokens that are not in its text left out; None without a tokenizer
    tokens: int | None = None
    answers: list[PreviewAnswer] = field(default_factory=list)  # example answers, read and scored
    #: the possible answers, as each stands behind the prompt, where likelihood is asked
    options: list[str] = field(default_factory=list)


def preview(
    registry: Registry,
    name: str,
    settings: Settings,
    *,
    place: int = 0,
    chat: Chat | None = None,
    response: str | None = None,
) -> Preview:
    """Build one task and look at one document of it.

    `name`: of the task, with its strategy's suffix. `settings`: of a run; rows and words are taken from them.
    `place`: of the document in the test file, from 0. `chat`: chat template to apply. `response`: a response
    to read and score beside the gold and an empty one.
    """
    task = build_task(registry, name, settings)
    if not 0 <= place < len(task.eval_docs):
        raise MedtasksError(
            f"{name} has documents 0 to {len(task.eval_docs) - 1}, not {place}",
            where="--document",
            remedy="count from 0",
        )
    document = task.eval_docs[place]
    dataset, strategy = registry.known(name)
    chosen = by_likelihood(strategy)
    if chosen and response is not None:
        raise MedtasksError(
            "no response is read where likelihood is asked",
            where="--response",
            remedy=f"leave it out, or preview {dataset.id}",
        )
    given = {"gold answer": Oracle()} if document["target"] or document["gold"] is not None else {}
    models: dict[str, LM] = {**given, "empty answer": Says("")}
    if response is not None:
        models["your answer"] = Says(response)
    seen = Preview(
        task=name,
        strategy=strategy,
        loaded=document.loaded.record,
        place=place,
        id=document["id"],
        prompt=rendered_prompt(task, document, settings, None),
        target=document["target"],
        gold=document["gold"],
        shots=int(task.config.num_fewshot or 0),
        generation={} if chosen else dict(task.config.generation_kwargs or {}),
        judged=bool(dataset.blocks.get("judge")),
        official_budget=budget.words if not chosen and (budget := official_budget(dataset, strategy)) else "",
        trial=document.get("trial"),
    )
    if chosen:
        seen.options.extend(f"{task.config.target_delimiter}{one}" for one in task.doc_to_choice(document))
    else:
        seen.answers.extend(_answer(task, settings, place, title, model) for title, model in models.items())
    return _with_chat(seen, registry, settings, chat) if chat else seen


def _last_turn(task: Task, document: Document) -> str:
    """The document's own turn, as it stands after the task's examples."""
    shots = (document.loaded.shots or [])[: int(task.config.num_fewshot or 0)]
    return str(after(document, shots)["prompt"])


def _with_chat(seen: Preview, registry: Registry, settings: Settings, chat: Chat) -> Preview:
    """Add the prompt as an instruct model gets it; a template may refuse a system turn, as in a run."""
    system_turn = takes_system_turn(chat.render)
    templated = replace(settings, apply_chat_template=True, system_role=system_turn)
    task = build_task(registry, seen.task, templated)
    document = task.eval_docs[seen.place]
    own_text, prompt, fault = _last_turn(task, document), "", ""
    try:
        prompt = rendered_prompt(task, document, templated, chat.render)
    except MedtasksError:
        raise
    except Exception as error:  # templates refuse in their own ways
        fault = f"the template cannot be applied: {error}"
    if not fault and own_text.strip() not in prompt:
        fault = "the template leaves the user's turn out"
    if fault:
        remedy = "check that it is the template of an instruct model"
        raise MedtasksError(fault, where=chat.name, remedy=remedy)
    tokens = chat.count([prompt])[0] if chat.count else None
    return replace(
        seen,
        chat_prompt=prompt,
        system_turn=system_turn,
        tokens=tokens,
    )


def _answer(task: Task, settings: Settings, place: int, name: str, model: LM) -> PreviewAnswer:
    task.set_config("repeats", 1)
    outcome = evaluate_task(model, task, settings, Choice(samples=(place,)))
    (sample,) = outcome.samples
    (read,) = sample["filtered_resps"]
    # of a question that is asked several times, one asking has plain means alone
    plain = {item["metric"] for item in task.config.metric_list or () if item.get("aggregation") == "mean"}
    return PreviewAnswer(
        name=name,
        response=sample["resps"][0][0],
        parsed=read["answer"],
        valid=read["valid"],
        reader=read["reader"],
        span=read["span"],
        why=read["why"],
        # those that a document has by itself, and to which it contributes
        metrics={
            key: float(value)
            for key, value in outcome.metrics.items()
            if isinstance(value, int | float)
            and math.isfinite(value)
            and ("trial" not in sample["doc"] or key in plain)
            and sample.get(key) not in ((0, 0), [0, 0])  # `mean_of_some` does not count it
        },
    )
