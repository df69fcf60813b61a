"""What the commands that take lm-eval's own flags have in common."""

from __future__ import annotations

import argparse
import io
import json
import logging
import os
import re
import textwrap
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from medtasks_ext.cli.model import keep_key, make_demo
from medtasks_ext.cli.words import counted, names_in, near_options, say
from medtasks_ext.egress import BATCHING_MODELS
from medtasks_ext.errors import MedtasksError, some
from medtasks_ext.registry import Registry, registry
from medtasks_ext.registry.build import check
from medtasks_ext.registry.folders import add_own_folder, built_folder, find_config
from medtasks_ext.registry.strategies import LIKELIHOOD_SUFFIX
from medtasks_ext.results.prices import price_of
from medtasks_ext.runs.settings import note_secrets

if TYPE_CHECKING:
    from medtasks_ext.harness import EvaluatorConfig
    from medtasks_ext.runner.evaluate import Settings


#: Datasets without data that are listed whole, and of longer lists.
_WHOLE, _FIRST = 5, 3


def quiet() -> None:
    os.environ.setdefault("TQDM_DISABLE", "1")  # `hide_bars` knows the one model that needs them
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # a failed request is reported with its task
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # so is a download


def hide_bars(model: str) -> None:
    """Hide the progress bars of libraries, where the model can do without.

    vLLM's own `generate`, which lm-eval calls for models that see, divides by the elapsed time of its bar,
    and that is 0 for a bar that tqdm was told to disable. Must be called before tqdm is imported, since tqdm
    reads the variable then.
    """
    if model == "vllm-vlm":
        os.environ.pop("TQDM_DISABLE", None)
    else:
        os.environ.setdefault("TQDM_DISABLE", "1")


def lm_eval_config(
    arguments: list[str],
    command: str,
    description: str,
    example: str,
    refused: Mapping[str, str],
    *,
    in_files: bool = False,
) -> EvaluatorConfig:
    """Read lm-eval's flags, and `--config` files by path or bundled name.

    `refused`: flags that have no meaning for the command, and why; `in_files`: a configuration file must not
    hold those, either. An address among the flags, and one in a bundled configuration, may receive its key.
    """
    from medtasks_ext.harness import EvaluatorConfig
    from medtasks_ext.harness import Run as LmEvalRun

    parser = argparse.ArgumentParser(
        prog="medtasks", description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    lm_eval_run = LmEvalRun(parser.add_subparsers())
    lm_eval_run._parser.prog = f"medtasks {command}"
    lm_eval_run._parser.usage = (
        f"medtasks {command} [TASK …] --model MODEL --model_args ARG=VALUE,… [--tasks NAME,NAME,…] [options]"
    )
    lm_eval_run._parser.description = description
    flags = [
        max(action.option_strings, key=len)
        for action in lm_eval_run._parser._actions
        if action.dest not in ("help", *refused)
    ]
    named = textwrap.fill(f"lm-eval's flags, which `lm_eval run --help` explains: {', '.join(flags)}", 100)
    lm_eval_run._parser.epilog = f"{named}\n\nExample: medtasks {command} {example}"
    for action in lm_eval_run._parser._actions:
        action.help = argparse.SUPPRESS
    for group in lm_eval_run._parser._action_groups:
        group.description = None
    remedy = f"`medtasks {command} --help` lists the flags"

    def refuse(message: str) -> Any:
        place, _, what = message.removeprefix("argument ").partition(": ")
        form = _FORMS.get(place.partition("/")[0])
        what = what.replace("invalid try_parse_json value:", "is neither JSON nor a file:")
        raise MedtasksError(what or message, where=place, remedy=f"write {form}" if form else remedy)

    lm_eval_run._parser.error = refuse
    namespace, unknown = parser.parse_known_args(["run", *_readable(arguments)])
    if flags := [word for word in unknown if word.startswith("-")]:
        known = [name for action in lm_eval_run._parser._actions for name in action.option_strings]
        near = near_options(flags[0], [*known, *re.findall(r"--[a-z-]+", description)])
        remedy = f"{near} {remedy}" if near else remedy
        raise MedtasksError(f"unknown: {' '.join(unknown)}", where=f"medtasks {command}", remedy=remedy)
    if unknown:  # names of tasks that stand for themselves
        given = getattr(namespace, "tasks", None) or []
        namespace.tasks = ",".join([*([given] if isinstance(given, str) else given), *unknown])
    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    try:
        with redirect_stdout(io.StringIO()):  # lm-eval prints what a file says, keys and tokens included
            config = EvaluatorConfig.from_cli(namespace)
    except (ValueError, TypeError, FileNotFoundError) as error:
        raise MedtasksError(str(error), where=f"medtasks {command}", remedy=remedy) from None
    for settings in (config.model_args, config.gen_kwargs, config.metadata):
        note_secrets(settings)
    keep_key(config, typed="base_url" in str(getattr(namespace, "model_args", None) or ""))
    if config.model in BATCHING_MODELS and not _says_batch_size(namespace):
        config.batch_size = "auto"  # lm-eval's own default is one question at a time
    hide_bars(config.model)
    if config.limit is not None and config.limit <= 0:
        raise MedtasksError(f"{config.limit:g} documents leave nothing", where="--limit", remedy="raise it")
    said = {name for name, value in vars(namespace).items() if value or value == 0}
    for name, why in refused.items():
        if getattr(config, name, None) if in_files else name in said:
            raise MedtasksError(f"--{name} is not for `medtasks {command}`: {why}", remedy="leave it out")
    price_of(config.metadata, "--config")  # a price that is none is said before anything is done
    make_demo(config)
    return config


#: How values of options of lm-eval's are written.
_FORMS = {
    "--samples": """'{"TASK": [0, 1, 2]}', or the name of such a file""",
    "--gen_kwargs": "NAME=VALUE, such as temperature=0.7",
    "--model_args": "NAME=VALUE, such as pretrained=ORG/MODEL",
    "--limit": "a number of documents",
}
#: Options of lm-eval's whose values are pairs.
_OF_PAIRS = frozenset({"--gen_kwargs", "--model_args", "-a", "--metadata"})


def _readable(arguments: list[str]) -> list[str]:
    """Arguments as lm-eval's parser takes them.

    `--config NAME` may name one of the configurations that come with medtasks, and a value of `KEY=VALUE,…`
    may be an object of JSON or Python.
    """
    words = list[str]()
    for word in arguments:
        option, equals, value = word.partition("=")
        words += [option, value] if option in _OF_PAIRS and equals else [word]
    arguments = []
    while words:
        arguments.append(option := words.pop(0))
        given = list(takewhile(lambda word: not word.startswith("-"), words)) if option in _OF_PAIRS else []
        words = words[len(given) :]
        arguments += _pairs(given, option)
    if "--config" in arguments[:-1]:
        place = arguments.index("--config") + 1
        arguments[place] = str(find_config(arguments[place]))
    return arguments


def _pairs(given: list[str], option: str) -> list[str]:
    """Values `KEY=VALUE,…` as one JSON object where any holds an object; else as they are."""
    from medtasks_ext.harness import key_val_to_dict

    if not any("{" in text and not text.lstrip().startswith("{") for text in given):
        return given
    found: dict[str, Any] = {}
    try:
        for text in given:
            pairs = json.loads(text) if text.lstrip().startswith("{") else key_val_to_dict(text)
            for name, value in pairs.items():
                is_json = isinstance(value, str) and value.lstrip().startswith(("{", "["))
                found[name] = json.loads(value) if is_json else value
        return [json.dumps(found)]
    except (ValueError, TypeError):
        what = "a value in braces is neither an object of JSON nor one of Python"
        remedy = f"""write it in quotes: {option} 'chat_template_kwargs={{"enable_thinking": true}}'"""
        raise MedtasksError(what, where=option, remedy=remedy) from None


def _says_batch_size(namespace: argparse.Namespace) -> bool:
    if hasattr(namespace, "batch_size") or not namespace.config:
        return hasattr(namespace, "batch_size")
    return "batch_size" in yaml.safe_load(Path(namespace.config).read_text(encoding="utf-8"))


def requested_tasks(
    config: EvaluatorConfig, *, likelihood: bool | None = None
) -> tuple[Registry, dict[str, list[str]]]:
    """The registry, and requested name -> its tasks.

    `likelihood`: whether all are asked by likelihood; None where nothing can be asked so.
    """
    # what `medtasks dev build` prints is built from tasks that are known here
    if config.include_path and Path(config.include_path).resolve() != built_folder().resolve():
        add_own_folder(str(config.include_path))
    tasks = registry()
    if tasks.own:  # a task that cannot be read would be missing in a group without a word
        check(tasks)
    items = [config.tasks] if isinstance(config.tasks, str) else list(config.tasks or [])
    names = [name for item in items for name in names_in(item)]
    if not names:
        raise MedtasksError("no tasks given", where="--tasks", remedy="`medtasks ls --groups` lists groups")
    if likelihood is None:
        return tasks, tasks.resolve(names)
    resolved = tasks.asked_for(names, likelihood=likelihood)
    listed = [name for name in resolved if name.endswith(LIKELIHOOD_SUFFIX) and name not in tasks.tasks]
    n = len({leaf for name in listed for leaf in resolved[name]})
    of = len({leaf for name in listed for leaf in tasks.leaves(name.removesuffix(LIKELIHOOD_SUFFIX))})
    if n < of:
        say(f"{n} of {counted(of, 'task')} are asked by likelihood: answers of the others cannot be listed")
    return tasks, resolved


def out_folder(name: str | Path) -> Path:
    folder = Path(name)
    if folder.exists() and not folder.is_dir():
        raise MedtasksError("is a file", where=name, remedy="name a folder with -o")
    return folder


def without_data(
    tasks: Registry, names: Sequence[str], settings: Settings, *, strict: bool
) -> dict[str, str]:
    """Task whose data is not here -> how it is got; the rows of the others are not read."""
    from medtasks_ext.registry.new import check_written
    from medtasks_ext.rows.sources import forced_origin, origin_of, where_it_goes

    check_written(tasks, names)
    forced, datasets = forced_origin(settings.data), {name: tasks.known(name)[0] for name in names}
    missing = {name: where_it_goes(one) for name, one in datasets.items() if origin_of(one, forced) is None}
    if missing:
        _say_missing(missing, len(names), strict=strict)
        if strict:
            raise MedtasksError("data is missing and --strict was given", remedy="see the list above")
    if len(missing) == len(datasets):
        raise MedtasksError(
            f"none of the tasks has data here{f' as {settings.data}' if settings.data else ''}",
            remedy="`medtasks data status TASK` says how it is got; --data sample takes synthetic rows",
        )
    return missing


def say_faults(faults: Mapping[str, MedtasksError], *, stop: bool) -> None:
    alike: dict[tuple[str, str], list[str]] = {}
    for name, fault in faults.items():
        alike.setdefault((fault.what, fault.remedy), []).append(name)
    for names in alike.values():
        fault = faults[names[0]]
        also = (
            f"\n  the same in {counted(len(names) - 1, 'more task')}: {some(names[1:])}" if names[1:] else ""
        )
        say(f"✗ {names[0]}: {fault}{also}")
    if faults and stop:
        what = f"tasks that cannot be loaded: {len(faults)}"
        raise MedtasksError(what)


def _say_missing(missing: dict[str, str], n_all: int, *, strict: bool) -> None:
    lines = list(dict.fromkeys(missing.values()))
    say(f"no data for {len(missing)} of {n_all} tasks:")
    for line in lines if len(lines) <= _WHOLE else lines[:_FIRST]:
        say(f"  {line}")
    if len(lines) > _WHOLE:
        say(f"  and {len(lines) - _FIRST} more datasets; `medtasks data status TASK` names the place of each")
    root = os.environ.get("MEDTASKS_DATA_DIR")
    say(f"  (folder: {'MEDTASKS_DATA_DIR=' + root if root else 'MEDTASKS_DATA_DIR is not set'})")
    if not strict and len(missing) < n_all:
        say("going on with the others; --strict stops instead")
