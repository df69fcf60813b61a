"""Chat templates without a model: a tokenizer's own, or a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medtasks_ext.atomic import check_regular
from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts.template import rendering

#: Texts -> the number of tokens of each, without special tokens.
Counter = Callable[[Sequence[str]], list[int]]
_AT_ONCE = 1024


@dataclass(frozen=True)
class Chat:
    """How a conversation becomes a prompt."""

    name: str  # of the tokenizer or file
    render: Callable[..., str]  # turns -> prompt; takes `add_generation_prompt`
    count: Counter | None = None  # texts -> number of tokens of each; None without a tokenizer


def tokenizer_chat(name: str, template: str | None = None) -> Chat:
    """The chat template of a tokenizer, rendered by transformers as lm-eval's models do.

    `name`: folder, or name on the Hugging Face hub. `template`: another template in its place.
    """
    try:
        from transformers import AutoTokenizer
    except ImportError:
        raise MedtasksError(
            "tokenizers are read by transformers, which is not installed",
            where=f"--tokenizer {name}",
            remedy="pip install 'medtasks[hf]', or give the template alone: --chat-template FILE",
        ) from None
    try:
        tokenizer = AutoTokenizer.from_pretrained(name)
    except (OSError, ValueError, KeyError) as error:
        raise MedtasksError(
            f"no tokenizer can be read ({str(error).splitlines()[0]})",
            where=f"--tokenizer {name}",
            remedy="name a folder with tokenizer.json, or a model on the hub",
        ) from None
    if template is None and not tokenizer.chat_template:
        raise MedtasksError(
            "the tokenizer has no chat template",
            where=f"--tokenizer {name}",
            remedy="leave it out: a base model gets the prompt without one; or add --chat-template FILE",
        )
    return Chat(name, renderer_of(tokenizer, chat_template=template), counter_of(tokenizer))


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


def read_template(file: Path) -> tuple[str, dict[str, str]]:
    """A chat template and the special tokens that it may use.

    `file`: Jinja text, or a `tokenizer_config.json`.
    """
    check_regular(file)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise MedtasksError(
            f"cannot be read ({getattr(error, 'strerror', None) or 'not UTF-8 text'})",
            where=f"--chat-template {file}",
            remedy="name a chat_template.jinja or tokenizer_config.json",
        ) from None
    if file.suffix != ".json":
        return text, {}
    try:
        config = json.loads(text)
        template = config["chat_template"]
        if isinstance(template, list):
            template = {item["name"]: item["template"] for item in template}["default"]
    except (json.JSONDecodeError, KeyError, TypeError):
        raise MedtasksError(
            "holds no `chat_template`",
            where=f"--chat-template {file}",
            remedy="name the chat_template.jinja beside it",
        ) from None
    tokens = {key: value for key, value in config.items() if key.endswith("_token") and value}
    return template, {
        key: value["content"] if isinstance(value, dict) else str(value) for key, value in tokens.items()
    }


def file_chat(file: Path) -> Chat:
    """A chat template from a file, rendered as transformers does (`utils/chat_template_utils.py`)."""
    text, tokens = read_template(file)
    return Chat(str(file), rendering(text, tokens, f"--chat-template {file}"))


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
