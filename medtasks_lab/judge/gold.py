"""Whether reference answers hold, by a jury, and how runs score with good and with doubtful ones.

MedHELM (arXiv v1, Appendix D and Figure 6) has a model flag references that rest on more than the input, and
compares the scores of answers whose reference is flagged with those of the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from medtasks_ext.csvfile import write_csv
from medtasks_ext.jsonfile import read_json, write_json
from medtasks_ext.judge.cases import Case, JudgedTask
from medtasks_ext.judge.protocol import Rubric
from medtasks_ext.stats.agreement import spearman
from medtasks_ext.stats.bootstrap import METHOD, RESAMPLES, percentile_interval, resampling_weights
from medtasks_lab.judge.study import Panel, ratings_in, study_file

if TYPE_CHECKING:
    import pyarrow as pa

    from medtasks_ext.runs.folder import RunFolder
    from medtasks_ext.stats.statistic import Array

FILE = Path(__file__).with_suffix(".yaml")
AXIS = "reference"


@dataclass(frozen=True)
class GoldTask:
    """The references of one task."""

    task: str
    documents: int  # with a verdict
    flagged: int  # not reasonable, say more judges than say the opposite
    missing: int  # without a verdict
    #: Spearman of the runs' scores over all documents and over the accepted ones; None below two runs
    rank_correlation: float | None

    @property
    def percent(self) -> float | None:
        """How many are flagged; None where nothing has a verdict."""
        return 100 * self.flagged / self.documents if self.documents else None


@dataclass(frozen=True)
class GoldScore:
    """The judged score of one run by its references, on 0-1."""

    task: str
    run: str
    flagged: float | None  # mean; None where there is none
    accepted: float | None
    difference: float | None  # flagged minus accepted
    low: float | None  # 95 % interval of the difference, over documents
    high: float | None
    n_flagged: int
    n_accepted: int


@dataclass(frozen=True)
class GoldFigures:
    """What a jury says of references, and what follows."""

    tasks: list[GoldTask]
    scores: list[GoldScore]
    flags: dict[str, dict[str, bool]]  # task -> document -> whether its reference is flagged


def gold_cases(judged: Sequence[Sequence[JudgedTask]]) -> list[JudgedTask]:
    """The references of runs' judged tasks, each once; tasks without any are left out.

    Args:
        judged: the tasks of each run.
    """
    judging = study_file(FILE).judging
    assert judging is not None
    rubric = Rubric(judging)
    by_task: dict[str, JudgedTask] = {}
    seen: set[tuple[str, str]] = set()
    for task in (task for tasks in judged for task in tasks):
        for case in task.cases:
            if "gold" in case.texts and (task.name, case.document) not in seen:
                seen.add((task.name, case.document))
                own = by_task.setdefault(task.name, JudgedTask(task.name, rubric, task.open_access))
                texts = {"question": case.texts["question"], "response": case.texts["gold"]}
                own.cases.append(Case(case.document, case.run, texts, rubric, synthetic=case.synthetic))
    return list(by_task.values())


def gold_figures(panels: Sequence[Panel], verdicts: pa.Table, runs: Mapping[str, RunFolder]) -> GoldFigures:
    """What the verdicts so far amount to.

    Args:
        panels: the jury, and tasks as `gold_cases` made them.
        verdicts: the frame.
        runs: name -> its folder, with the jury's scores where it was judged.
    """
    ((_, tasks),) = panels
    figures, given = GoldFigures([], [], {}), ratings_in(verdicts)
    for task in tasks:
        flags = {}
        for case in task.cases:
            by_judge = given.get((task.name, case.document), {})
            votes = [ratings[AXIS] for ratings in by_judge.values() if ratings]
            if votes:
                flags[case.document] = 2 * sum(votes) < len(votes)
        figures.flags[task.name] = flags
        of_task = []
        scores = {name: _scores(folder, task.name) for name, folder in runs.items()}
        scores = {name: by for name, by in scores.items() if by}
        for name, by in scores.items():
            of_task.append(_score(task.name, name, by, flags))
        shared = sorted(set(flags).intersection(*(set(by) for by in scores.values()))) if scores else []
        kept = [document for document in shared if not flags[document]]
        rho = None
        if len(scores) > 1 and kept:
            means = [
                [float(np.mean([by[one] for one in members])) for by in scores.values()]
                for members in (shared, kept)
            ]
            rho = spearman(*means)
        missing = len(task.cases) - len(flags)
        figures.tasks.append(GoldTask(task.name, len(flags), sum(flags.values()), missing, rho))
        figures.scores.extend(of_task)
    return figures


def _scores(folder: RunFolder, task: str) -> dict[str, float]:
    """Document -> the jury's score on 0-1; empty where the run was not judged."""
    path = folder.judged_file(task)
    if not path.is_file():
        return {}
    documents = read_json(path)["documents"]
    return {item["document"]: item["score"] for item in documents if item["score"] is not None}


def _score(task: str, run: str, scores: Mapping[str, float], flags: Mapping[str, bool]) -> GoldScore:
    shared = sorted(set(scores) & set(flags))
    values = np.array([scores[document] for document in shared])
    flagged = np.array([flags[document] for document in shared], dtype=bool)
    n_flagged, n_accepted = int(flagged.sum()), int((~flagged).sum())
    doubtful, good = (float(values[part].mean()) if part.any() else None for part in (flagged, ~flagged))
    if doubtful is None or good is None:
        return GoldScore(task, run, doubtful, good, None, None, None, n_flagged, n_accepted)
    weights = resampling_weights(task, len(shared)).astype(float)
    there, rest = _mean(weights, values, flagged), _mean(weights, values, ~flagged)
    differences = (there - rest)[~np.isnan(there - rest)]
    interval = percentile_interval(differences)
    difference = doubtful - good
    return GoldScore(
        task, run, doubtful, good, difference, interval.low, interval.high, n_flagged, n_accepted
    )


def _mean(weights: Array, values: Array, part: Array) -> Array:
    """(resamples,): mean of a part; NaN where none of it was drawn."""
    n = weights @ part
    means: Array = np.full(len(n), np.nan)
    np.divide(weights @ (values * part), n, out=means, where=n > 0)
    return means


def write_gold(folder: Path, figures: GoldFigures, panels: Sequence[Panel]) -> list[Path]:
    """`gold.json`, `gold_tasks.csv`, `gold_scores.csv`, `gold_flags.csv`; the first of them."""
    flags = [
        {"task": task, "document": document, "flagged": int(flagged)}
        for task, by in figures.flags.items()
        for document, flagged in by.items()
    ]
    write_csv(folder / "gold_tasks.csv", [asdict(item) for item in figures.tasks])
    write_csv(folder / "gold_scores.csv", [asdict(item) for item in figures.scores])
    write_csv(folder / "gold_flags.csv", flags)
    write_json(
        folder / "gold.json",
        {
            "judges": [judge.identity() for jury, _ in panels for judge in jury.judges],
            "flagged": "more judges say that the reference is not reasonable than say that it is",
            "tasks": [asdict(item) for item in figures.tasks],
            "scores": [asdict(item) for item in figures.scores],
            "interval_method": f"{METHOD}, over documents",
            "resamples": RESAMPLES,
        },
    )
    return [folder / "gold.json"]
