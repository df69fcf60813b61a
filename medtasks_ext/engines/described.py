"""What a loaded model says of itself: engine, precision, adapters, template, settings that it brings."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from medtasks_ext.privacy import text_hash

if TYPE_CHECKING:
    from medtasks_ext.harness import LM

#: Of `generation_config.json`: ids of tokens and notes, which are no settings.
_NO_SETTINGS = frozenset({"bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id"})
_NO_SETTINGS |= {"transformers_version", "_from_model_config", "max_length", "max_new_tokens"}


@dataclass(frozen=True)
class EngineRecord:
    """What answered in one session of a run. None: nobody tells, as of a model behind a server."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = {"extra": "forbid"}  # where it is read from a file
    name: str | None = None  # of the package that generates, or of lm-eval's class of a server
    version: str | None = None  # of the package
    dtype: str | None = None  # of the weights, as loaded
    quantisation: str | None = None  # its method; `none`
    adapters: str | None = None  # their names, without their places; `none`
    thinking: bool | None = None  # what the chat template was told of it
    tools: bool | None = None  # whether the chat template got any
    system_text: str | None = None  # hash of text that the user added to the system turn; empty: none
    template: str | None = None  # hash of the chat template that laid prompts out; empty: none
    #: whether it is the one of the tokenizer's repository; None of a folder on this machine, too
    repository_template: bool | None = None
    generation: Mapping[str, Any] | None = None  # settings that the model's own file adds to requests

    @property
    def local_template(self) -> str | None:
        """Hash of the template, where nobody knows whether the model's repository has the same."""
        return self.template if self.template and self.repository_template is None else None


def described(
    lm: LM, *, template: bool | str | None, system_text: str | None, layout: str | None
) -> EngineRecord:
    """`layout` is a template that a model's file writes out in place of the chat template."""
    kinds = {kind.__name__ for kind in type(lm).__mro__}  # their modules need packages of their own
    of: dict[str, Any] = {"system_text": text_hash(system_text) if system_text else ""}
    if layout:
        of |= {"template": text_hash(layout), "repository_template": False}
    if not kinds & {"VLLM", "HFLM"}:
        return EngineRecord(name=type(lm).__name__, **of)
    of |= _of_vllm(lm) if "VLLM" in kinds else _of_transformers(lm)
    with suppress(PackageNotFoundError):
        of["version"] = version(of["name"])
    context = dict(getattr(lm, "chat_template_args", None) or {})
    told = getattr(lm, "enable_thinking", None)
    of["thinking"] = context.get("enable_thinking") if told is None else told
    of["tools"] = bool(context.get("tools"))
    return EngineRecord(**{"template": "", **of, **(_template(lm, template) if template else {})})


def _of_vllm(lm: Any) -> dict[str, Any]:
    """lm-eval gives vLLM whole sampling parameters: those of the model's file do not count."""
    config = getattr(getattr(lm.model, "llm_engine", None), "model_config", None)
    adapter = getattr(lm, "lora_request", None)
    return {
        "name": "vllm",
        "dtype": _dtype(getattr(config, "dtype", None)),
        "quantisation": None if config is None else str(getattr(config, "quantization", None) or "none"),
        "adapters": "none" if adapter is None else Path(str(adapter.lora_path)).name,
        "generation": {},
    }


def _of_transformers(lm: Any) -> dict[str, Any]:
    model = lm.model
    brought = getattr(model, "generation_config", None)
    settings = {} if brought is None else brought.to_diff_dict()
    quantised = getattr(getattr(model, "config", None), "quantization_config", None)
    method = getattr(quantised, "quant_method", None)
    return {
        "name": "transformers",
        "dtype": _dtype(getattr(model, "dtype", None)),
        "quantisation": str(getattr(method, "value", method) or "none"),
        "adapters": ", ".join(getattr(model, "peft_config", None) or ()) or "none",
        "generation": {key: value for key, value in sorted(settings.items()) if key not in _NO_SETTINGS},
    }


def _dtype(given: Any) -> str | None:
    return None if given is None else str(given).removeprefix("torch.")


def _template(lm: Any, template: bool | str) -> dict[str, Any]:
    tokenizer = getattr(lm, "tokenizer", None)
    source = getattr(tokenizer, "chat_template", None)
    if isinstance(source, Mapping):
        source = source.get(template if isinstance(template, str) else "default")
    place = str(getattr(tokenizer, "name_or_path", "") or "")
    return {
        "template": text_hash(source) if isinstance(source, str) else None,
        # a folder may hold anything; a name on the hub holds what its repository has
        "repository_template": None if not place or Path(place).exists() else True,
    }
