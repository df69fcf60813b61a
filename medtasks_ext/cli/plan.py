"""`medtasks plan`: what a run will take, before it begins."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

import typer
from rich import box
from rich.table import Table

from medtasks_ext.cli.arguments import quiet
from medtasks_ext.cli.plan_estimate import Estimate, Hardware, estimate
from medtasks_ext.cli.plan_model import PlannedModel, Tokenizer, find_model
from medtasks_ext.cli.tables import console
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import SUFFIX, registry
from medtasks_ext.runner.evaluate import Settings
from medtasks_ext.runner.plan import (
    CHARACTERS_PER_TOKEN,
    DRAWN,
    FREE_TEXT,
    STEP_BY_STEP,
    TRACE,
    OutputRule,
    TaskPlan,
    plan_task,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from medtasks_ext.registry import Registry

DEFAULT = "medtasks_scoreable"
#: Tasks that are listed one by one; more are summed by suite.
_LISTED = 20


@dataclass(frozen=True)
class Options:
    """What the user gave besides the model."""

    hardware: Hardware
    tasks: str | None = None
    suite: str | None = None
    open: bool = False
    strategy: str | None = None
    max_gen_toks: int | None = None
    thinking: bool | None = None
    as_json: bool = False


def plan_command(model: str, options: Options) -> int:
    """Print a plan; returns the exit code (1 where a task's own data is malformed)."""
    quiet()
    tasks = registry()
    names = _chosen(tasks, options)
    planned = find_model(model)
    counted = Tokenizer.of(planned)
    settings = Settings(
        apply_chat_template=counted.template is not None,
        system_role=counted.takes_system and planned.metadata.get("system_role", True),
    )
    budget = options.max_gen_toks or (planned.content.get("gen_kwargs") or {}).get("max_gen_toks")
    thinks = options.thinking if options.thinking is not None else planned.metadata.get("thinking", False)
    rule = OutputRule(bool(thinks), budget)
    plans, faults = [], {}
    for name in names:
        try:
            plans.append(plan_task(tasks, name, settings, counted.count, counted.template, rule))
        except MedtasksError as error:
            faults[name] = error
    for name, fault in faults.items():
        typer.echo(f"✗ {name}: {fault}", err=True)
    if not plans:
        what = f"tasks that cannot be loaded: {len(faults)}"
        raise MedtasksError(what, remedy="mend the files named above")
    total = estimate(planned, plans, counted.size, options.hardware)
    lines = [*_explained(plans, rule, counted), total.rule]
    if options.as_json:
        typer.echo(json.dumps(_record(planned, plans, total, lines), ensure_ascii=False, indent=1))
    else:
        _print(planned, plans, total, lines, _command(planned, options, counted))
    return 1 if faults else 0


def _chosen(tasks: Registry, options: Options) -> list[str]:
    """The tasks to plan, each once."""
    given = [flag for flag in ("tasks", "suite", "open") if getattr(options, flag)]
    if len(given) > 1:
        raise MedtasksError(
            "choose the tasks in one way", where=" ".join(f"--{flag}" for flag in given), remedy="keep one"
        )
    if options.strategy is not None and options.strategy not in SUFFIX:
        raise MedtasksError(
            f"unknown strategy {options.strategy!r}",
            where="--strategy",
            remedy=f"use {', '.join(SUFFIX)}",
        )
    names = [name.strip() for name in _selection(options).split(",") if name.strip()]
    suites = sorted({dataset.metadata.benchmark for dataset in tasks.datasets.values()})
    if options.suite is not None and options.suite not in suites:
        raise MedtasksError(
            f"unknown suite {options.suite!r}", where="--suite", remedy=f"use {', '.join(suites)}"
        )
    leaves = dict.fromkeys(leaf for group in tasks.resolve(names).values() for leaf in group)
    if options.strategy is None:
        return list(leaves)
    return list(dict.fromkeys(tasks.tasks[leaf][0].task(options.strategy) for leaf in leaves))


def _selection(options: Options) -> str:
    return options.tasks or options.suite or ("medtasks_open" if options.open else DEFAULT)


def _explained(plans: Sequence[TaskPlan], rule: OutputRule, counted: Tokenizer) -> list[str]:
    """The rules that the tokens follow, those that matter here."""
    template = "chat template applied" if counted.template else "no chat template applied"
    if counted.why_not:
        rates = ", ".join(f"{rate:g} in {script}" for script, rate in CHARACTERS_PER_TOKEN.items())
        tokens = (
            f"tokens: by characters per token ({rates}), since the model's tokenizer is not at hand: "
            f"{counted.why_not}. Other tokenizers differ by a fifth and more"
        )
    else:
        tokens = f"tokens: counted with the model's tokenizer, {template}"
    lines = [f"{tokens}; on up to {DRAWN} documents of each task, scaled"]
    if absent := [plan for plan in plans if not plan.at_hand]:
        lines.append(
            f"~: rows of {len(absent)} of {len(plans)} tasks are not on this machine. Their documents are as "
            "many as the suite states, their texts those of the bundled sample rows, which real texts often "
            "exceed; `medtasks run` fetches what is open"
        )
    cot = any(plan.strategy == "cot" for plan in plans)
    before = f"{TRACE:,} of reasoning" if rule.reasons else f"{STEP_BY_STEP} under cot" if cot else ""
    budget = max(plan.most_output_tokens // plan.documents for plan in plans)
    lines.append(
        f"output: the gold answer's tokens, {FREE_TEXT} for free text without one"
        + (f", and before them {before}" if before else "")
        + f"; at most {budget:,} an answer, {_tokens(sum(plan.most_output_tokens for plan in plans))} if all "
        "filled it"
    )
    return lines


def _tokens(n: float) -> str:
    for unit, size in (("billion", 1e9), ("million", 1e6), ("thousand", 1e3)):
        if n >= size:
            return f"{n / size:,.3g} {unit}"
    return f"{n:,.0f}"


def _print(
    model: PlannedModel, plans: Sequence[TaskPlan], total: Estimate, lines: Iterable[str], command: str
) -> None:
    sample = any(plan.sample for plan in plans)
    if sample:
        console().print("SAMPLE DATA: synthetic rows, not a benchmark", style="bold")
    table = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, title=f"{model.name}: an estimate", title_justify="left"
    )
    one_by_one = len(plans) <= _LISTED
    table.add_column("task" if one_by_one else "suite, strategy", overflow="fold")
    for name in ("tasks", "documents", "prompt tokens", "output tokens"):
        table.add_column(name, justify="right", no_wrap=True)
    key = (lambda plan: plan.task) if one_by_one else (lambda plan: f"{plan.suite}, {plan.strategy}")
    for name, rows in groupby(sorted(plans, key=key), key=key):
        table.add_row(name, *_row(list(rows)))
    table.add_section()
    table.add_row("all", *_row(plans), style="bold")
    console().print(table, markup=False)
    console().print(total.in_words(), style="bold", markup=False)
    for line in lines:
        console().print(f"- {line}", markup=False)
    console().print(f"\nto run it: {command}", markup=False, soft_wrap=True)


def _row(plans: Sequence[TaskPlan]) -> list[str]:
    mark = "" if all(plan.at_hand for plan in plans) else "~"
    documents, prompt, output = (
        sum(getattr(plan, name) for plan in plans) for name in ("documents", "prompt_tokens", "output_tokens")
    )
    return [f"{len(plans)}", f"{mark}{documents:,}", f"{mark}{_tokens(prompt)}", f"{mark}{_tokens(output)}"]


def _command(model: PlannedModel, options: Options, counted: Tokenizer) -> str:
    names = _selection(options)
    suffix = SUFFIX[options.strategy] if options.strategy and not options.tasks else ""
    tasks = f"--tasks {names}{suffix}"
    if model.config:
        return f"medtasks run {tasks} --config {model.config}"
    chat = " --apply_chat_template" if counted.template else ""
    if counted.why_not:
        chat = " [--apply_chat_template]"
    return f"medtasks run {tasks} --model vllm --model_args pretrained={model.name}{chat}"


def _record(
    model: PlannedModel, plans: Sequence[TaskPlan], total: Estimate, lines: list[str]
) -> dict[str, Any]:
    totals = ("documents", "prompt_tokens", "output_tokens", "most_output_tokens")
    figures = {key: value for key, value in asdict(total).items() if key != "rule"}
    return {
        "model": model.name,
        "config": model.config,
        "estimate": True,
        "total": {"tasks": len(plans), **{key: sum(getattr(plan, key) for plan in plans) for key in totals}},
        **figures,
        "rules": lines,
        "tasks": [asdict(plan) for plan in plans],
    }
