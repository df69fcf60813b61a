"""What the papers print, as data: a block for each table or figure in `results/reference/figures`."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Literal

from medtasks_ext.results.published import published, reference_folder
from medtasks_ext.strict import Strict, read_yaml, validated


class PrintedFigures(Strict):
    """Where a paper's figures stand: a file of `results/reference`."""

    file: str
    where: dict[str, str] = {}  # column -> value of the rows that belong here
    row: str = "model"  # column that names the row
    columns: dict[str, str] = {}  # column of the table -> of the file
    column: str | None = None  # in files with a row per figure: what names the table's column
    value: str = "score"  # and what holds the figure
    interval: list[str] = []  # columns of the ends of the figure's interval

    def rows(self) -> list[dict[str, str]]:
        return [
            row for row in published(self.file) if all(row[key] == said for key, said in self.where.items())
        ]


class Chart(Strict):
    """A picture of an item: which of its columns are drawn, and how."""

    kind: Literal["heat", "dots", "scatter", "bars"]
    name: str = ""  # of the file, where an item has several pictures
    columns: list[str] = []  # all that hold figures, unless some are named
    measure: str = "score"  # what the figures are
    spread: str = ""  # dots: the column that holds the standard deviation
    most: int = 100  # lines that are drawn, the first ones
    descending: bool = True  # lines by their first figure; else in the table's order
    digits: int = 1
    x: str = ""  # scatter: the column, or the covariate, along which the models stand
    x_title: str = ""
    logarithmic: bool = False
    y: str = "score"  # scatter: the column of the height
    group: str = ""  # scatter: the covariate that is 0 or 1 and colours
    groups: tuple[str, str] = ("yes", "no")  # what 1 and 0 mean
    cheap: bool = False  # scatter: less of x is better: a line joins those that nothing with less beats


class Item(Strict):
    """One table or figure."""

    title: str
    source: str  # where the paper has it
    statistic: Literal["group_scores", "win_rates", "restated", "points", "costs", "joined",
                       "clinician_agreement", "gains", "counts"]  # fmt: skip
    strategies: list[str] = ["zero_shot"]
    axis: str = "suite"
    values: dict[str, str] = {}  # the paper's name of a column -> value on the axis, where the titles differ
    average: str = ""  # the column that is the mean over the others
    only: dict[str, str] = {}  # facts of the models that count
    models: list[str] = []  # their names, where only some count
    scale: float = 100.0
    tolerance: float = 0.051
    printed: PrintedFigures | None = None
    covariates: list[str] = []  # points: facts of the models beside their scores
    judges: list[str] = []  # costs: models of the jury, whose printed prices are those of judging
    of: dict[str, str] = {}  # joined: column -> the item that it is a column of
    note: str = ""
    pictures: list[Chart] = []


class Figures(Strict):
    """What one suite's paper prints."""

    items: dict[str, Item]
    left_out: dict[str, str] = {}  # what data cannot support -> why


@lru_cache(maxsize=1)
def figures_of_suites() -> dict[str, Figures]:
    """Suite -> what its paper prints; MedtasksError where a file is none."""
    remedy, found = "results/reference/README.md says what stands there", {}
    for path in sorted((reference_folder() / "figures").glob("*.yaml")):
        content = read_yaml(path)
        found[path.stem] = validated(partial(Figures.model_validate, content), where=path, remedy=remedy)
    return found
