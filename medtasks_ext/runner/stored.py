"""A model whose requests have their answers: tasks are scored by it, and asked by none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtasks_ext.engines import Answer, Prompt
from medtasks_ext.engines.lm import lm_eval_prompt
from medtasks_ext.errors import MedtasksError
from medtasks_ext.models import Baseline
from medtasks_ext.prompts.documents import document_key
from medtasks_ext.runner.evaluate import readable

if TYPE_CHECKING:
    from medtasks_ext.harness import Instance


class StoredLM(Baseline):
    """Gives the answer to each document.

    `answers`: document key -> answer. `prompts`: document key -> prompt as it was sent, where that is known;
    it stands in lm-eval's records. `where`: for the message if an answer is missing.
    """

    def __init__(self, answers: Mapping[str, Answer], prompts: Mapping[str, Prompt], where: Path) -> None:
        super().__init__()
        self._answers, self._prompts, self._where = answers, prompts, where

    def answers_to(self, requests: Sequence[Instance]) -> list[Answer]:
        """The answers to requests, which get their prompts as they were sent."""
        keys = [document_key(request.doc) for request in requests]
        if absent := list(dict.fromkeys(key for key in keys if key not in self._answers)):
            raise MedtasksError(
                f"{len(absent)} of {len(set(keys))} documents have no stored response (first: {absent[0]})",
                where=self._where,
                remedy="finish the run first: the same `medtasks run` command continues it",
            )
        for key, request in zip(keys, requests, strict=True):
            if key in self._prompts:
                request.arguments = (lm_eval_prompt(self._prompts[key]), request.args[1])
        return [self._answers[key] for key in keys]

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        return [readable(answer.text) for answer in self.answers_to(requests)]

    def loglikelihood(self, requests: list[Instance], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        found, asked = self.answers_to(requests), Counter(document_key(request.doc) for request in requests)
        for answer, request in zip(found, requests, strict=True):
            document, n = document_key(request.doc), len(answer.likelihoods)
            if asked[document] != n:
                raise MedtasksError(
                    f"document {document} has {asked[document]} possible answers, and {n} are stored",
                    where=self._where,
                    remedy="bring the former rows back, or use another --output_path",
                )
        return [tuple(answer.likelihoods[one.idx]) for answer, one in zip(found, requests, strict=True)]

    def apply_chat_template(
        self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True
    ) -> Any:
        """The turns, as a prompt is recorded that nobody knows any more as it was laid out."""
        return lm_eval_prompt(chat_history)
