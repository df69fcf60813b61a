"""The four questions of the human evaluation, put to a jury of models: a metric of its own.

Every comparison is asked in both orders, since models favour a position. Where the two verdicts differ,
the comparison is a tie for that judge (Zheng et al. 2023, Section 3.4).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks_ext.csvfile import write_csv
from medtasks_ext.jsonfile import write_json
from medtasks_ext.judge.cases import Case, JudgedTask
from medtasks_ext.judge.protocol import Rubric
from medtasks_ext.rows.spec import Judging
from medtasks_ext.stats.agreement import kappas
from medtasks_ext.stats.bootstrap import METHOD, RESAMPLES
from medtasks_ext.stats.votes import OUTCOMES, TIE, Votes, rates
from medtasks_lab.human.kinds import load_kind
from medtasks_lab.human.results import MERGING, Criterion, agreement_rows, rate_row
from medtasks_lab.judge.study import ratings_in

if TYPE_CHECKING:
    import pyarrow as pa

    from medtasks_ext.judge.jury import Jury
    from medtasks_lab.human.pairs import AnswerPair, DrawnPairs

ROLE = "a physician who compares what two systems wrote for the same input"
#: Which run's answer is A, first and second.
ORDERS = ("first run is A", "second run is A")


@dataclass
class Verdicts:
    """What a jury says about one criterion of one task."""

    criterion: Criterion  # its figures; `by` is a judge, `mean` or `majority`
    #: judge -> share of the comparisons that it was asked about in which both orders gave the same outcome
    same_in_both_orders: dict[str, float]


@dataclass
class JuryFigures:
    """The figures of all tasks."""

    verdicts: list[Verdicts] = field(default_factory=list)  # by task and criterion
    #: judge -> comparisons without a verdict in both orders, which count nowhere
    missing: dict[str, int] = field(default_factory=dict)
    decided: int = 0  # comparisons in which an answer was empty: it loses, and nobody was asked


def comparisons(drawn: DrawnPairs) -> list[JudgedTask]:
    """What to ask: each pair of answers in both orders, but none with an empty answer."""
    questions = load_kind("pairwise").questions
    axes = {question.id: question.help.en for question in questions}
    rubric = Rubric(Judging(protocol="pairwise", question="", role=ROLE, axes=axes, show_gold=False))
    return [
        JudgedTask(
            name,
            rubric,
            open_access=name not in drawn.gated,
            cases=[
                _case(pair, order, rubric, drawn.synthetic)
                for pair in drawn.pairs
                if pair.task == name and all(pair.answers)
                for order in ORDERS
            ],
        )
        for name in drawn.record["tasks"]
    ]


def _case(pair: AnswerPair, order: str, rubric: Rubric, synthetic: bool) -> Case:
    shown = pair.answers if order == ORDERS[0] else pair.answers[::-1]
    texts = {"question": pair.question, "response": shown[0], "response_b": shown[1]}
    return Case(f"{pair.document} ({order})", None, texts, rubric, synthetic=synthetic)


def jury_figures(drawn: DrawnPairs, tasks: list[JudgedTask], jury: Jury, verdicts: pa.Table) -> JuryFigures:
    """What the frame `verdicts` amounts to."""
    figures_of_jury, said = JuryFigures(missing=dict.fromkeys(jury.names, 0)), ratings_in(verdicts)
    for task in tasks:
        pairs = [pair for pair in drawn.pairs if pair.task == task.name]
        given = {case.document: said.get((task.name, case.document), {}) for case in task.cases}
        figures_of_jury.decided += sum(not all(pair.answers) for pair in pairs)
        votes: dict[str, Votes] = {axis: {} for axis in task.rubric.axes}
        same: dict[str, dict[str, list[bool]]] = {axis: {} for axis in task.rubric.axes}
        for pair in pairs:
            for judge in jury.names:
                orders = [given.get(f"{pair.document} ({order})", {}).get(judge) for order in ORDERS]
                for axis in task.rubric.axes:
                    if not all(pair.answers):
                        outcome = bool(pair.answers[0]) - bool(pair.answers[1])
                    elif not all(orders):
                        continue
                    else:
                        first, second = (
                            int(ratings[axis]) - 1 for ratings in orders if ratings
                        )  # 1: A is better
                        outcome = first if first == -second else TIE
                        same[axis].setdefault(judge, []).append(first == -second)
                    votes[axis].setdefault(judge, {})[pair.document] = outcome
                figures_of_jury.missing[judge] += all(pair.answers) and not all(orders)
        dataset = drawn.record["tasks"][task.name]["dataset"]
        for axis, by_judge in votes.items():
            if by_judge:
                figures = Criterion(
                    task.name, axis, rates(by_judge, dataset), kappas(by_judge, sorted(OUTCOMES.values()))
                )
                shares = {judge: sum(items) / len(items) for judge, items in same[axis].items()}
                figures_of_jury.verdicts.append(Verdicts(figures, shares))
    return figures_of_jury


def write_jury(folder: Path, figures: JuryFigures, drawn: DrawnPairs, jury: Jury) -> list[Path]:
    """`jury.json`, `jury_rates.csv`, `jury_agreement.csv`; the first of them."""
    rows = [
        {
            **rate_row(item.criterion, rate, "jury"),
            "same_in_both_orders": item.same_in_both_orders.get(rate.by),
        }
        for item in figures.verdicts
        for rate in item.criterion.rates
    ]
    agreement = agreement_rows(item.criterion for item in figures.verdicts)
    write_csv(folder / "jury_rates.csv", rows)
    write_csv(folder / "jury_agreement.csv", agreement)
    write_json(
        folder / "jury.json",
        {
            "evaluation": "jury of models, pairwise comparison in both orders; not a human evaluation",
            **drawn.record,
            "judges": [judge.identity() for judge in jury.judges],
            "win": "the first run is better in both orders",
            "merging": MERGING,
            "interval_method": METHOD,
            "resamples": RESAMPLES,
            "comparisons_missing": figures.missing,
            "empty_answers": figures.decided,
            "rates": rows,
            "agreement": agreement,
        },
    )
    return [folder / "jury.json"]
