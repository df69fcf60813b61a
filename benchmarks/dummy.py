"""A model that answers every request with the same text. Importing this module registers it."""

from __future__ import annotations

import time
from typing import Any

from common import since_start
from lm_eval.api.model import LM
from lm_eval.api.registry import register_model


@register_model("bench-dummy")
class Dummy(LM):
    """Keeps when it was first asked, and the prompts of the last call."""

    seconds_to_first_request: float | None = None

    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        self.asked_at = 0.0
        self.prompts: list[str] = []

    def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
        if Dummy.seconds_to_first_request is None:
            Dummy.seconds_to_first_request = since_start()
        self.asked_at = time.perf_counter()
        self.prompts = [request.args[0] for request in requests]
        return ["none"] * len(requests)

    def loglikelihood(self, requests: list[Any], disable_tqdm: bool = False) -> Any:
        raise NotImplementedError

    def loglikelihood_rolling(self, requests: list[Any], disable_tqdm: bool = False) -> Any:
        raise NotImplementedError
