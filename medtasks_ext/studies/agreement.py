"""Agreement of a jury: between judges, on axes, and with clinicians (MedHELM).

A jury, ROUGE-L and BERTScore-F stand beside clinicians. All sources are compared on the same answers, by
the mean of their axes, z-scored per rater. An ICC below 0 counts as 0: it has no lower bound, so one pair
with two answers could outweigh all others. What makes an answer "much" nearer, the paper does not say.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from medtasks_ext.atomic import write_text
from medtasks_ext.errors import MedtasksError, some
from medtasks_ext.jsonfile import write_json
from medtasks_ext.judge.cases import JudgedTask, response_hash
from medtasks_ext.judge.protocol import N_ASSESSORS
from medtasks_ext.judge.scores import DocumentScore
from medtasks_ext.metrics.generation import bertscore_values, rouge_scores
from medtasks_ext.results.frames import records, table_of
from medtasks_ext.runs.folder import RunFolder
from medtasks_ext.stats import agreement
from medtasks_ext.stats.intervals import of_shares
from medtasks_ext.tables import csv_lines, read_sheet

#: a run's judged tasks, with the scores of their answers
Scored: TypeAlias = Sequence[tuple[JudgedTask, Sequence[DocumentScore]]]
#: (run folder, task, document) -> rater -> axis -> score
Ratings = dict[tuple[str, str, str], dict[str, dict[str, float]]]
#: rater -> answer -> mean of the axes, or a metric's value
_Composites = Mapping[str, Mapping[str, float]]

COLUMNS = ("task", "document", "rater", "axis", "score")
ALL = "all tasks"
COMPOSITE, POOLED = "mean of axes", "all axes"
PEOPLE, JURY, ROUGE, BERTSCORE = "clinicians", "jury", "ROUGE-L", "BERTScore-F"
ICC, PAIRWISE_ICC, SPEARMAN = "ICC(3,k)", "mean pairwise ICC(3,k)", "Spearman"
NEARER, MUCH_NEARER = "nearer to clinicians", "much nearer to clinicians"
#: "Much" is by more than this, in standard deviations.
MUCH = 0.5
#: Bounds of the clinicians' mean on 0-1; moderate is 3 to 4 on a scale of 1 to 5 (MedHELM, Results).
LEVELS = {"all": (0.0, 1.0), "low": (0.0, 0.5), "moderate": (0.5, 0.75), "high": (0.75, 1.0)}


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


def write_figures(folder: Path, figures: Sequence[Figure]) -> None:
    """As `judgements/agreement.json` and `.csv` of a run."""
    frame = table_of("agreement", [figure._asdict() for figure in figures])
    write_json(path := RunFolder(folder).judgements / "agreement.json", records(frame))
    write_text(path.with_suffix(".csv"), "".join(csv_lines(frame)))


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
    figures: list[Figure] = []
    for name, members in _scopes(scored) if len(judges) > 1 else ():
        adjudicated = members[0][0].rubric.protocol.dispute_above is not None
        raters = tuple(judges[:N_ASSESSORS] if adjudicated else judges)
        scale = sorted({number for task, _ in members for number in task.rubric.protocol.numbers})
        axes = list(dict.fromkeys(axis for task, _ in members for axis in task.rubric.axes))
        for group in (*combinations(raters, 2), *[raters] * (len(raters) > 2)):
            shared = dict[str, dict[str, float]]((judge, {}) for judge in group)
            rated: list[tuple[str, list[float]]] = []  # axis, what each judge rated it
            for task, said in ((task, item) for task, scores in members for item in scores):
                if (by := said.ratings()).keys() >= set(group):
                    rated += [(axis, [by[judge][axis] for judge in group]) for axis in by[group[0]]]
                    composites = said.composites()
                    for judge in group:
                        shared[judge][f"{task.name} {said.case.document}"] = composites[judge]
            between, of_all = " + ".join(group), agreement.icc_of_raters(shared)
            icc = Figure("judges", name, between, COMPOSITE, ICC, *of_all)
            if len(group) > 2:
                figures.append(icc)
                continue
            one, other = (list(of.values()) for of in shared.values())
            rho = agreement.rank_correlation(one, other, least=2).value
            figures += [Figure("judges", name, between, COMPOSITE, SPEARMAN, rho, n=len(one)), icc]
            for item in [*axes, POOLED]:
                pairs = [pair for axis, pair in rated if item in (POOLED, axis)]
                for measure, quadratic in (("Cohen's kappa", False), ("quadratic kappa", True)):
                    sides = [a for a, _ in pairs], [b for _, b in pairs]
                    value = agreement.kappa(*sides, scale, quadratic=quadratic)
                    figures.append(Figure("judges", name, between, item, measure, value, n=len(pairs)))
    return figures


def judge_axis_figures(runs: Mapping[str, Scored], judges: Sequence[str]) -> list[Figure]:
    """Mean and s.d. of each judge's ratings on each axis, per task and over all tasks and runs (MedHELM,
    Extended Data Table 6). The s.d. is the sample's.
    """
    by_axis = [pair for scored in runs.values() for pair in scored if not pair[0].rubric.judging.points]
    figures: list[Figure] = []
    for name, members in _scopes(by_axis):
        rated: dict[tuple[str, str], list[float]] = {}  # judge, axis -> ratings
        for item in (item for _, scores in members for item in scores):
            for judge, ratings in item.ratings().items():
                for axis, rating in ratings.items():
                    rated.setdefault((judge, axis), []).append(rating)
        for judge, axis in product(judges, dict.fromkeys(axis for _, axis in rated)):
            if values := rated.get((judge, axis)):
                place, sd = ("judge_axes", name, judge, axis), stdev(values) if len(values) > 1 else None
                figures.append(Figure(*place, "mean", fmean(values), n=len(values)))
                figures.append(Figure(*place, "s.d.", sd, n=len(values)))
    return figures


def clinician_figures(runs: Mapping[str, Scored], ratings: Ratings) -> list[Figure]:
    """Agreement with clinicians, per task and over all, and by answer quality (Extended Data Table 4)."""
    tasks = list(dict.fromkeys(task for _, task, _ in ratings))
    scopes = {name: {name} for name in tasks} | ({ALL: set(tasks)} if len(tasks) > 1 else {})
    figures: list[Figure] = []
    for name, members in scopes.items():
        found = {
            (run, task.name, item.case.document): (item, task.rubric.protocol)
            for run, scored in runs.items()
            for task, scores in scored
            for item in scores
            if task.name in members and (run, task.name, item.case.document) in ratings and item.ratings()
        }
        metrics = _metrics({unit: item for unit, (item, _) in found.items()})
        shared = sorted(set(found).intersection(*map(set, metrics.values())))
        key = {unit: " ".join(unit) for unit in shared}
        people = agreement.composites((key[unit], ratings[unit]) for unit in shared)
        others: dict[str, _Composites] = {
            JURY: agreement.composites((key[unit], found[unit][0].ratings()) for unit in shared),
            **{metric: {metric: {key[u]: of[u] for u in shared}} for metric, of in metrics.items()},
        }
        for source, composites in others.items():
            icc = agreement.at_least_zero(agreement.group_agreement(people, composites))
            figures.append(Figure("clinicians", name, f"{PEOPLE} + {source}", COMPOSITE, ICC, *icc))
        among = agreement.pairwise_baseline(people)
        figures.append(Figure("clinicians", name, PEOPLE, COMPOSITE, PAIRWISE_ICC, *among))
        quality = {}
        for unit in shared:
            given = [x for by in ratings[unit].values() for x in by.values()]
            quality[key[unit]] = float(np.mean([found[unit][1].normalised(x) for x in given]))
        figures += _by_quality(name, people, others, quality)
    return figures


def _metrics(
    found: Mapping[tuple[str, str, str], DocumentScore],
) -> dict[str, dict[tuple[str, str, str], float]]:
    of = {unit: item.case.texts for unit, item in found.items() if "gold" in item.case.texts}
    texts = {unit: (both["response"], both["gold"]) for unit, both in of.items()}
    rouge = {
        unit: scores["rougeL"]
        for unit, (text, gold) in texts.items()
        if (scores := rouge_scores(text, [gold], "en", stemming=True))
    }
    metrics = {ROUGE: rouge} if rouge else {}
    if texts and has_bertscore():
        metrics[BERTSCORE] = dict(zip(texts, bertscore_values(list(texts.values())), strict=True))
    return metrics


def has_bertscore() -> bool:
    return bool(os.environ.get("MEDTASKS_BERTSCORE"))


def _by_quality(
    name: str, people: _Composites, others: Mapping[str, _Composites], quality: Mapping[str, float]
) -> list[Figure]:
    """Whether the jury or a metric is nearer to the clinicians, and how each goes with them, by quality.

    Means are z-scored anew over the answers, so that a mean of several raters, which varies less, is not
    nearer for that alone.
    """
    means = {
        source: by_answer
        for source, composites in {PEOPLE: people, **others}.items()
        if (by_answer := agreement.mean_by_instance(agreement.z_by_rater(composites)))
    }
    answers = sorted(set.intersection(*map(set, means.values()))) if means else []
    z = {source: agreement.z_scores([by[answer] for answer in answers]) for source, by in means.items()}
    mine = z.pop(PEOPLE, None)
    if mine is None:
        return []
    figures: list[Figure] = []
    for level, (low, high) in LEVELS.items():
        of = np.array([quality[answer] for answer in answers])
        here = (of >= low) & (of <= high)
        if level in ("low", "high"):  # moderate holds its bounds
            here &= of != (high if level == "low" else low)
        if not here.any():
            continue
        far = {source: np.abs(other - mine)[here] for source, other in z.items() if other is not None}
        for source in far:
            rho = agreement.rank_correlation(z[source][here], mine[here])  # type: ignore[index]
            figures.append(Figure("quality", name, source, level, SPEARMAN, *rho))
        for metric in (source for source in far if source != JURY and JURY in far):
            for near, away in ((JURY, metric), (metric, JURY)):
                for measure, margin in ((NEARER, 0.0), (MUCH_NEARER, MUCH)):
                    hits = far[away] - far[near] > margin
                    place, around = ("quality", name, f"{near} rather than {away}"), of_shares(hits)
                    low_end, high_end = (around.low, around.high) if around else (None, None)
                    share = float(hits.mean())
                    figures.append(Figure(*place, level, measure, share, low_end, high_end, len(hits)))
    return figures


def read_ratings(path: Path, runs: Mapping[str, Sequence[JudgedTask]]) -> Ratings:
    """Read ratings, and check them against what was judged; all faults of one kind come in one message.

    A CSV with the columns task, document, rater, axis, score, and run where several are judged; with
    `response` (`response_hash` of judgements), ratings of another answer are refused.
    """
    wanted = (*COLUMNS, "run") if len(runs) > 1 else COLUMNS
    known = {(run, task.name): task for run, tasks in runs.items() for task in tasks}
    given = {Path(run).resolve(): run for run in runs}
    ratings: Ratings = {}
    faults: list[str] = []
    for number, row in read_sheet(path, wanted, remedy=f"the columns are {', '.join(wanted)}"):
        named = (row.get("run") or "").rstrip("/")
        run = next(iter(runs)) if len(runs) == 1 and not named else given.get(Path(named).resolve(), named)
        by_axis = ratings.setdefault((run, row["task"], row["document"]), {}).setdefault(row["rater"], {})
        if fault := _fault(row, run, runs, known.get((run, row["task"]))):
            faults.append(f"line {number}: {fault}")
        elif row["axis"] in by_axis:
            faults.append(f"line {number}: {row['rater']} rates {row['axis']} of {row['document']} twice")
        else:
            by_axis[row["axis"]] = float(row["score"])
    faults = faults or [
        f"{rater} does not rate all axes of {document} of {name}"
        for (run, name, document), by_rater in ratings.items()
        for rater, axes in by_rater.items()
        if len(axes) < len(known[run, name].rubric.axes)
    ]
    if faults or not ratings:
        raise MedtasksError(
            some(faults, 3, "; ") or "no ratings in it",
            where=path,
            remedy="documents are named as in RUN/samples_TASK.jsonl (id, or id#trial); mend the rows",
        )
    return ratings


def _fault(row: Mapping[str, Any], run: str, runs: Mapping[str, Any], task: JudgedTask | None) -> str:
    if run not in runs:
        return f"run {run!r} is not among those given"
    if task is None:
        return f"task {row['task']!r} is not judged in this run"
    case = next((case for case in task.cases if case.document == row["document"]), None)
    if case is None:
        return f"no answer to document {row['document']!r} is in this run"
    if row.get("response") and row["response"] != response_hash(case):
        return f"the answer to {row['document']} is another one than was rated"
    if task.rubric.judging.points:
        return f"{task.name} has scoring points in place of axes (`medtasks study forms --kind points`)"
    if row["axis"] not in task.rubric.axes:
        return f"unknown axis {row['axis']!r} (axes: {', '.join(task.rubric.axes)})"
    low, high = task.rubric.protocol.scale
    try:
        on_scale = low <= float(row["score"] or "") <= high
    except ValueError:
        on_scale = False
    if not on_scale:
        return f"score {row['score']!r} is not on the scale {low:g} to {high:g}"
    return "" if row["rater"] else "no rater"
