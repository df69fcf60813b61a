"""What the requests of a run may cost, what they did cost, and the limit on all calls on its folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

from medtasks_ext.engines.budget import counts_fit, most_tokens, n_bytes
from medtasks_ext.engines.records import Answer, Request
from medtasks_ext.errors import MedtasksError
from medtasks_ext.run.store import outcome_of

if TYPE_CHECKING:
    from medtasks_ext.results.prices import Price
    from medtasks_ext.run.outcomes import Outcomes


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
        usage = answer.usage
        return self.price.of(usage.prompt, usage.completion, min(usage.cached or 0, usage.prompt))


def check_limit(limit: float | None, price: Price | None) -> None:
    """Refuse a limit that nobody can keep.

    Raises:
        MedtasksError: it is no amount, or the price is not known.
    """
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


def paid(
    limit: float | None,
    charge: Charge | None,
    answers: Outcomes,
    sent: Callable[[str, Iterable[str]], Mapping[str, Request]],
) -> tuple[list[float | None], float]:
    """What earlier calls on a folder spent, for `budget_of`; they are read under a limit alone.

    Answers without a cost (of batches, of calls that knew no price) count as one of now
    would: at its highest, unless the server's count can be believed; None where their request is not known.

    Args:
        answers: of the folder.
        sent: the requests of some documents of a task as they were sent, by their documents.
    """
    costs, free = list[float | None](), dict[str, list[tuple[str, Answer]]]()
    if limit is None or charge is None:
        return costs, 0.0
    for row in answers.rows():
        if row["outcome"] in ("answer", "fault") and row.get("cost") is not None:
            costs.append(row["cost"])
        elif row["outcome"] == "answer":
            answer = outcome_of(row)
            assert isinstance(answer, Answer)
            free.setdefault(row["task"], []).append((row["document"], answer))
    for task, some in free.items():
        requests = sent(task, [document for document, _ in some])
        costs += [charge.of(requests[key], one) if key in requests else None for key, one in some]
    return costs, answers.unsettled.total()
