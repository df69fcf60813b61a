"""What the requests of a run may cost, what they did cost, and the limit on all calls on its folder.

A limit holds since a request has one answer, of one model, of at most so many tokens: fields that say
otherwise are refused, and under a limit those that nobody knows here.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

from medtasks_ext.engines import Answer, Prompt, Request, Usage
from medtasks_ext.errors import MedtasksError

if TYPE_CHECKING:
    from medtasks_ext.results.prices import Price
    from medtasks_ext.run.store import Answers, Row

#: Tokens of a turn at most beside its text, and bytes of a text that a token covers at most on average.
TURN_TOKENS, MOST_BYTES_PER_TOKEN = 64, 16


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
    """Money spent, money set aside for requests under way, and the limit on both.

    A request whose reply never arrived may have been charged, so its highest cost counts as spent.

    `limit`: USD, or None. `costs`: USD of the replies of earlier calls; None of models without a price.
    `unsure`: USD at most of their requests that were sent and whose reply never came.

    Attributes:
        aside: key of a request under way -> US dollars that its try may cost at most.
        exhausted: the limit allows no further request, now or later.
        freed: called when money was given back that others may wait for.
    """

    def __init__(
        self, limit: float | None = None, costs: Sequence[float | None] = (), unsure: float = 0.0
    ) -> None:
        self.limit, self.unsure = limit, unsure
        self.spent, self.unpriced = sum(cost or 0.0 for cost in costs), costs.count(None)
        self.aside: dict[str, float] = {}
        self.exhausted = False
        self.freed: Callable[[], None] = lambda: None
        self._lock = threading.Lock()

    def reserve(self, key: str, amount: float) -> bool:
        """False if the limit does not allow it now."""
        with self._lock:
            limit, aside = self.limit, sum(self.aside.values())
            if self.exhausted or (limit is not None and self.spent + self.unsure + aside + amount > limit):
                self.exhausted = not self.aside  # else what comes home may give money back
                return False
            self.aside[key] = amount
            return True

    def settle(self, key: str, spent: float | None = 0.0, *, unsure: bool = False) -> None:
        """End a try: of what was set aside, so much was spent, or all of it may have been (`unsure`)."""
        with self._lock:
            if (aside := self.aside.pop(key, None)) is None:
                return
            if unsure:
                self.unsure += aside
            else:
                self.spent += spent or 0.0
                self.unpriced += spent is None
        if self.limit is not None:
            self.freed()


#: What lm-eval calls the settings of an answer; no fields of the request.
OF_LM_EVAL = frozenset({"do_sample", "max_gen_toks", "repeats", "temperature", "until"})
#: Arguments of lm-eval's models that have such names, and say what the model is.
OF_MODELS = frozenset({"model", "max_gen_toks", "max_length"})
#: Fields that no provider charges for, and that leave number, length and model of the answers as they are.
HARMLESS = OF_LM_EVAL | {
    *("chat_template_kwargs", "enable_thinking", "frequency_penalty", "logit_bias", "min_p"),
    *("presence_penalty", "reasoning_effort", "repetition_penalty", "response_format", "seed"),
    *("skip_special_tokens", "stop", "stop_sequences", "top_k", "top_p", "user"),
}
#: Compared without case, `_` and `-`.
_TAKEN = {
    *("n", "model", "models", "messages", "prompt", "prompts", "input", "contents", "system", "stream"),
    *("streamoptions", "bestof", "numchoices", "candidatecount", "numcompletions", "numreturnsequences"),
    *("numpredict", "npredict", "maxlength", "extrabody"),
}
_LIMIT = re.compile(r"max.*tok")


def check_refused(names: Iterable[str], where: str) -> None:
    plain = {name: re.sub(r"[^a-z]", "", name.lower()) for name in names if name not in OF_LM_EVAL}
    if barred := [name for name, bare in plain.items() if bare in _TAKEN or _LIMIT.search(bare)]:
        what = f"{', '.join(barred)}: model, text, number and length of answers have options of their own"
        remedy = "leave it out; the length is max_gen_toks, in a jury file max_tokens"
        raise MedtasksError(what, where=where, remedy=remedy)


def check_under_limit(names: Iterable[str], where: str) -> None:
    """Unless fields are known to cost nothing."""
    if unknown := [name for name in dict.fromkeys(names) if name not in HARMLESS]:
        what = f"nobody knows here whether {', '.join(unknown)} may cost something, and there is a limit"
        raise MedtasksError(what, where=where, remedy="leave it out, or ask without --max-cost")


@dataclass(frozen=True)
class Charge:
    """What a model costs, in US dollars."""

    price: Price

    def most(self, request: Request) -> float:
        """Of a request at most."""
        tokens = max(most_tokens(request.prompt), len(request.tokens or ()))
        if options := request.options:  # each is sent behind the prompt, and one token is written to it
            return self.price.of(len(options) * tokens + n_bytes("".join(options)), len(options))
        return self.price.of(tokens, int(request.settings.get("max_gen_toks") or 0))

    def of(self, request: Request, answer: Answer) -> float:
        """Of an answer: by the server's count, if that can be the one of the texts."""
        usage = answer.usage
        return self._of(usage) if usage and counts_fit(request.prompt, answer) else self.most(request)

    def of_row(self, row: Row) -> float | None:
        """Of an outcome of an earlier call; where nobody noted it, what its tokens cost now."""
        if row["outcome"] == "fault" or "cost" in row:
            return float(row.get("cost") or 0.0)
        return self._of(Usage(**row["usage"])) if "usage" in row else None

    def _of(self, usage: Usage) -> float:
        return self.price.of(usage.prompt, usage.completion, min(usage.cached or 0, usage.prompt))


def check_limit(limit: float | None, price: Price | None) -> None:
    """Refuse a limit that nobody can keep."""
    what, remedy = f"{limit} is no amount of money", "give one in US dollars, such as 5"
    if limit is None or (isfinite(limit) and limit >= 0):
        if limit is None or price is not None:
            return
        what = "cannot be kept without the price of the model, in USD"
        remedy = "write it into a --config file, per million tokens: metadata: {price: {input: …, output: …}}"
    raise MedtasksError(what, where="--max-cost", remedy=remedy)


def budget_of(limit: float | None, charge: Charge | None, answers: Answers) -> Budget:
    """Of all calls on a folder; what earlier ones spent is read under a limit alone."""
    if limit is None or charge is None:
        return Budget(limit)
    rows = (row for row in answers.rows() if row["outcome"] in ("answer", "fault"))
    return Budget(limit, [charge.of_row(row) for row in rows], answers.unsettled.total())
