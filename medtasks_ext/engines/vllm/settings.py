"""Sampling settings and text, both as lm-eval's `generate_until` makes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vllm import SamplingParams

    from medtasks_ext.harness import VLLM


def end_of_text(lm: VLLM) -> str:
    """The text of the model's last token; some tokenizers decode it to nothing and name it elsewhere."""
    return lm.tokenizer.decode(lm.eot_token_id) or getattr(lm.tokenizer, "eos_token", None) or ""


def budget(lm: VLLM, settings: Mapping[str, Any]) -> int:
    budget: int = lm.modify_gen_kwargs(dict(settings), default_max_gen_toks=lm.max_gen_toks)[2]
    return budget


def sampling(lm: VLLM, settings: Mapping[str, Any], end: str) -> tuple[SamplingParams, list[str]]:
    """vLLM's parameters, and the texts at which lm-eval cuts the answer.

    Stop texts of the task often stand within reasoning. With `think_end_token` they are applied afterwards,
    to what follows the reasoning.

    Raises:
        TypeError, ValueError: the settings are not valid.
    """
    from vllm import SamplingParams
    from vllm.sampling_params import RepetitionDetectionParams, RequestOutputKind

    more, until, max_tokens = lm.modify_gen_kwargs(
        dict(settings), eos=end, default_max_gen_toks=lm.max_gen_toks
    )
    stop = [text for text in until if text == end] if lm.think_end_token else until
    if isinstance(loops := more.get("repetition_detection"), Mapping):
        more["repetition_detection"] = RepetitionDetectionParams(**loops)
    parameters = SamplingParams(
        max_tokens=max_tokens, stop=stop, output_kind=RequestOutputKind.FINAL_ONLY, **more
    )
    return parameters, until


def reasoning_of(text: str, think_end: str | None) -> str:
    """What stands before the answer, if the reasoning has an end."""
    return text.rpartition(think_end)[0] if think_end else ""
