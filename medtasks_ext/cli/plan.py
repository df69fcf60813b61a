"""`medtasks plan`: what a run will take, before it begins."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from math import isfinite
from typing import Annotated

import typer

from medtasks_ext.cli.app import AsJson, OneStrategy, Prompts, jury_option
from medtasks_ext.cli.arguments import quiet, say_faults
from medtasks_ext.cli.plan_words import (
    Plan,
    in_words,
    judging_of,
    judging_words,
    rules_of,
    sums_of,
    tokens_in_words,
)
from medtasks_ext.cli.stated_error import error_target
from medtasks_ext.cli.tables import console, figure, show, texts
from medtasks_ext.cli.words import counted as counted_words
from medtasks_ext.cli.words import names_in
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import Json
from medtasks_ext.judge.jury import load_jury
from medtasks_ext.prompts.official.choice import PromptSource, prompt_source_of
from medtasks_ext.registry import SUFFIX, Registry, registry
from medtasks_ext.registry.rights import FEW, restrictions
from medtasks_ext.runner.drawing import ErrorTarget, planned_documents
from medtasks_ext.runner.evaluate import Settings
from medtasks_ext.runner.plan import Context, CountedTask, OutputRule, TaskPlan, count_task, gpus_for
from medtasks_ext.runner.plan_estimate import Hardware, estimate, providers_price, task_costs
from medtasks_ext.runner.plan_line import run_command_line, task_names
from medtasks_ext.runner.plan_model import PlannedModel, Tokenizer, find_model
from medtasks_ext.runner.plan_reasoning import ReasoningMode, reasoning_of
from medtasks_ext.runner.plan_tree import ENGINES_CACHE, PROVIDERS_CACHE
from medtasks_ext.runner.plan_turns import with_records_shared
from medtasks_ext.runner.preflight import REASONING_BUDGET
from medtasks_ext.runner.prompts import takes_system_turn
from medtasks_ext.stats.sampling import SPREAD

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
    max_model_len: int | None = None
    thinking: bool | None = None
    prompts: PromptSource = "auto"
    jury: str | None = None  # whose prices count for judging
    as_json: bool = False


def plan(
    model: Annotated[
        str,
        typer.Argument(help="ORG/MODEL of the hub, a folder with its tokenizer, or a name of model_configs."),
    ],
    tasks: Annotated[str | None, typer.Option("--tasks", help="Tasks, groups or tags.")] = None,
    suite: Annotated[str | None, typer.Option("--suite", help="All tasks of one suite.")] = None,
    open_only: Annotated[bool, typer.Option("--open", help="All tasks that anyone can download.")] = False,
    strategy: OneStrategy = None,
    max_gen_toks: Annotated[
        int | None, typer.Option("--max_gen_toks", min=1, help="Tokens that an answer may have.")
    ] = None,
    max_model_len: Annotated[
        int | None,
        typer.Option("--max_model_len", min=1, help="Tokens of prompt and answer together, the context."),
    ] = None,
    thinking: Annotated[
        bool | None,
        typer.Option(
            "--thinking/--no-thinking",
            help="Plan it with or without reasoning before its answers; else as it is by default.",
        ),
    ] = None,
    prompts: Prompts = None,
    gpus: Annotated[int | None, typer.Option("--gpus", min=1, help="GPUs that work together.")] = None,
    gpu_hour_price: Annotated[
        float | None, typer.Option("--gpu-hour-price", min=0.0, help="USD for an hour of one GPU.")
    ] = None,
    throughput: Annotated[
        float | None,
        typer.Option("--throughput", min=1.0, help="Measured tokens per second, prompt and output together."),
    ] = None,
    jury: Annotated[
        str | None,
        jury_option("Whose prices count for judging; by default each suite's own jury."),
    ] = None,
    error: Annotated[
        float | None,
        typer.Option("--error", help="Plan a run that stops when scores are known to so many points."),
    ] = None,
    error_of: Annotated[
        str | None,
        typer.Option("--error-of", help="With --error: groups whose scores have it; else each suite's."),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Estimate what a run takes: documents, tokens, GPU hours, cost.

    Asks no model and fetches no data. Without a choice of tasks: medtasks_scoreable.

    Example: medtasks plan Qwen/Qwen3-8B --suite bridge --strategy cot --gpu-hour-price 2.50
    """
    options = Options(
        tasks=tasks,
        suite=suite,
        open=open_only,
        strategy=strategy,
        max_gen_toks=max_gen_toks,
        max_model_len=max_model_len,
        thinking=thinking,
        prompts=prompt_source_of(prompts),
        hardware=Hardware(gpus, gpu_hour_price, throughput),
        jury=jury,
        as_json=as_json,
    )
    quiet()
    if jury is not None:
        load_jury(jury)  # a wrong one is said before tokens are counted
    if gpu_hour_price is not None and not isfinite(gpu_hour_price):
        raise MedtasksError(
            f"{gpu_hour_price:g} is no price",
            where="--gpu-hour-price",
            remedy="give USD for an hour of one GPU",
        )
    known = registry()
    names = _chosen(known, options)
    found = find_model(model)
    tokenizer = Tokenizer.of(found)
    reasoning = reasoning_of(found, tokenizer, options.thinking)
    counted, faults = _counted(known, names, reasoning.planned, tokenizer, options)
    say_faults(faults, stop=not counted)
    plan = _plan(reasoning.planned, counted, tokenizer, options)
    target = error_target(error, error_of)
    drawn: list[str] = []
    if target is not None:
        whole = plan
        counted = _drawn(known, counted, plan, target)
        plan = _plan(reasoning.planned, counted, tokenizer, options)
        drawn = [_drawn_words(target, plan, whole)]
    other = _plan(reasoning.other, counted, tokenizer, options) if reasoning.other else None
    judging = judging_of(known, plan.tasks, options.jury)
    lines = [
        *drawn,
        *rules_of(plan, reasoning, tokenizer, asked=options.thinking is not None),
        plan.total.rule,
        *_terms(known, plan.tasks),
        *judging_words(judging),
    ]
    command = _command(known, names, plan, tokenizer, options)
    if target is not None:
        command += f" --error {target.error:g}"
        command += f" --error-of {error_of}" if error_of else ""
    if options.as_json:
        record = _record(plan, other, lines, command) | {"judging": [asdict(item) for item in judging]}
        typer.echo(json.dumps(record, ensure_ascii=False, indent=1))
    else:
        _print(plan, other, lines, command)
    return 1 if faults else 0


def _drawn(
    tasks: Registry, counted: Sequence[CountedTask], plan: Plan, target: ErrorTarget
) -> list[CountedTask]:
    """The tasks with the documents that a run with a stated error asks."""
    costs = zip(plan.tasks, task_costs(plan.tasks), strict=True)
    sizes = {task.task: (task.documents, cost / task.documents) for task, cost in costs}
    found = planned_documents(tasks, sizes, target)
    return [replace(task, documents=found[task.task]) for task in counted if task.task in found]


def _drawn_words(target: ErrorTarget, plan: Plan, whole: Plan) -> str:
    asked, documents = (item.sums()["documents"] for item in (plan, whole))
    price = providers_price(plan.way.model)
    share = sum(task_costs(plan.tasks, price)) / sum(task_costs(whole.tasks, price))
    left = len(whole.tasks) - len(plan.tasks)
    return (
        f"an estimate to ±{target.error:g} points (95 %): about {asked:,} of {documents:,} documents, "
        f"{share:.1%} of the cost, if scores of documents vary by {SPREAD:g}; where they vary less, it ends "
        "earlier" + (f"; {counted_words(left, 'task')} without an estimate left out" if left else "")
    )


def _terms(tasks: Registry, planned: Sequence[TaskPlan]) -> list[str]:
    """What the terms of the datasets restrict; those of synthetic rows are nobody's."""
    datasets = (tasks.known(task.task)[0] for task in planned if not task.sample)
    asked = {dataset.id: dataset for dataset in datasets}
    line = restrictions(((name, item.metadata.licence) for name, item in asked.items()), named=FEW)
    return [line] if line else []


def _counted(
    tasks: Registry, names: Sequence[str], way: ReasoningMode, tokenizer: Tokenizer, options: Options
) -> tuple[list[CountedTask], dict[str, MedtasksError]]:
    """The tasks with their texts counted, and those whose data is malformed."""
    template = tokenizer.template(way.model, **way.switches)
    takes_system = template is None or takes_system_turn(template)
    settings = Settings(
        apply_chat_template=template is not None,
        system_role=takes_system and way.model.metadata.get("system_role", True),
        prompts=options.prompts,
        layout=None if template else way.model.metadata.get("layout"),
        context=_context(way.model, options),
    )
    counted, faults = [], {}
    for name in names:
        try:
            counted.append(count_task(tasks, name, settings, tokenizer.count, template))
        except MedtasksError as error:
            faults[name] = error
    return with_records_shared(counted, tokenizer.count), faults


def _context(model: PlannedModel, options: Options) -> int | None:
    return options.max_model_len or model.context()


def _plan(way: ReasoningMode, counted: Sequence[CountedTask], tokenizer: Tokenizer, options: Options) -> Plan:
    tokens = _context(way.model, options)
    context = Context(tokens, cuts=not way.model.served) if tokens else None
    budget = options.max_gen_toks or way.model.decoding.get("max_gen_toks")
    if budget is None and way.thinks and way.model.config is None:
        budget = min(REASONING_BUDGET, tokens // 2) if tokens else REASONING_BUDGET  # as `model_configs` does
    cache = PROVIDERS_CACHE if way.model.provider else ENGINES_CACHE
    plans = [task.plan(OutputRule(way.thinks, budget, way.direct), context, cache) for task in counted]
    return Plan(way, context, budget, plans, estimate(way.model, plans, tokenizer.size, options.hardware))


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
    names = _names(options)
    suites = [name for name in tasks.suites if name in tasks.groups]
    if options.suite is not None and options.suite not in suites:
        raise MedtasksError(
            f"unknown suite {options.suite!r}", where="--suite", remedy=f"use {', '.join(suites)}"
        )
    leaves = dict.fromkeys(leaf for group in tasks.asked_for(names).values() for leaf in group)
    if options.strategy is None:
        return list(leaves)
    if chosen := [leaf for leaf in leaves if leaf not in tasks.tasks]:
        raise MedtasksError(
            f"{chosen[0]} is asked by likelihood, not {options.strategy}",
            where="--strategy",
            remedy="leave it out",
        )
    datasets = dict.fromkeys(tasks.tasks[leaf][0] for leaf in leaves)
    asked = [dataset.task(options.strategy) for dataset in datasets if dataset.has(options.strategy)]
    if not asked:
        first = next(iter(datasets))
        raise MedtasksError(
            f"{first.id} is not asked so: it has {', '.join(first.strategies)}",
            where="--strategy",
            remedy="leave it out",
        )
    return asked


def _selection(options: Options) -> str:
    return options.tasks or options.suite or ("medtasks_open" if options.open else DEFAULT)


def _names(options: Options) -> list[str]:
    return names_in(_selection(options))


def _command(
    tasks: Registry, leaves: Sequence[str], plan: Plan, tokenizer: Tokenizer, options: Options
) -> str:
    model = plan.way.model
    gpus = options.hardware.gpus
    if gpus is None and model.config is None and tokenizer.size and gpus_for(tokenizer.size) > 1:
        gpus = gpus_for(tokenizer.size)
    known = tokenizer.loaded is not None
    return run_command_line(
        task_names(tasks, _names(options), options.strategy, leaves),
        plan.way,
        context=options.max_model_len,
        budget=None if plan.budget == model.decoding.get("max_gen_toks") else plan.budget,
        gpus=gpus,
        template=tokenizer.template(model) is not None if known else None,
        prompts=options.prompts,
    )


def _print(plan: Plan, other: Plan | None, lines: Sequence[str], command: str) -> None:
    if any(task.sample for task in plan.tasks):
        console().print("SAMPLE DATA: synthetic rows, not a benchmark", style="bold")
    one_by_one = len(plan.tasks) <= _LISTED
    columns = [
        texts("task" if one_by_one else "suite, strategy", "name"),
        figure("tasks"),
        figure("documents", "{mark}{documents:,}"),
        figure("prompt tokens", "{mark}{prompt}"),
        figure("output tokens", "{mark}{output}"),
    ]
    key = (lambda task: task.task) if one_by_one else (lambda task: f"{task.suite}, {task.strategy}")
    rows = [_row(name, list(some)) for name, some in groupby(sorted(plan.tasks, key=key), key=key)]
    show(rows, columns, f"{plan.way.model.name}: an estimate", total=_row("all", plan.tasks), pad_edge=False)
    console().print(in_words(plan, alone=other is None), style="bold", markup=False)
    if other:
        console().print(in_words(other, alone=False, beside=plan), markup=False)
    for line in lines:
        console().print(f"- {line}", markup=False)
    console().print(f"\nto run it: {command}", markup=False, soft_wrap=True)


def _row(name: str, tasks: Sequence[TaskPlan]) -> Json:
    mark = "" if all(task.rows_here for task in tasks) else "~"
    sums = sums_of(tasks)
    tokens = {side: tokens_in_words(sums[f"{side}_tokens"]) for side in ("prompt", "output")}
    return {"name": name, "tasks": len(tasks), "mark": mark, "documents": sums["documents"], **tokens}


def _record(plan: Plan, other: Plan | None, lines: list[str], command: str) -> Json:
    return {
        "model": plan.way.model.name,
        "estimate": True,
        **_figures(plan),
        "other": _figures(other) if other else None,
        "rules": lines,
        "command": command,
        "tasks": [asdict(task) for task in plan.tasks],
    }


def _figures(plan: Plan) -> Json:
    return {
        "config": plan.way.model.config,
        "thinking": plan.way.thinks,
        "context": plan.context.tokens if plan.context else None,
        "total": {"tasks": len(plan.tasks), **plan.sums()},
        **{key: value for key, value in asdict(plan.total).items() if key != "rule"},
    }
