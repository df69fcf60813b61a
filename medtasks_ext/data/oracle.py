"""What a dataset's gold answers score when they are read as a model's replies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from medtasks_ext.answers import answer_format
from medtasks_ext.answers.filter import ParseAnswer
from medtasks_ext.prompts.documents import Document
from medtasks_ext.registry.functions import function_named

if TYPE_CHECKING:
    from medtasks_ext.registry import Dataset

_MOST = 10_000  # scores that are kept: gold answers are few, or all different


def oracle_score(dataset: Dataset, golds: Sequence[Document]) -> tuple[float | None, float | None]:
    """What the gold answers score, and what they should by the task file.

    Args:
        dataset: says how answers are read and scored.
        golds: documents with gold answers.

    Returns:
        None and None where judges give the score; None in second place where it may be anything.
    """
    metric = next((item for item in dataset.metric_list if item["metric"] == "score"), None)
    if metric is None or not golds or "judge" in dataset.blocks:
        return None, None
    answers, process = ParseAnswer(dataset.blocks["answer"]), _function(dataset.process_results)

    def score(document: Document) -> Any:
        return process(document, answers.apply([[document["target"]]], [document])).get("score")

    scores = list(_scores(golds, score))
    if any(item is None for item in scores):
        return None, None
    aggregation = metric["aggregation"]
    mean = sum(scores) / len(scores) if aggregation == "mean" else float(_function(aggregation)(scores))
    declared = dataset.metadata.oracle_max
    if declared == "unbounded":
        return mean, None
    if declared == "per_document":
        layout = answer_format(dataset.blocks["answer"], where=dataset.file)
        declared = sum(layout.ceiling(item["gold"]) for item in golds) / len(golds)
    return mean, float(declared)


def _scores(documents: Sequence[Document], score: Callable[[Document], Any]) -> Iterator[Any]:
    """The score of each document; those that agree in all that scoring looked at have the same."""
    known: dict[tuple[str, ...], Any] = {}
    looked_at: set[str] = set()
    for document in documents:
        key = tuple([repr(document.get(name)) for name in looked_at])
        if key in known:
            yield known[key]
            continue
        seen = _Watched(document)
        found = score(seen)
        if not seen.looked_at <= looked_at or len(known) == _MOST:
            looked_at |= seen.looked_at
            known.clear()
            key = tuple([repr(document.get(name)) for name in looked_at])
        known[key] = found
        yield found


class _Watched(Document):
    """A document that notes which of its fields are looked at."""

    __slots__ = ("looked_at",)

    def __init__(self, document: Document) -> None:
        super().__init__(document)
        self.looked_at: set[str] = set()
        self.loaded = document.loaded

    def __getitem__(self, name: str) -> Any:
        self.looked_at.add(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        """As a dictionary."""
        self.looked_at.add(name)
        return super().get(name, default)

    def __contains__(self, name: object) -> bool:
        self.looked_at.add(str(name))
        return super().__contains__(name)

    def __iter__(self) -> Iterator[str]:
        self.looked_at.update(super().keys())
        return super().__iter__()

    def keys(self) -> Any:
        """As a dictionary; so for all views."""
        self.looked_at.update(super().keys())
        return super().keys()

    def values(self) -> Any:
        """As a dictionary."""
        self.looked_at.update(super().keys())
        return super().values()

    def items(self) -> Any:
        """As a dictionary."""
        self.looked_at.update(super().keys())
        return super().items()


def _function(value: Any) -> Any:
    return function_named(value) if isinstance(value, str) else value
