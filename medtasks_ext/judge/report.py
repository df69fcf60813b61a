"""Tables of a jury's agreement: between judges, and of judges on axes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from medtasks_ext.atomic import write_text
from medtasks_ext.jsonfile import write_json
from medtasks_ext.judge.protocol import N_ASSESSORS
from medtasks_ext.results.frames import records, table_of
from medtasks_ext.runs.folder import RunFolder
from medtasks_ext.stats import agreement
from medtasks_ext.tables import csv_lines

if TYPE_CHECKING:
    import pyarrow as pa

    from medtasks_ext.judge.cases import JudgedTask
    from medtasks_ext.judge.scores import DocumentScore

#: a run's judged tasks, with the scores of their answers
Scored: TypeAlias = Sequence[tuple["JudgedTask", Sequence["DocumentScore"]]]
ALL = "all tasks"
COMPOSITE, POOLED = "mean of axes", "all axes"


class Figure(NamedTuple):
    """A row of the frame `agreement`, which says what its columns mean."""

    table: str
    task: str
    between: str  # joined by ` + `
    item: str
    measure: str
    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0


def _scopes(scored: Scored) -> Iterator[tuple[str, Scored]]:
    """Each task, and then all tasks of a protocol: ratings under different protocols are not on one scale."""
    by_protocol: dict[str, dict[str, list[tuple[JudgedTask, Sequence[DocumentScore]]]]] = {}
    for task, scores in scored:
        tasks = by_protocol.setdefault(task.rubric.judging.protocol, {})
        tasks.setdefault(task.name, []).append((task, scores))
    for protocol, tasks in by_protocol.items():
        yield from tasks.items()
        if len(tasks) > 1:
            every = [pair for pairs in tasks.values() for pair in pairs]
            yield ALL if len(by_protocol) == 1 else f"{ALL} ({protocol})", every


def judge_figures(scored: Scored, judges: Sequence[str]) -> list[Figure]:
    """Agreement of all pairs of judges, and of all together, per task and over all tasks.

    Spearman and ICC(3,k) compare composites (mean of a judge's axes), the latter after z-scoring per
    judge; kappa compares the ratings themselves, per axis and over all axes.
    """
    figures = []
    for name, members in _scopes(scored) if len(judges) > 1 else ():
        adjudicated = members[0][0].rubric.protocol.dispute_above is not None
        raters = judges[:N_ASSESSORS] if adjudicated else judges
        for pair in combinations(raters, 2):
            figures += _pair(name, pair, members)
        if len(raters) > 2:
            icc = agreement.icc_of_raters(_shared(raters, members))
            figures.append(Figure("judges", name, " + ".join(raters), COMPOSITE, "ICC(3,k)", *icc))
    return figures


def _shared(judges: Sequence[str], members: Scored) -> dict[str, dict[str, float]]:
    """Judge -> document -> composite, over the documents that all of these judges rated."""
    shared: dict[str, dict[str, float]] = {}
    for task, scores in members:
        for item in scores:
            if item.ratings().keys() >= set(judges):
                composites = item.composites()
                for judge in judges:
                    shared.setdefault(judge, {})[f"{task.name} {item.case.document}"] = composites[judge]
    return shared


def _pair(name: str, pair: tuple[str, str], members: Scored) -> list[Figure]:
    between = " + ".join(pair)
    shared = _shared(pair, members)
    values = [list(shared.get(judge, {}).values()) for judge in pair]
    rho = agreement.rank_correlation(*values, least=2).value
    figures = [
        Figure("judges", name, between, COMPOSITE, "Spearman", rho, n=len(values[0])),
        Figure("judges", name, between, COMPOSITE, "ICC(3,k)", *agreement.icc_of_raters(shared)),
    ]
    scale = sorted({number for task, _ in members for number in task.rubric.protocol.numbers})
    rated_by = [item.ratings() for _, scores in members for item in scores]
    both = [ratings for ratings in rated_by if ratings.keys() >= set(pair)]
    axes = list(dict.fromkeys(axis for task, _ in members for axis in task.rubric.axes))
    for item in [*axes, POOLED]:
        rated = [
            (rating, r[pair[1]][axis])
            for r in both
            for axis, rating in r[pair[0]].items()
            if item in (POOLED, axis)
        ]
        one, other = [a for a, _ in rated], [b for _, b in rated]
        for measure, quadratic in (("Cohen's kappa", False), ("quadratic kappa", True)):
            value = agreement.kappa(one, other, scale, quadratic=quadratic)
            figures.append(Figure("judges", name, between, item, measure, value, n=len(rated)))
    return figures


def judge_axis_figures(runs: Mapping[str, Scored], judges: Sequence[str]) -> list[Figure]:
    """Mean and s.d. of each judge's ratings on each axis, per task and over all tasks and runs (MedHELM,
    Extended Data Table 6). The s.d. is the sample's.
    """
    by_axis = [
        (task, scores)
        for scored in runs.values()
        for task, scores in scored
        if not task.rubric.judging.points and any(item.ratings() for item in scores)
    ]
    figures = []
    for name, members in _scopes(by_axis):
        rated: dict[tuple[str, str], list[float]] = {}  # judge, axis -> ratings
        for item in (item for _, scores in members for item in scores):
            for judge, ratings in item.ratings().items():
                for axis, rating in ratings.items():
                    rated.setdefault((judge, axis), []).append(rating)
        for judge, axis in product(judges, dict.fromkeys(axis for _, axis in rated)):
            if values := rated.get((judge, axis)):
                sd, n = stdev(values) if len(values) > 1 else None, len(values)
                figures.append(Figure("judge_axes", name, judge, axis, "mean", fmean(values), n=n))
                figures.append(Figure("judge_axes", name, judge, axis, "s.d.", sd, n=n))
    return figures


def agreement_frame(figures: Sequence[Figure]) -> pa.Table:
    return table_of("agreement", [figure._asdict() for figure in figures])


def write_figures(folder: Path, figures: Sequence[Figure]) -> None:
    """As `judgements/agreement.json` and `.csv` of a run."""
    frame, path = agreement_frame(figures), RunFolder(folder).judgements / "agreement.json"
    write_json(path, records(frame))
    write_text(path.with_suffix(".csv"), "".join(csv_lines(frame)))
