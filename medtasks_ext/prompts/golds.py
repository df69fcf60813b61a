"""The gold answer of a row: as written, and as its answer format reads it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from medtasks_ext.answers import AnswerFormat, GoldError, UnknownValueError
from medtasks_ext.errors import RowError

if TYPE_CHECKING:
    from collections.abc import Collection

    from medtasks_ext.registry import Dataset
    from medtasks_ext.rows.fields import ReadRow
    from medtasks_ext.rows.files import Row
    from medtasks_ext.rows.spec import DatasetSpec

log = logging.getLogger(__name__)


class Golds:
    """The gold answers of a dataset's rows."""

    def __init__(
        self, dataset: Dataset, spec: DatasetSpec, answers: AnswerFormat, columns: Collection[str]
    ) -> None:
        self.dataset, self.spec, self.answers = dataset, spec, answers
        self._columns = columns  # from which targets are made
        self._warned = False

    def of(self, row: ReadRow, target: str | None, values: Row) -> tuple[str, Any]:
        """The target and the parsed gold of a row; ("", None) where it has none and needs none.

        Args:
            row: for messages.
            target: the gold answer as written, if there is one.
            values: what templates see of the row.

        Raises:
            RowError: the gold answer is none of this format.
        """
        if target is None:
            return "", None
        if self.spec.judge and self.spec.judge.points and not target.strip():
            return "", None  # the points decide; a reference is only shown
        try:
            return target, self.answers.read_gold(target, values)
        except UnknownValueError as error:
            if row.instruction is None:
                raise self._bad(row, error) from None
            # the official scorer checks no values, and its own instruction may list others than ours
            if not self._warned:
                self._warned = True  # for the first row that it concerns, not for thousands
                log.warning("%s: %s: %s; accepted as official", self.dataset.id, row.place, error)
            return target, self.answers.read_gold(target, {**values, "any_value": True})
        except GoldError as error:
            raise self._bad(row, error) from None

    def _bad(self, row: ReadRow, error: GoldError) -> RowError:
        return RowError(
            f"{row.named}: gold answer: {error}",
            row=row.place,
            column=next(iter(self._columns)) if len(self._columns) == 1 else None,
            where=row.where,
            remedy="the task's `answer:` block says what a gold answer looks like",
        )
