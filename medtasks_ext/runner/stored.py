"""A model that only remembers: tasks are scored from the records of a run alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtasks_ext.errors import MedtasksError
from medtasks_ext.models.baselines import Baseline
from medtasks_ext.prompts.documents import document_key
from medtasks_ext.runner.requests import readable

if TYPE_CHECKING:
    from medtasks_ext.engines.records import Likelihood
    from medtasks_ext.harness import Instance


class StoredLM(Baseline):
    """Gives the stored response of each document.

    Args:
        responses: document key -> response.
        prompts: document key -> prompt as it was sent, where that is known; it stands in lm-eval's records.
        where: for the message if a response is missing.
        likelihoods: document key -> those of its options.
    """

    def __init__(
        self,
        responses: Mapping[str, str],
        prompts: Mapping[str, Any],
        where: Path,
        likelihoods: Mapping[str, Sequence[Likelihood]] | None = None,
    ) -> None:
        super().__init__()
        self._responses, self._prompts, self._where = responses, prompts, where
        self._likelihoods = likelihoods or {}

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        """The stored responses.

        Raises:
            MedtasksError: a document has none.
        """
        keys = self._with_prompts(requests, self._responses)
        return [readable(self._responses[key]) for key in keys]

    def loglikelihood(self, requests: list[Instance], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        """The stored likelihoods.

        Raises:
            MedtasksError: a document has none, or those of other options.
        """
        keys = self._with_prompts(requests, self._likelihoods)
        for key, n in Counter(keys).items():
            if n != len(self._likelihoods[key]):
                raise MedtasksError(
                    f"document {key} has {n} possible answers, and {len(self._likelihoods[key])} are stored",
                    where=self._where,
                    remedy="bring the former rows back, or use another --output_path",
                )
        return [
            tuple(self._likelihoods[key][request.idx]) for key, request in zip(keys, requests, strict=True)
        ]

    def _with_prompts(self, requests: list[Instance], stored: Mapping[str, Any]) -> list[str]:
        """Put the prompts as they were sent into requests; the keys of their documents."""
        keys = [document_key(request.doc) for request in requests]
        if absent := list(dict.fromkeys(key for key in keys if key not in stored)):
            raise MedtasksError(
                f"{len(absent)} of {len(set(keys))} documents have no stored response (first: {absent[0]})",
                where=self._where,
                remedy="finish the run first: the same `medtasks run` command continues it",
            )
        for key, request in zip(keys, requests, strict=True):
            if key in self._prompts:
                request.arguments = (self._prompts[key], request.args[1])
        return keys

    def apply_chat_template(
        self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True
    ) -> str:
        """Prompts are not needed to score again."""
        return ""
