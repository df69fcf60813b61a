"""Rolling task scores up to groups: a plain mean over tasks, each task counting once.

This is the convention that reproduces the published averages of BRIDGE (Results, Table S3) and of
MLB; a task in several specialties counts fully in each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


@dataclass(frozen=True)
class Row:
    """One line of a roll-up.

    Attributes:
        name: task or group.
        score: mean score of its scored tasks, 0-1; None when there is none.
        valid: mean share of readable answers of its finished tasks.
        n_scored: finished tasks with a score.
        n_tasks: tasks that the group holds.
        n_documents: documents of its finished tasks.
        sample: whether any of it comes from synthetic rows.
    """

    name: str
    score: float | None
    valid: float | None
    n_scored: int
    n_tasks: int
    n_documents: int
    sample: bool

    @property
    def partial(self) -> bool:
        """Whether tasks of the group are missing from the score."""
        return 0 < self.n_scored < self.n_tasks


def roll_up(
    name: str, tasks: Sequence[str], metrics: Mapping[str, Mapping[str, float]], sizes: Mapping[str, int]
) -> Row:
    """The row of a group.

    Args:
        name: of the group.
        tasks: all tasks that it holds.
        metrics: task -> metric -> value, for finished tasks.
        sizes: task -> number of documents, for finished tasks.
    """
    done = [metrics[task] for task in tasks if task in metrics]
    scores = [item["score"] for item in done if "score" in item]
    return Row(
        name=name,
        score=mean(scores),
        valid=mean([item["valid"] for item in done if "valid" in item]),
        n_scored=len(scores),
        n_tasks=len(tasks),
        n_documents=sum(sizes.get(task, 0) for task in tasks),
        sample=any("SAMPLE_DATA" in item for item in done),
    )


def mean(values: Iterable[float]) -> float | None:
    """Arithmetic mean; None of nothing."""
    values = list(values)
    return sum(values) / len(values) if values else None
