"""The papers' tables and figures, recomputed from published data (`results/reference/figures`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from medtasks_ext.registry.strategies import strategy_title
from medtasks_ext.registry.suites import function
from medtasks_ext.report.groups import groups_of, title
from medtasks_ext.results.prices import JUDGE_OUTPUT_TOKENS, Price
from medtasks_ext.results.published import published, reference_folder
from medtasks_ext.stats.agreement import Coefficient, at_least_zero, icc_3k_interval
from medtasks_ext.strict import Strict, read_yaml, validated
from medtasks_ext.suites.scores import figures_of_rivals

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry, Suite
    from medtasks_ext.report.groups import Group
    from medtasks_ext.results.experiments import Entry


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
    descending: bool = True  # lines by their first figure; else in the table's order
    digits: int = 1
    x: str = ""  # scatter: the column, or the covariate, along which the models stand
    x_title: str = ""
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


class PaperModel(NamedTuple):
    name: str
    scores: Mapping[str, Mapping[str, float]]  # strategy -> dataset -> score, 0-1
    groups: Mapping[str, float]  # what the paper prints without scores of tasks
    facts: Mapping[str, str]

    def score(self, group: Group, strategy: str) -> float | None:
        """The mean over a group's tasks; None where it lacks one."""
        scores = self.scores.get(strategy, {})
        if strategy == "zero_shot" and group.name in self.groups:
            return self.groups[group.name]
        weights = group.weights(frozenset(scores) & group.counted)
        if not weights or len(weights) < group.n_tasks:
            return None
        return sum(weight * scores[name] for name, weight in weights.items())

    def covariate(self, name: str) -> float | None:
        """A fact as a number: size as a logarithm, date as a day, what is one of two as 1 or 0."""
        if name == "date":
            return float(date.fromisoformat(self.facts["release_date"]).toordinal())
        if name == "size":
            size = _number(self.facts["parameters_b"])
            return float(np.log10(size)) if isinstance(size, float) else None
        of = {"open": "access", "medical": "domain", "reasoning": "reasoning"}
        return float(self.facts[of[name]] == {"reasoning": "yes"}.get(name, name))


def _scores(entry: Entry, suite: Suite) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for item in entry.experiments.values():
        # what a paper calls zero-shot may ask to reason first
        asked = item.dataset.metadata.published_strategy
        replaced = asked != "zero_shot" and item.strategy == "zero_shot"
        if item.score is not None and suite.lists(item.dataset.key) and not replaced:
            strategy = "zero_shot" if item.strategy == asked else item.strategy
            found.setdefault(strategy, {})[item.dataset.id] = item.score
    return found


class Cell(NamedTuple):
    row: str
    column: str
    printed: float | str | None = None
    recomputed: float | str | None = None

    @property
    def deviation(self) -> float | None:
        if self.printed is None or self.recomputed is None:
            return None
        if isinstance(self.printed, float) and isinstance(self.recomputed, float):
            return abs(self.printed - self.recomputed)
        return 0.0 if self.printed == self.recomputed else float("inf")

    @property
    def best(self) -> float | str | None:
        return self.recomputed if self.printed is None else self.printed


class Data(NamedTuple):
    tasks: Registry
    suite: Suite
    models: Sequence[PaperModel]

    @classmethod
    def of(cls, tasks: Registry, suite: Suite) -> Data:
        assert suite.published
        entries: list[Entry] = function(suite, suite.published.entries)(tasks, suite)
        models = [PaperModel(one.model, _scores(one, suite), one.groups, one.details) for one in entries]
        return cls(tasks, suite, models)


#: a block's figures as the paper prints them, and again: (row, column, figure)
_Printed = Mapping[tuple[str, str], float | str]
_Again = Iterator[tuple[str, str, float | str | None]]


def cells_of(item: Item, data: Data) -> list[Cell]:
    if item.statistic == "joined":
        return _joined(item, data)
    printed = _printed(item)
    if item.statistic == "restated":
        return [Cell(*place, value) for place, value in printed.items()]
    again = _STATISTICS[item.statistic](item, data, printed)
    return [Cell(row, column, printed.get((row, column)), value) for row, column, value in again]


def _printed(item: Item) -> dict[tuple[str, str], float | str]:
    given, found = item.printed, dict[tuple[str, str], float | str]()
    for row in given.rows() if given else ():
        assert given
        pairs = [(name, row[column]) for name, column in given.columns.items()]
        if given.column:
            ends = zip(("low", "high"), given.interval, strict=False)
            pairs = [(row[given.column], row[given.value])]
            pairs += [(f"{row[given.column]}, {end}", row[name]) for end, name in ends]
        found |= {(row[given.row], name): _number(value) for name, value in pairs if value}
    return found


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _groups(item: Item, data: Data, printed: _Printed) -> dict[str, Group]:
    """Column -> the group that it is the mean over; values and titles are read as the paper writes them."""
    columns = {column.lower(): column for _, column in printed}
    named = {value: name for name, value in item.values.items()}
    by_column = {}
    for group in groups_of(data.tasks):
        if (group.suite, group.axis) != (data.suite.id, item.axis):
            continue
        if not group.derived or group.value in named:
            name = named.get(group.value, title(group.axis, group.value))
            by_column[columns.get(name.lower(), name)] = group
    return by_column


def _models(item: Item, data: Data) -> list[PaperModel]:
    return [
        model
        for model in data.models
        if all(model.facts.get(name) == value for name, value in item.only.items())
        and (not item.models or model.name in item.models)
    ]


def _group_scores(item: Item, data: Data, printed: _Printed) -> _Again:
    groups = _groups(item, data, printed)
    for model in _models(item, data):
        values: list[float] = []
        for strategy in item.strategies:
            for name, group in groups.items():
                column = name
                if len(item.strategies) > 1:
                    words = strategy_title(strategy)
                    column = words if len(groups) == 1 else f"{name}, {words}"
                if (value := model.score(group, strategy)) is not None:
                    values.append(value)
                    yield model.name, column, item.scale * value
        if item.average and values:
            yield model.name, item.average, item.scale * float(np.mean(values))


def _win_rates(item: Item, data: Data, printed: _Printed) -> _Again:
    scores = {model.name: model.scores["zero_shot"] for model in _models(item, data)}
    for name, line in figures_of_rivals(scores).items():
        for column, value in line.items():
            yield name, column, float(value)


def _gains(item: Item, data: Data, printed: _Printed) -> _Again:
    [group] = _groups(item, data, printed).values()
    for model in _models(item, data):
        base = model.score(group, "zero_shot")
        for strategy in item.strategies:
            value = model.score(group, strategy)
            if base is not None and value is not None:
                yield model.name, strategy_title(strategy), item.scale * (value - base)


def _counts(item: Item, data: Data, printed: _Printed) -> _Again:
    for name, group in _groups(item, data, printed).items():
        yield name, "tasks", float(len(group.counted))


def _points(item: Item, data: Data, printed: _Printed) -> _Again:
    groups = _groups(item, data, printed)
    [group] = [one for name, one in groups.items() if not item.values or name in item.values]
    for model in _models(item, data):
        if (score := model.score(group, item.strategies[0])) is not None:
            yield model.name, "score", item.scale * score
            yield from ((model.name, name, model.covariate(name)) for name in item.covariates)


def _costs(item: Item, data: Data, printed: _Printed) -> _Again:
    """A jury's cost from the tokens that judges read and wrote, and their prices; a total as the sum."""
    models = {row["model"]: row for row in published(f"{data.suite.id}_models.csv")}
    prices = [Price(*(float(models[name][f"price_{side}_usd_per_mtok_printed"]) for side in ("in", "out")))
              for name in item.judges]  # fmt: skip
    jury: dict[str, float] = {}
    for row in item.printed.rows() if item.printed else ():
        wrote = int(row["judged_documents"]) * JUDGE_OUTPUT_TOKENS  # every judge fills its reply
        jury[row["model"]] = sum(price.of(int(row["jury_tokens"]) - wrote, wrote) for price in prices)
    for name, column in printed:
        parts = [printed[name, part] for part in ("benchmarks", "jury")] if column == "total" else []
        again = sum(part for part in parts if isinstance(part, float)) if parts else None
        yield name, column, jury.get(name) if column == "jury" else again


def _clinician_agreement(item: Item, data: Data, printed: _Printed) -> _Again:
    """ICC(3,k), then its limits, from the value and the number of answers; a mean over pairs gives none."""
    limits: list[tuple[str, str, float | None]] = []
    assert item.printed
    for row in item.printed.rows():
        place, column = row[item.printed.row], row[item.printed.column or ""]
        value, again = float(row[item.printed.value]), Coefficient(None)
        if row["n"]:
            again = at_least_zero(Coefficient(value, *icc_3k_interval(value, int(row["n"]), k=2)))
        yield place, column, None
        limits += [(place, f"{column}, low", again.low), (place, f"{column}, high", again.high)]
    yield from limits


def _joined(item: Item, data: Data) -> list[Cell]:
    """Columns of other tables, side by side: the rows that all of these have."""
    tables = figures_of_suites()[data.suite.id].items
    parts = [
        [cell for cell in cells_of(tables[name], data) if cell.column == column and cell.best is not None]
        for column, name in item.of.items()
    ]
    shared = set.intersection(*({cell.row for cell in cells} for cells in parts))
    return [cell for cells in parts for cell in cells if cell.row in shared]


def check(item: Item, cells: Sequence[Cell]) -> tuple[str, Counter[str]]:
    """How many figures are `printed`, `compared`, and come out `off`, and that in words."""
    deviations = [cell.deviation for cell in cells if cell.deviation is not None]
    n = Counter(printed=sum(cell.printed is not None for cell in cells), compared=len(deviations))
    n["off"] = sum(value > item.tolerance for value in deviations)
    restated = n["printed"] - n["compared"]
    if not n["printed"]:
        return f"{len(cells):,} figures, none printed", n
    if not deviations:
        return f"{restated:,} printed figures restated; no data to recompute them from", n
    words = f"{n['compared'] - n['off']:,} of {n['compared']:,} printed figures come out"
    words += f", at most {max(deviations):.4f} off{f'; {restated:,} more restated' if restated else ''}"
    return f"{'✗' if n['off'] else '✓'} {words}", n


_STATISTICS = {
    one.__name__.removeprefix("_"): one
    for one in (_group_scores, _win_rates, _points, _costs, _clinician_agreement, _gains, _counts)
}
