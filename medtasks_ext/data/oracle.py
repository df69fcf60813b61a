"""What a dataset's gold answers score when they are read as a model's replies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from medtasks_ext.answers import answer_format
from medtasks_ext.answers.filter import ParseAnswer
from medtasks_ext.prompts.documents import Document
from medtasks_ext.registry.functions import function_named

if TYPE_CHECKING:
    from medtasks_ext.registry import Dataset

_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Oracle:
    score: float
    highest: float | None  # what they should score, by the task file; None: they may score anything
    #: what the task file says that the suite's own reading may lose
    may_lose: float = 0.0
    n_lost: int = 0  # documents that score less than they should

    @property
    def reaches_highest(self) -> bool:
        return self.highest is None or math.isclose(self.score, self.highest, abs_tol=_TOLERANCE)

    def is_enough(self, *, pinned: bool) -> bool:
        """The highest score, or the suite's own reading is known to lose on `pinned` rows, which stay."""
        if self.reaches_highest or self.highest is None:
            return True
        return pinned or self.highest - self.score <= self.may_lose + _TOLERANCE


def oracle_of(dataset: Dataset, golds: Sequence[Document]) -> Oracle | None:
    """What gold answers score, and what they should by the task file; None where judges score."""
    aggregations = {item["metric"]: item["aggregation"] for item in dataset.metric_list}
    if "score" not in aggregations or not golds or "judge" in dataset.blocks:
        return None
    answers, process = ParseAnswer(dataset.blocks["answer"]), _function(dataset.process_results)

    scores = [
        process(document, answers.apply([[document["target"]]], [document])).get("score")
        for document in golds
    ]
    if any(item is None for item in scores):
        return None
    highest = _highest(dataset, golds)
    oracle = Oracle(
        score=_aggregate(aggregations["score"], scores),
        highest=highest,
        may_lose=dataset.metadata.gold_loss,
    )
    if oracle.reaches_highest:
        return oracle
    ways = [_highest(dataset, [document]) or 0.0 for document in golds]
    alone = [_aggregate(aggregations["score"], [one]) for one in scores]
    return replace(oracle, n_lost=sum(one < most - _TOLERANCE for one, most in zip(alone, ways, strict=True)))


def highest_possible(dataset: Dataset, documents: Sequence[Document]) -> float | None:
    """What gold scores by the suite's own reading; None where nothing is lost, or without gold."""
    facts = dataset.metadata
    if facts.oracle_max in (1.0, "unbounded") and not facts.gold_loss:
        return None
    oracle = oracle_of(dataset, [item for item in documents if item["gold"] is not None])
    return oracle.score if oracle and oracle.score < 1 - _TOLERANCE else None


def _aggregate(aggregation: Any, scores: Sequence[Any]) -> float:
    return sum(scores) / len(scores) if aggregation == "mean" else float(_function(aggregation)(scores))


def _highest(dataset: Dataset, golds: Sequence[Document]) -> float | None:
    declared = dataset.metadata.oracle_max
    if declared == "unbounded":
        return None
    if declared == "per_document":
        layout = answer_format(dataset.blocks["answer"], where=dataset.file)
        return float(sum(layout.ceiling(item["gold"]) for item in golds) / len(golds))
    return float(declared)


def _function(value: Any) -> Any:
    return function_named(value) if isinstance(value, str) else value
