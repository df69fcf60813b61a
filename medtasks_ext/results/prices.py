"""What models cost, as configurations say (`metadata.price` in `model_configs`)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pydantic import ConfigDict, Field, TypeAdapter
from pydantic.dataclasses import dataclass

from medtasks_ext.registry.folders import bundled_configs
from medtasks_ext.strict import read_yaml, validated


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Price:
    """US dollars per million tokens."""

    input: float = Field(ge=0, allow_inf_nan=False)  # of prompts
    output: float = Field(ge=0, allow_inf_nan=False)  # of answers
    #: the share of both that the provider's batch interface costs, where it has one
    batch: float | None = Field(default=None, gt=0, lt=1)
    #: of those tokens of prompts that the provider took from its cache, where they have a price of their own
    cached: float | None = Field(default=None, ge=0, allow_inf_nan=False)

    def of(self, input_tokens: float, output_tokens: float, cached: float = 0.0) -> float:
        """Of the input tokens so many were taken from a cache."""
        less = 0.0 if self.cached is None else (self.input - self.cached) * cached
        return (input_tokens * self.input - less + output_tokens * self.output) / 1e6


#: Tokens that a judge of MedHELM's jury may write about an answer.
JUDGE_OUTPUT_TOKENS = 4096


_PRICE = TypeAdapter(Price)


def price_of(metadata: Mapping[str, Any] | None, where: str) -> Price | None:
    """MedtasksError where what it states is no price."""
    given = (metadata or {}).get("price")
    if given is None:
        return None
    return validated(
        lambda: _PRICE.validate_python(given),
        "metadata.price",
        where=where,
        remedy="write price: {input: 2.50, output: 10.00}, USD per million tokens; batch: 0.5, a share, "
        "where the provider takes batches",
    )


@lru_cache(maxsize=1)
def prices() -> dict[str, Price]:
    """Model id -> its price in the bundled configurations, where these agree."""
    found: dict[str, set[Price]] = {}
    for file in bundled_configs().values():
        if "price:" not in file.read_text(encoding="utf-8"):
            continue
        config = read_yaml(file)
        price = price_of(config.get("metadata"), str(file))
        arguments = config.get("model_args") or {}
        model = arguments.get("pretrained") or arguments.get("model") or config.get("pretrained")
        if price and model:
            found.setdefault(str(model), set()).add(price)
    return {model: next(iter(some)) for model, some in found.items() if len(some) == 1}
