"""What a model's repository says that a run needs to know; each value with the file that says it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import yaml

from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts.template import rendering

if TYPE_CHECKING:
    from medtasks_lab.models.repository import Repository

T = TypeVar("T")

#: Switches of chat templates that take true and false.
SWITCHES = ("enable_thinking", "thinking")
#: Other switches, which are named alone: what they take is not for a machine to guess.
_WORDED = ("thinking_mode", "reasoning_effort", "thinking_budget", "reasoning_mode", "builtin_tools")
_CONTEXT = ("max_position_embeddings", "max_seq_len", "seq_length", "n_positions", "model_max_length")
_DTYPE = ("dtype", "torch_dtype")
_SAMPLING = ("temperature", "top_p", "top_k", "min_p")
_TEXT = re.compile(r"ForCausalLM|ForConditionalGeneration|LMHeadModel")
_PARSER = re.compile(r"--reasoning-parser[ =]+[\"']?([\w-]+)")
_ASKED = [{"role": "user", "content": "◇question◇"}]
_TOLD = [{"role": "system", "content": "◇instruction◇"}, *_ASKED]


@dataclass(frozen=True)
class Said(Generic[T]):
    """A value, and which file says it."""

    value: T
    source: str


@dataclass(frozen=True)
class Switch:
    """What rendering the chat template both ways shows of thinking.

    Attributes:
        name: the switch; empty where the template has none.
        default: whether thinking is on where nothing is said; None where that cannot be told.
        under_lm_eval: the same where the switch is None, as lm-eval's vLLM model sets it.
    """

    name: str
    default: bool | None
    under_lm_eval: bool | None


@dataclass(frozen=True)
class ModelFacts:
    """What the repository says; None is what it does not."""

    context: Said[int] | None
    weights: Said[str] | None  # their type, such as bfloat16
    quantised: Said[str] | None  # method, such as fp8
    gigabytes: Said[float] | None  # of all weights
    template: Said[str] | None
    switch: Said[Switch] | None
    system_turn: Said[bool] | None  # whether the template shows a system turn
    stops: Said[tuple[str, ...]] | None
    sampling: Said[Mapping[str, float]] | None
    parser: Said[str] | None
    licence: Said[str] | None
    #: one line each: what stands in the way of a run, and what cannot be known
    notes: tuple[str, ...] = ()


@dataclass
class _Reader:
    repository: Repository
    notes: list[str] = field(default_factory=list)

    def facts(self) -> ModelFacts:
        config = self.repository.config
        template = self.template()
        render = self.renderer(template) if template else None
        card = self.card()
        licence = card.get("license_name" if card.get("license") == "other" else "license")
        self.check_architecture(config)
        dtype = next((key for key in _DTYPE if isinstance(config.get(key), str)), None)
        facts = ModelFacts(
            context=self.first_number(config),
            weights=Said(config[dtype], f"config.json: {dtype}") if dtype else None,
            quantised=self.quantised(config),
            gigabytes=self.gigabytes(),
            template=template,
            switch=Said(self.switch(render, template.value), template.source)
            if render and template
            else None,
            system_turn=Said(shows_system_turn(render), template.source) if render and template else None,
            stops=self.stops(),
            sampling=self.sampling(),
            parser=self.parser(),
            licence=Said(licence, "README.md") if isinstance(licence, str) else None,
        )
        if "auto_map" in config:
            self.notes.append("has code of its own, which is not run here; vLLM may need trust_remote_code")
        return ModelFacts(**{**vars(facts), "notes": tuple(self.notes)})

    def check_architecture(self, config: Mapping[str, Any]) -> None:
        named = self.repository.json("config.json").get("architectures")
        (first, *_) = named if isinstance(named, list) and named else (None,)
        if not isinstance(first, str):
            self.notes.append("architecture unknown: config.json names none")
            return
        if not _TEXT.search(first):
            raise MedtasksError(
                f"{first} is no model that writes text", where=self.repository.name, remedy="name another one"
            )
        if config.get("is_encoder_decoder"):
            self.notes.append(f"{first} has an encoder and a decoder: vLLM may not ask it with text alone")
        if "auto_map" not in config and (kind := config.get("model_type")) and not _is_known(str(kind)):
            self.notes.append(
                f"architecture {first} ({kind}) is unknown to the transformers that is installed here"
            )

    def first_number(self, config: Mapping[str, Any]) -> Said[int] | None:
        for key in _CONTEXT:
            if isinstance(value := config.get(key), int) and not isinstance(value, bool) and value > 0:
                return Said(value, f"config.json: {key}")
        self.notes.append("context unknown: config.json states none")
        return None

    def quantised(self, config: Mapping[str, Any]) -> Said[str] | None:
        block, file = config.get("quantization_config"), "config.json: quantization_config"
        if not isinstance(block, dict):
            # older weights of GPTQ say it in a file of its own
            block, file = self.repository.json("quantize_config.json"), "quantize_config.json"
            block = block and {"quant_method": "gptq", **block}
        if not block:
            return None
        named = (block.get("quant_method"), block.get("quant_algo") or block.get("format"))
        method = " ".join(str(one) for one in named if one) or "unknown method"
        if isinstance(bits := block.get("bits"), int):
            method += f", {bits} bits"
        self.notes.append(
            f"weights are quantised ({method}): its scores are not those of the unquantised model"
        )
        return Said(method, file)

    def gigabytes(self) -> Said[float] | None:
        file = "model.safetensors.index.json"
        metadata = self.repository.json(file).get("metadata")
        size = metadata.get("total_size") if isinstance(metadata, dict) else None
        if isinstance(size, int | float) and size > 0:
            return Said(size / 1e9, f"{file}: total_size")
        found = sorted(self.repository.folder.glob("*.safetensors"))
        if found:
            return Said(sum(path.stat().st_size for path in found) / 1e9, "the weights' files")
        self.notes.append(
            "size of the weights unknown: tensor_parallel_size is 1, raise it where they do not fit"
        )
        return None

    def template(self) -> Said[str] | None:
        if text := self.repository.text("chat_template.jinja"):
            return Said(text, "chat_template.jinja")
        for file in ("chat_template.json", "tokenizer_config.json"):
            found = self.repository.json(file).get("chat_template")
            if isinstance(found, list):
                found = {item.get("name"): item.get("template") for item in found}.get("default")
            if isinstance(found, str) and found:
                return Said(found, file)
        if (self.repository.folder / "params.json").is_file():
            self.notes.append(
                "no chat template: the tokenizer is Mistral's own, which a server applies (vllm serve"
                f" {self.repository.name} --tokenizer-mode mistral); by this file prompts go as plain text"
            )
        else:
            self.notes.append("no chat template: prompts go as plain text, as to a base model")
        return None

    def renderer(self, template: Said[str]) -> Callable[..., str] | None:
        tokens = {
            key: value["content"] if isinstance(value, dict) else str(value)
            for key, value in self.repository.json("tokenizer_config.json").items()
            if key.endswith("_token") and value and not isinstance(value, bool)
        }
        try:
            render = rendering(template.value, tokens, f"{self.repository.name}: {template.source}")
        except MedtasksError as error:
            self.notes.append(f"chat template cannot be rendered here: {error.what}")
            return None
        try:
            shown = render(_ASKED, add_generation_prompt=True)
        except Exception as error:  # templates refuse in their own ways
            words = error.what if isinstance(error, MedtasksError) else str(error)
            self.notes.append(f"the chat template refuses a plain question: {words}")
            return None
        if _ASKED[0]["content"] not in shown:
            self.notes.append("the chat template does not show the question")
        return render

    def switch(self, render: Callable[..., str], text: str) -> Switch:
        for name in SWITCHES:
            if not re.search(rf"\b{name}\b", text):
                continue
            shown = {
                way: _rendered(render, {} if way == "unset" else {name: said}) for way, said in _WAYS.items()
            }
            if shown["on"] is None or shown["on"] == shown["off"]:
                continue
            found = Switch(name, _like(shown, "unset"), _like(shown, "none"))
            if found.default is not found.under_lm_eval:
                self.notes.append(
                    f"{name}: where nothing is said, thinking is {_word(found.default)}; lm-eval's vLLM model"
                    f" says None, which is {_word(found.under_lm_eval)}"
                )
            elif found.default is None:
                self.notes.append(f"default of {name} unknown: the template renders neither way without it")
            return found
        if worded := [name for name in _WORDED if re.search(rf"\b{name}\b", text)]:
            self.notes.append(
                f"thinking unknown: the template has {', '.join(worded)}, whose values it does not list"
            )
            return Switch("", None, None)
        begun = _rendered(render, {}) or ""
        if re.search(r"<think>\s*$", begun):
            return Switch("", True, True)
        if "think" in text.lower():
            self.notes.append("thinking unknown: the template speaks of it and has no switch")
            return Switch("", None, None)
        self.notes.append(
            "thinking unknown: the template does not speak of it; taken for a model that does not"
        )
        return Switch("", None, None)

    def stops(self) -> Said[tuple[str, ...]] | None:
        config = self.repository.json("tokenizer_config.json")
        ids = self.repository.json("generation_config.json").get("eos_token_id")
        listed = ids if isinstance(ids, list) else [ids] if isinstance(ids, int) else []
        known = config.get("added_tokens_decoder")
        named = known if isinstance(known, dict) else {}
        if listed:
            words = [str((named.get(str(one)) or {}).get("content") or one) for one in listed]
            return Said(tuple(words), "generation_config.json: eos_token_id")
        end = config.get("eos_token")
        end = end.get("content") if isinstance(end, dict) else end
        return Said((str(end),), "tokenizer_config.json: eos_token") if end else None

    def sampling(self) -> Said[Mapping[str, float]] | None:
        content = self.repository.json("generation_config.json")
        found = {key: content[key] for key in _SAMPLING if isinstance(content.get(key), int | float)}
        if content.get("do_sample") is True and "temperature" in found:
            return Said(found, "generation_config.json")
        return None

    def parser(self) -> Said[str] | None:
        named = sorted(set(_PARSER.findall(self.repository.text("README.md") or "")))
        if len(named) == 1:
            return Said(named[0], "README.md")
        if named:
            self.notes.append(f"vLLM's parser unknown: the card names {', '.join(named)}")
        return None

    def card(self) -> dict[str, Any]:
        head = re.match(r"---\n(.*?)\n---\s*\n", self.repository.text("README.md") or "", re.S)
        try:
            content = yaml.safe_load(head[1]) if head else {}
        except yaml.YAMLError:
            content = {}
        return content if isinstance(content, dict) else {}


_WAYS: Mapping[str, bool | None] = {"unset": None, "none": None, "on": True, "off": False}


def _like(shown: Mapping[str, str | None], way: str) -> bool | None:
    return True if shown[way] == shown["on"] else False if shown[way] == shown["off"] else None


def _word(default: bool | None) -> str:
    return {True: "on", False: "off", None: "neither"}[default]


def _rendered(render: Callable[..., str], switches: Mapping[str, object]) -> str | None:
    try:
        return render(_ASKED, add_generation_prompt=True, **switches)
    except Exception:  # templates refuse in their own ways
        return None


def shows_system_turn(render: Callable[..., str]) -> bool:
    """Whether a template takes a system turn and shows its text."""
    try:
        return "◇instruction◇" in render(_TOLD, add_generation_prompt=True)
    except Exception:  # templates refuse in their own ways
        return False


def _is_known(kind: str) -> bool:
    try:
        from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES
    except ImportError:
        return True  # nobody here can say
    return kind in CONFIG_MAPPING_NAMES


def read_facts(repository: Repository) -> ModelFacts:
    """What a repository says. Nothing of it is executed; templates are rendered in the sandbox.

    Raises:
        MedtasksError: a file cannot be read, or the model writes no text.
    """
    return _Reader(repository).facts()
