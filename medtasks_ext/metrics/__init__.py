"""Parsed answer + gold -> per-document statistics -> score.

A metric never raises on a model's output, whatever it is. `glossary.yaml` says what metrics mean.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks_ext.strict import read_yaml

if TYPE_CHECKING:
    from medtasks_ext.registry import Dataset


@lru_cache(maxsize=1)
def _words() -> dict[str, dict[str, str]]:
    return read_yaml(Path(__file__).with_name("glossary.yaml"))


def rule(dataset: Dataset) -> str:
    """How an answer of the dataset is scored; empty for a task with a scorer of its own."""
    protocols, protocol = _words()["protocols"], (dataset.blocks.get("judge") or {}).get("protocol")
    if protocol in protocols:
        return protocols[protocol]
    function = str(dataset.process_results).removeprefix("!function ")
    return _words()["families"].get(function.removeprefix("medtasks_ext.metrics."), "")


def meanings() -> dict[str, str]:
    """Metric -> what it is, of all metrics but ratings of single judges and axes."""
    return _words()["metrics"]


def rules() -> list[str]:
    return [*_words()["families"].values(), *_words()["protocols"].values()]
