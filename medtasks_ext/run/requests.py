"""A request as it is made of what lm-eval builds of a document, and its key: all that is sent, and nothing
else."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from medtasks_ext.egress import Text
from medtasks_ext.engines.records import Prompt, Request
from medtasks_ext.run.store import key_of

if TYPE_CHECKING:
    from medtasks_ext.harness import Instance


def request_of(
    instances: Sequence[Instance],
    identity: str,
    document: str,
    *,
    settings: Mapping[str, Any] | None = None,
    draw: int = 0,
    reads_document: bool = False,
    apart: bool = False,
    cut: str = "",
) -> Request:
    """The request of instances that share document and prompt: one, or one for each possible answer.

    A greedy question has one answer, whoever asks it. A sampled one is drawn anew for each document, and for
    each time that it is asked of one document.

    `identity`: digest of the model and of what can change its responses. `document`: its key within the task.
    `settings`: of generation, in place of those of the instance. `draw`: how often it was asked of this
    document before. `reads_document`: whether the model looks at the document, and not at the prompt.
    `apart`: whether text that is not open is asked for each dataset by itself, so that who got it is on
    record. `cut`: what did not fit of the prompt.
    """
    first = instances[0]
    task, text, prompt = str(first.task_name), text_of(first), prompt_of(first)
    options = tuple(str(one.args[1]) for one in instances) if isinstance(first.args[1], str) else ()
    given = {} if options else settings or first.args[1]
    parts: list[Any] = ["loglikelihood", prompt, list(options)]
    if not options:
        parts = ["generate_until", prompt, normalised(given)]
    if apart and not text.is_open:
        parts.append(text.dataset)
    if reads_document:
        parts += [task, document]
    elif is_sampled(given):
        parts += [task, document, draw]
    key = key_of(identity, parts)
    return Request(key, task, document, prompt, given, first.doc, text=text, options=options, cut=cut)


def text_of(instance: Instance) -> Text:
    """Whose text a request holds; nobody knows it of a document of another class, so it is not open."""
    text: Text | None = getattr(getattr(instance.doc, "loaded", None), "text", None)
    return text or Text(str(instance.task_name), is_open=False)


def prompt_of(instance: Instance) -> Prompt:
    """A text, or the turns that lm-eval wraps for a chat interface."""
    given: Any = instance.args[0]
    turns: Prompt = json.loads(given.prompt) if hasattr(given, "prompt") else given
    return turns


def normalised(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of generation as keys compare them: what says the same is the same.

    `128` is `"128"`, `0` is `0.0`, greedy decoding needs no word, and stop texts have no order. The seed is
    no part: it is that of the draw.
    """
    found = {name: _value(value) for name, value in settings.items() if name != "seed"}
    if "until" in found:
        until = settings["until"] or ()
        found["until"] = sorted(
            {str(text) for text in (until if isinstance(until, list | tuple) else [until])}
        )
    if not found.get("temperature"):
        found = {name: value for name, value in found.items() if name not in ("temperature", "do_sample")} | (
            {"do_sample": True} if found.get("do_sample") and found.get("temperature") is None else {}
        )
    return {name: value for name, value in found.items() if value not in (None, "", [], {})}


def is_sampled(settings: Mapping[str, Any]) -> bool:
    """Whether answers are drawn."""
    normal = normalised(settings)
    return bool(normal.get("temperature") or normal.get("do_sample"))


def _value(value: Any) -> Any:
    if isinstance(value, str):
        if value.lower() in ("true", "false"):
            return value.lower() == "true"
        try:
            value = float(value)
        except ValueError:
            return value
    return int(value) if isinstance(value, float) and value.is_integer() else value
