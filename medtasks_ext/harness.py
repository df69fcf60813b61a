"""All that medtasks takes from lm-eval: no other module imports it.

A name is loaded when it is read first. So a module takes a type for its annotations from here without the
seconds that lm-eval and torch need, and a command that reads results never loads them. What lm-eval renames
or moves is changed in this module alone.
"""

from importlib import import_module
from typing import Any

#: Name -> where lm-eval has it.
NAMES = {
    # what a task is made of
    "Task": "lm_eval.api.task",
    "ConfigurableTask": "lm_eval.api.task",
    "TaskConfig": "lm_eval.config.task",
    "Instance": "lm_eval.api.instance",
    "ContextSampler": "lm_eval.api.samplers",
    "Filter": "lm_eval.api.filter",
    "mean": "lm_eval.api.metrics",
    # models
    "LM": "lm_eval.api.model",
    "get_model": "lm_eval.api.registry",
    "model_registry": "lm_eval.api.registry",
    "register_model": "lm_eval.api.registry",
    "TemplateAPI": "lm_eval.models.api_models",
    "JsonChatStr": "lm_eval.models.api_models",
    "LocalCompletionsAPI": "lm_eval.models.openai_completions",
    "LocalChatCompletion": "lm_eval.models.openai_completions",
    "AzureOpenaiChatCompletionsLM": "lm_eval.models.openai_completions",
    "AnthropicChat": "lm_eval.models.anthropic_llms",
    "VLLM": "lm_eval.models.vllm_causallms",
    "clear_torch_cache": "lm_eval.models.utils_hf",
    "postprocess_generated_text": "lm_eval.models.utils",
    # the evaluation, and the command line
    "evaluate": "lm_eval.evaluator",
    "EvalAcc": "lm_eval.evaluator_utils",
    "aggregate_groups": "lm_eval.evaluator_utils",
    "Group": "lm_eval.api.group",
    "sanitize_list": "lm_eval.utils",
    "EvaluatorConfig": "lm_eval.config.evaluate_config",
    "cli_evaluate": "lm_eval.__main__",
    # not public: the parser of `lm_eval run`, which no public name makes
    "Run": "lm_eval._cli.run",
}
#: Lists of models, which lm-eval fills with its own only while they are empty.
_LISTS = frozenset({"get_model", "model_registry"})


def __getattr__(name: str) -> Any:
    if name not in NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _LISTS:
        import_module("lm_eval.models")
    found = globals()[name] = getattr(import_module(NAMES[name]), name)
    return found
