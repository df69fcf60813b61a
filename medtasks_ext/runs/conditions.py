"""Under which conditions a task's result came about: raw facts, as the run records them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

#: Schema of the record.
SCHEMA = 1


@dataclass(frozen=True)
class Rows:
    """Which rows were asked.

    Attributes:
        origin: local, hub, release or sample.
        revision: pinned revision of a download.
        hash: of the rendered documents and their gold.
        n: documents that were asked.
        n_here: documents of the test file that was read.
        n_of_suite: documents that the suite states.
        rebuilt: whether they come from the source and not from the suite.
    """

    origin: str
    revision: str | None
    hash: str
    n: int
    n_here: int
    n_of_suite: int
    rebuilt: bool


@dataclass(frozen=True)
class Wording:
    """In which words.

    Attributes:
        origin: official or own.
        hash: of the prompt templates, or of the official words.
        artefact: the released file that holds the official words, where rows do not carry them.
        revision: its version or commit.
    """

    origin: str
    hash: str
    artefact: str | None = None
    revision: str | None = None


@dataclass(frozen=True)
class Shots:
    """How many examples, and which.

    Attributes:
        k: in a prompt.
        hash: of the examples as rendered; None without any.
    """

    k: int
    hash: str | None


#: What the chat template is called that the model's file writes out (`metadata.layout`).
LAYOUT = "of the model's file"


@dataclass(frozen=True)
class Layout:
    """How a prompt is laid out.

    Attributes:
        chat_template: applied, or the name of another one; `LAYOUT` for that of the model's file.
        shots_as_turns: whether shots are turns of a conversation.
        system_role: whether instructions stand in the system turn.
        system_instruction: further text of the system turn.
    """

    chat_template: bool | str
    shots_as_turns: bool
    system_role: bool
    system_instruction: str | None


@dataclass(frozen=True)
class Conditions:
    """Everything that can move a score, as far as a run knows it.

    Attributes:
        dataset: its id.
        suite: it belongs to.
        strategy: of the prompt: zero_shot, cot, five_shot.
        budget: tokens that an answer may have.
        context: tokens of prompt and answer together; None where nobody says.
        cut: counts of prompts and answers that did not fit.
        decoding: generation settings but the budget.
        seed: of the model; None where it has none.
        version: of the task's reader and metric, `N-X`.
        engine: lm-eval's type of model.
        served: models that answered, as servers call them.
        versions: of the packages that answers and scores depend on.
    """

    dataset: str
    suite: str
    strategy: str
    rows: Rows
    wording: Wording
    shots: Shots
    layout: Layout
    budget: int
    context: int | None
    cut: Mapping[str, int]
    decoding: Mapping[str, Any]
    seed: int | None
    version: str
    engine: str
    served: tuple[str, ...]
    versions: Mapping[str, str]

    def record(self) -> dict[str, Any]:
        """As it is stored."""
        return {"schema": SCHEMA, **asdict(self)}
