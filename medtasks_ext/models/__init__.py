"""Models that answer without a model: the gold, or another document's gold.

Importing this package registers them with lm-eval.
"""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any

from medtasks_ext.harness import LM, register_model
from medtasks_ext.process import SEED

if TYPE_CHECKING:
    from medtasks_ext.harness import Instance

_COT_PREFIX = "Analysis: see the text.\nResult: "


class Baseline(LM):
    """A model whose answer depends on the document rather than on the prompt."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__()

    def answer(self, request: Instance, requests: list[Instance]) -> str:
        raise NotImplementedError

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        """One response per request, in the form that the request's strategy asks for."""
        responses = []
        for request in requests:
            before = _COT_PREFIX if request.doc["cot"] else ""
            responses.append(before + self.answer(request, requests))
            self.cache_hook.add_partial("generate_until", request.args, responses[-1])
        return responses

    def loglikelihood(self, requests: list[Instance], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        """That of a model that is sure of its answer: a probability of 1 for this text, of 0.1 for others."""
        responses = []
        for request in requests:
            context, option = (part.strip() for part in request.args)
            said = self.answer(request, requests).strip()
            before = said.removesuffix(option).strip()
            same = said.endswith(option) and (before[-1:] in ("", ":", "：") or context.endswith(before))
            responses.append((0.0 if same else math.log(0.1), same))
        return responses

    def loglikelihood_rolling(self, requests: list[Instance], disable_tqdm: bool = False) -> Any:
        raise NotImplementedError("the built-in baselines generate text only")

    tokenizer_name = "none"  # lm-eval asks for a name

    def apply_chat_template(
        self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True
    ) -> str:
        """The turns as plain text, so that baselines accept every flag of a real run."""
        return "\n".join(f"[{turn['role']}] {turn['content']}" for turn in chat_history)


class Says(Baseline):
    """Answers every document with one text, to the letter."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        return [self.text for _ in requests]


@register_model("oracle")
class Oracle(Baseline):
    """Answers with the gold: the ceiling of every metric."""

    def answer(self, request: Instance, requests: list[Instance]) -> str:
        return str(request.doc["target"])


@register_model("random-label")
class RandomLabel(Baseline):
    """Answers with one of the task's gold answers, each distinct one equally likely: a baseline."""

    def answer(self, request: Instance, requests: list[Instance]) -> str:
        targets: list[str] = request.doc.loaded.targets
        return random.Random(f"{SEED} {request.doc['id']} {request.doc.get('trial')}").choice(targets)
