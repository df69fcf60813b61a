"""How far judges agree, as `medtasks judge` recorded it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import read_json
from medtasks_ext.results.experiments import Entry, Experiment, Fault
from medtasks_ext.runs.folder import RunFolder

#: Metrics of a judged task that say how far it was judged, and how far two assessors agree.
MEASURES = ("judged", "assessor_agreement", "assessor_kappa", "disputed")


@dataclass(frozen=True)
class Agreement:
    """One figure about the judges of one task."""

    entry: Entry
    experiment: Experiment
    judges: tuple[str, ...]  # whom it is about
    measure: str  # `judged` (share of answers that all judged), or the name of a measure of agreement
    value: float | None  # None where it is undefined
    missing: int  # judgements that are missing in the task


def agreements(entry: Entry, faults: list[Fault]) -> list[Agreement]:
    """The figures of an entry's judged tasks; files that cannot be read become faults."""
    folders = [path for path in entry.folders if RunFolder(path).judgements.is_dir()]
    found = []
    for folder in folders:
        try:
            found += list(_agreements(entry, folder))
        except (MedtasksError, KeyError, TypeError) as error:
            what = error.what if isinstance(error, MedtasksError) else f"damaged ({error!r})"
            where = str(getattr(error, "where", None) or RunFolder(folder).judgements)
            faults.append(
                Fault(where, f"{what}: no agreement of judges", "medtasks judge run RUN --jury NAME")
            )
    return found


def _agreements(entry: Entry, folder: Path) -> Iterator[Agreement]:
    from medtasks_ext.judge.report import COMPOSITE, POOLED, read_figures

    figures = read_figures(folder)
    for name, item in entry.experiments.items():
        snapshot = RunFolder(folder).judged_file(name)
        if "judged" not in item.metrics or not snapshot.is_file():
            continue
        judges = tuple(str(judge["name"]) for judge in read_json(snapshot)["judges"])
        missing = int(item.metrics.get("judgements_missing", 0))
        for measure in MEASURES:
            if measure in item.metrics:
                yield Agreement(entry, item, judges, measure, item.metrics[measure], missing)
        for figure in figures:
            if (figure.table, figure.task) == ("judges", name) and figure.item in (COMPOSITE, POOLED):
                pair = tuple(figure.between.split(" + "))
                yield Agreement(entry, item, pair, figure.measure, figure.value, missing)


def calibrated_scores(entry: Entry) -> Iterator[tuple[Experiment, dict[str, Any]]]:
    """Experiments with a score on the scale of other raters, and how that was learned."""
    for item in entry.experiments.values():
        for folder in entry.folders if "score_calibrated" in item.metrics else ():
            files = RunFolder(folder)
            if files.task_file(item.task).is_file() and "calibrated" in (
                record := files.read_task(item.task)
            ):
                yield item, record["calibrated"]
                break
