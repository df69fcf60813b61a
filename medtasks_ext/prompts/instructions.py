"""Which instruction a row is asked with: its own, the data holder's, or the task's template."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from medtasks_ext.prompts.strategies import official_to_cot, strategy_line
from medtasks_ext.prompts.templates import PromptTemplate

if TYPE_CHECKING:
    from medtasks_ext.registry import Dataset
    from medtasks_ext.rows.fields import ReadRow
    from medtasks_ext.rows.files import Row
    from medtasks_ext.rows.spec import DatasetSpec

log = logging.getLogger(__name__)


class Instructions:
    """The instructions of a dataset's rows under one strategy.

    Attributes:
        strategy: the strategy line.
        wording: whose words were used so far: `own`, `official`, or `official, own strategy line`.
        given: the data holder's own text, if any.
    """

    def __init__(self, dataset: Dataset, spec: DatasetSpec, given: str | None, *, cot: bool) -> None:
        self.dataset, self.given, self.cot = dataset, given, cot
        self.strategy = strategy_line(dataset, cot=cot)
        self.wording = "official" if given else "own"
        self._template = PromptTemplate("instruction", spec.prompt.instruction, dataset.file)
        self._same_for_all = self._template.variables <= {"strategy", "answer_format"}
        self._rendered: str | None = None
        self._warned = False

    def of(self, row: ReadRow, values: Row) -> str:
        """The instruction of a row.

        Args:
            row: the row.
            values: what templates see of it.

        Raises:
            RowError: the row lacks what the template reads.
        """
        if self.given:
            return self._with_strategy(self.given)
        if (own := row.official_instruction) is not None:
            return self._official(own, row)
        if self._rendered is None or not self._same_for_all:
            self._rendered = self._template.of(row, values)
        return self._rendered

    def _official(self, own: str, row: ReadRow) -> str:
        self.wording = "official"
        if not self.cot:
            return own
        self.wording = "official, own strategy line"
        swapped = official_to_cot(own, self.strategy)
        if swapped is None and not self._warned:
            self._warned = True  # for the first row that it concerns, not for thousands
            log.warning("%s: %s keeps the direct prompt under CoT", self.dataset.id, row.place)
        return swapped or own

    def _with_strategy(self, instruction: str) -> str:
        """The data holder's own wording: plain text in which only the strategy line is placed."""
        if "{{ strategy }}" in instruction:
            return instruction.replace("{{ strategy }}", self.strategy)
        return f"{instruction}\n{self.strategy}" if self.cot else instruction
