"""`medtasks plan`: what a run asks, before it begins."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Annotated

import typer
from typer import Argument, Option

from medtasks_ext.cli.arguments import known_to_think, quiet, say_faults
from medtasks_ext.cli.commands import AsJson
from medtasks_ext.cli.tables import SAMPLE_DATA, figure, show, texts, write
from medtasks_ext.cli.words import counted, names_in
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import Json
from medtasks_ext.prompts.official.words import own_words_notes
from medtasks_ext.registry import Registry, registry
from medtasks_ext.results.prices import Price, price_of
from medtasks_ext.rows.remote import is_offline
from medtasks_ext.runner.evaluate import Settings, takes_system_turn
from medtasks_ext.runner.plan import (
    BYTES_PER_TOKEN,
    COUNTED,
    FETCH,
    PlannedModel,
    PlannedTask,
    Tokenizer,
    find_model,
    plan_task,
)

DEFAULT = "medtasks_scoreable"
#: Tasks that are listed one by one; more are summed by suite.
_LISTED = 20
#: Tasks without rows that are named; `--json` has all.
_NAMED = 6


def plan(
    model: Annotated[
        str, Argument(help="ORG/MODEL of the hub, a folder with its tokenizer, or a name of model_configs.")
    ],
    tasks: Annotated[str, Option(help="Tasks or groups.")] = DEFAULT,
    as_json: AsJson = False,
) -> int:
    """Count what a run asks: documents, tokens, and cost.

    Asks no model and fetches no data: what is not on this machine is named, and how to get it.

    Example: medtasks plan openai --tasks mlb_cot
    """
    quiet()
    known = registry()
    leaves = dict.fromkeys(leaf for group in known.asked_for(names_in(tasks)).values() for leaf in group)
    found = find_model(model)
    price = price_of(found.metadata, found.config or found.name) if found.provider else None
    tokenizer = Tokenizer.of(found)
    settings = _settings(found, tokenizer)
    planned, faults = list[PlannedTask](), dict[str, MedtasksError]()
    for name in leaves:
        try:
            planned.append(plan_task(known, name, settings, tokenizer.count, tokenizer.template(found)))
        except MedtasksError as error:  # malformed data costs only its task
            faults[name] = error
    say_faults(faults, stop=not planned)
    total = _total(planned, price)
    command = _command(tasks, found, tokenizer)
    lines = [
        *_rules(found, tokenizer),
        *_costs(found, price, total),
        *_missing(planned, tasks),
        *_prompts(known, planned),
    ]
    if as_json:
        record: Json = {"model": found.name, "config": found.config, "total": total, "rules": lines}
        record |= {"command": command, "tasks": [asdict(task) for task in planned]}
        typer.echo(json.dumps(record, ensure_ascii=False, indent=1))
    else:
        _print(found.name, planned, lines)
        write(f"\nto run it: {command}", whole=True)
    return 1 if faults else 0


def _total(tasks: Sequence[PlannedTask], price: Price | None) -> Json:
    """What is asked in all; cost (US dollars) is that of answers that fill their budgets."""
    here = [task for task in tasks if not task.missing]
    prompt = sum(task.prompt_tokens or 0 for task in here)
    output = sum(task.most_output_tokens for task in here)
    return {
        "tasks": len(tasks),
        "missing": len(tasks) - len(here),  # whose rows are not here
        "documents": sum(task.documents for task in tasks),
        "prompt_tokens": prompt,
        "most_output_tokens": output,
        "most_cost": price.of(prompt, output) if price and here else None,
    }


def _settings(model: PlannedModel, tokenizer: Tokenizer) -> Settings:
    template = tokenizer.template(model)
    gen_kwargs = {**model.decoding}
    arguments = model.arguments or {"pretrained": model.name}
    return Settings(
        apply_chat_template=template is not None,
        system_role=(template is None or takes_system_turn(template))
        and model.metadata.get("system_role", True),
        layout=None if template else model.metadata.get("layout"),
        gen_kwargs=gen_kwargs,
        official_budget="max_gen_toks" not in gen_kwargs
        and known_to_think(arguments, model.metadata) is False,
        context=model.context(),
    )


def _command(tasks: str, model: PlannedModel, tokenizer: Tokenizer) -> str:
    if model.config:
        return shlex.join(["medtasks", "run", "--tasks", tasks, "--config", model.config])
    named = ["--model", model.engine, "--model_args", f"pretrained={model.name}"]
    line = shlex.join(["medtasks", "run", "--tasks", tasks, *named])
    if tokenizer.loaded is None:
        return f"{line} [--apply_chat_template]"
    return line if tokenizer.template(model) is None else f"{line} --apply_chat_template"


def _rules(model: PlannedModel, tokenizer: Tokenizer) -> Iterator[str]:
    template = "chat template" if tokenizer.template(model) else "no chat template"
    how = f"counted with the model's tokenizer, {template} applied"
    if why := tokenizer.why_not:
        how = f"a token for {BYTES_PER_TOKEN} bytes, since the model's tokenizer is not at hand: {why}"
    yield f"prompt tokens: {how}; on up to {COUNTED} documents of each task, scaled"


def _costs(model: PlannedModel, price: Price | None, total: Json) -> Iterator[str]:
    if total["missing"] == total["tasks"]:
        return
    if price:
        of = f"{price.input:g} USD per million prompt tokens, {price.output:g} of output"
        yield f"cost: at most {total['most_cost']:,.2f} USD, by {of}"
    elif model.provider:
        yield "cost: no price is known; put metadata.price into a copy of the file"


def _missing(tasks: Sequence[PlannedTask], given: str) -> Iterator[str]:
    remedies = list(dict.fromkeys(task.missing for task in tasks if task.missing))
    if not remedies:
        return
    yield (
        f"~: rows of {counted(sum(bool(task.missing) for task in tasks), 'task')} are not on this machine. "
        "Documents are as many as the suite states; prompts are not counted, and are in no cost"
    )
    open_ones = [remedy for remedy in remedies if remedy.startswith(FETCH)]
    if open_ones and "," not in given:
        remedies = [f"{FETCH} {given}", *(remedy for remedy in remedies if remedy not in open_ones)]
    yield from (f"to have rows: {remedy}" for remedy in remedies[:_NAMED])
    if more := len(remedies[_NAMED:]):
        yield f"and {counted(more, 'more dataset')} (--json names them)"


def _prompts(known: Registry, tasks: Sequence[PlannedTask]) -> Iterator[str]:
    """What would not be comparable if a run began with the prompts that are on this machine."""
    own = {task.task: known.known(task.task) for task in tasks if task.own_prompts}
    for line in own_words_notes(own, len(tasks), None):
        yield line if is_offline() or "fetch" not in line else f"{line}, and a run with internet by itself"


def _print(name: str, tasks: Sequence[PlannedTask], lines: Sequence[str]) -> None:
    if any(task.sample for task in tasks):
        write(SAMPLE_DATA, "bold")
    one_by_one = len(tasks) <= _LISTED
    columns = [
        texts("task" if one_by_one else "suite, strategy", "name"),
        figure("tasks"),
        figure("documents", "{mark}{documents:,}"),
        figure("prompt tokens", "{mark}{prompt:,}"),
        figure("output tokens, at most", "{output:,}"),
    ]
    key = (lambda task: task.task) if one_by_one else (lambda task: f"{task.suite}, {task.strategy}")
    rows = [_row(label, list(some)) for label, some in groupby(sorted(tasks, key=key), key=key)]
    show(rows, columns, f"{name}: what a run asks", total=_row("all", tasks), pad_edge=False)
    for line in lines:
        write(f"- {line}")


def _row(name: str, tasks: Sequence[PlannedTask]) -> Json:
    here = [task.prompt_tokens for task in tasks if task.prompt_tokens is not None]
    return {
        "name": name,
        "tasks": len(tasks),
        "mark": "" if len(here) == len(tasks) else "~",
        "documents": sum(task.documents for task in tasks),
        "prompt": sum(here) if here else None,
        "output": sum(task.most_output_tokens for task in tasks),
    }
