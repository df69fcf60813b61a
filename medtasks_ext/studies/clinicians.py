"""What MedHELM validates its jury with: clinicians' ratings, and references that hold.

A jury, ROUGE-L and BERTScore-F stand beside clinicians. All sources are compared on the same answers, by
the mean of their axes, z-scored per rater. An ICC below 0 counts as 0: it has no lower bound, so one pair
with two answers could outweigh all others. What makes an answer "much" nearer, the paper does not say.

Whether references hold, a jury says, too (arXiv v1, Appendix D and Figure 6): a model flags those that rest
on more than the input, and the scores of answers whose reference is flagged stand beside those of the others.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from medtasks_ext.errors import MedtasksError, some
from medtasks_ext.jsonfile import read_json
from medtasks_ext.judge.cases import Case, JudgedTask, response_hash
from medtasks_ext.judge.report import ALL, COMPOSITE, Figure
from medtasks_ext.metrics.generation import bertscore_values, rouge_scores
from medtasks_ext.stats import agreement
from medtasks_ext.stats.bootstrap import percentile_interval, resampling_weights
from medtasks_ext.stats.intervals import of_shares
from medtasks_ext.studies.said import Said, rubric_of
from medtasks_ext.tables import read_sheet

if TYPE_CHECKING:
    from medtasks_ext.judge.scores import DocumentScore
    from medtasks_ext.runs.folder import RunFolder

COLUMNS = ("task", "document", "rater", "axis", "score")
#: (run folder, task, document) -> rater -> axis -> score
Ratings = dict[tuple[str, str, str], dict[str, dict[str, float]]]

PEOPLE, JURY, ROUGE, BERTSCORE = "clinicians", "jury", "ROUGE-L", "BERTScore-F"
ICC, PAIRWISE_ICC, SPEARMAN = "ICC(3,k)", "mean pairwise ICC(3,k)", "Spearman"
NEARER, MUCH_NEARER = "nearer to clinicians", "much nearer to clinicians"
#: "Much" is by more than this, in standard deviations.
MUCH = 0.5
#: Bounds of the clinicians' mean on 0-1; moderate is 3 to 4 on a scale of 1 to 5 (MedHELM, Results).
LEVELS = {"all": (0.0, 1.0), "low": (0.0, 0.5), "moderate": (0.5, 0.75), "high": (0.75, 1.0)}

#: run -> its judged tasks with the scores of their answers
Scored = Mapping[str, Sequence[tuple["JudgedTask", Sequence["DocumentScore"]]]]
#: rater -> answer -> mean of the axes, or a metric's value
_Composites = Mapping[str, Mapping[str, float]]


def clinician_figures(runs: Scored, ratings: Ratings) -> list[Figure]:
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
    """Over the answers that have a reference; no metric where none has."""
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


def gold_cases(tasks: Iterable[JudgedTask]) -> list[JudgedTask]:
    """The references of runs' judged tasks, each once; tasks without any are left out."""
    rubric = rubric_of("gold")
    by_task: dict[str, JudgedTask] = {}
    seen: set[tuple[str, str]] = set()
    for task in tasks:
        for case in task.cases:
            if "gold" in case.texts and (task.name, case.document) not in seen:
                seen.add((task.name, case.document))
                own = by_task.setdefault(task.name, JudgedTask(task.name, rubric, task.open_access))
                texts = {"question": case.texts["question"], "response": case.texts["gold"]}
                own.cases.append(Case(case.document, case.run, texts, rubric, synthetic=case.synthetic))
    return list(by_task.values())


def gold_tables(
    tasks: Sequence[JudgedTask], said: Said, runs: Mapping[str, RunFolder]
) -> dict[str, list[dict[str, Any]]]:
    """`flags`, `tasks`: references that more judges doubt than accept; `scores`: the jury's by these."""
    tables: dict[str, list[dict[str, Any]]] = {"tasks": [], "scores": [], "flags": []}
    for task in tasks:
        flags = {}
        for case in task.cases:
            if votes := [by["reference"] for by in said[task.name, case.document].values()]:
                flags[case.document] = 2 * sum(votes) < len(votes)
        for name, folder in runs.items():
            path = folder.judged_file(task.name)
            documents = read_json(path)["documents"] if path.is_file() else []
            if by := {item["document"]: item["score"] for item in documents if item["score"] is not None}:
                row = _by_reference(task.name, by, flags)
                tables["scores"].append({"task": task.name, "run": name, **row})
        n = {"documents": len(flags), "flagged": sum(flags.values()), "missing": len(task.cases) - len(flags)}
        percent = 100 * n["flagged"] / len(flags) if flags else None
        tables["tasks"].append({"task": task.name, **n, "percent": percent})
        rows = [{"task": task.name, "document": name, "flagged": int(flag)} for name, flag in flags.items()]
        tables["flags"] += rows
    return tables


def _by_reference(task: str, scores: Mapping[str, float], flags: Mapping[str, bool]) -> dict[str, Any]:
    """Means of one run on 0-1, and the difference with its 95 % interval, documents drawn anew."""
    shared = sorted(set(scores) & set(flags))
    values = np.array([scores[document] for document in shared])
    flagged = np.array([flags[document] for document in shared], dtype=bool)
    row: dict[str, Any] = {"n_flagged": int(flagged.sum()), "n_accepted": int((~flagged).sum())}
    for name, part in (("flagged", flagged), ("accepted", ~flagged)):
        row[name] = float(values[part].mean()) if part.any() else None
    if None in row.values():
        return {**row, "difference": None, "low": None, "high": None}
    weights = resampling_weights(task, len(shared)).astype(float)
    with np.errstate(invalid="ignore"):  # a resample without one of the two has no difference
        drawn = [weights @ (values * part) / (weights @ part) for part in (flagged, ~flagged)]
    differences = drawn[0] - drawn[1]
    around = percentile_interval(differences[~np.isnan(differences)])
    return {**row, "difference": row["flagged"] - row["accepted"], "low": around.low, "high": around.high}
