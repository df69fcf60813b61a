"""Whether the model of a plan reasons before it answers: the fact that most decides how long a run takes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from medtasks_ext.batching import BATCHING_MODELS
from medtasks_ext.registry.yamlfile import Config
from medtasks_ext.runner.plan_model import PlannedModel, Tokenizer, known_to_think, ready_files

_PROBE = [{"role": "user", "content": "user probe"}]
#: The switch of chat templates for which lm-eval's models have an argument.
_SWITCH = "enable_thinking"
#: With the switch on, lm-eval demands the mark after which the answer begins.
_ON = {_SWITCH: True, "think_end_token": "</think>"}


@dataclass(frozen=True)
class ReasoningMode:
    """A way to run a model."""

    model: PlannedModel  # with the file that runs it
    thinks: bool  # whether it reasons then
    changes: Config = field(default_factory=dict)  # of the file's `model_args`; None takes a key out

    @property
    def switches(self) -> Config:
        """The changes that a chat template sees."""
        return {key: value for key, value in self.changes.items() if key == _SWITCH}

    @property
    def direct(self) -> bool:
        """Whether a run knows that the model does not reason, and asks with the suites' budgets then."""
        arguments = self.model.arguments or {"pretrained": self.model.name}
        return known_to_think({**arguments, **self.changes}, self.model.metadata) is False

    @property
    def flag(self) -> str:
        """How `medtasks plan` is told to plan it so."""
        return "--thinking" if self.thinks else "--no-thinking"


@dataclass(frozen=True)
class Reasoning:
    """How a model is planned, and how it could also be run."""

    planned: ReasoningMode  # the way that the figures are for
    other: ReasoningMode | None  # the other way; None where only one is known
    why: str  # how it is known, in words


def reasoning_of(model: PlannedModel, tokenizer: Tokenizer, asked: bool | None) -> Reasoning:
    """Find out whether a model reasons.

    Args:
        tokenizer: whose chat template may tell.
        asked: what the user says, who goes before everyone.
    """
    known = _of_ready_files(model) or _of_model(model, tokenizer)
    if asked is None or asked is known.planned.thinks:
        return known
    if known.other:
        return Reasoning(known.other, known.planned, known.why)
    way = ReasoningMode(model, asked)
    return Reasoning(way, known.planned, f"{known.why}; no setting is known that changes it")


def _of_ready_files(model: PlannedModel) -> Reasoning | None:
    """What `model_configs` says of one of its own files."""
    files = ready_files(model.name)
    if model.config not in [file.config for file in files]:
        return None
    own = ReasoningMode(model, model.metadata["thinking"])
    other = next(
        (
            ReasoningMode(file, not own.thinks)
            for file in files
            if file.metadata["thinking"] is not own.thinks
        ),
        None,
    )
    if other is None:
        return Reasoning(own, None, _says(model))
    on, off = (own, other) if own.thinks else (other, own)
    why = (
        f"the model thinks before it answers unless that is switched off ({on.model.config} leaves it on, "
        f"{off.model.config} switches it off)"
    )
    return Reasoning(own, other, why)


def _says(file: PlannedModel) -> str:
    thinks = "thinks" if file.metadata["thinking"] else "does not think"
    return f"by {file.config} the model {thinks} before it answers"


def _of_model(model: PlannedModel, tokenizer: Tokenizer) -> Reasoning:
    """What the model's own file says, or else its chat template."""
    files = ready_files(model.name)
    switched_off = model.arguments.get(_SWITCH) is False
    template = _of_template(model, tokenizer)
    has_switch = switched_off or len(files) > 1 or (template is not None and template.has_switch)
    sure = True
    if "thinking" in model.metadata:
        thinks, why = bool(model.metadata["thinking"]), _says(model)
    elif switched_off:
        thinks, why = False, f"{model.config} switches thinking off"
    elif files:
        thinks, why = files[0].metadata["thinking"], _says(files[0])
    elif template:
        thinks, why, sure = template.thinks, template.why, template.sure
    else:
        thinks, sure = False, False
        why = (
            "no file of model_configs names the model and its chat template is not at hand, so it is assumed "
            "not to think before it answers"
        )
    if sure and not has_switch:
        return Reasoning(ReasoningMode(model, thinks), None, why)
    changes: Config = {}
    if has_switch and model.engine in BATCHING_MODELS:
        changes = {_SWITCH: False} if thinks else {_SWITCH: None} if switched_off else _ON
    return Reasoning(ReasoningMode(model, thinks), ReasoningMode(model, not thinks, changes), why)


@dataclass(frozen=True)
class _Template:
    """What a chat template shows: whether the model thinks, whether that is sure and can be switched."""

    thinks: bool
    why: str
    sure: bool = True
    has_switch: bool = False


def _of_template(model: PlannedModel, tokenizer: Tokenizer) -> _Template | None:
    from medtasks_ext.runner.preflight import TRACES

    if tokenizer.loaded is None:
        return None
    if tokenizer.template(model) is None:
        return _Template(False, "no chat template is applied, as with a base model")
    text = str(tokenizer.loaded.chat_template)
    if _SWITCH in text:
        as_run, off = _rendered(model, tokenizer), _rendered(model, tokenizer, **{_SWITCH: False})
        state = "on unless it is turned off" if as_run != off else "off unless it is turned on"
        return _Template(as_run != off, f"its chat template has {_SWITCH}, {state}", has_switch=True)
    for marks in TRACES:
        for mark in marks:
            if mark in text:
                return _Template(
                    True, f"its chat template holds {mark}, so it is assumed to think", sure=False
                )
    return _Template(False, "its chat template shows no reasoning")


def _rendered(model: PlannedModel, tokenizer: Tokenizer, **switches: Any) -> str:
    template = tokenizer.template(model, **switches)
    try:
        return str(template(_PROBE)) if template else ""
    except Exception:  # templates refuse in their own ways
        return ""
