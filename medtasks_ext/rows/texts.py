"""The texts of a row's prompt, rendered from the templates of a task file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import jinja2

from medtasks_ext.errors import RowError, near, some
from medtasks_ext.privacy import what_happened
from medtasks_ext.rows.expressions import Template

if TYPE_CHECKING:
    from medtasks_ext.rows.row import ReadRow, Row
    from medtasks_ext.rows.spec import DatasetSpec


class PromptTemplate:
    """One template of a task; `key` is what holds it in the task file: `prompt.input`, `judge.question`."""

    def __init__(self, key: str, text: str, file: Path) -> None:
        self.key, self.compiled = key, Template(text, file, key)

    def variables(self) -> frozenset[str]:
        return self.compiled.variables()

    def of(self, row: ReadRow, values: Row) -> str:
        """Raises RowError: the row lacks what the template reads."""
        try:
            return self.compiled.render(values)
        except (jinja2.UndefinedError, TypeError, ValueError, KeyError) as error:
            what = what_happened(error, self.compiled.text)
            remedy = "the row lacks a field that the template uses, or holds a value that is not foreseen"
            if unknown := sorted(self.variables() - values.keys()):
                what = f"no column or field {unknown[0]!r}{near(unknown[0], values)}"
                remedy = f"name one of: {some([name for name in values if name[0] != '_'], 12)}"
            raise RowError(
                f"{self.key} cannot be rendered for {row.place}: {what}",
                row=row.place,
                where=row.where,
                remedy=remedy,
                cause=f"{self.key} cannot be rendered: {what}",
            ) from None


class Texts(NamedTuple):
    input: str  # the input, without the line that asks for the answer
    asked: str  # the input with that line
    target: str | None  # the gold answer as written; None where the authors left it out


class TextReader:
    """Renders the rows of one dataset for one strategy; with `cot` the prompt ends without a cue."""

    def __init__(self, spec: DatasetSpec, file: Path, *, cot: bool) -> None:
        self._input = PromptTemplate("prompt.input", spec.prompt.input, file)
        cue = "" if cot else spec.prompt.cue
        self._cue = PromptTemplate("prompt.cue", cue, file) if cue else None
        self.target = PromptTemplate("prompt.target", spec.prompt.target, file)
        self._may_lack_gold = spec.rows.official_name is not None

    def read(self, row: ReadRow, values: Row) -> Texts:
        text = asked = self._input.of(row, values)
        if self._cue:
            asked = f"{text}\n{self._cue.of(row, values)}"
        if self._may_lack_gold and not str(values.get("output") or "").strip():
            return Texts(text, asked, None)
        return Texts(text, asked, self.target.of(row, values))
