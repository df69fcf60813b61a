"""The one line in which the strategies differ, in the project's own words or the suite's."""

from __future__ import annotations

from medtasks_ext.registry import Dataset
from medtasks_ext.registry.suites import Lines
from medtasks_ext.rows.spec import DatasetSpec

#: Answers that are texts of any length: "nothing but the answer" would ask for a short one.
_OPEN = "free_text"

#: Where a suite says nothing else (`strategy_lines` of its `suite.yaml`).
LINES = Lines(
    answer="Reply with nothing but the answer.",
    reason='First reason step by step. Then write "Result:" at the start of a line and after it '
    "nothing but the answer.",
)


def strategy_line(dataset: Dataset, spec: DatasetSpec, *, cot: bool) -> str:
    """The strategy line of a dataset: its own, else its suite's in its language, else in English, else ours.

    Free text that is answered at once has none, unless the dataset says so.

    Args:
        dataset: whose prompt it stands in.
        cot: whether the prompt asks to reason first.
    """
    own = spec.prompt.strategy_lines
    if (line := own.reason if cot else own.answer) is not None:
        return line
    if not cot and spec.answer.get("kind") == _OPEN:
        return ""
    given = dataset.suite.strategy_lines
    lines = given.get(dataset.metadata.language) or given.get("en") or LINES
    return lines.reason if cot else lines.answer
