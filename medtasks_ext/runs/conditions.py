"""Under which conditions a task's result came about: raw facts, as the run records them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from medtasks_ext.jsonfile import Json

#: Schema of the record.
SCHEMA = 1


@dataclass(frozen=True)
class Rows:
    """Which rows were asked."""

    origin: str  # local, hub, release or sample
    revision: str | None  # pinned revision of a download
    hash: str  # of the rendered documents and their gold
    n: int  # documents that were asked
    n_here: int  # documents of the test file that was read
    n_of_suite: int  # documents that the suite states
    rebuilt: bool  # whether they come from the source and not from the suite


@dataclass(frozen=True)
class Wording:
    """In which words."""

    origin: str  # official or own
    hash: str  # of the prompt templates, or of the official words
    #: the released file that holds the official words, where rows do not carry them
    artefact: str | None = None
    revision: str | None = None  # its version or commit


@dataclass(frozen=True)
class Shots:
    """How many examples, and which."""

    k: int  # in a prompt
    hash: str | None  # of the examples as rendered; None without any


#: What the chat template is called that the model's file writes out (`metadata.layout`).
LAYOUT = "of the model's file"


@dataclass(frozen=True)
class Layout:
    """How a prompt is laid out."""

    chat_template: bool | str  # applied, the name of another one, or `LAYOUT`
    shots_as_turns: bool  # whether shots are turns of a conversation
    system_role: bool  # whether instructions stand in the system turn
    system_instruction: str | None  # further text of the system turn


@dataclass(frozen=True)
class Conditions:
    """Everything that can move a score, as far as a run knows it."""

    dataset: str  # its id
    suite: str  # it belongs to
    strategy: str  # of the prompt: zero_shot, cot, five_shot
    rows: Rows
    wording: Wording
    shots: Shots
    layout: Layout
    budget: int  # tokens that an answer may have
    context: int | None  # tokens of prompt and answer together; None where nobody says
    cut: Mapping[str, int]  # counts of prompts and answers that did not fit
    decoding: Mapping[str, Any]  # generation settings but the budget
    seed: int | None  # of the model; None where it has none
    version: str  # of the task's reader and metric, `N-X`
    engine: str  # lm-eval's type of model
    served: tuple[str, ...]  # models that answered, as servers call them
    versions: Mapping[str, str]  # of the packages that answers and scores depend on

    def record(self) -> Json:
        """As it is stored."""
        return {"schema": SCHEMA, **asdict(self)}
