"""The tokens of a plan that an engine does not read anew: what prompts begin with alike.

All prompts of a task begin with its instruction and examples. Prompts of two strategies that are asked in
turn about one record (see `turns`) begin with that record as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from medtasks_ext.prompts.counting import shared_characters
from medtasks_ext.runner.chat import Counter


@dataclass(frozen=True)
class Cache:
    """What a cache keeps of the beginning of a prompt."""

    block: int = 16  # tokens that it keeps or drops together; vLLM's on GPUs
    least: int = 0  # tokens of a beginning that is kept at all

    def kept(self, tokens: float) -> int:
        """The tokens of a beginning that come from the cache."""
        whole = int(tokens // self.block) * self.block
        return whole if whole >= self.least else 0


#: Of vLLM.
ENGINES_CACHE = Cache()
#: What OpenAI says of its own; others differ.
PROVIDERS_CACHE = Cache(block=128, least=1024)


@dataclass(frozen=True)
class Beginning:
    """A prompt of a task and what it is about."""

    prompt: str
    record: str  # the longest text of the row that stands in it; empty where none is known


def opening(prompts: Sequence[str], count: Counter) -> int:
    """Tokens that all of these prompts begin with; 0 for a single one, of which nobody knows."""
    if len(prompts) < 2:
        return 0
    alike = shared_characters(min(prompts), max(prompts))  # the first and the last in order differ most
    return count([prompts[0][:alike]])[0]
