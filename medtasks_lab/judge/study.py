"""A study that asks a jury, as its file has it: what is asked, who reads the verdicts, and its tables."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry.yamlfile import read_yaml
from medtasks_ext.rows.spec import Judging
from medtasks_ext.strict import Strict, faults_of

#: What stands where a figure is missing.
MISSING = "–"


class StudyTable(Strict):
    """A printed table of a study."""

    frame: str  # of the figures: its rows
    title: str = ""
    names: int = 1  # of the columns, those at the left, which hold names
    #: heading -> what stands below: formats of a row's fields; the first counts whose fields are all there
    columns: dict[str, str | list[str]] = Field(min_length=1)
    note: str = ""  # below it
    empty: str = ""  # in its place, where it has no rows

    def cells(self, row: Any) -> tuple[str, ...]:
        """What stands in a row."""
        return tuple(_cell([form] if isinstance(form, str) else form, row) for form in self.columns.values())


class StudyFile(Strict):
    """A study."""

    what: str  # judges give, in words: `verdicts on references`
    judging: Judging | None = None  # what they are asked; None where a task says it
    reader: str  # dotted name of the function from verdicts to figures
    writer: str  # dotted name of the function that writes these into a folder
    tables: list[StudyTable] = Field(default_factory=list)


@lru_cache
def study_file(path: Path) -> StudyFile:
    """Read a study.

    Raises:
        MedtasksError: the file is none.
    """
    try:
        return StudyFile(**read_yaml(path))
    except ValidationError as error:
        raise MedtasksError(
            faults_of(error, "study")[0], where=path, remedy="medtasks_lab/judge/gold.yaml is one"
        ) from None


class _Cells(string.Formatter):
    """Formats the fields and properties of a record; a LookupError where one is missing."""

    def get_value(self, key: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        return getattr(args[0], key)

    def format_field(self, value: Any, format_spec: str) -> str:
        if value is None:
            raise LookupError
        return str(super().format_field(value, format_spec))


def _cell(forms: Sequence[str], row: Any) -> str:
    for form in forms:
        with suppress(LookupError):
            return _Cells().vformat(form, (row,), {})
    return MISSING
