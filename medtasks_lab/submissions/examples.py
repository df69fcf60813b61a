"""Some answers of a submission beside their questions, where the terms of the rows let these be shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from medtasks_ext.registry.rights import Licence
    from medtasks_ext.runs.records import Sample
    from medtasks_lab.submissions.record import TaskResult
    from medtasks_lab.submissions.rescored import Rebuilt

#: Tasks that have examples, and characters of each text.
MOST_TASKS, LONGEST = 20, 800
_MAY_BE_SHOWN = ("any", "share-alike")


@dataclass(frozen=True)
class Example:
    """An answer to one document.

    Attributes:
        question: the row as it was asked; empty where it cannot be told from words of the suite's authors.
        terms: of the row.
    """

    task: str
    terms: str
    question: str
    answer: str
    gold: str
    score: float


def may_be_shown(licence: Licence) -> bool:
    """Whether terms let a row be repeated elsewhere, with its source."""
    return licence.use in _MAY_BE_SHOWN


def examples_of(task: str, item: TaskResult, found: Rebuilt) -> list[Example]:
    """The document with the highest score and the one with the lowest, the first of each.

    Args:
        task: its name.
        item: what the submission says of it.
        found: its documents with their answers.

    Returns:
        None of a task whose terms do not let its rows be shown, or whose documents have no score.
    """
    licence = found.dataset.metadata.licence
    if not may_be_shown(licence):
        return []
    scored = [(score, sample) for sample in found.samples if (score := _score(sample)) is not None]
    if not scored:
        return []
    best = max(scored, key=lambda pair: pair[0])
    worst = min(scored, key=lambda pair: pair[0])
    chosen = [best] if best[0] == worst[0] else [best, worst]
    said = item.conditions.asked.wording.kind == "official"
    return [
        Example(
            task,
            " ".join(filter(None, (licence.title, licence.place))),
            "" if said and not sample["doc"].get("system") else _cut(sample["doc"]["prompt"]),
            _cut(str(sample["resps"][0][0])),
            _cut(str(sample["target"])),
            score,
        )
        for score, sample in chosen
    ]


def _score(sample: Sample) -> float | None:
    """What a document contributed; of several runs, the last."""
    value = sample.get("score")
    value = value[-1] if isinstance(value, (list, tuple)) and value else value
    return float(value) if isinstance(value, (int, float)) else None


def _cut(text: str) -> str:
    """A text without its middle, where it is long: questions often end in what they ask."""
    half = LONGEST // 2
    return text if len(text) <= LONGEST else f"{text[:half]} […] {text[-half:]}"
