"""The command that runs what was planned."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from medtasks_ext.batching import VLLM_MODELS
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import SUFFIX, Registry

if TYPE_CHECKING:
    from medtasks_ext.prompts.official.choice import PromptSource
    from medtasks_ext.registry.yamlfile import Config
    from medtasks_ext.runner.plan_reasoning import ReasoningMode


def task_names(registry: Registry, names: Sequence[str], strategy: str | None, leaves: Sequence[str]) -> str:
    """`--tasks`: the names as given with the suffix of the strategy; the tasks where no such names exist."""
    named = [name + (SUFFIX[strategy] if strategy else "") for name in names]
    try:
        resolved = dict.fromkeys(leaf for group in registry.asked_for(named).values() for leaf in group)
    except MedtasksError:
        resolved = {}
    return ",".join(named if list(resolved) == list(leaves) else leaves)


def run_command_line(
    tasks: str,
    way: ReasoningMode,
    *,
    context: int | None,
    budget: int | None,
    gpus: int | None,
    template: bool | None,
    prompts: PromptSource,
) -> str:
    """The command line.

    lm-eval replaces a key of a file as a whole, so a changed one is written out with all that it holds.

    Args:
        tasks: `--tasks`.
        way: to run the model.
        context: tokens, where the user chose them.
        budget: tokens of an answer, where they are not those of the file or of the task.
        gpus: that work together, where they are not those of the file.
        template: whether the model has a chat template; None where that is not known.
        prompts: whose words.
    """
    model = way.model
    arguments = dict(model.arguments) or {"pretrained": model.name}
    arguments |= way.changes
    if context:
        arguments[model.context_key] = context
    if gpus and model.engine in VLLM_MODELS:
        arguments["tensor_parallel_size"] = gpus
    arguments = {key: value for key, value in arguments.items() if value is not None}
    words = ["medtasks", "run", "--tasks", tasks]
    if model.config:
        words += ["--config", model.config]
    else:
        words += ["--model", model.engine]
    if arguments != model.arguments:
        words += ["--model_args", _joined(arguments)]
    if budget:
        words += ["--gen_kwargs", _joined({**model.decoding, "max_gen_toks": budget})]
    if prompts != "auto":
        words += ["--prompts", prompts]
    line = shlex.join(words)
    if model.config or template is False:
        return line
    return f"{line} --apply_chat_template" if template else f"{line} [--apply_chat_template]"


def _joined(values: Config) -> str:
    """`key=value,…`; as JSON where a value is no plain one."""
    if any(isinstance(value, dict | list) for value in values.values()):
        return json.dumps(values, ensure_ascii=False)
    return ",".join(f"{key}={value}" for key, value in values.items())
