"""The templates of a task's prompt; what a row lacks is a fault of the row."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import jinja2

from medtasks_ext.errors import RowError
from medtasks_ext.privacy import what_happened
from medtasks_ext.rows.expressions import Template

if TYPE_CHECKING:
    from medtasks_ext.rows.fields import ReadRow
    from medtasks_ext.rows.files import Row


class PromptTemplate:
    """One template of a task.

    Attributes:
        name: its key below `prompt`, or `question` of a judge.
    """

    def __init__(self, name: str, text: str, file: Path) -> None:
        self.name, self.compiled = name, Template(text, file)

    def variables(self) -> frozenset[str]:
        """The names that the template reads."""
        return self.compiled.variables()

    def of(self, row: ReadRow, values: Row) -> str:
        """The rendered text.

        Args:
            row: for messages.
            values: what the template sees.

        Raises:
            RowError: the row lacks what the template reads.
            MedtasksError: the template does what the sandbox forbids.
        """
        try:
            return self.compiled.render(values)
        except (jinja2.UndefinedError, TypeError, ValueError, KeyError) as error:
            what = what_happened(error, self.compiled.text)
            raise RowError(
                f"prompt.{self.name} cannot be rendered for {row.place}: {what}",
                row=row.place,
                where=row.where,
                remedy="the row lacks a field that the template uses, or holds a value that is not foreseen",
            ) from None
