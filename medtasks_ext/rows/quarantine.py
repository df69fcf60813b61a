"""Rows of a pinned download that cannot be scored: left out by `rows.exclude`, and counted."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from medtasks_ext.errors import MedtasksError
from medtasks_ext.rows.expressions import Expression

if TYPE_CHECKING:
    from medtasks_ext.rows.files import Row
    from medtasks_ext.rows.spec import Exclusion


class Quarantine:
    """The rows that one split of a download excludes.

    Args:
        exclusions: what is excluded, and why.
        where: the download, for messages.
    """

    def __init__(self, exclusions: list[Exclusion], where: str) -> None:
        self.exclusions, self.where = exclusions, where
        self._found: Counter[int] = Counter()
        self._when = [Expression(item.when, where) if item.when else None for item in exclusions]

    def holds(self, row: Row, number: int, split: str) -> bool:
        """Whether a row is excluded; ids name test rows."""
        for index, (item, when) in enumerate(zip(self.exclusions, self._when, strict=True)):
            by_id = split == "test" and str(row.get("id", number)) in item.ids
            if by_id or (when and when.of_row_or_none(row)):
                self._found[index] += 1
                return True
        return False

    def counts(self, split: str) -> dict[str, int]:
        """Reason -> rows.

        Raises:
            MedtasksError: the download has other rows than those that were excluded.
        """
        for index, item in enumerate(self.exclusions):
            found, most = self._found[index], item.most or len(item.ids)
            if split == "test" and (found > most or (item.ids and found < most)):
                raise MedtasksError(
                    f"{found} test rows are excluded ({item.reason}), {most} were expected",
                    where=self.where,
                    remedy="the download is not what it was: fetch it again (`medtasks data fetch`)",
                )
        return {
            item.reason: self._found[index]
            for index, item in enumerate(self.exclusions)
            if self._found[index]
        }
