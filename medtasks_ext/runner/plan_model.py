"""The model of a plan: what its configuration or its files say, without loading it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from medtasks_ext.batching import VLLM_MODELS
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import read_json
from medtasks_ext.registry.model_configs import bundled_configs, find_config
from medtasks_ext.registry.yamlfile import Config, read_yaml

if TYPE_CHECKING:
    from medtasks_ext.runner.chat import Counter
    from medtasks_ext.runner.model_size import Size
    from medtasks_ext.runner.prompts import ChatTemplate

#: The folder of `model_configs` with a file for each open model of the papers.
_OPEN = "open"
#: Keys of a `config.json` that give the context, as vLLM and transformers look for them.
_CONTEXT_KEYS = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length")


@dataclass(frozen=True)
class PlannedModel:
    """A model as a plan knows it."""

    name: str  # on the hub, of the provider, or a path
    config: str | None  # `--config` that runs it; None where no file names it
    content: Config  # of that file

    @property
    def engine(self) -> str:
        """lm-eval's `--model`."""
        return str(self.content.get("model", "vllm"))

    @property
    def arguments(self) -> Config:
        """The file's `model_args`."""
        return self.content.get("model_args") or {}

    @property
    def decoding(self) -> Config:
        """The file's `gen_kwargs`."""
        return self.content.get("gen_kwargs") or {}

    @property
    def metadata(self) -> Config:
        """The file's `metadata`."""
        return self.content.get("metadata") or {}

    @property
    def folder(self) -> Path | None:
        """Where it lies, if it is local."""
        path = Path(self.name).expanduser()
        return path if path.is_dir() else None

    @property
    def served(self) -> bool:
        """Whether a server renders the prompts; it refuses those that are longer than the context."""
        return "chat-completions" in self.engine

    @property
    def provider(self) -> bool:
        """Whether tokens are paid for rather than GPUs."""
        served_here = "serve" in self.metadata or "localhost" in str(self.arguments.get("base_url"))
        return "completions" in self.engine and not served_here

    @property
    def gpus(self) -> int | None:
        """GPUs that the file asks for."""
        served = re.findall(r"(?:tensor|pipeline)-parallel-size (\d+)", str(self.metadata.get("serve")))
        gpus = self.arguments.get("tensor_parallel_size")
        for n in served:
            gpus = (gpus or 1) * int(n)
        return gpus

    @property
    def context_key(self) -> str:
        """The argument of the engine that sets the context."""
        return "max_model_len" if self.engine in VLLM_MODELS else "max_length"

    def context(self) -> int | None:
        """Tokens of prompt and answer together: as its file says, else its own; None where nobody knows."""
        if stated := self.arguments.get(self.context_key):
            return int(stated)
        return None if self.provider else _own_context(self)


def find_model(name: str) -> PlannedModel:
    """A model by the name of a configuration, the path of one, a folder, or its id on the hub.

    The hub id of a model that has a ready file stands for that file; of two files for the one that leaves
    thinking on, as the model does where nothing is set.

    Raises:
        MedtasksError: it is none of these.
    """
    path = Path(name).expanduser()
    if path.is_dir():
        return PlannedModel(name, None, {})
    on_hub = re.fullmatch(r"[\w.-]+/[\w.-]+", name) is not None and not path.is_file()
    if on_hub:
        return next(iter(ready_files(name)), PlannedModel(name, None, {}))
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
        arguments = content.get("model_args") or {}
        if content["model"] and "model_args" not in content:
            raise MedtasksError(
                f"{content['model']} has no weights and asks no server: there is nothing to plan",
                where=name,
                remedy=f"run it: medtasks run --model {content['model']} --data sample --tasks TASK",
            )
        called = arguments.get("pretrained") or arguments["model"]
    except (yaml.YAMLError, UnicodeDecodeError, AttributeError, KeyError):
        raise MedtasksError(
            "is no configuration that names a model", where=file, remedy="see model_configs/README.md"
        ) from None
    return PlannedModel(str(called), name, content)


def ready_files(hub_id: str) -> list[PlannedModel]:
    """A model by each ready file of its own, the one that leaves thinking on before the other."""
    files = _ready_files().get(hub_id.lower(), [])
    return sorted(files, key=lambda model: model.arguments.get("enable_thinking") is False)


def known_to_think(arguments: Mapping[str, Any], metadata: Mapping[str, Any]) -> bool | None:
    """Whether a run takes a model for one that reasons before it answers; None where nobody says.

    A switch that is off goes first, then `metadata.thinking` of the configuration, then that of the ready
    file of the same model.

    Args:
        arguments: `model_args` of the run.
        metadata: of its configuration.

    Raises:
        MedtasksError: `thinking` is neither true nor false.
    """
    from medtasks_ext.prompts.load import flag

    if arguments.get("enable_thinking") is False:
        return False
    if (said := metadata.get("thinking")) is not None:
        return flag(said, "thinking")
    named = arguments.get("pretrained") or arguments.get("model")
    files = ready_files(str(named)) if named else []
    return bool(files[0].metadata["thinking"]) if files else None


@lru_cache(maxsize=1)
def _ready_files() -> dict[str, list[PlannedModel]]:
    by_model: dict[str, list[PlannedModel]] = {}
    for name, file in bundled_configs().items():
        if file.parent.name == _OPEN:
            content = read_yaml(file)
            called = str(content["model_args"].get("pretrained") or content["model_args"]["model"])
            by_model.setdefault(called.lower(), []).append(PlannedModel(called, name, content))
    return by_model


def _own_context(model: PlannedModel) -> int | None:
    """The context that the model's `config.json` states."""
    try:
        content = read_json(_config_file(model))
    except Exception:  # no such file, no connection, a gated model, no JSON
        return None
    for level in (content, content.get("text_config") or {}):
        lengths: list[int] = [level[key] for key in _CONTEXT_KEYS if isinstance(level.get(key), int)]
        if lengths:
            return min(lengths)
    return None


def _config_file(model: PlannedModel) -> Path:
    from huggingface_hub import hf_hub_download

    return model.folder / "config.json" if model.folder else Path(hf_hub_download(model.name, "config.json"))


@dataclass(frozen=True)
class Tokenizer:
    """How tokens are counted, and what else the model's files say."""

    count: Counter  # texts -> tokens
    loaded: Any  # the model's own tokenizer; None where it is not at hand
    why_not: str  # why it is not used; empty where it is
    size: Size | None  # parameters, if known

    @classmethod
    def of(cls, model: PlannedModel) -> Tokenizer:
        """Load it, or the rule by characters.

        Raises:
            MedtasksError: a folder without a tokenizer, or a model that the hub does not know.
        """
        from medtasks_ext.runner.chat import counter_of
        from medtasks_ext.runner.model_size import size_of
        from medtasks_ext.runner.plan import count_by_script

        if model.provider:
            return cls(count_by_script, None, "a provider's tokenizer is not read here", None)
        counted = None if model.folder else _hub_parameters(model.name)
        size = size_of(model.folder.resolve().name if model.folder else model.name, model.folder, counted)
        tokenizer, why = _load_tokenizer(model)
        count = counter_of(tokenizer)
        if count is None:
            return cls(count_by_script, None, why, size)
        return cls(count, tokenizer, "", size)

    def template(self, model: PlannedModel, **switches: Any) -> ChatTemplate | None:
        """The chat template as a run would apply it; None where none is applied or known.

        Args:
            model: whose file sets switches of the template.
            switches: that go before the file's.
        """
        if not getattr(self.loaded, "chat_template", None) or not model.content.get(
            "apply_chat_template", True
        ):
            return None
        switches = {**_switches(model), **switches}

        def apply(turns: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
            text: str = self.loaded.apply_chat_template(
                turns,
                tokenize=False,
                add_generation_prompt=add_generation_prompt,
                continue_final_message=not add_generation_prompt,
                **switches,
            )
            return text

        return apply


def _switches(model: PlannedModel) -> Config:
    """What lm-eval hands to a chat template."""
    switches = dict(model.arguments.get("chat_template_args") or {})
    # lm-eval's vllm model always sets this one, to None where nothing is said
    if "enable_thinking" in model.arguments or model.engine in VLLM_MODELS:
        switches["enable_thinking"] = model.arguments.get("enable_thinking")
    return switches


def _hub_parameters(name: str) -> int | None:
    """Parameters as the hub counts them; None where it cannot be asked.

    Raises:
        MedtasksError: the hub knows no such model.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError

    try:
        tensors = HfApi().model_info(name, timeout=10, expand=["safetensors"]).safetensors
        return tensors.total if tensors else None
    except GatedRepoError:
        return None
    except RepositoryNotFoundError:
        raise MedtasksError(
            "the hub has no such model, or it is private",
            where=name,
            remedy="correct the name, run `hf auth login`, or name a folder or a file of model_configs",
        ) from None
    except Exception:  # no connection, offline by choice, an answer that cannot be read
        return None


def _load_tokenizer(model: PlannedModel) -> tuple[Any, str]:
    """The tokenizer, or None and why."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    try:
        from transformers import AutoTokenizer
    except ImportError:
        return None, "transformers is not installed (pip install 'medtasks[hf]')"
    trusted = bool(model.arguments.get("trust_remote_code", False))
    try:
        return AutoTokenizer.from_pretrained(model.name, trust_remote_code=trusted), ""
    except Exception as error:  # each tokenizer fails in its own way
        if model.folder:
            raise MedtasksError(
                f"holds no tokenizer that can be loaded ({str(error).splitlines()[0]})",
                where=model.name,
                remedy="put the tokenizer's files beside the weights (tokenizer.json, tokenizer_config.json)",
            ) from None
        return None, "it is not in the local cache, and the hub cannot be reached or refuses it"
