"""HELM's adapters: the instruction, the input, the choices and the cue of an answer, in one user turn.

What an adapter says stands in the run specs. How the helper functions for adapters fill what a run spec
leaves out is written out here, since it is code, not wording (`common_adapter_specs.py`, `adapter_spec.py`).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any

from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts.official.folding import Source, Template, constant

_CHOICE, _GENERATION = "get_multiple_choice_adapter_spec", "get_generation_adapter_spec"


@dataclass(frozen=True)
class Adapter:
    """How an instance becomes a prompt."""

    instructions: Template  # the text before everything, with slots
    input_prefix: str  # stands before the input
    input_suffix: str  # stands after it
    output_prefix: str  # the cue of the answer
    chooses: bool  # whether the choices are listed

    def prompt(self, instructions: str, text: str, references: Sequence[str]) -> str:
        """The prompt of an instance.

        Args:
            instructions: the instruction with its slots filled.
            references: the choices, in their order.
        """
        example = self.input_prefix + text + self.input_suffix
        if self.chooses:
            lines = zip(ascii_uppercase, references, strict=False)
            example += "".join(f"{letter}. {reference}\n" for letter, reference in lines)
        example += self.output_prefix.rstrip()
        return f"{instructions}\n\n{example}" if instructions else example


def read_adapter(specs: Source, name: str, slots: Collection[str]) -> Adapter:
    """The adapter of a run spec.

    Args:
        specs: the file of run specs.
        name: as the run spec is registered.
        slots: names that rows fill in.

    Raises:
        MedtasksError: there is no such run spec, or it builds its adapter otherwise.
    """
    function = specs.decorated(name)
    calls = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in (_CHOICE, _GENERATION)
    ]
    if len(calls) != 1 or calls[0].args:
        raise MedtasksError(
            f"{name} builds its adapter in another way than expected",
            where=specs.where,
            remedy="use the version that suite.yaml pins",
        )
    said = {item.arg: item.value for item in calls[0].keywords if item.arg}
    helper = ast.unparse(calls[0].func)

    def plain(key: str, otherwise: Any) -> Any:
        return ast.literal_eval(said[key]) if key in said else otherwise

    def noun(key: str) -> str | None:
        value = said.get(key)
        if value is None or (isinstance(value, ast.Constant) and value.value is None):
            return None
        return specs.fold_in(function, value, ()).text

    instructions = constant("")
    if "instructions" in said:
        instructions = specs.fold_in(function, said["instructions"], slots)
    shape = _choice if helper == _CHOICE else _generation
    before, after, cue = shape(noun("input_noun"), noun("output_noun"), plain)
    return Adapter(
        instructions,
        before,
        after,
        cue,
        chooses=helper == _CHOICE,
    )


def _choice(before: str | None, cue: str | None, plain: Callable[[str, Any], Any]) -> tuple[str, str, str]:
    return ("", "", f"{cue}: ") if before is None else (f"{before}: ", "\n", f"{cue}: ")


def _generation(
    before: str | None, cue: str | None, plain: Callable[[str, Any], Any]
) -> tuple[str, str, str]:
    def prefix(noun: str | None, key: str) -> str:
        return "" if noun is None else f"{noun}:" + ("\n" if plain(key, False) else " ")

    return prefix(before, "newline_after_input_noun"), "\n", prefix(cue, "newline_after_output_noun")
