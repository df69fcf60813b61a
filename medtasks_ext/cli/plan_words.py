"""A plan, and what it says in words: its figures in a line, and the rules that they follow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from medtasks_ext.cli.cost_words import JURY_RULE, bound_words
from medtasks_ext.cli.prompts import has_official
from medtasks_ext.cli.words import counted, duration
from medtasks_ext.judge.cases import is_judged
from medtasks_ext.judge.cost import JuryBound, jury_bound
from medtasks_ext.judge.jury import load_jury
from medtasks_ext.registry.strategies import by_likelihood
from medtasks_ext.runner.plan import (
    CHARACTERS_PER_TOKEN,
    DRAWN,
    FREE_TEXT,
    STEP_BY_STEP,
    TRACE,
    Context,
    TaskPlan,
)
from medtasks_ext.runner.plan_estimate import RunCost, in_gpus, money, providers_price, task_costs

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry
    from medtasks_ext.runner.plan import TaskPlan
    from medtasks_ext.runner.plan_model import Tokenizer
    from medtasks_ext.runner.plan_reasoning import Reasoning, ReasoningMode


#: Tasks that are named where prompts do not fit; `--json` has all.
_NAMED = 6
#: Tasks that are named as the dearest.
_DEAREST = 10


_SUMMED = ("documents", "prompt_tokens", "cached_tokens", "output_tokens", "most_output_tokens")


@dataclass(frozen=True)
class Plan:
    """A way to run a model, and what the tasks take then."""

    way: ReasoningMode  # to run it
    context: Context | None  # of the model; None where it is not known
    budget: int | None  # tokens of an answer; None for each task's own
    tasks: list[TaskPlan]
    total: RunCost  # of all of them

    def sums(self) -> dict[str, int]:
        """Documents and tokens of all tasks."""
        return sums_of(self.tasks)


def sums_of(tasks: Iterable[TaskPlan]) -> dict[str, int]:
    """Documents and tokens of tasks."""
    counts = Counter[str]()
    for task in tasks:
        counts.update({name: getattr(task, name) for name in _SUMMED})
    return {name: counts[name] for name in _SUMMED}


def in_words(plan: Plan, *, alone: bool, beside: Plan | None = None) -> str:
    """The figures of a plan in one line.

    Args:
        alone: whether it is the only one.
        beside: the plan that it stands beside, if it says how to choose it.
    """
    figures = estimate_in_words(plan.total)
    if beside is None and plan.total.gpus and plan.total.hours is not None and plan.total.cost is None:
        figures += ", cost: give --gpu-hour-price"
    if alone:
        return figures
    label = "thinking" if plan.way.thinks else "not thinking"
    if beside is None:
        return f"{label}: {figures}"
    config = plan.way.model.config
    file = f", or --config {config}" if config != beside.way.model.config else ""
    return f"{label}: {figures} ({plan.way.flag}{file})"


def rules_of(plan: Plan, reasoning: Reasoning, tokenizer: Tokenizer, *, asked: bool) -> Iterator[str]:
    """The rules that the tokens follow, those that matter here."""
    how = f"planned {'with' if plan.way.thinks else 'without'} it{', as asked for' if asked else ''}"
    yield f"reasoning: {how}; {reasoning.why}"
    yield f"{_counting(plan, tokenizer)}; on up to {DRAWN} documents of each task, scaled"
    yield _wording(plan.tasks)
    if any(not task.rows_here for task in plan.tasks):
        yield _not_at_hand(plan.tasks)
    if any(task.most_output_tokens for task in plan.tasks):
        yield _output(plan)
    if any(by_likelihood(task.strategy) for task in plan.tasks):
        yield _OPTIONS
    if plan.context:
        yield _fit(plan.tasks, plan.context)
        yield from _held(plan.tasks)
    if len(plan.tasks) > _DEAREST:
        yield _dearest(plan)


_OPTIONS = (
    "by likelihood: a prompt counts once and each of its possible answers behind it; nothing is written. "
    "An engine that keeps no prompts (hf) reads a prompt again for each answer of more than one token"
)


def _counting(plan: Plan, tokenizer: Tokenizer) -> str:
    if not tokenizer.why_not:
        template = "chat template" if tokenizer.template(plan.way.model) else "no chat template"
        return f"tokens: counted with the model's tokenizer, {template} applied"
    rates = ", ".join(f"{rate:g} in {script}" for script, rate in CHARACTERS_PER_TOKEN.items())
    return (
        f"tokens: by characters per token ({rates}), since the model's tokenizer is not at hand: "
        f"{tokenizer.why_not}. Other tokenizers differ by a fifth and more"
    )


def _wording(tasks: Sequence[TaskPlan]) -> str:
    """Whose words the prompts are in, and for which tasks the suites' own are known and not here."""
    ours = [task.task for task in tasks if task.wording == "own"]
    line = f"prompts: in the suites' own words for {len(tasks) - len(ours)} of {counted(len(tasks), 'task')}"
    if known := sum(has_official(name) for name in ours):
        line += f"; those of {known} more are known, and not here or not wished for (medtasks prompts status)"
    return line


def _not_at_hand(tasks: Sequence[TaskPlan]) -> str:
    by = Counter(task.lengths for task in tasks)
    texts = []
    if by["published"]:
        texts.append(
            f"texts of {counted(by['published'], 'task')} have the published mean length (a word has as many "
            "tokens as in the sample rows)"
        )
    if by["sample"]:
        texts.append(
            f"texts of {counted(by['sample'], 'task')} are those of the bundled sample rows, which real ones "
            "often exceed"
        )
    absent = len(tasks) - by["rows"]
    return (
        f"~: rows of {absent} of {len(tasks)} tasks are not on this machine. Documents are as many as the "
        f"suite states; {'; '.join(texts)}. `medtasks run` fetches what is open"
    )


def _output(plan: Plan) -> str:
    cot = any(task.strategy == "cot" for task in plan.tasks)
    before = f"{TRACE:,} of reasoning" if plan.way.thinks else f"{STEP_BY_STEP} under cot" if cot else ""
    budget = max(task.most_output_tokens // task.documents for task in plan.tasks)
    most = tokens_in_words(plan.sums()["most_output_tokens"])
    return (
        f"output: the gold answer's tokens, {FREE_TEXT} for free text without one"
        + (f", and before them {before}" if before else "")
        + f"; at most {budget:,} an answer, {most} if all filled it"
    )


def _fit(tasks: Sequence[TaskPlan], context: Context) -> str:
    """Which tasks do not fit the context."""
    room = min(task.room or 0 for task in tasks)
    line = f"context: {context.tokens:,} tokens, {room:,} of them for a prompt beside the longest answer"
    tight = [task for task in tasks if task.shots_dropped or task.inputs_cut]
    if not tight:
        known = all(task.lengths == "rows" for task in tasks)
        return f"{line}; all prompts fit" + ("" if known else ", as far as their lengths are known")
    tight.sort(key=lambda task: -task.mean_prompt)
    named = "; ".join(_tight(task) for task in tight[:_NAMED])
    more = f"; and {len(tight) - _NAMED} more (--json)" if len(tight) > _NAMED else ""
    then = "the server refuses such prompts, which are counted here all the same"
    if context.cuts:
        then = "they lose examples first, then a part of their input, and count so here"
    return f"{line}. Too long in {counted(len(tight), 'task')}: {named}{more}; {then}"


def _held(tasks: Sequence[TaskPlan]) -> Iterator[str]:
    """Tasks whose prompts do not hold the examples that they are to carry: their score is another one."""
    less = [task for task in tasks if task.shots_held is not None and task.shots_held < task.shots_asked]
    if less:
        named = "; ".join(
            f"{task.task} {task.shots_held:.1f} of {task.shots_asked}" for task in less[:_NAMED]
        )
        more = f"; and {len(less) - _NAMED} more (--json)" if len(less) > _NAMED else ""
        yield f"examples do not fit, and a prompt holds on average: {named}{more}"


def _dearest(plan: Plan) -> str:
    """The tasks that take most of a provider's bill, or of a GPU's time."""
    price = providers_price(plan.way.model)
    costs = task_costs(plan.tasks, price)
    total = sum(costs) or 1.0
    dearest = sorted(zip(costs, plan.tasks, strict=True), key=lambda item: -item[0])[:_DEAREST]
    named = ", ".join(f"{task.task} {cost / total:.0%}" for cost, task in dearest)
    return f"dearest, by {'price' if price else 'GPU time'}: {named}"


def _tight(task: TaskPlan) -> str:
    mean = f"{task.task}, {tokens_in_words(task.mean_prompt)} on average"
    if task.lengths == "published":
        return mean
    return f"{mean}, {max(task.shots_dropped or 0, task.inputs_cut or 0):,} of {task.documents:,}"


def tokens_in_words(n: float) -> str:
    """A number with three figures: 1.39 million."""
    for unit, size in (("billion", 1e9), ("million", 1e6), ("thousand", 1e3)):
        if n >= size:
            return f"{n / size:,.3g} {unit}"
    return f"{n:,.0f}"


def estimate_in_words(total: RunCost) -> str:
    """The figures in one line, or that none is known; the rules below say why."""
    parts = []
    if total.gpu_hours is not None:
        digits = ".2g" if total.gpu_hours < 100 else ",.0f"
        parts.append(f"about {total.gpu_hours:{digits}} GPU hours")
    if total.hours is not None:
        parts.append(duration(total.hours * 3600) + (f" on {in_gpus(total.gpus)}" if total.gpus else ""))
    if total.cost is not None:
        parts.append(f"about {money(total.cost)}")
    if total.batch_cost is not None:
        parts.append(f"{money(total.batch_cost).removesuffix(' USD')} as a batch (medtasks batch out)")
    return ", ".join(parts) or "time and cost are not known"


# ---------------------------------------------------------------------- what judging costs at most


@dataclass(frozen=True)
class PlannedJudging:
    """The judged tasks of a plan that one jury judges."""

    jury: str  # by its file or bundled name
    tasks: int
    bound: JuryBound | None  # None where a judge has no price


def judging_of(registry: Registry, plans: Sequence[TaskPlan], jury: str | None) -> list[PlannedJudging]:
    """What judging costs at most, by jury.

    Args:
        plans: tasks of a plan; those that no model judges are left out.
        jury: whose prices count; by default each suite's own, where it names one.

    Raises:
        MedtasksError: there is no such jury.
    """
    by_jury: dict[str, list[TaskPlan]] = {}
    for plan in plans:
        dataset, _ = registry.known(plan.task)
        if is_judged(dataset) and (name := jury or dataset.suite.jury):
            by_jury.setdefault(name, []).append(plan)
    return [PlannedJudging(name, len(some), _bound(name, some)) for name, some in by_jury.items()]


def _bound(name: str, plans: Sequence[TaskPlan]) -> JuryBound | None:
    jury, total = load_jury(name), None
    for plan in plans:
        budget = plan.most_output_tokens // plan.documents
        found = jury_bound(jury, plan.prompt_tokens, plan.documents, budget)
        if found is None:
            return None
        total = found if total is None else total + found
    return total


def judging_words(found: Sequence[PlannedJudging]) -> Iterator[str]:
    """A line for each jury."""
    for item in found:
        of = f"judging {counted(item.tasks, 'task')} by jury {item.jury}"
        if item.bound is None:
            yield f"{of}: no price, a judge has none in the jury file"
        else:
            yield f"{of}: {bound_words(item.bound)}; {JURY_RULE}"
