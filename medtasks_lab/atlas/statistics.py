"""From a block of the atlas to its cells: printed, recomputed from published data, and of own runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from medtasks_ext.registry.strategies import strategy_title
from medtasks_ext.report.axes import title
from medtasks_ext.report.groups import groups_of
from medtasks_ext.results.published import published
from medtasks_ext.stats.agreement import rank_correlation
from medtasks_ext.stats.permutation import paired_test
from medtasks_lab.atlas.cells import Cell, Data, printed_figures
from medtasks_lab.atlas.claims import claimed
from medtasks_lab.atlas.medhelm import SuiteFigures, suite_figures
from medtasks_lab.atlas.models import covariate, marks, published_models
from medtasks_lab.atlas.own_runs import (
    clinician_agreement,
    costs,
    departments,
    detectable_effects,
    experts,
    judges_by_axis,
    jury_robustness,
    levels,
)
from medtasks_lab.atlas.spec import atlases

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from medtasks_ext.registry import Registry, Suite
    from medtasks_ext.report.groups import Group
    from medtasks_lab.atlas.models import PaperModel
    from medtasks_lab.atlas.spec import AtlasItem


def cells_of(item: AtlasItem, data: Data) -> list[Cell]:
    """The cells of a block, row by row."""
    return list(_STATISTICS[item.statistic](item, data))


def _groups(item: AtlasItem, data: Data) -> dict[str, Group]:
    """Column -> the group that it is the mean over; values and titles are read as the paper writes them."""
    printed = {column.lower(): column for _, column in printed_figures(item.printed)}
    named = {value: name for name, value in item.values.items()}
    by_column = {}
    for group in groups_of(data.tasks):
        if (group.suite, group.axis) != (data.suite.id, item.axis):
            continue
        if not group.derived or group.value in named:
            name = named.get(group.value, title(group.axis, group.value))
            by_column[printed.get(name.lower(), name)] = group
    return by_column


def _group_scores(item: AtlasItem, data: Data) -> Iterator[Cell]:
    printed, groups = printed_figures(item.printed), _groups(item, data)
    for model in _models(item, data):
        values: list[float] = []
        for strategy in item.strategies:
            for name, group in groups.items():
                column = name
                if len(item.strategies) > 1:
                    words = strategy_title(strategy)
                    column = words if len(groups) == 1 else f"{name}, {words}"
                value = model.score(group, strategy, whole=not model.own)
                if value is None:
                    continue
                values.append(value)
                beside = printed.get((model.name, column))
                note = model.note(group, strategy)
                yield Cell(model.name, column, beside, item.scale * value, model.own, note)
        if item.average and values:
            beside, value = printed.get((model.name, item.average)), item.scale * float(np.mean(values))
            yield Cell(model.name, item.average, beside, value, model.own)


def published_win_rates(tasks: Registry, suite: Suite) -> dict[str, float]:
    """Win rates of the models that a suite's paper ranks so, by the rule of its table; of other papers none.

    Returns:
        Name in the table -> share of pairs that it wins, 0-1.
    """
    atlas = atlases().get(suite.id)
    items = [item for item in atlas.items.values() if item.statistic == "win_rates"] if atlas else []
    if not items:
        return {}
    lines = _of_rivals(*_rivals(items[0], published_models(tasks, suite)))
    return {name: line.win_rate for name, line in lines.items()}


def _rivals(
    item: AtlasItem, models: Sequence[PaperModel]
) -> tuple[dict[str, Mapping[str, float]], list[str]]:
    """Published models that have all benchmarks, each with its scores; and these benchmarks."""
    scores = {model.name: model.scores["zero_shot"] for model in _chosen(item, models) if not model.own}
    most = max(map(len, scores.values()))
    rivals = {name: own for name, own in scores.items() if len(own) == most}
    return rivals, sorted(set.intersection(*(set(own) for own in rivals.values())))


def _of_rivals(rivals: Mapping[str, Mapping[str, float]], names: Sequence[str]) -> dict[str, SuiteFigures]:
    return suite_figures({name: [own[key] for key in names] for name, own in rivals.items()})


def _models(item: AtlasItem, data: Data) -> list[PaperModel]:
    return _chosen(item, data.models)


def _chosen(item: AtlasItem, models: Sequence[PaperModel]) -> list[PaperModel]:
    return [
        model
        for model in models
        if model.has(item.only) and (model.own or not item.models or model.name in item.models)
    ]


def _win_rates(item: AtlasItem, data: Data) -> Iterator[Cell]:
    """Own runs join one at a time, on the benchmarks that they have."""
    printed = printed_figures(item.printed)
    rivals, names = _rivals(item, data.models)
    for name, line in _of_rivals(rivals, names).items():
        for column, value in vars(line).items():
            yield Cell(name, column, printed.get((name, column)), float(value))
    for model in data.models:
        mine, otherwise = model.scores.get("zero_shot", {}), model.unlike.get("zero_shot", frozenset())
        here = [key for key in names if key in mine]
        alike = [key for key in here if key not in otherwise]
        if not model.own or not here:
            continue
        shared = alike or here
        among = {model.name: [mine[key] for key in shared]}
        among |= {name: [own[key] for key in shared] for name, own in rivals.items()}
        note = marks(len(shared), len(names), not alike)
        for column, value in vars(suite_figures(among)[model.name]).items():
            if alike or not column.startswith("win"):
                yield Cell(model.name, column, None, float(value), own=True, note=note)
            else:
                yield Cell(model.name, column, own=True, note="other conditions")


def _restated(item: AtlasItem, data: Data) -> Iterator[Cell]:
    for (row, column), value in printed_figures(item.printed).items():
        yield Cell(row, column, value)
    if item.axis == "suite":
        return
    for model in data.models:  # columns that are means over tasks: those of own runs
        for name, group in _groups(item, data).items() if model.own else ():
            if (mean := model.score(group, "zero_shot", whole=False)) is not None:
                yield Cell(model.name, name, None, item.scale * mean, True, model.note(group, "zero_shot"))


def _gains(item: AtlasItem, data: Data) -> Iterator[Cell]:
    """Score with a strategy minus the zero-shot score, where a model has both on all tasks."""
    printed = printed_figures(item.printed)
    [group] = _groups(item, data).values()
    for model in _models(item, data):
        base = model.score(group, "zero_shot", whole=not model.own)
        for strategy in item.strategies:
            column, value = strategy_title(strategy), model.score(group, strategy, whole=not model.own)
            if base is None or value is None or model.counted(group, strategy) != model.counted(group):
                continue
            note = model.note(group, strategy)
            beside = printed.get((model.name, column))
            yield Cell(model.name, column, beside, item.scale * (value - base), model.own, note)


def _grid(item: AtlasItem, data: Data) -> Iterator[Cell]:
    """Mean over the published models, and own scores, on the tasks of two values."""
    strategy = item.strategies[0]
    lines, columns = (
        _groups(item.model_copy(update={"axis": axis}), data) for axis in (item.axis, item.across)
    )
    for line, one in lines.items():
        for column, other in columns.items():
            names = sorted(one.counted & other.counted)
            if not names:
                continue
            published = [model for model in _models(item, data) if not model.own]
            means = [_mean_of(model, strategy, names) for model in published]
            known = [value for value in means if value is not None]
            note = f"{len(names)} tasks"
            yield Cell(line, column, None, item.scale * float(np.mean(known)), note=note)
            for model in data.models:
                value = _mean_of(model, strategy, names) if model.own else None
                if value is not None:
                    yield Cell(f"{line}, {model.name}", column, None, item.scale * value, True, note)


def _mean_of(model: PaperModel, strategy: str, names: Sequence[str]) -> float | None:
    scores = model.scores.get(strategy, {})
    return float(np.mean([scores[name] for name in names])) if set(names) <= scores.keys() else None


def _counts(item: AtlasItem, data: Data) -> Iterator[Cell]:
    """Tasks of the suite by the values of an axis; a task with several counts in each."""
    for name, group in _groups(item, data).items():
        yield Cell(name, "tasks", None, float(len(group.counted)))


def _file_means(item: AtlasItem, data: Data) -> Iterator[Cell]:
    """Means over the rows of a file that share row and column."""
    given = item.printed
    assert given is not None and given.column
    by_cell: dict[tuple[str, str], list[float]] = {}
    for row in published(given.file):
        if row[given.value] and all(row[name] == value for name, value in given.where.items()):
            by_cell.setdefault((row[given.row], row[given.column]), []).append(float(row[given.value]))
    for (name, column), values in by_cell.items():
        yield Cell(name, column, None, float(np.mean(values)), note=f"{len(values)} datasets")


def _trends(item: AtlasItem, data: Data) -> Iterator[Cell]:
    """Spearman's correlation of each covariate with the suite's score; the points are rows of their own."""
    strategy = item.strategies[0]
    [group] = [one for name, one in _groups(item, data).items() if not item.values or name in item.values]
    models = [
        (model, score)
        for model in _models(item, data)
        if (score := model.score(group, strategy, whole=not model.own)) is not None
    ]
    for name in item.covariates:
        known = [
            (x, y)
            for model, y in models
            if (x := covariate(model, name, strategy)) is not None
            and (not model.own or model.stands_beside(group, strategy))
        ]
        correlation = rank_correlation(*zip(*known, strict=True)) if known else None
        if correlation is None:
            yield Cell(name, "Spearman", note=f"known of {len(known)} models")
            continue
        yield Cell(name, "Spearman", None, correlation.value)
        if correlation.interval:
            yield Cell(name, "interval_low", None, correlation.interval.low)
            yield Cell(name, "interval_high", None, correlation.interval.high)
        yield Cell(name, "p", None, correlation.p_value)
        yield Cell(name, "models", None, float(correlation.n))
    for model, score in models:
        note = model.note(group, strategy)
        yield Cell(model.name, "score", None, item.scale * score, model.own, note, point=True)
        for name in item.covariates:
            value = covariate(model, name, strategy)
            yield Cell(model.name, name, None, value, model.own, point=True)


def _families(item: AtlasItem, data: Data) -> Iterator[Cell]:
    """Variant minus base, task by task, and over the pairs of a relation."""
    strategy = item.strategies[0]
    by_name = {model.name: model for model in data.models if not model.own}
    by_relation: dict[str, list[tuple[float, float]]] = {}
    [group] = _groups(item, data).values()
    for pair in item.pairs:
        base, variant = by_name[pair.base], by_name[pair.variant]
        names = sorted(group.counted)
        scores = [[model.scores[strategy][name] for name in names] for model in (variant, base)]
        means = variant.score(group, strategy), base.score(group, strategy)
        assert means[0] is not None and means[1] is not None
        row = f"{pair.variant} − {pair.base}"
        yield Cell(row, "difference", None, item.scale * (means[0] - means[1]))
        if pair.p:
            yield Cell(row, "p in the paper, over documents", pair.p)
        yield Cell(row, "better on tasks", None, float(np.sum(np.greater(scores[0], scores[1]))))
        yield Cell(row, "p over tasks", None, paired_test(*scores).p_value)
        by_relation.setdefault(pair.relation, []).append((means[0], means[1]))
    for relation, pairs in by_relation.items():
        first, second = (np.array(side) for side in zip(*pairs, strict=True))
        row = f"{relation}, {len(pairs)} pairs"
        yield Cell(row, "mean difference", None, item.scale * float(np.mean(first - second)))
        yield Cell(row, "better", None, float(np.sum(first > second)))
        yield Cell(row, "p over pairs", None, paired_test(first, second).p_value)


def _claims(item: AtlasItem, data: Data) -> Iterator[Cell]:
    for claim in item.claims:
        published = [model for model in data.models if not model.own]
        recomputed = claimed(claim, published, data.tasks, data.suite)
        yield Cell(claim.says, "claim", claim.printed, recomputed)


def _joined(item: AtlasItem, data: Data) -> Iterator[Cell]:
    """Columns of other tables, side by side: the published rows that all of these have, and own ones."""
    tables = atlases()[data.suite.id].items
    parts = [
        [cell for cell in cells_of(tables[name], data) if cell.column == column and not cell.point]
        for column, name in item.of.items()
    ]
    known = [
        {cell.row for cell in cells if (cell.printed, cell.recomputed) != (None, None)} for cells in parts
    ]
    for cells in parts:
        yield from (cell for cell in cells if cell.own or all(cell.row in rows for rows in known))


_STATISTICS: Mapping[str, Callable[[AtlasItem, Data], Iterator[Cell]]] = {
    "group_scores": _group_scores,
    "win_rates": _win_rates,
    "restated": _restated,
    "trends": _trends,
    "families": _families,
    "claims": _claims,
    "detectable_effects": detectable_effects,
    "costs": costs,
    "departments": departments,
    "levels": levels,
    "joined": _joined,
    "experts": experts,
    "clinician_agreement": clinician_agreement,
    "jury_robustness": jury_robustness,
    "judges_by_axis": judges_by_axis,
    "gains": _gains,
    "grid": _grid,
    "counts": _counts,
    "file_means": _file_means,
}


def largest_deviation(cells: Sequence[Cell]) -> float | None:
    """Of recomputed figures from printed ones; None where there are no such pairs."""
    return max((cell.deviation for cell in cells if cell.deviation is not None), default=None)


@dataclass(frozen=True)
class CheckedClaim:
    """How the printed figures of a block compare with what the data give."""

    printed: int  # figures that the paper prints
    compared: int  # of these, those that were recomputed
    off: tuple[Cell, ...]  # of these, those that came out as another figure
    #: of these, those that are known to contradict the paper's own data
    contradicted: tuple[Cell, ...]

    @property
    def sound(self) -> bool:
        """Whether what was recomputed came out, but for known contradictions."""
        return len(self.off) == len(self.contradicted)

    @property
    def right(self) -> int:
        """How many figures came out as printed."""
        return self.compared - len(self.off)


def checked(item: AtlasItem, cells: Sequence[Cell]) -> CheckedClaim:
    """Compare the printed figures with the recomputed ones, within what rounding allows; counts are exact."""
    allowed = {claim.says: claim.tolerance for claim in item.claims}
    known = {claim.says for claim in item.claims if claim.contradicted}
    off = tuple(
        cell
        for cell in cells
        if cell.deviation is not None and cell.deviation > allowed.get(cell.row, item.tolerance)
    )
    return CheckedClaim(
        sum(cell.printed is not None for cell in cells),
        sum(cell.deviation is not None for cell in cells),
        off,
        tuple(cell for cell in off if cell.row in known),
    )
