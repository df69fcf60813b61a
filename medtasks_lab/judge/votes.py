"""Judges beside the votes of physicians: is a criterion met by a response?

The meta-evaluation of HealthBench (arXiv 2505.08775, `healthbench_meta_eval.py`): a judge is asked about one
criterion of one response, as in judging. Its answers are compared with every physician's, vote by vote. Each
physician is compared with the others in the same way, which says how well physicians agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, Field, ValidationError, model_validator

from medtasks_ext.csvfile import write_csv
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import JsonError, numbered_lines, parse_json, write_json
from medtasks_ext.judge.cases import Case, JudgedTask
from medtasks_ext.judge.procedures import Subject
from medtasks_ext.judge.protocol import Rubric
from medtasks_ext.stats.bootstrap import METHOD, RESAMPLES
from medtasks_ext.stats.votes import VoteF1, cells, macro_interval, vote_f1
from medtasks_ext.strict import faults_of
from medtasks_lab.judge.study import Panel, ratings_in

if TYPE_CHECKING:
    import pyarrow as pa

FILE = Path(__file__).with_suffix(".yaml")
POINT = "criterion"
ALL = "all"
_REMEDY = (
    "a line has `prompt`, `completion`, `rubric`, `category`, `binary_labels` and "
    "`anonymized_physician_ids`, as the released file of HealthBench has them (docs/judges.md)"
)


class _Turn(BaseModel):
    role: str
    content: str


class Voted(BaseModel):
    """One criterion of one response, and what physicians say of it; named as in the released file."""

    prompt: list[_Turn] = Field(min_length=1)  # the conversation
    completion: str  # the response to it
    rubric: str = Field(min_length=1)  # the criterion
    category: str = Field(min_length=1)  # what criteria of a kind have in common
    binary_labels: list[bool] = Field(min_length=1)  # whether it is met, a vote for each physician
    anonymized_physician_ids: list[str]  # who voted
    data: Literal["sample"] | None = None  # `sample` where the row is invented

    @model_validator(mode="after")
    def _a_name_for_each_vote(self) -> Voted:
        names = self.anonymized_physician_ids
        if len(names) != len(self.binary_labels) or len({*names}) != len(names):
            raise ValueError("each vote needs a physician, and each physician has one vote")
        return self


@dataclass(frozen=True)
class VotedCase(Case):
    """A criterion that physicians voted on, as a judge is asked about it."""

    criterion: str = ""

    @property
    def subject(self) -> Subject:
        """One point, shown without a weight: nothing is added up."""
        texts = {**self.texts, "item": self.criterion}
        return Subject(self.texts, {POINT: 1}, {POINT: texts})


@dataclass(frozen=True)
class RaterAgreement:
    """One rater's agreement with physicians' votes, on criteria of one category or on all."""

    rater: str
    category: str
    agreement: VoteF1
    low: float | None  # 95 % interval of the macro F1, over criteria
    high: float | None
    physicians: int  # physicians with a macro F1 here, the rater aside
    median: float | None  # of their macro F1
    below: float | None  # share of them whose macro F1 is below the rater's


@dataclass(frozen=True)
class VoteFigures:
    """What judges and physicians amount to."""

    judges: list[RaterAgreement]
    physicians: list[RaterAgreement]
    missing: dict[str, int]  # judge -> criteria without a verdict
    sample: bool = False  # whether rows are invented


def read_votes(path: Path) -> list[Voted]:
    """The votes of a file of JSON lines.

    Raises:
        MedtasksError: it cannot be read, or a line is none.
    """
    votes = []
    for number, line in numbered_lines(path, remedy="correct the path"):
        try:
            votes.append(Voted.model_validate(parse_json(line)))
        except (JsonError, ValidationError) as error:  # said without its texts
            what = "is no JSON" if isinstance(error, JsonError) else faults_of(error)[0]
            raise MedtasksError(f"line {number}: {what}", where=path, remedy=_REMEDY) from None
    if not votes:
        raise MedtasksError("holds no votes", where=path, remedy=_REMEDY)
    return votes


def voted_task(name: str, votes: Sequence[Voted], rubric: Rubric) -> JudgedTask:
    """The criteria as cases to ask judges about. Nobody knows here whether their texts are open.

    Args:
        name: of the task whose judging is used.
        votes: of a file.
        rubric: of the task.

    Raises:
        MedtasksError: its judges are not asked about one criterion after the other.
    """
    if not rubric.protocol.asks_each_point:
        raise MedtasksError(
            f"judges of {name} rate axes, and are not asked about criteria one by one",
            where="--task",
            remedy="name a task whose protocol is rubric_item, such as healthbench_full",
        )
    own = Rubric(rubric.judging, {POINT: "-"}, rubric.words)
    task = JudgedTask(name, rubric, open_access=False)
    for number, vote in enumerate(votes, start=1):
        question = "\n\n".join(f"{turn.role}: {turn.content}" for turn in vote.prompt)
        texts = {"question": question, "response": vote.completion.strip()}
        sample = vote.data == "sample"
        task.cases.append(VotedCase(f"v{number}", None, texts, own, synthetic=sample, criterion=vote.rubric))
    return task


def vote_figures(panels: Sequence[Panel], verdicts: pa.Table, votes: Sequence[Voted]) -> VoteFigures:
    """What the verdicts so far amount to.

    Args:
        panels: who was asked, about the task that `voted_task` made.
        verdicts: the frame.
        votes: that it was made of.
    """
    ((jury, (task,)),) = panels
    said: dict[str, dict[int, bool]] = {judge.name: {} for judge in jury.judges}
    given, no = ratings_in(verdicts), min(task.rubric.protocol.scale)
    for place, case in enumerate(task.cases):
        for judge, ratings in given.get((task.name, case.document), {}).items():
            if ratings:
                said[judge][place] = ratings[POINT] > no
    of_physicians = _by_physician(votes)
    categories = [ALL, *dict.fromkeys(vote.category for vote in votes)]
    macros = {
        category: {
            name: value.macro
            for name, rows in of_physicians.items()
            if (value := vote_f1(_rows(votes, rows, category))).macro is not None
        }
        for category in categories
    }

    def compared(raters: Iterable[tuple[str, dict[int, tuple[int, int, int, int]]]]) -> list[RaterAgreement]:
        return [
            _compared(name, rows, category, votes, macros[category], task.name)
            for name, rows in raters
            for category in categories
            if _rows(votes, rows, category)
        ]

    judged = {
        name: {place: cells(answer, votes[place].binary_labels) for place, answer in answers.items()}
        for name, answers in said.items()
    }
    return VoteFigures(
        compared(judged.items()),
        compared(of_physicians.items()),
        {name: len(votes) - len(answers) for name, answers in said.items()},
        sample=any(case.synthetic for case in task.cases),
    )


def _by_physician(votes: Sequence[Voted]) -> dict[str, dict[int, tuple[int, int, int, int]]]:
    """Physician -> place of a criterion -> the own vote beside those of the others."""
    by_physician: dict[str, dict[int, tuple[int, int, int, int]]] = {}
    for place, vote in enumerate(votes):
        labels = vote.binary_labels
        for number, name in enumerate(vote.anonymized_physician_ids):
            others = labels[:number] + labels[number + 1 :]
            if others:
                by_physician.setdefault(name, {})[place] = cells(labels[number], others)
    return dict(sorted(by_physician.items()))


def _rows(
    votes: Sequence[Voted], rows: dict[int, tuple[int, int, int, int]], category: str
) -> list[tuple[int, int, int, int]]:
    return [row for place, row in rows.items() if category in (ALL, votes[place].category)]


def _compared(
    name: str,
    rows: dict[int, tuple[int, int, int, int]],
    category: str,
    votes: Sequence[Voted],
    macros: dict[str, float],
    key: str,
) -> RaterAgreement:
    chosen = _rows(votes, rows, category)
    own, around = vote_f1(chosen), macro_interval(chosen, f"{key} {category}")
    others = [value for rater, value in macros.items() if rater != name]
    known = own.macro is not None and others
    return RaterAgreement(
        name,
        category,
        own,
        around.low if around and own.macro is not None else None,
        around.high if around and own.macro is not None else None,
        len(others),
        median(others) if others else None,
        sum(value < (own.macro or 0) for value in others) / len(others) if known else None,
    )


def write_votes(folder: Path, figures: VoteFigures, panels: Sequence[Panel]) -> list[Path]:
    """`votes.json`, `votes_judges.csv`, `votes_physicians.csv`; the first of them."""
    judges, physicians = ([_record(item) for item in items] for items in (figures.judges, figures.physicians))
    write_csv(folder / "votes_judges.csv", judges)
    write_csv(folder / "votes_physicians.csv", physicians)
    write_json(
        folder / "votes.json",
        {
            "judges": [judge.identity() for jury, _ in panels for judge in jury.judges],
            "sample": figures.sample,
            "missing": figures.missing,
            "agreement": judges,
            "physicians": physicians,
            "interval_method": f"{METHOD}, over criteria",
            "resamples": RESAMPLES,
        },
    )
    return [folder / "votes.json"]


def _record(item: RaterAgreement) -> dict[str, str | float | None]:
    own = item.agreement
    return {
        "rater": item.rater,
        "category": item.category,
        "macro_f1": own.macro,
        "low": item.low,
        "high": item.high,
        "f1_met": own.yes,
        "f1_not_met": own.no,
        "pairs": own.pairs,
        "physicians": item.physicians,
        "median_of_physicians": item.median,
        "share_of_physicians_below": item.below,
    }
