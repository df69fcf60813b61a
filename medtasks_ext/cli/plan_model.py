"""The model of a plan: what its configuration or its files say, without loading it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from medtasks_ext.cli.arguments import find_config
from medtasks_ext.errors import MedtasksError

if TYPE_CHECKING:
    from medtasks_ext.runner.model_size import Size
    from medtasks_ext.runner.prompts import ChatTemplate, Counter


@dataclass(frozen=True)
class PlannedModel:
    """A model as a plan knows it.

    Attributes:
        name: on the hub, of the provider, or a path.
        config: `--config` that names it, if one was given.
        content: of that file.
    """

    name: str
    config: str | None
    content: dict[str, Any]

    @property
    def arguments(self) -> dict[str, Any]:
        """The file's `model_args`."""
        return self.content.get("model_args") or {}

    @property
    def metadata(self) -> dict[str, Any]:
        """The file's `metadata`."""
        return self.content.get("metadata") or {}

    @property
    def folder(self) -> Path | None:
        """Where it lies, if it is local."""
        path = Path(self.name).expanduser()
        return path if path.is_dir() else None

    @property
    def provider(self) -> bool:
        """Whether tokens are paid for rather than GPUs."""
        served_here = "serve" in self.metadata or "localhost" in str(self.arguments.get("base_url"))
        return "completions" in str(self.content.get("model")) and not served_here

    @property
    def gpus(self) -> int | None:
        """GPUs that the file asks for."""
        served = re.findall(r"(?:tensor|pipeline)-parallel-size (\d+)", str(self.metadata.get("serve")))
        gpus = self.arguments.get("tensor_parallel_size")
        for n in served:
            gpus = (gpus or 1) * int(n)
        return gpus


def find_model(name: str) -> PlannedModel:
    """A model by the name of a configuration, the path of one, a folder, or its id on the hub.

    Raises:
        MedtasksError: it is none of these.
    """
    path = Path(name).expanduser()
    if path.is_dir():
        return PlannedModel(name, None, {})
    on_hub = re.fullmatch(r"[\w.-]+/[\w.-]+", name) is not None and not path.is_file()
    if on_hub:
        return PlannedModel(name, None, {})
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
        called = arguments.get("pretrained") or arguments["model"]
    except (yaml.YAMLError, UnicodeDecodeError, AttributeError, KeyError):
        raise MedtasksError(
            "is no configuration that names a model", where=file, remedy="see model_configs/README.md"
        ) from None
    return PlannedModel(str(called), name, content)


@dataclass(frozen=True)
class Tokenizer:
    """How tokens are counted, and what else the model's files say.

    Attributes:
        count: texts -> tokens.
        template: the chat template; None where none is applied or known.
        why_not: why the model's own tokenizer is not used; empty where it is.
        takes_system: whether the template shows a system turn.
        size: parameters, if known.
    """

    count: Counter
    template: ChatTemplate | None
    why_not: str
    takes_system: bool
    size: Size | None

    @classmethod
    def of(cls, model: PlannedModel) -> Tokenizer:
        """Load it, or the rule by characters.

        Raises:
            MedtasksError: a folder without a tokenizer, or a model that the hub does not know.
        """
        from medtasks_ext.runner.model_size import size_of
        from medtasks_ext.runner.plan import count_by_script
        from medtasks_ext.runner.prompts import counter_of, takes_system_turn

        if model.provider:
            why = "a provider's tokenizer is not read here"
            return cls(count_by_script, None, why, True, None)
        counted = None if model.folder else _hub_parameters(model.name)
        size = size_of(model.folder.resolve().name if model.folder else model.name, model.folder, counted)
        tokenizer, why = _load_tokenizer(model)
        count = counter_of(tokenizer)
        if count is None:
            return cls(count_by_script, None, why, True, size)
        template = _template(model, tokenizer)
        return cls(count, template, "", template is None or takes_system_turn(template), size)


def _hub_parameters(name: str) -> int | None:
    """Parameters as the hub counts them; None where it cannot be asked.

    Raises:
        MedtasksError: the hub knows no such model.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError

    try:
        found = HfApi().model_info(name, timeout=10, expand=["safetensors"]).safetensors
        return found.total if found else None
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


def _template(model: PlannedModel, tokenizer: Any) -> ChatTemplate | None:
    """The chat template as a run would apply it."""
    if not getattr(tokenizer, "chat_template", None) or not model.content.get("apply_chat_template", True):
        return None
    switches = dict(model.arguments.get("chat_template_args") or {})
    if "enable_thinking" in model.arguments:
        switches["enable_thinking"] = model.arguments["enable_thinking"]

    def apply(turns: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        return tokenizer.apply_chat_template(
            turns,
            tokenize=False,
            add_generation_prompt=add_generation_prompt,
            continue_final_message=not add_generation_prompt,
            **switches,
        )

    return apply
