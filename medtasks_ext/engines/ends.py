"""Where an engine may end an answer before the model does: at the next question that a model asks itself.

Readers say of which answers that moves no score (`AnswerFormat.ends_at_question`); requests for such answers
say `ends`. Of a model that may reason nobody knows beforehand where its answer begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from medtasks_ext.answers.tolerant.markers import NEXT_QUESTIONS
from medtasks_ext.answers.tolerant.reply import REASONING_MARKS


def may_reason(lm: Any, *, templated: bool) -> bool:
    """Whether a model may reason before it answers: it knows a mark of reasoning, or nobody can tell.

    Args:
        lm: lm-eval's, with its tokenizer.
        templated: whether its chat template is applied, which may begin the reasoning.
    """
    tokenizer = getattr(lm, "tokenizer", None)
    known = getattr(tokenizer, "get_added_vocab", None)
    if getattr(lm, "think_end_token", None) or known is None:
        return True
    template = str(getattr(tokenizer, "chat_template", None) or "").lower() if templated else ""
    tokens = [token.strip().lower() for token in known()]
    return any(
        mark in template or any(mark in token or (len(token) > 2 and token in mark) for token in tokens)
        for mark in REASONING_MARKS
    )


#: Stop texts that servers take in a request: OpenAI's limit, and vLLM's (`VLLM_MAX_STOP_STRINGS`).
MAX_OF_SERVERS = 4


def with_ends(stops: Sequence[str]) -> list[str]:
    """Stop texts, and those by which an answer ends at the next question."""
    return [*stops, *(text for text in NEXT_QUESTIONS if text not in stops)]


def few_with_ends(stops: Sequence[str], prompt: str) -> list[str]:
    """As `with_ends`, no more than a server takes: first those with which questions of the prompt begin."""
    further = sorted(with_ends(stops)[len(stops) :], key=lambda text: text not in prompt)
    return [*stops, *further[: max(0, MAX_OF_SERVERS - len(stops))]]


def is_end(stop: Any, own: Sequence[str]) -> bool:
    """Whether an answer was stopped at the next question, and not at a stop text of its task's own."""
    return stop in NEXT_QUESTIONS and stop not in own
