"""What a plan comes to: hours and money."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from medtasks_ext.results.prices import Price, price_of
from medtasks_ext.runner.plan import OUTPUT_SHARE, PEAK, PROMPT_SHARE, TaskPlan, gpu_hours, gpus_for

if TYPE_CHECKING:
    from medtasks_ext.runner.model_size import Size
    from medtasks_ext.runner.plan_model import PlannedModel


@dataclass(frozen=True)
class Hardware:
    """What the user says of the machine."""

    gpus: int | None = None  # that work together
    gpu_hour_price: float | None = None  # US dollars for an hour of one of them
    throughput: float | None = None  # measured tokens per second, prompt and output, of all of them


@dataclass(frozen=True)
class RunCost:
    """What a plan comes to; None where it is not known."""

    rule: str  # how the figures came about, in words
    gpus: int | None = None  # that work together; None where a provider answers
    gpu_hours: float | None = None  # of all of them
    hours: float | None = None  # from beginning to end
    cost: float | None = None  # US dollars, of the GPUs or of the provider's tokens
    most_cost: float | None = None  # of a provider, if every answer filled its budget
    batch_cost: float | None = None  # of a provider that takes batches


def estimate(
    model: PlannedModel, plans: Sequence[TaskPlan], size: Size | None, hardware: Hardware
) -> RunCost:
    """Hours and money for all tasks of a plan.

    Args:
        model: whose configuration may name prices and GPUs.
        hardware: by the user; goes before what the configuration says.
    """
    prompt, output, most = (
        sum(getattr(plan, name) for plan in plans)
        for name in ("prompt_tokens", "output_tokens", "most_output_tokens")
    )
    cached = sum(plan.cached_tokens for plan in plans)
    if model.provider:
        hours = (prompt + output) / hardware.throughput / 3600 if hardware.throughput else None
        return replace(_of_tokens(model, prompt, output, most, cached), hours=hours)
    return _of_gpus(model, prompt, output, cached, size, hardware)


def task_costs(plans: Sequence[TaskPlan], price: Price | None = None) -> list[float]:
    """What each task costs beside the others: a GPU, as `gpu_hours` weighs new prompt tokens and output.

    Args:
        price: of a provider: what each costs there, in US dollars.
    """
    if price is not None:
        return [price.of(plan.prompt_tokens, plan.output_tokens, plan.cached_tokens) for plan in plans]
    return [
        (plan.prompt_tokens - plan.cached_tokens) / PROMPT_SHARE + plan.output_tokens / OUTPUT_SHARE
        for plan in plans
    ]


def providers_price(model: PlannedModel) -> Price | None:
    """What a provider takes for a model; None where nobody knows, or none is asked.

    Raises:
        MedtasksError: what the configuration states is no price.
    """
    return price_of(model.metadata, model.config or model.name) if model.provider else None


def _of_tokens(model: PlannedModel, prompt: int, output: int, most: int, cached: int) -> RunCost:
    price = providers_price(model)
    if price is None:
        return RunCost("cost: no price is known; put metadata.price into a copy of the file")
    cost, highest = price.of(prompt, output, cached), price.of(prompt, most)
    rule = (
        f"cost: {price.input:g} USD per million prompt tokens, {price.output:g} per million output "
        f"tokens ({model.config})"
        + ("" if price.cached is None or not cached else _cached_rule(price.cached, cached / prompt))
        + (f", {price.batch:.0%} of that in a batch" if price.batch else "")
        + f"; at most {money(highest)}, if every answer filled its budget"
    )
    return RunCost(rule, cost=cost, most_cost=highest, batch_cost=price.in_batch(cost))


def _cached_rule(price: float, share: float) -> str:
    return f", {price:g} for {share:.0%} of the prompt tokens: beginnings that the provider's cache may keep"


def _of_gpus(
    model: PlannedModel, prompt: int, output: int, cached: int, size: Size | None, given: Hardware
) -> RunCost:
    gpus = given.gpus or model.gpus or (gpus_for(size) if size else 1)
    if given.throughput:
        total = (prompt + output) / given.throughput / 3600 * gpus
        rule = (
            f"GPU hours: prompt and output tokens over {given.throughput:,.0f} tokens per second of "
            f"{in_gpus(gpus)}, as given"
        )
    elif size:
        total, rule = gpu_hours(size, prompt - cached, output), _gpu_rule(size, cached / (prompt or 1))
    else:
        rule = "GPU hours: the size of the model is not known; give --throughput, tokens per second"
        return RunCost(rule, gpus)
    price = given.gpu_hour_price
    return RunCost(rule, gpus, total, total / gpus, None if price is None else total * price)


def _gpu_rule(size: Size, cached: float) -> str:
    kept = f"; {cached:.0%} of the prompt tokens are beginnings that the prefix cache keeps" if cached else ""
    total, active = (f"{float(f'{n / 1e9:.3g}'):,g} billion" for n in (size.total, size.active))
    active = "" if size.active == size.total else f", {active} active"
    return (
        f"GPU hours: {total} parameters{active} ({size.source}), 2 operations for "
        f"each active one and token, on an H100 ({PEAK / 1e12:.0f} TFLOPS in BF16, its data sheet) of which "
        f"full batches are assumed to reach {PROMPT_SHARE:.0%} on prompts and {OUTPUT_SHARE:.0%} on output"
        f"{kept}. "
        "The shares are assumptions, not measurements: expect a factor of two or three either way, more for "
        "mixtures of experts, and loading on top. Measure tokens per second (vllm bench throughput) and give "
        "--throughput"
    )


def money(dollars: float) -> str:
    """An estimate has no more than three figures to say."""
    return f"{float(f'{dollars:.3g}'):,.{0 if dollars >= 100 else 2}f} USD"


def in_gpus(n: int) -> str:
    """`1 GPU`, `4 GPUs`."""
    return "1 GPU" if n == 1 else f"{n} GPUs"
