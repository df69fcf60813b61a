"""Money that requests may cost: what is spent, what those under way may cost, and the limit on both."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from medtasks_ext.engines.records import Answer, Prompt

#: Tokens of a turn at most beside those of its text: role and marks of the chat template.
TURN_TOKENS = 64
#: Bytes of a text that a token covers at most, on average over a prompt or an answer.
MOST_BYTES_PER_TOKEN = 16


def n_bytes(prompt: Prompt) -> int:
    texts = [prompt] if isinstance(prompt, str) else [turn["content"] for turn in prompt]
    return sum(len(text.encode(errors="surrogatepass")) for text in texts)


def most_tokens(prompt: Prompt) -> int:
    """Tokens of a prompt at most: a token covers at least a byte."""
    return n_bytes(prompt) + TURN_TOKENS * (1 if isinstance(prompt, str) else len(prompt))


def counts_fit(prompt: Prompt, answer: Answer) -> bool:
    """Whether a server's count of tokens can be that of these texts; one that is too low is not believed.

    A count that is too high is: it is what the server charges.
    """
    usage = answer.usage
    if usage is None or not usage.counted:
        return False
    written = len((answer.text + answer.reasoning).encode(errors="surrogatepass"))
    least_prompt, least_answer = (-(-size // MOST_BYTES_PER_TOKEN) for size in (n_bytes(prompt), written))
    return usage.prompt >= max(1, least_prompt) and usage.completion >= least_answer


class Budget:
    """Money spent, money that requests under way may cost, and the limit on both.

    A request whose reply never arrived may have been charged, so its highest cost counts as spent.

    `limit`: USD, or None. `spent`: USD that earlier calls spent. `unsure`: USD at most of their requests that
    were sent and whose reply never came. `unpriced`: their replies of models without a price.

    Attributes:
        exhausted: the limit allows no further request, now or later.
        freed: called when money was given back that others may wait for.
    """

    def __init__(
        self, limit: float | None = None, spent: float = 0.0, unsure: float = 0.0, unpriced: int = 0
    ) -> None:
        self.limit, self.spent, self.unsure, self.unpriced = limit, spent, unsure, unpriced
        self.exhausted = False
        self.freed: Callable[[], None] = lambda: None
        self._reserved: list[float] = []
        self._lock = threading.Lock()

    def reserve(self, amount: float) -> bool:
        """False if the limit does not allow it now."""
        if self.limit is None:
            return True
        with self._lock:
            if self.exhausted:
                return False
            if self.spent + self.unsure + sum(self._reserved) + amount > self.limit:
                self.exhausted = not self._reserved  # else what comes home may give money back
                return False
            self._reserved.append(amount)
            return True

    def settle(self, reserved: float, *, spent: float | None = 0.0, unsure: float = 0.0) -> None:
        with self._lock:
            self.spent += spent or 0.0
            self.unpriced += spent is None
            self.unsure += unsure
            if self.limit is None:
                return
            self._reserved.remove(reserved)
        self.freed()


def budget_of(limit: float | None, costs: Iterable[float | None], unsure: float) -> Budget:
    """Of all calls on a folder, in USD: the cost of an earlier reply is None where nobody knows it."""
    known = list(costs)
    return Budget(limit, sum(cost or 0.0 for cost in known), unsure, known.count(None))
