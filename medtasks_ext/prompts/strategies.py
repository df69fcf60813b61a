"""The one line in which the strategies differ, in the project's own words or the suite's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from medtasks_ext.registry.suites import Lines

if TYPE_CHECKING:
    from medtasks_ext.registry import Dataset

#: Where a suite says nothing else (`strategy_lines` of its `suite.yaml`).
LINES = Lines(
    answer="Reply with nothing but the answer.",
    reason='First reason step by step. Then write "Result:" at the start of a line and after it '
    "nothing but the answer.",
)


def strategy_line(dataset: Dataset, *, cot: bool) -> str:
    """The strategy line of a dataset: its suite's in the dataset's language, else in English, else ours."""
    given = dataset.suite.strategy_lines
    lines = given.get(dataset.metadata.language) or given.get("en") or LINES
    return lines.reason if cot else lines.answer
