"""The sentence by which instructions ask for the answer at once, and the one that takes its place."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from medtasks_ext.prompts.official import artefacts
from medtasks_ext.prompts.official.choice import had
from medtasks_ext.prompts.official.folding import Source
from medtasks_ext.registry.official import Artefact, StrategyLines, SuiteOfficial


@dataclass(frozen=True)
class Swap:
    """The sentences of both kinds, in the same order."""

    answer: tuple[str, ...]  # ask for the answer at once
    reason: tuple[str, ...]  # ask to reason first

    def to_reason(self, instruction: str) -> str | None:
        """The instruction with reasoning asked for; None where it has no sentence to swap."""
        return _swapped(instruction, self.answer, self.reason)

    def to_answer(self, instruction: str) -> str:
        """The instruction with the answer asked for at once."""
        return _swapped(instruction, self.reason, self.answer) or instruction


def _swapped(text: str, old: tuple[str, ...], new: tuple[str, ...]) -> str | None:
    for sentence, other in zip(old, new, strict=True):
        if sentence in text:
            return text.replace(sentence, other)
    return None


def official_swap(suite: SuiteOfficial | None, *, must: bool, fetch: bool) -> Swap | None:
    """The suite's own sentences; None where it has none, or they cannot be had.

    Args:
        must: whether it is an error that they cannot be had.
        fetch: whether they may be downloaded otherwise.

    Raises:
        MedtasksError: as for `choice.had`.
    """
    lines = suite.lines if suite else None
    if lines is None or suite is None:
        return None
    artefact = suite.artefacts[lines.artefact]
    path = had(artefact, must=must, fetch=fetch)
    return _read(artefact, path, lines) if path else None


@lru_cache(maxsize=8)
def _read(artefact: Artefact, path: Path, lines: StrategyLines) -> Swap:
    source = Source(artefacts.read(artefact, path, lines.file), str(path))
    return Swap(tuple(source.texts(lines.answer)), tuple(source.texts(lines.reason)))
