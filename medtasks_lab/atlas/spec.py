"""What the papers print, as data: a block for each table, figure or claim in `results/reference/figures`."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from pydantic import model_validator

from medtasks_ext.registry.yamlfile import read_yaml
from medtasks_ext.results.published import reference_folder
from medtasks_ext.strict import Strict, validated

if TYPE_CHECKING:
    from pathlib import Path

Statistic = Literal[
    "group_scores",
    "win_rates",
    "restated",
    "trends",
    "families",
    "claims",
    "detectable_effects",
    "costs",
    "departments",
    "levels",
    "joined",
    "experts",
    "clinician_agreement",
    "jury_robustness",
    "judges_by_axis",
    "gains",
    "grid",
    "counts",
    "file_means",
]


class PrintedFigures(Strict):
    """Where a paper's figures stand: a file of `results/reference`."""

    file: str
    where: dict[str, str] = {}  # column -> value of the rows that belong here
    row: str = "model"  # column that names the row
    columns: dict[str, str] = {}  # column of the table -> of the file
    column: str | None = None  # in files with a row per figure: what names the table's column
    value: str = "score"  # and what holds the figure
    interval: list[str] = []  # columns of the ends of the figure's interval


class Claim(Strict):
    """A sentence of the paper that follows from its data."""

    says: str  # in few words
    query: Literal["better", "best", "score", "above", "easier", "sum", "saving"]
    printed: float | str
    strategy: str = "zero_shot"
    than: str = "zero_shot"  # better: the strategy it is compared with
    by_percent: float = 0.0  # better: by more than this
    axis: str = "suite"
    value: str = ""
    model: str = ""  # score: whose
    only: dict[str, str] = {}  # facts of the models that count
    file: str = ""  # above, sum, saving: of results/reference
    where: dict[str, str] = {}
    column: str = ""
    level: float = 0.0
    tasks: tuple[str, ...] = ()  # easier: names of two tasks
    tolerance: float = 0.0  # rounding of the printed figure; a count has none
    contradicted: str = ""  # what in the paper's own data says another figure, where one does

    @model_validator(mode="after")
    def _counts_are_exact(self) -> Claim:
        if self.query in ("better", "above", "easier") and self.tolerance:
            raise ValueError("a count has no tolerance; `contradicted` says which data say otherwise")
        return self


class ModelPair(Strict):
    """Two published models of one family."""

    base: str
    variant: str
    relation: Literal["medical", "reasoning", "generation"]
    source: str
    p: str = ""  # as printed


class Chart(Strict):
    """A picture of an item: which of its columns are drawn, and how."""

    kind: Literal["heat", "dots", "scatter", "bars"]
    name: str = ""  # of the file, where an item has several pictures
    columns: list[str] = []  # all that hold figures, unless some are named
    measure: str = "score"  # what the figures are
    spread: str = ""  # dots: the column that holds the standard deviation
    most: int = 100  # lines that are drawn, the first ones; own ones always
    descending: bool = True  # lines by their first figure; else in the table's order
    digits: int = 1
    x: str = ""  # scatter: the column, or the covariate, along which the models stand
    x_title: str = ""
    logarithmic: bool = False
    y: str = "score"  # scatter: the column of the height
    group: str = ""  # scatter: the covariate that is 0 or 1 and colours
    groups: tuple[str, str] = ("yes", "no")  # what 1 and 0 mean
    cheap: bool = (
        False  # scatter: less of x is better, so that a line joins those that nothing with less beats
    )


class AtlasItem(Strict):
    """One table, figure, or set of claims."""

    title: str
    source: str  # where the paper has it
    statistic: Statistic
    strategies: list[str] = ["zero_shot"]
    axis: str = "suite"
    across: str = ""  # grid: the axis of the columns
    values: dict[str, str] = {}  # the paper's name of a column -> value on the axis, where the titles differ
    average: str = ""  # the column that is the mean over the others
    only: dict[str, str] = {}  # facts of the models that count
    models: list[str] = []  # their names, where only some count
    scale: float = 100.0
    tolerance: float = 0.051
    printed: PrintedFigures | None = None
    claims: list[Claim] = []
    covariates: list[str] = []
    pairs: list[ModelPair] = []
    judges: list[str] = []  # costs: models of the jury, whose printed prices are those of judging
    dataset: str = ""  # experts: whose answers experts compared
    of: dict[str, str] = {}  # joined: column -> the item that it is a column of
    note: str = ""
    pictures: list[Chart] = []

    @property
    def state(self) -> str:
        """What is done with the paper's figures: they are recomputed, restated, or made of own runs."""
        return _STATES.get(self.statistic, "recomputed")


#: what a statistic does with a paper's figures, where it does not recompute them
_STATES: dict[Statistic, str] = {
    "restated": "restated",
    "departments": "of own runs",
    "levels": "of own runs",
    "detectable_effects": "restated, and of own runs",
}


class Atlas(Strict):
    """What one suite's paper prints."""

    items: dict[str, AtlasItem]
    left_out: dict[str, str] = {}  # what data cannot support -> why


@lru_cache(maxsize=1)
def atlases() -> dict[str, Atlas]:
    """Suite -> what its paper prints.

    Raises:
        MedtasksError: a file is none.
    """
    return {path.stem: _read(path) for path in sorted((reference_folder() / "figures").glob("*.yaml"))}


def _read(path: Path) -> Atlas:
    remedy = "results/reference/README.md says what stands there"
    return validated(lambda: Atlas(**read_yaml(path)), "figures", where=path, remedy=remedy)
