"""HELM: adapters make one user turn of an instance, from run specs and the code that makes instances.

How HELM fills what a run spec leaves out is written out here (`common_adapter_specs.py`, `adapter_spec.py`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import ascii_uppercase
from typing import ClassVar

from pydantic import model_validator

from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import Json
from medtasks_ext.prompts.official import words
from medtasks_ext.prompts.official.folding import FoldedText, PythonSource, constant
from medtasks_ext.registry.blocks import Official, TextLocation
from medtasks_ext.rows.row import Row
from medtasks_ext.strict import Strict

_CHOICE, _GENERATION = "get_multiple_choice_adapter_spec", "get_generation_adapter_spec"
#: In the wheel: the file whose functions build the adapters, and where the code lies that makes instances.
_SPECS, _SCENARIOS = "helm/benchmark/run_specs/medhelm_run_specs.py", "helm/benchmark/scenarios"
_RECORD_DATE = re.compile(r"Record date: (\d{4}-\d{2}-\d{2})")
#: Marks the end of a slot's value while a prompt is made.
_END = "\x00"


class Reasoned(Strict):
    """How reasoning is asked for behind official words, which have no way of their own."""

    after: str  #: the slot with whose value the official words end; the rest asks for an answer at once.
    then: str  #: what follows in our words: a template, which sees the strategy's line as `strategy`.


class OfficialAdapter(Official):
    """An adapter makes the prompt (HELM)."""

    #: what stands in a text, as its source writes it -> its value: a Jinja expression over the row, or a
    #: template if it has braces, as `input` and `references` may be.
    slots: dict[str, str] = {}
    adapter: str  #: name of the run spec that builds the adapter.
    wrapper: TextLocation | None = None  #: the text into which the row is put before the adapter gets it.
    input: str | None = None  #: what the adapter gets where there is no wrapper.
    pieces: dict[str, TextLocation] = {}  #: name -> further texts, which templates call: `{{ persona() }}`.
    tables: list[str] = []  #: dictionaries of the wrapper's file that expressions read.
    #: the choices: labels, or an expression for a list.
    references: list[str] | str | TextLocation | None = None
    line_ends: bool = False  #: whether the official code reads CR LF as LF.
    #: how reasoning is asked for behind these words; in our words alone where nothing is said.
    reasoned: Reasoned | None = None

    @property
    def reasons(self) -> bool:
        return self.reasoned is not None

    @model_validator(mode="after")
    def _one_input(self) -> OfficialAdapter:
        if bool(self.wrapper) == bool(self.input):
            raise ValueError("an adapter gets either `wrapper` or `input`")
        if self.wrapper and not self.wrapper.file:
            raise ValueError("wrapper.file: missing key")
        if self.reasoned and self.reasoned.after not in self.slots:
            raise ValueError(f"reasoned.after: {self.reasoned.after!r} is no slot")
        return self


def record_date(text: str) -> str:
    """The date of a note's line `Record date:`; nothing where it has none."""
    match = _RECORD_DATE.search(text)
    return match[1] if match else ""


def without_end_quotes(text: str) -> str:
    return text.rstrip('"').rstrip()


class _Filling(words.Filling):
    environment: ClassVar = words.strict_sandbox(
        {"record_date": record_date, "without_end_quotes": without_end_quotes}
    )
    line_ends = False  # whether CR LF is read as LF
    marked: str | None = None  # the slot whose end is marked

    def slot(self, name: str) -> str:
        return super().slot(name) + (_END if name == self.marked else "")

    def text(self, said: str) -> str:
        return self.ends(super().text(said))

    def ends(self, text: str) -> str:
        return text.replace("\r\n", "\n").replace("\r", "\n") if self.line_ends else text


@dataclass(frozen=True)
class Adapter:
    instructions: FoldedText  # the text before everything, with slots
    input_prefix: str  # stands before the input
    input_suffix: str  # stands after it
    output_prefix: str  # the cue of the answer
    chooses: bool  # whether the choices are listed

    def prompt(self, instructions: str, text: str, references: Sequence[str]) -> str:
        example = self.input_prefix + text + self.input_suffix
        if self.chooses:
            lines = zip(ascii_uppercase, references, strict=False)
            example += "".join(f"{letter}. {reference}\n" for letter, reference in lines)
        example += self.output_prefix.rstrip()
        return f"{instructions}\n\n{example}" if instructions else example


def read_adapter(specs: PythonSource, name: str, slots: Collection[str]) -> Adapter:
    function = specs.decorated(name)
    calls = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in (_CHOICE, _GENERATION)
    ]
    if len(calls) != 1 or calls[0].args:
        what = f"{name} builds its adapter in another way than expected"
        raise MedtasksError(what, where=specs.where, remedy="use the version that suite.yaml pins")
    said = {item.arg: item.value for item in calls[0].keywords if item.arg}
    chooses = ast.unparse(calls[0].func) == _CHOICE

    def noun(key: str) -> str | None:
        value = said.get(key)
        if value is None or (isinstance(value, ast.Constant) and value.value is None):
            return None
        return specs.fold_in(function, value, ()).text

    def prefix(noun: str | None, which: str) -> str:
        key = f"newline_after_{which}_noun"
        ends_line = key in said and ast.literal_eval(said[key])
        return "" if noun is None else f"{noun}:" + ("\n" if ends_line else " ")

    given = said.get("instructions")
    instructions = specs.fold_in(function, given, slots) if given else constant("")
    before, cue = noun("input_noun"), noun("output_noun")
    if chooses:
        prefixes = ("", "") if before is None else (f"{before}: ", "\n")
        return Adapter(instructions, *prefixes, f"{cue}: ", chooses)
    return Adapter(instructions, prefix(before, "input"), "\n", prefix(cue, "output"), chooses)


class AdapterWords:
    """Words of a run spec and of the code that makes its instances (`prompts.official.words.Words`)."""

    #: what `official` of a task's file may say
    Block = OfficialAdapter

    def __init__(self, block: OfficialAdapter, held: Mapping[str, words.Held], where: Path) -> None:
        self.block, self.where = block, where
        ((artefact, path),) = held.values()
        slots = frozenset(block.slots)
        specs = words.source_of(artefact, path, _SPECS)
        self.adapter: Adapter = read_adapter(specs, block.adapter, slots)
        home = block.wrapper.file if block.wrapper else None

        def source(place: TextLocation) -> PythonSource:
            return words.source_of(artefact, path, f"{_SCENARIOS}/{place.file or home}")

        self.wrapper = source(block.wrapper).taken(block.wrapper, slots) if block.wrapper else None
        self.pieces = {name: source(place).taken(place, slots) for name, place in block.pieces.items()}
        listed = block.references
        self.listed = source(listed).listed(listed, slots) if isinstance(listed, TextLocation) else []
        self.tables: Json = {}
        if block.tables and home:
            file = words.source_of(artefact, path, f"{_SCENARIOS}/{home}")
            self.tables = {name: file.table(name) for name in block.tables}
        wrapper = [self.wrapper] if self.wrapper else []
        words.check_slots(
            [self.adapter.instructions, *wrapper, *self.pieces.values(), *self.listed], block, where
        )
        self.origin = words.origin_of(artefact, self.shown())

    def shown(self) -> str:
        text = self.wrapper.shown() if self.wrapper else f"{{{self.block.input}}}"
        said = self.block.references
        references = [x.shown() for x in self.listed] or (said if isinstance(said, list) else [f"{{{said}}}"])
        prompt = self.adapter.prompt(self.adapter.instructions.shown(), text, references)
        return "\n".join([prompt, *(piece.shown() for piece in self.pieces.values())])

    def turn(
        self, fields: Row, place: str, own_input: Callable[[], str], *, reasons: bool = False
    ) -> words.OfficialTurn:
        """The row as one text; where it asks for reasoning, it begins as the one that does not."""
        reasoned = self.block.reasoned if reasons else None
        filling = _Filling(self.block.slots, self.where, fields, place, self.pieces, self.tables)
        filling.line_ends = self.block.line_ends
        filling.marked = reasoned.after if reasoned else None
        text = self.wrapper.filled(filling.slot) if self.wrapper else filling.text(str(self.block.input))
        references = self.block.references
        if isinstance(references, str):
            choices = [filling.ends(str(item)) for item in filling.value(references)]
        else:
            choices = [item.filled(filling.slot) for item in self.listed]
            choices += references if isinstance(references, list) else []
        prompt = self.adapter.prompt(self.adapter.instructions.filled(filling.slot), text, choices)
        if reasoned:
            prompt = f"{prompt.rpartition(_END)[0]}\n\n{filling.text(reasoned.then)}".replace(_END, "")
        return words.OfficialTurn("", prompt, text.replace(_END, ""))
