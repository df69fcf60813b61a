"""What the requests of a run may cost, what they did cost, and the limit on all calls on its folder."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

from medtasks_ext.engines.budget import counts_fit, most_tokens, n_bytes
from medtasks_ext.engines.records import Answer, Request, Usage
from medtasks_ext.errors import MedtasksError

if TYPE_CHECKING:
    from medtasks_ext.results.prices import Price
    from medtasks_ext.run.store import Answers, Row


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
    where = "--max-cost"
    if not isfinite(limit) or limit < 0:
        raise MedtasksError(f"{limit} is no limit", where=where, remedy="give an amount in USD")
    if price is None:
        raise MedtasksError(
            "cannot be kept without the price of the model",
            where=where,
            remedy="write it into a --config file, in USD per million tokens: metadata: {price: "
            "{input: …, output: …}}",
        )


def paid(limit: float | None, charge: Charge | None, answers: Answers) -> tuple[list[float | None], float]:
    """What earlier calls on a folder spent, for `budget_of`; they are read under a limit alone.

    Answers without a cost (of batches, of calls that knew no price) cost what their tokens do by now; None
    where nobody counted them.
    """
    if limit is None or charge is None:
        return [], 0.0
    rows = (row for row in answers.rows() if row["outcome"] in ("answer", "fault"))
    return [charge.of_row(row) for row in rows], answers.unsettled.total()
