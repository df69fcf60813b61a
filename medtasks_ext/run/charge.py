"""What the requests of a run may cost, what they did cost, and the limit on all calls on its folder.

A limit holds since a request has one answer, of one model, of at most so many tokens. A field of a request
that says otherwise is refused wherever it comes from. Fields that are not known here may cost something as
well, so that under a limit each needs a word of the user.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

from medtasks_ext.engines import Answer, Prompt, Request, Usage
from medtasks_ext.errors import MedtasksError

if TYPE_CHECKING:
    from medtasks_ext.results.prices import Price
    from medtasks_ext.run.store import Answers, Row

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
    """What a model costs."""

    price: Price

    def most(self, request: Request) -> float:
        """US dollars that a request may cost at most."""
        tokens = max(most_tokens(request.prompt), len(request.tokens or ()))
        if options := request.options:  # each is sent behind the prompt, and one token is written to it
            return self.price.of(len(options) * tokens + n_bytes("".join(options)), len(options))
        return self.price.of(tokens, int(request.settings.get("max_gen_toks") or 0))

    def of(self, request: Request, answer: Answer) -> float:
        """US dollars that an answer cost: by the server's count, if that can be the one of the texts."""
        if answer.usage is None or not counts_fit(request.prompt, answer):
            return self.most(request)
        return self._of_tokens(answer.usage)

    def of_row(self, row: Row) -> float | None:
        """US dollars that the outcome of an earlier call cost; None where nobody knows."""
        if row["outcome"] == "fault" or row.get("cost") is not None:
            return row.get("cost") or 0.0
        usage = row.get("usage")
        return self._of_tokens(Usage(**usage)) if usage else None

    def _of_tokens(self, usage: Usage) -> float:
        return self.price.of(usage.prompt, usage.completion, min(usage.cached or 0, usage.prompt))


def check_limit(limit: float | None, price: Price | None) -> None:
    """Refuse a limit that nobody can keep."""
    if limit is None:
        return
    what, remedy = f"{limit} is no limit", "give an amount in USD"
    if isfinite(limit) and limit >= 0:
        if price is not None:
            return
        what = "cannot be kept without the price of the model"
        remedy = "write it into a --config file, in USD per million tokens: metadata: {price: {input: …, "
        remedy += "output: …}}"
    raise MedtasksError(what, where="--max-cost", remedy=remedy)


def paid(limit: float | None, charge: Charge | None, answers: Answers) -> tuple[list[float | None], float]:
    """What earlier calls on a folder spent, for `budget_of`; they are read under a limit alone.

    Answers without a cost (of batches, of calls that knew no price) cost what their tokens do by now; None
    where nobody counted them.
    """
    if limit is None or charge is None:
        return [], 0.0
    rows = (row for row in answers.rows() if row["outcome"] in ("answer", "fault"))
    return [charge.of_row(row) for row in rows], answers.unsettled.total()
