"""What the requests of a run may cost, what they did cost, and the limit on all calls on its folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

from medtasks_ext.engines.budget import Budget, counts_fit, most_tokens
from medtasks_ext.engines.records import Answer, Request
from medtasks_ext.errors import MedtasksError
from medtasks_ext.runs.outcomes import OutcomeLog

if TYPE_CHECKING:
    from lm_eval.api.task import Task

    from medtasks_ext.results.prices import Price
    from medtasks_ext.runner.run import Run


@dataclass(frozen=True)
class Charge:
    """What a model costs."""

    price: Price

    def most(self, request: Request) -> float:
        """US dollars that a request may cost at most."""
        tokens = max(most_tokens(request.prompt), len(request.tokens or ()))
        return self.price.of(tokens, int(request.settings.get("max_gen_toks") or 0))

    def of(self, request: Request, answer: Answer) -> float:
        """US dollars that an answer cost: by the server's count, if that can be the one of the texts."""
        if answer.usage is None or not counts_fit(request.prompt, answer):
            return self.most(request)
        return self.price.of(answer.usage.prompt, answer.usage.completion)


def check_limit(limit: float | None, price: Price | None, *, processes: int) -> None:
    """Refuse a limit that nobody can keep.

    Raises:
        MedtasksError: it is no amount, the price is not known, or several processes would spend it.
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
    if processes > 1:
        raise MedtasksError(
            f"cannot be kept by {processes} processes", where=where, remedy="start the run as one process"
        )


def budget_of(limit: float | None, charge: Charge | None, run: Run, tasks: Mapping[str, Task]) -> Budget:
    """The budget of a call, with what earlier calls on the folder spent; they are read under a limit alone.

    Answers without a cost (of older versions, of batches, of calls that knew no price) count as one of now
    would: at its highest, unless the server's count can be believed. Those whose prompt or budget is not
    known any more are `unpriced`.

    Args:
        tasks: built, those that are not done.

    Raises:
        MedtasksError: a line of the outcomes is damaged.
    """
    if limit is None or charge is None:
        return Budget(limit)
    spent = unsure = 0.0
    unpriced = 0
    for name in run.manifest.tasks:
        log = OutcomeLog(run.files.responses, name)
        without = [
            (item.key, item.document, item.entry)
            for item in log.read()
            if isinstance(item.entry, Answer) and item.entry.cost is None
        ]
        spent, unsure = spent + log.spent, unsure + log.unsure
        if not without:
            continue
        prompts = {
            key: asked.prompt for asked in run.kept_requests(name) for key in (asked.document, asked.key)
        }
        config = run.files.read_task(name)["config"] if run.is_done(name) else {}
        built = tasks[name].config.generation_kwargs if name in tasks else None
        settings = config.get("generation_kwargs") or built
        for key, document, answer in without:
            prompt = prompts.get(key, prompts.get(document))
            if prompt is None or not settings or "max_gen_toks" not in settings:
                unpriced += 1
            else:
                spent += charge.of(Request(key, name, document, prompt, settings), answer)
    return Budget(limit, spent, unsure, unpriced)
