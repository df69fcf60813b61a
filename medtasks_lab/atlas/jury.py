"""The validation of a jury: agreement with clinicians, sub-juries, judges by axis; published and own.

Own figures are those that `medtasks judge` wrote beside its judgements.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from medtasks_ext.judge.report import ALL, Figure, read_figures
from medtasks_ext.results.published import published
from medtasks_ext.stats.agreement import Estimate, at_least_zero, icc_3k_interval
from medtasks_lab.atlas.cells import Cell, printed_figures
from medtasks_lab.judge.clinicians import BERTSCORE, ICC, JURY, PAIRWISE_ICC, PEOPLE, ROUGE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from medtasks_lab.atlas.cells import Data
    from medtasks_lab.atlas.spec import Item

#: who is compared with clinicians -> the paper's column
_COLUMNS = {JURY: "LLM-jury", ROUGE: "ROUGE-L", BERTSCORE: "BERTScore-F", PEOPLE: "clinician"}
#: of sub-juries -> the paper's column, and in which unit
_ROBUSTNESS = {
    "Spearman": ("mean Spearman correlation", 1.0),
    "same top 2": ("top-2 consistency", 100.0),
    "same bottom 2": ("bottom-2 consistency", 100.0),
}


def clinician_agreement(item: Item, data: Data) -> Iterator[Cell]:
    """ICC(3,k), then its limits; printed limits are recomputed from the printed value and number of answers.

    The mean over pairs of clinicians has limits of a bootstrap over pairs, which the value does not give.
    """
    limits: list[Cell] = []
    assert item.printed
    for row in published(item.printed.file):
        if any(row[name] != value for name, value in item.printed.where.items()):
            continue
        place, column = row[item.printed.row], row[item.printed.column or ""]
        value = float(row[item.printed.value])
        again = Estimate(None)
        if row["n"]:
            again = at_least_zero(Estimate(value, *icc_3k_interval(value, int(row["n"]), k=2)))
        yield Cell(place, column, value)
        limits.append(Cell(place, f"{column}, low", float(row["ci_low"]), again.low))
        limits.append(Cell(place, f"{column}, high", float(row["ci_high"]), again.high))
    for label, figure in _own(data, "clinicians"):
        if figure.measure not in (ICC, PAIRWISE_ICC) or figure.value is None:
            continue
        column = _COLUMNS[figure.between.removeprefix(f"{PEOPLE} + ")]
        place, note = f"{label}, {_title(figure.task, data)}", f"n = {figure.n}"
        yield Cell(place, column, None, figure.value, own=True, note=note)
        limits.append(Cell(place, f"{column}, low", None, figure.low, own=True, note=note))
        limits.append(Cell(place, f"{column}, high", None, figure.high, own=True, note=note))
    yield from limits


def jury_robustness(item: Item, data: Data) -> Iterator[Cell]:
    """What the sub-juries have in common with the full one; own means are over the defined sub-juries."""
    for (row, column), value in printed_figures(item.printed).items():
        yield Cell(row, column, value)
    for label, figure in _own(data, "robustness"):
        if figure.between.startswith("mean of ") and figure.value is not None:
            column, unit = _ROBUSTNESS[figure.measure]
            note = f"{figure.n} runs, {figure.between}"
            row_name = f"{label}, {_title(figure.task, data)}"
            yield Cell(row_name, column, None, unit * figure.value, own=True, note=note)


def judges_by_axis(item: Item, data: Data) -> Iterator[Cell]:
    """Mean and s.d. of each judge's ratings; own ones over all judged tasks of the runs."""
    for (row, column), value in printed_figures(item.printed).items():
        yield Cell(row, column, value)
    own = list(_own(data, "judge_axes"))
    whole = [pair for pair in own if pair[1].task == ALL] or own
    for label, figure in whole:
        if figure.value is not None:
            measure = "sd" if figure.measure == "s.d." else figure.measure
            scope = "" if figure.task == ALL else f", {_title(figure.task, data)}"
            note = f"n = {figure.n}"
            row_name = f"{figure.between}, {label}{scope}"
            yield Cell(row_name, f"{figure.item} {measure}", None, figure.value, own=True, note=note)


def _own(data: Data, table: str) -> Iterator[tuple[str, Figure]]:
    """(label of the entries, figure), each once: what runs have in common is in all their folders."""
    labels: dict[Figure, list[str]] = {}
    for entry in data.entries:
        for folder in entry.folders:
            for figure in read_figures(folder):
                if figure.table == table and entry.label not in labels.setdefault(figure, []):
                    labels[figure].append(entry.label)
    for figure, names in labels.items():
        yield " + ".join(names), figure


def _title(task: str, data: Data) -> str:
    known = data.tasks.tasks.get(task)
    return known[0].metadata.name if known else task
