"""What identifies a request: all that is sent, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from medtasks_ext.engines.records import Prompt
from medtasks_ext.run.store import key_of


def request_key(
    identity: str,
    prompt: Prompt,
    asked: Mapping[str, Any] | Sequence[str],
    whose: tuple[str, str],
    *,
    draw: int = 0,
    reads_document: bool = False,
    apart: str = "",
) -> str:
    """Identifies a request.

    A greedy question has one answer, whoever asks it. A sampled one is drawn anew for each document, and for
    each time that it is asked of one document.

    Args:
        identity: digest of the model and of what can change its responses.
        asked: settings of generation; or the options, where the model is asked how likely they are.
        whose: task and document.
        draw: how often it was asked of this document before.
        reads_document: whether the model looks at the document, and not at the prompt.
        apart: the dataset, where each is asked by itself, so that who got its text is on record.
    """
    of = [apart] if apart else []
    if not isinstance(asked, Mapping):
        own = [*of, *(whose if reads_document else ())]
        return key_of(identity, ["loglikelihood", prompt, list(asked), *own])
    normal = normalised(asked)
    drawn = [*whose, draw] if reads_document or is_sampled(normal) else []
    return key_of(identity, ["generate_until", prompt, normal, *of, *drawn])


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


def is_sampled(normal: Mapping[str, Any]) -> bool:
    """Whether answers are drawn, by normalised settings."""
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
