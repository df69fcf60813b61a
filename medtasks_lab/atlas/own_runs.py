"""Detectable effects, departments and levels of own runs, since published models' answers are not at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from medtasks_ext.judge.clinicians import BERTSCORE, ICC, JURY, PAIRWISE_ICC, PEOPLE, ROUGE
from medtasks_ext.judge.cost import jury_cost_bound
from medtasks_ext.judge.report import ALL, Figure, read_figures
from medtasks_ext.registry.row_labels import DIFFICULTY
from medtasks_ext.report.cost import cost_frame
from medtasks_ext.results.prices import JUDGE_OUTPUT_TOKENS, JudgePrice, Price
from medtasks_ext.results.published import published
from medtasks_ext.stats.agreement import Coefficient, at_least_zero, icc_3k_interval
from medtasks_ext.studies.departments import DEPARTMENT
from medtasks_lab.atlas.cells import Cell, printed_figures
from medtasks_lab.atlas.medhelm import minimum_detectable_effect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from medtasks_ext.jsonfile import Json
    from medtasks_ext.results.experiments import Entry, Experiment
    from medtasks_lab.atlas.cells import Data
    from medtasks_lab.atlas.spec import AtlasItem


# ----------------------------------------------------------------------
# The validation of a jury: agreement with clinicians, sub-juries, judges by axis; published and own. Own
# figures are those that `medtasks judge` wrote beside its judgements.

#: who is compared with clinicians -> the paper's column
_COLUMNS = {JURY: "LLM-jury", ROUGE: "ROUGE-L", BERTSCORE: "BERTScore-F", PEOPLE: "clinician"}
#: of sub-juries -> the paper's column, and in which unit
_ROBUSTNESS = {
    "Spearman": ("mean Spearman correlation", 1.0),
    "same top 2": ("top-2 consistency", 100.0),
    "same bottom 2": ("bottom-2 consistency", 100.0),
}


def clinician_agreement(item: AtlasItem, data: Data) -> Iterator[Cell]:
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
        again = Coefficient(None)
        if row["n"]:
            again = at_least_zero(Coefficient(value, *icc_3k_interval(value, int(row["n"]), k=2)))
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


def jury_robustness(item: AtlasItem, data: Data) -> Iterator[Cell]:
    """What the sub-juries have in common with the full one; own means are over the defined sub-juries."""
    for (row, column), value in printed_figures(item.printed).items():
        yield Cell(row, column, value)
    for label, figure in _own(data, "robustness"):
        if figure.between.startswith("mean of ") and figure.value is not None:
            column, unit = _ROBUSTNESS[figure.measure]
            note = f"{figure.n} runs, {figure.between}"
            row_name = f"{label}, {_title(figure.task, data)}"
            yield Cell(row_name, column, None, unit * figure.value, own=True, note=note)


def judges_by_axis(item: AtlasItem, data: Data) -> Iterator[Cell]:
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


# ----------------------------------------------------------------------
# Costs of benchmarks and juries: as printed, recomputed from published tokens, and of own runs.

#: Columns of bounds, in which every answer and every reply of a judge fills its budget.
BENCHMARKS, JURY, TOTAL = "benchmarks", "jury", "total"


def costs(item: AtlasItem, data: Data) -> Iterator[Cell]:
    """Published bounds, and bounds and real costs of own runs.

    A printed jury cost is recomputed from the tokens that judges read and wrote and their prices, a printed
    total as benchmarks + jury.
    """
    printed = printed_figures(item.printed)
    recomputed = _jury_costs(item, data)
    for (row, column), value in printed.items():
        if column == TOTAL:
            again: float | None = sum(_number(printed[row, name]) for name in (BENCHMARKS, JURY))
        else:
            again = recomputed.get(row) if column == JURY else None
        yield Cell(row, column, value, again)
    for entry in data.entries:
        yield from _own_costs(entry, data)


def _number(value: float | str) -> float:
    assert isinstance(value, float)
    return value


def _jury_costs(item: AtlasItem, data: Data) -> dict[str, float]:
    """Model -> what judging its answers costs at most, of models whose judges' tokens are printed."""
    if not item.judges or item.printed is None:
        return {}
    models = {row["model"]: row for row in published(f"{data.suite.id}_models.csv")}
    judges = [JudgePrice(_price(models[name])) for name in item.judges]
    costs_of = {}
    for row in published(item.printed.file):
        if all(row[name] == value for name, value in item.printed.where.items()):
            n = int(row["judged_documents"])
            read = int(row["jury_tokens"]) - n * JUDGE_OUTPUT_TOKENS
            costs_of[row[item.printed.row]] = jury_cost_bound(judges, read, n, 0)
    return costs_of


def _price(row: dict[str, str]) -> Price:
    return Price(*(float(row[f"price_{side}_usd_per_mtok_printed"]) for side in ("in", "out")))


def _own_costs(entry: Entry, data: Data) -> Iterator[Cell]:
    done = entry.part({item.task: item for item in experiments_of(entry, data).values()})
    [row] = cost_frame([done], data.prices).to_pylist()
    bound, jury = row["usd_bound"], row["jury"]
    note = _counted(row) if entry.label in data.prices else "no price"
    yield Cell(entry.label, BENCHMARKS, None, bound, own=True, note=note)
    yield Cell(entry.label, "used", None, row["usd"], own=True, note="" if row["usd"] is None else note)
    if jury is None:
        yield Cell(entry.label, TOTAL, None, bound, own=True, note="nothing judged")
        return
    most, bounded = jury["bound"] and jury["bound"]["usd"], _bounded(jury)
    yield Cell(entry.label, JURY, None, most, own=True, note=bounded)
    yield Cell(entry.label, "jury used", None, jury["spent"]["usd"], own=True, note=_spent(jury))
    total = None if bound is None or most is None else bound + most
    notes = [note, bounded] if total is not None else []
    yield Cell(entry.label, TOTAL, None, total, own=True, note="; ".join(filter(None, notes)))


def _counted(row: Json) -> str:
    counted, tasks = row["counted"], row["tasks"]
    return "" if counted == tasks else f"tokens counted in {counted} of {tasks} tasks"


def _bounded(jury: Json) -> str:
    if jury["bounded"] == jury["tasks"]:
        return ""
    return f"tokens and prices known of {jury['bounded']} of {jury['tasks']} judged tasks"


def _spent(jury: Json) -> str:
    spent = jury["spent"]
    return ", ".join(
        [f"not recorded in {jury['unrecorded']} of {jury['tasks']} tasks"] * bool(jury["unrecorded"])
        + [f"{spent['unpriced']} of {spent['replies']} replies without a price"] * bool(spent["unpriced"])
        + [f"tokens of {spent['estimated']} replies not counted"] * bool(spent["estimated"])
    )


def experiments_of(entry: Entry, data: Data) -> dict[str, Experiment]:
    """Dataset -> zero-shot experiment with a score, of the paper's datasets."""
    return {
        item.dataset.id: item
        for item in entry.experiments.values()
        if item.score is not None and item.strategy == "zero_shot" and data.suite.lists(item.dataset.key)
    }


def detectable_effects(item: AtlasItem, data: Data) -> Iterator[Cell]:
    """Published effects, and beside them those of own runs over all pairs of these; jury scores as x / 5."""
    for (row, column), value in printed_figures(item.printed).items():
        yield Cell(row, column, value)
    runs = [experiments_of(entry, data) for entry in data.entries]
    shared = set.intersection(*map(set, runs)) if len(runs) > 1 else set()
    for name in (dataset for dataset in data.tasks.datasets if dataset in shared):
        documents = [_scores(experiments[name]) for experiments in runs]
        keys = sorted(set.intersection(*map(set, documents)))
        title = data.tasks.datasets[name].metadata.name
        if not keys or any(len(scores) != len(keys) for scores in documents):
            yield Cell(title, "of own runs", own=True, note="no mean over the same documents")
            continue
        scale = 4 / 5 if "judged" in runs[0][name].metrics else 1.0
        effect = minimum_detectable_effect([[scale * scores[key] for key in keys] for scores in documents])
        note = f"{len(runs)} runs, n = {len(keys)}"
        yield Cell(title, "of own runs", None, effect.mean, own=True, note=note)
        yield Cell(title, "s.d. of own runs", None, effect.sd, own=True, note=note)


def _scores(item: Experiment) -> dict[str, float]:
    if item.read_documents is None:
        return {}
    scored = item.read_documents()
    return {
        name: float(score)
        for name, score in zip(scored.documents, scored.scores, strict=True)
        if np.isfinite(score)
    }


def experts(item: AtlasItem, data: Data) -> Iterator[Cell]:
    """Published rates of wins and ties; those of experts of one's own, against the run that they compared."""
    for (row, column), value in printed_figures(item.printed).items():
        yield Cell(row, column, value)
    for rate in data.compared:
        if rate.dataset == item.dataset:
            note = f"{rate.documents} documents, {rate.experts} experts"
            row = f"{rate.model} against {rate.rival}"
            yield Cell(row, rate.criterion, None, item.scale * rate.win_tie, own=True, note=note)


def departments(item: AtlasItem, data: Data) -> Iterator[Cell]:
    """Zero-shot scores of own runs by department, where files or rows name one."""
    for row in _by_label(data, DEPARTMENT):
        yield Cell(row["value"], row["entry"], None, row["score"], own=True, note=_of(row))


def levels(item: AtlasItem, data: Data) -> Iterator[Cell]:
    """The same by level of difficulty."""
    for row in _by_label(data, DIFFICULTY):
        yield Cell(row["entry"], row["value"], None, item.scale * row["score"], own=True, note=_of(row))


def _by_label(data: Data, axis: str) -> Iterator[Json]:
    wanted = (axis, data.suite.id, "zero_shot")
    return (row for row in data.labels if (row["axis"], row["suite"], row["strategy"]) == wanted)


def _of(row: Json) -> str:
    return f"{row['tasks']} tasks, {row['documents']} documents"
