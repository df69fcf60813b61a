"""A model that only remembers: tasks are scored from the records of a run alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtasks_ext.errors import MedtasksError
from medtasks_ext.models.baselines import Baseline
from medtasks_ext.prompts.documents import document_key
from medtasks_ext.runner.requests import readable

if TYPE_CHECKING:
    from lm_eval.api.instance import Instance


class StoredLM(Baseline):
    """Gives the stored response of each document.

    Args:
        responses: document key -> response.
        prompts: document key -> prompt as it was sent, where that is known; it stands in lm-eval's records.
        where: for the message if a response is missing.
    """

    def __init__(self, responses: Mapping[str, str], prompts: Mapping[str, Any], where: Path) -> None:
        super().__init__()
        self._responses, self._prompts, self._where = responses, prompts, where

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        """The stored responses.

        Raises:
            MedtasksError: a document has none.
        """
        keys = [document_key(request.doc) for request in requests]
        if absent := [key for key in keys if key not in self._responses]:
            raise MedtasksError(
                f"{len(absent)} of {len(requests)} documents have no stored response (first: {absent[0]})",
                where=self._where,
                remedy="finish the run first: the same `medtasks run` command continues it",
            )
        for key, request in zip(keys, requests, strict=True):
            if key in self._prompts:
                request.arguments = (self._prompts[key], request.args[1])
        return [readable(self._responses[key]) for key in keys]

    def apply_chat_template(
        self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True
    ) -> str:
        """Prompts are not needed to score again."""
        return ""
