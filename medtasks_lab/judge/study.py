"""A study that asks models, as its file has it: what is asked, who reads the verdicts, and its tables."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from pydantic import Field, model_validator

from medtasks_ext.judge.asks import requests_of
from medtasks_ext.registry.yamlfile import read_yaml
from medtasks_ext.results.frames import names, table_of
from medtasks_ext.rows.spec import Judging
from medtasks_ext.strict import Strict, validated

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from medtasks_ext.judge.cases import JudgedTask
    from medtasks_ext.judge.jury import Jury
    from medtasks_ext.judge.store import JudgementStore

#: Judges, and what they are asked about.
Panel: TypeAlias = "tuple[Jury, list[JudgedTask]]"
#: Formats of a row's fields; of several the first counts whose fields are all there.
Forms: TypeAlias = str | list[str]


class Spread(Strict):
    """Rows of one figure each, side by side."""

    by: str  # field whose values are the headings
    figure: Forms


class StudyTable(Strict):
    """A printed table of a study, or lines."""

    frame: str  # of the figures: its rows
    title: str = ""
    names: int = 1  # of the columns, those at the left, which hold names
    columns: dict[str, Forms] = Field(default_factory=dict)  # heading -> what stands below
    across: Spread | None = None  # rows that are alike in the columns share a line
    line: Forms = ""  # of each row, where there are no columns
    padded: bool = True  # with a blank at both sides
    note: str = ""  # below it: a format of the figures
    empty: str = ""  # in its place, where it has no rows

    @model_validator(mode="after")
    def _one_of_both(self) -> StudyTable:
        if bool(self.columns) == bool(self.line):
            raise ValueError("needs columns or a line")
        return self


class Continuing(Strict):
    """Texts that a model is to continue, and when it knows one by heart."""

    cuts: list[int]  # tokens before which a text is cut
    predicted: int  # tokens that are asked for at each
    threshold: int  # cuts that are continued exactly from which a text is known


class StudyFile(Strict):
    """A study."""

    what: str  # is asked for, in words: `verdicts on references`
    judging: Judging | None = None  # what judges are asked; None where a task says it
    continuing: Continuing | None = None  # what the model under test is asked in place of judges
    reader: str  # dotted name of the function from the frame `verdicts` to figures
    writer: str  # dotted name of the function that writes these into a folder
    tables: list[StudyTable] = Field(default_factory=list)


@lru_cache
def study_file(path: Path) -> StudyFile:
    """Read a study.

    Raises:
        MedtasksError: the file is none.
    """
    remedy = "medtasks_lab/judge/gold.yaml is one"
    return validated(lambda: StudyFile(**read_yaml(path)), "study", where=path, remedy=remedy, first=True)


def verdicts_of(panels: Sequence[Panel], store: JudgementStore) -> pa.Table:
    """The frame `verdicts`: what judges have said of the cases that they are asked about."""
    rows: list[tuple[str | float | None, ...]] = []
    unreadable = store.unreadable
    asked = ((jury, task, case) for jury, tasks in panels for task in tasks for case in task.cases)
    for jury, task, case in asked:
        done, asks = requests_of(task, case, jury, store)
        of = (task.name, case.document)
        rows += [(*of, item.request.judge, *rated) for item in done for rated in item.ratings.items()]
        rows += [(*of, ask.request.judge, None, None) for ask in asks if ask.key in unreadable]
    return table_of("verdicts", (dict(zip(names("verdicts"), row, strict=True)) for row in rows))


def ratings_in(verdicts: pa.Table) -> dict[tuple[str, str], dict[str, dict[str, float]]]:
    """(task, document) -> judge -> item -> rating; no item of a judge whose reply holds no verdict."""
    ratings: dict[tuple[str, str], dict[str, dict[str, float]]] = {}
    for row in verdicts.to_pylist():
        items = ratings.setdefault((row["task"], row["document"]), {}).setdefault(row["judge"], {})
        if row["item"] is not None:
            items[row["item"]] = row["rating"]
    return ratings
