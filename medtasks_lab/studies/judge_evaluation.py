"""A judge's decisions on scoring points against those of experts (MLB, section 4.4 and Table 5)."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from medtasks_ext.jsonfile import write_json
from medtasks_ext.judge.cases import Case as JudgedCase
from medtasks_ext.judge.cases import JudgedTask, point_rubric
from medtasks_ext.judge.protocol import AXIS
from medtasks_ext.judge.report import Figure
from medtasks_ext.results.published import published
from medtasks_ext.stats.bootstrap import resample
from medtasks_ext.stats.counts import Counts, by_unit
from medtasks_ext.stats.intervals import Interval, intervals_of
from medtasks_ext.stats.statistic import Array, Statistic, as_they_are, f1_scores, ratios
from medtasks_lab.judge.study import Panel, ratings_in
from medtasks_lab.studies.judge_sft import GoldCase, PointKey, groups_by_question, point_texts

if TYPE_CHECKING:
    import pyarrow as pa

    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Registry

FILE = Path(__file__).with_suffix(".yaml")
METRICS = ("accuracy", "precision", "recall", "f1", "cohen_kappa")
#: Decisions of a published evaluation, at most.
_LARGEST = 1500
#: How tables call metrics.
TITLES = {name: name for name in METRICS} | {"f1": "F1", "cohen_kappa": "kappa"}
TASK = "scoring_points"
PUBLISHED_FILE = "judges.csv"


def figure_of(
    about: tuple[str, str, str, str], metric: str, value: float | None, limits: Interval | None, n: int
) -> Figure:
    """A row of the frame `agreement`.

    Args:
        about: its table, task, between and item.
        limits: 95 % interval; None for fewer than two questions.
    """
    low, high = (limits.low, limits.high) if limits else (None, None)
    return Figure(*about, TITLES.get(metric, metric), value, low, high, n)


@dataclass(frozen=True)
class Evaluation:
    """How far a judge decides as experts do."""

    figures: dict[str, Figure]  # metric -> value and interval; positive is a point that is met
    points: int  # points that both decided
    met: int  # of these, met by the experts' decision
    questions: int  # questions of these points, the unit that is resampled
    missing: int  # points that experts decided and the judge did not

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The figures, and how many points they are of, and of how many."""
        points = {"measure": "points", "n": self.points, "of": self.points + self.missing}
        return [*({**asdict(row), "of": None} for row in self.figures.values()), points]


@dataclass(frozen=True)
class JudgeFigures:
    """Judges beside experts, and beside the paper's.

    Attributes:
        judges: name -> how far it decides as experts do.
        beside: the paper's table, below one's own.
        published: the same alone, with what follows from it.
    """

    judges: Mapping[str, Evaluation] = field(default_factory=dict)
    beside: Sequence[PublishedEvaluation] = ()
    published: Sequence[PublishedEvaluation] = ()

    @property
    def missing(self) -> int:
        """Points that a judge did not decide."""
        return sum(item.missing for item in self.judges.values())

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Those of all judges."""
        return [{**row, "judge": name} for name, item in self.judges.items() for row in item.rows]

    @property
    def experts(self) -> list[dict[str, Any]]:
        """What the experts of the first judge's points decided."""
        first = list(self.judges.values())[:1]
        return [{"share": one.met / one.points if one.points else None} for one in first]

    @property
    def undecided(self) -> list[dict[str, Any]]:
        """The judges that left points out."""
        return [{"judge": name, "n": item.missing} for name, item in self.judges.items() if item.missing]

    @property
    def sizes(self) -> list[dict[str, int]]:
        """What the paper's table was computed on."""
        if not self.published:
            return []
        size, met, recalls = published_sizes(self.published)
        return [{"size": size, "met": met, "recalls": recalls, "rows": len(self.published)}]


def evaluate(
    cases: Mapping[str, GoldCase],
    expert: Mapping[PointKey, bool],
    judge: Mapping[PointKey, bool],
    name: str = "judge",
) -> Evaluation:
    """Compare decisions on the points that both decided.

    Args:
        expert: (case, point) -> met.
        judge: the same by the judge.
        name: of the judge.
    """
    keys = sorted(key for key in expert if key in judge)
    truth, given = [expert[key] for key in keys], [judge[key] for key in keys]
    groups = groups_by_question(cases.values())
    questions = [groups[case] for case, _ in keys]
    about = ("judge_eval", TASK, f"experts + {name}", "met")
    values, intervals = _values(truth, given), _intervals(truth, given, questions)
    return Evaluation(
        figures={
            metric: figure_of(about, metric, values[metric], intervals.get(metric), len(keys))
            for metric in METRICS
        },
        points=len(keys),
        met=sum(truth),
        questions=len(set(questions)),
        missing=len(expert) - len(keys),
    )


def judge_figures(
    panels: Sequence[Panel],
    verdicts: pa.Table,
    cases: Mapping[str, GoldCase],
    expert: Mapping[PointKey, bool],
    keys: Mapping[str, PointKey],
    beside: Sequence[PublishedEvaluation],
) -> JudgeFigures:
    """What the decisions so far of the judges of a jury amount to.

    Args:
        verdicts: the frame.
        cases, expert: as of `evaluate`.
        keys: document -> which point it is.
        beside: the paper's table, if it is to stand below.
    """
    ((jury, _),) = panels
    decisions: dict[str, dict[PointKey, bool]] = {name: {} for name in jury.names}
    for (_, document), by_judge in ratings_in(verdicts).items():
        for judge, ratings in by_judge.items():
            if ratings:
                decisions[judge][keys[document]] = bool(ratings[AXIS])
    figures = {name: evaluate(cases, expert, decided, name) for name, decided in decisions.items()}
    return JudgeFigures(figures, beside)


def write_evaluation(folder: Path, evaluated: JudgeFigures, panels: Sequence[Panel] = ()) -> list[Path]:
    """`judge_eval.json`: judge -> its figures."""
    path = folder / "judge_eval.json"
    write_json(path, {name: _record(item) for name, item in evaluated.judges.items()})
    return [path]


def _record(item: Evaluation) -> Json:
    counts = {name: getattr(item, name) for name in ("points", "met", "questions", "missing")}
    return counts | {
        metric: {"value": row.value, "interval_low": row.low, "interval_high": row.high}
        for metric, row in item.figures.items()
    }


def _values(truth: Sequence[bool], given: Sequence[bool]) -> dict[str, float | None]:
    from sklearn.metrics import accuracy_score, cohen_kappa_score, precision_recall_fscore_support

    if not truth:
        return dict.fromkeys(METRICS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is undefined is None below
        precision, recall, f1, _ = precision_recall_fscore_support(
            truth, given, labels=[False, True], pos_label=True, average="binary", zero_division=np.nan
        )
        kappa = cohen_kappa_score(truth, given, labels=[False, True])
    values = (accuracy_score(truth, given), precision, recall, f1, kappa)
    return {
        name: None if math.isnan(value) else float(value) for name, value in zip(METRICS, values, strict=True)
    }


def _intervals(truth: Sequence[bool], given: Sequence[bool], questions: Sequence[int]) -> dict[str, Interval]:
    """Questions with all their points are drawn with replacement."""
    if not truth:
        return {}
    rows = [(t and g, not t and g, t and not g, not t and not g) for t, g in zip(truth, given, strict=True)]
    statistics = {name: Statistic(name, as_they_are, value) for name, value in OF_COUNTS.items()}
    counts = Counts(by_unit(as_they_are(rows), questions), statistics)
    draws = {name: item.values for name, item in resample([counts], TASK).items()}
    return {name: estimated.interval for name, estimated in intervals_of(counts, draws).items()}


# ---------------------------------------------------------------------- counts, and published rates


def _kappa_of_counts(sums: Array) -> Array:
    tp, fp, fn, tn = np.moveaxis(sums, -1, 0)
    n = tp + fp + fn + tn
    expected = ratios((tp + fn) * (tp + fp) + (fp + tn) * (fn + tn), n * n)
    return ratios(ratios(tp + tn, n) - expected, 1 - expected)


#: metric -> its value from sums of (tp, fp, fn, tn), (..., 4) -> (...)
OF_COUNTS = {
    "accuracy": lambda sums: ratios(sums[..., 0] + sums[..., 3], sums.sum(axis=-1)),
    "precision": lambda sums: ratios(sums[..., 0], sums[..., 0] + sums[..., 1]),
    "recall": lambda sums: ratios(sums[..., 0], sums[..., 0] + sums[..., 2]),
    "f1": lambda sums: f1_scores(sums[..., 0], sums[..., 1], sums[..., 2]),
    "cohen_kappa": _kappa_of_counts,
}


def share_met(accuracy: float, precision: float, recall: float) -> float:
    """The share of positives that three rates of one binary task imply.

    Of all decisions, s (1 - R) are missed and s R (1 / P - 1) wrongly given, where s is that share;
    together they are 1 - accuracy.

    Raises:
        ValueError: precision and recall are both 1, or precision is 0: the rates fit any share.
    """
    wrong_per_positive = math.inf if precision == 0 else 1 - recall + recall * (1 / precision - 1)
    if wrong_per_positive in (0, math.inf):
        raise ValueError("these rates do not determine the share of positives")
    return (1 - accuracy) / wrong_per_positive


def kappa_from_rates(accuracy: float, precision: float, recall: float) -> float:
    """Cohen's kappa (po - pe) / (1 - pe) of a binary task, from three of its rates.

    po is the accuracy; pe follows from the shares of positives by either side, s and s R / P.

    Raises:
        ValueError: the rates do not determine the share of positives.
    """
    positive = share_met(accuracy, precision, recall)
    given = positive * recall / precision
    expected = positive * given + (1 - positive) * (1 - given)
    return (accuracy - expected) / (1 - expected)


class PublishedEvaluation(NamedTuple):
    """A line of the paper's Table 5, and what follows from its accuracy, precision and recall."""

    model: str
    n_sft: int
    printed: dict[str, float]
    f1: float
    cohen_kappa: float
    share_met: float


def published_table() -> list[PublishedEvaluation]:
    """Table 5 with F1, kappa and share of positives recomputed from its other columns."""
    rows = []
    for row in published(PUBLISHED_FILE):
        printed = {name: float(row[name]) for name in METRICS}
        accuracy, precision, recall = (printed[name] for name in METRICS[:3])
        rows.append(
            PublishedEvaluation(
                row["model"],
                int(row["n_sft"]),
                printed,
                2 * precision * recall / (precision + recall),
                kappa_from_rates(accuracy, precision, recall),
                share_met(accuracy, precision, recall),
            )
        )
    return rows


def sizes_that_fit(shares: Sequence[float]) -> list[int]:
    """Numbers of decisions, up to 1,500, of which every printed share is a whole number."""
    return [n for n in range(1, _LARGEST + 1) if n_fitting(shares, n) == len(shares)]


def n_fitting(shares: Sequence[float], n: int) -> int:
    """How many of the shares are k / n, rounded to four digits, for a whole number k."""
    return sum(round(round(share * n) / n, 4) == round(share, 4) for share in shares)


def published_sizes(rows: Sequence[PublishedEvaluation]) -> tuple[int, int, int]:
    """What Table 5 was computed on: decisions, how many of them are met, and how many recalls fit that.

    The size is the only one up to 1,500 that gives all accuracies. The points met are, within the
    shares that the rows imply, the number that gives most of the recalls.
    """
    [size] = sizes_that_fit([row.printed["accuracy"] for row in rows])
    recalls = [row.printed["recall"] for row in rows]
    shares = [row.share_met for row in rows]
    possible = range(math.floor(size * min(shares)), math.ceil(size * max(shares)) + 1)
    met = max(possible, key=lambda n: n_fitting(recalls, n))
    return size, met, n_fitting(recalls, met)


# ---------------------------------------------------------------------- asking judges


def points_to_judge(
    cases: Mapping[str, GoldCase], expert: Mapping[PointKey, bool], tasks: Registry
) -> tuple[JudgedTask, dict[str, PointKey]]:
    """The points that experts decided as a task for `judge.engine`, and which document is which point.

    Its text is open where that of all the cases' tasks is.
    """
    rubric = point_rubric()
    named = {case.task for case in cases.values()}
    is_open = all(name in tasks.tasks and tasks.tasks[name][0].metadata.access == "open" for name in named)
    task, keys = JudgedTask(TASK, rubric, open_access=is_open), {}
    for case_id, point_id in sorted(expert):
        case = cases[case_id]
        point = next(item for item in case.points if item.id == point_id)
        document = json.dumps([case_id, point_id], ensure_ascii=False)  # ids may hold any character
        keys[document] = (case_id, point_id)
        task.cases.append(JudgedCase(document, None, point_texts(case, point), rubric))
    return task, keys
