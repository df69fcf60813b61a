"""What a run asks, counted before it begins: documents, tokens of prompts, and the most tokens of answers.

Prompts are those of the run. Where the rows of a task are not on this machine, nothing is guessed: its
documents are as many as the suite states, its prompts are not counted, and how to get the rows is said. The
model is what its configuration or its files say, without loading it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import yaml

from medtasks_ext.egress import VLLM_MODELS
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import read_json
from medtasks_ext.registry.folders import bundled_configs, find_config
from medtasks_ext.registry.strategies import by_likelihood
from medtasks_ext.rows.sources import forced_origin, origin_of, where_it_goes
from medtasks_ext.runner.evaluate import ChatTemplate, Settings, build_task, rendered_prompt
from medtasks_ext.runner.preview import Counter, counter_of, renderer_of
from medtasks_ext.strict import Config, read_yaml
from medtasks_ext.version import install_words

if TYPE_CHECKING:
    from medtasks_ext.harness import Task
    from medtasks_ext.registry import Registry
    from medtasks_ext.runner.evaluate import ChatTemplate

#: The folder of `model_configs` with a file for each open model of the papers.
_OPEN = "open"
#: Keys of a `config.json` that give the context, as vLLM and transformers look for them.
_CONTEXT_KEYS = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length")
#: Of UTF-8, where no tokenizer is at hand.
BYTES_PER_TOKEN = 4


@dataclass(frozen=True)
class PlannedModel:
    """A model as its configuration states it."""

    name: str  # on the hub, of the provider, or a path
    config: str | None  # `--config` that runs it; None where no file names it
    content: Config  # of that file

    @property
    def engine(self) -> str:
        return str(self.content.get("model", "vllm"))

    @property
    def arguments(self) -> Config:
        return self.content.get("model_args") or {}

    @property
    def decoding(self) -> Config:
        return self.content.get("gen_kwargs") or {}

    @property
    def metadata(self) -> Config:
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
        return "completions" in self.engine and not served_here

    def context(self) -> int | None:
        """Tokens of prompt and answer together: as its file says, else its own; None where nobody knows."""
        if stated := self.arguments.get("max_model_len" if self.engine in VLLM_MODELS else "max_length"):
            return int(stated)
        if self.provider:
            return None
        from huggingface_hub import hf_hub_download

        try:
            file = self.folder / "config.json" if self.folder else hf_hub_download(self.name, "config.json")
            content = read_json(Path(file))
        except Exception:  # no such file, no connection, a gated model, no JSON
            return None
        for level in (content, content.get("text_config") or {}):
            lengths: list[int] = [level[key] for key in _CONTEXT_KEYS if isinstance(level.get(key), int)]
            if lengths:
                return min(lengths)
        return None


def find_model(name: str) -> PlannedModel:
    """A model by the name of a configuration, the path of one, a folder, or its id on the hub.

    The hub id of a model that has a ready file stands for that file; of two files for the one that leaves
    thinking on, as the model does where nothing is set.
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
        if content["model"] and "model_args" not in content:
            raise MedtasksError(
                f"{content['model']} has no weights and asks no server: there is nothing to plan",
                where=name,
                remedy=f"run it: medtasks run --model {content['model']} --data sample --tasks TASK",
            )
        return PlannedModel(_called(content), name, content)
    except (yaml.YAMLError, UnicodeDecodeError, AttributeError, KeyError, TypeError):
        raise MedtasksError(
            "is no configuration that names a model", where=file, remedy="see model_configs/README.md"
        ) from None


def ready_files(hub_id: str) -> list[PlannedModel]:
    """A model by each ready file of its own, the one that leaves thinking on before the other."""
    files = [model for model in _all_ready_files() if model.name.lower() == hub_id.lower()]
    return sorted(files, key=lambda model: model.arguments.get("enable_thinking") is False)


@lru_cache(maxsize=1)
def _all_ready_files() -> list[PlannedModel]:
    named = {name: read_yaml(file) for name, file in bundled_configs().items() if file.parent.name == _OPEN}
    return [PlannedModel(_called(content), name, content) for name, content in named.items()]


def _called(content: Config) -> str:
    return str(content["model_args"].get("pretrained") or content["model_args"]["model"])


@dataclass(frozen=True)
class Tokenizer:
    """How tokens are counted."""

    count: Counter  # texts -> tokens
    loaded: Any  # the model's own tokenizer; None where it is not at hand
    why_not: str  # why it is not used; empty where it is

    @classmethod
    def of(cls, model: PlannedModel) -> Tokenizer:
        """Load it, or count bytes."""
        if model.provider:
            return cls(count_bytes, None, "a provider's tokenizer is not read here")
        tokenizer, why = _load_tokenizer(model)
        count = counter_of(tokenizer)
        return cls(count, tokenizer, "") if count else cls(count_bytes, None, why)

    def template(self, model: PlannedModel) -> ChatTemplate | None:
        """The chat template as a run would apply it; None where none is applied or known."""
        applied = model.content.get("apply_chat_template", True)
        if not applied or not getattr(self.loaded, "chat_template", None):
            return None
        switches = dict(model.arguments.get("chat_template_args") or {})
        # lm-eval's vllm model always sets this one, to None where nothing is said
        if "enable_thinking" in model.arguments or model.engine in VLLM_MODELS:
            switches["enable_thinking"] = model.arguments.get("enable_thinking")
        return renderer_of(self.loaded, **switches)


def count_bytes(texts: Sequence[str]) -> list[int]:
    """Tokens where no tokenizer is at hand: one for four bytes of UTF-8, or a part of them.

    In English these are four characters; in Chinese, a token is 1.3 characters then, and not four.
    """
    return [-(-len(text.encode(errors="replace")) // BYTES_PER_TOKEN) for text in texts]


def _load_tokenizer(model: PlannedModel) -> tuple[Any, str]:
    """The tokenizer, or None and why."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    try:
        from transformers import AutoTokenizer
    except ImportError:
        return None, f"transformers is not installed ({install_words('hf')})"
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
        return None, str(error).splitlines()[0]


#: Documents of a task whose prompts are counted; of more, they are drawn evenly and the sum is scaled.
COUNTED = 100
#: The command that downloads what is open.
FETCH = "medtasks data fetch"


@dataclass(frozen=True)
class PlannedTask:
    """What a run asks of one task."""

    task: str
    suite: str
    strategy: str
    documents: int
    counted: int  # documents whose prompts were counted
    prompt_tokens: int | None  # of all of them together; None where the rows are not here
    most_output_tokens: int  # if every answer filled its budget
    sample: bool  # whether sample rows were asked for as the data
    own_prompts: bool  # whether its rows are asked with ours, as far as their prompts are on this machine
    missing: str = ""  # how to get rows that are not here


def plan_task(
    registry: Registry, name: str, settings: Settings, count: Counter, template: ChatTemplate | None
) -> PlannedTask:
    """Count one task; `template` is used where the settings ask for it."""
    dataset, strategy = registry.known(name)
    task, missing = _built(registry, name, settings)
    documents = dataset.n_part * dataset.trials if missing else len(task.eval_docs)
    requests = documents * task.repeats
    sample = not missing and task.eval_docs[0]["data"] == "sample"
    step = max(1, len(task.eval_docs) / COUNTED)
    n = 0 if missing else min(COUNTED, len(task.eval_docs))
    chosen = [task.eval_docs[int(index * step)] for index in range(n)]
    sizes = count([str(rendered_prompt(task, item, settings, template)) for item in chosen])
    budget = 0
    if by_likelihood(strategy):  # behind a prompt stand its possible answers, one after another
        options = [sum(count(task.doc_to_choice(item))) for item in chosen]
        sizes = [size + more for size, more in zip(sizes, options, strict=True)]
    else:
        budget = int(task.config.generation_kwargs["max_gen_toks"])
    return PlannedTask(
        task=name,
        suite=dataset.metadata.suite,
        strategy=strategy,
        documents=documents,
        counted=len(chosen),
        prompt_tokens=None if missing else round(requests * fmean(sizes)),
        most_output_tokens=requests * budget,
        sample=sample,
        own_prompts=not sample
        and (not missing or not dataset.suite.files)  # prompts of the authors' rows come with these
        and task.eval_docs[0].loaded.record["instruction"] == "own",
        missing=missing,
    )


def _built(registry: Registry, name: str, settings: Settings) -> tuple[Task, str]:
    """The task with its rows, or with the sample rows and how to get its own."""
    dataset = registry.known(name)[0]
    origin = origin_of(dataset, forced_origin(settings.data))
    missing = where_it_goes(dataset)
    if origin is not None:
        try:
            with _offline():
                return build_task(registry, name, settings), ""
        except MedtasksError:
            if origin in ("local", "sample"):
                raise
        missing = f"{FETCH} {dataset.id}"
    with _offline():
        return build_task(registry, name, replace(settings, data="sample")), missing


@contextmanager
def _offline() -> Iterator[None]:
    """Take downloads from the cache alone: a plan must not fetch gigabytes."""
    from huggingface_hub import constants

    before, variable = constants.HF_HUB_OFFLINE, os.environ.get("HF_HUB_OFFLINE")
    constants.HF_HUB_OFFLINE, os.environ["HF_HUB_OFFLINE"] = True, "1"
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before
        os.environ.pop("HF_HUB_OFFLINE")
        if variable is not None:
            os.environ["HF_HUB_OFFLINE"] = variable
