"""`medtasks plan`: what a run asks, before it begins."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import yaml
from typer import Argument, Option

from medtasks_ext.cli.arguments import is_paid, model_name, quiet, ready_file, say_faults, settings_of
from medtasks_ext.cli.commands import AsJson
from medtasks_ext.cli.tables import SAMPLE_DATA, figure, show, texts, write
from medtasks_ext.cli.words import counted, names_in
from medtasks_ext.egress import VLLM_MODELS
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import Json
from medtasks_ext.prompts.official.words import own_words_notes
from medtasks_ext.registry import registry
from medtasks_ext.registry.folders import find_config
from medtasks_ext.results.prices import price_of
from medtasks_ext.rows.remote import is_offline

if TYPE_CHECKING:
    from medtasks_ext.harness import EvaluatorConfig
    from medtasks_ext.runner.evaluate import ChatTemplate

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
    from medtasks_ext.runner.evaluate import takes_system_turn
    from medtasks_ext.runner.preview import BYTES_PER_TOKEN, COUNTED, plan_task, token_counter

    known = registry()
    leaves = dict.fromkeys(leaf for group in known.asked_for(names_in(tasks)).values() for leaf in group)
    config = _configuration(model)
    name, arguments = model_name(config), config.model_args
    provider = is_paid(config)
    price = price_of(config.metadata, config.config or name) if provider else None
    trusted = bool(arguments.get("trust_remote_code", False))
    count, tokenizer, why = token_counter(name, provider=provider, trusted=trusted)
    template = _template(config, tokenizer)
    settings = settings_of(replace(config, apply_chat_template=template is not None))
    if template and not takes_system_turn(template):
        settings = replace(settings, system_role=False)
    planned, faults = list[Json](), dict[str, MedtasksError]()
    for leaf in leaves:
        try:
            planned.append(plan_task(known, leaf, settings, count, template))
        except MedtasksError as error:  # malformed data costs only its task
            faults[leaf] = error
    say_faults(faults, stop=not planned)
    here = [task for task in planned if not task["missing"]]
    prompt = sum(task["prompt_tokens"] or 0 for task in here)
    output = sum(task["most_output_tokens"] for task in here)
    total = {
        "tasks": len(planned),
        "missing": len(planned) - len(here),  # whose rows are not here
        "documents": sum(task["documents"] for task in planned),
        "prompt_tokens": prompt,
        "most_output_tokens": output,
        "most_cost": price.of(prompt, output) if price and here else None,  # USD, of answers that fill theirs
    }
    how = f"counted with the model's tokenizer, {'' if template else 'no '}chat template applied"
    if why:
        how = f"a token for {BYTES_PER_TOKEN} bytes, since the model's tokenizer is not at hand: {why}"
    lines = [f"prompt tokens: {how}; on up to {COUNTED} documents of each task, scaled"]
    if here and price:
        of = f"{price.input:g} USD per million prompt tokens, {price.output:g} of output"
        lines.append(f"cost: at most {total['most_cost']:,.2f} USD, by {of}")
    elif here and provider:
        lines.append("cost: no price is known; put metadata.price into a copy of the file")
    own = {task["task"]: known.known(task["task"]) for task in planned if task["own_prompts"]}
    itself = "" if is_offline() else ", and a run with internet by itself"
    notes = own_words_notes(own, len(planned), None)
    lines += [*_missing(planned, tasks), *(f"{line}{itself if 'fetch' in line else ''}" for line in notes)]
    words = ["medtasks", "run", "--tasks", tasks]
    words += ["--config", config.config] if config.config else ["--model", "vllm"]
    command = shlex.join(words + ([] if config.config else ["--model_args", f"pretrained={name}"]))
    if not config.config and (template or tokenizer is None):
        command += " --apply_chat_template" if template else " [--apply_chat_template]"
    if as_json:
        record: Json = {"model": name, "config": config.config, "total": total, "rules": lines}
        record |= {"command": command, "tasks": planned}
        typer.echo(json.dumps(record, ensure_ascii=False, indent=1))
    else:
        _print(name, planned, lines)
        write(f"\nto run it: {command}", whole=True)
    return 1 if faults else 0


def _configuration(given: str) -> EvaluatorConfig:
    """A model by the name of a configuration, the path of one, a folder, or its id on the hub.

    The hub id of a model that has a ready file stands for that file; of two files for the one that leaves
    thinking on, as the model does where nothing is set.
    """
    from medtasks_ext.harness import EvaluatorConfig

    path = Path(given).expanduser()
    on_hub = re.fullmatch(r"[\w.-]+/[\w.-]+", given) is not None and not path.is_file()
    name = given
    if path.is_dir() or on_hub:
        name = "" if path.is_dir() else ready_file(given)
        if not name:
            return EvaluatorConfig(model="vllm", model_args={"pretrained": given})
    try:
        file = find_config(name)
    except MedtasksError as error:
        near = error.remedy if error.remedy.startswith("did you mean") else ""
        raise MedtasksError(
            "is no folder, no configuration and no ORG/MODEL of the hub",
            where=name,
            remedy=near or "name one of them; model_configs/README.md lists the configurations",
        ) from None
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
        engine, arguments = content["model"], content.get("model_args")
        config = EvaluatorConfig(config=name, **content)
    except (yaml.YAMLError, UnicodeDecodeError, AttributeError, KeyError, TypeError):
        what, remedy = "is no configuration that names a model", "see model_configs/README.md"
        raise MedtasksError(what, where=file, remedy=remedy) from None
    if not arguments:
        raise MedtasksError(
            f"{engine} has no weights and asks no server: there is nothing to plan",
            where=name,
            remedy=f"run it: medtasks run --model {engine} --data sample --tasks TASK",
        )
    return config


def _template(config: EvaluatorConfig, tokenizer: Any) -> ChatTemplate | None:
    """The chat template as a run would apply it; None where none is applied or known."""
    from medtasks_ext.runner.preview import renderer_of

    applied = config.apply_chat_template or not config.config
    if not applied or not getattr(tokenizer, "chat_template", None):
        return None
    switches = dict(config.model_args.get("chat_template_args") or {})
    # lm-eval's vllm model always sets this one, to None where nothing is said
    if "enable_thinking" in config.model_args or config.model in VLLM_MODELS:
        switches["enable_thinking"] = config.model_args.get("enable_thinking")
    return renderer_of(tokenizer, **switches)


def _missing(tasks: Sequence[Json], given: str) -> list[str]:
    from medtasks_ext.runner.preview import FETCH

    missing = [task["missing"] for task in tasks if task["missing"]]
    if not (remedies := list(dict.fromkeys(missing))):
        return []
    open_ones = [remedy for remedy in remedies if remedy.startswith(FETCH)]
    if open_ones and "," not in given:
        remedies = [f"{FETCH} {given}", *(remedy for remedy in remedies if remedy not in open_ones)]
    lines = [
        f"~: rows of {counted(len(missing), 'task')} are not on this machine. "
        "Documents are as many as the suite states; prompts are not counted, and are in no cost",
        *(f"to have rows: {remedy}" for remedy in remedies[:_NAMED]),
    ]
    more = len(remedies[_NAMED:])
    return lines + [f"and {counted(more, 'more dataset')} (--json names them)"] * bool(more)


def _print(name: str, tasks: Sequence[Json], lines: Sequence[str]) -> None:
    if any(task["sample"] for task in tasks):
        write(SAMPLE_DATA, "bold")
    one_by_one = len(tasks) <= _LISTED
    columns = [
        texts("task" if one_by_one else "suite, strategy", "name"),
        figure("tasks"),
        figure("documents", "{mark}{documents:,}"),
        figure("prompt tokens", "{mark}{prompt:,}"),
        figure("output tokens, at most", "{output:,}"),
    ]
    key = (lambda task: task["task"]) if one_by_one else (lambda task: f"{task['suite']}, {task['strategy']}")
    rows = [_row(label, list(some)) for label, some in groupby(sorted(tasks, key=key), key=key)]
    show(rows, columns, f"{name}: what a run asks", total=_row("all", tasks), pad_edge=False)
    for line in lines:
        write(f"- {line}")


def _row(name: str, tasks: Sequence[Json]) -> Json:
    here = [task["prompt_tokens"] for task in tasks if task["prompt_tokens"] is not None]
    return {
        "name": name,
        "tasks": len(tasks),
        "mark": "" if len(here) == len(tasks) else "~",
        "documents": sum(task["documents"] for task in tasks),
        "prompt": sum(here) if here else None,
        "output": sum(task["most_output_tokens"] for task in tasks),
    }
