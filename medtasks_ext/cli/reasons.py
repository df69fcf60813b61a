"""Whether the model of a command reasons before it answers, on which the budget of its answers depends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from medtasks_ext.cli.words import say
from medtasks_ext.runner.plan_model import PlannedModel, ready_files

if TYPE_CHECKING:
    from medtasks_ext.harness import EvaluatorConfig
    from medtasks_ext.registry import Registry

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

    if arguments.get("enable_thinking") is False:
        return False
    if (said := metadata.get("thinking")) is not None:
        return flag(said, "thinking")
    named = arguments.get("pretrained") or arguments.get("model")
    files = ready_files(str(named)) if named else []
    return bool(files[0].metadata["thinking"]) if files else None


def reasons(config: EvaluatorConfig) -> bool | None:
    """Whether the model of a run reasons before it answers; None where nobody says."""
    return known_to_think(config.model_args, config.metadata)


def context_of(config: EvaluatorConfig) -> int | None:
    """Tokens of prompt and answer that the model takes together; None where nobody says."""
    named = config.model_args.get("pretrained") or config.model_args.get("model")
    content = {"model": config.model, "model_args": config.model_args}
    return PlannedModel(str(named), None, content).context() if named else None


def say_budget(config: EvaluatorConfig, tasks: Registry, names: Iterable[str]) -> None:
    """Say that answers may be longer than in the suites' own runs, where nobody knows the model."""
    from medtasks_ext.runner.evaluate import official_budget

    named = config.model_args.get("pretrained") or config.model_args.get("model")
    fixed = "max_gen_toks" in (config.gen_kwargs or {})
    if (
        named
        and not fixed
        and reasons(config) is None
        and any(official_budget(*tasks.tasks[n]) for n in names if n in tasks.tasks)
    ):
        say(_UNKNOWN)
