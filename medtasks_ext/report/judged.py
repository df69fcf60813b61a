"""How far judges agree, as `medtasks judge` recorded it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import read_json
from medtasks_ext.results.experiments import Entry, Fault
from medtasks_ext.results.frames import table_of
from medtasks_ext.runs.folder import RunFolder

if TYPE_CHECKING:
    import pyarrow as pa

    from medtasks_ext.jsonfile import Json

#: Metrics of a judged task that say how far it was judged, and how far two assessors agree.
MEASURES = ("judged", "assessor_agreement", "assessor_kappa", "disputed")


def judgement_frame(entries: Sequence[Entry], faults: list[Fault]) -> pa.Table:
    """Files that cannot be read become faults."""
    found: list[Json] = []
    places = [(entry, path) for entry in entries for path in entry.folders]
    for entry, folder in places:
        if not RunFolder(folder).judgements.is_dir():
            continue
        try:
            found += [*_figures(entry, folder)]
        except (MedtasksError, KeyError, TypeError) as error:
            what = error.what if isinstance(error, MedtasksError) else f"damaged ({error!r})"
            where = str(getattr(error, "where", None) or RunFolder(folder).judgements)
            faults.append(Fault(where, f"{what}: no agreement of judges", "medtasks judge RUN --jury NAME"))
    return table_of("judgements", found)


def _figures(entry: Entry, folder: Path) -> Iterator[Json]:
    from medtasks_ext.judge.report import COMPOSITE, POOLED, read_figures

    figures = read_figures(folder)
    for name, item in entry.experiments.items():
        snapshot = RunFolder(folder).judged_file(name)
        if "judged" not in item.metrics or not snapshot.is_file():
            continue
        judges = [str(judge["name"]) for judge in read_json(snapshot)["judges"]]
        shared = {
            **{"entry": entry.label, "suite": item.dataset.metadata.suite, "dataset": item.dataset.id},
            **{"task": name, "strategy": item.strategy},
            "missing": int(item.metrics.get("judgements_missing", 0)),
        }
        for measure in MEASURES:
            if measure in item.metrics:
                yield {**shared, "judges": judges, "measure": measure, "value": item.metrics[measure]}
        for figure in figures:
            if (figure.table, figure.task) == ("judges", name) and figure.item in (COMPOSITE, POOLED):
                pair = figure.between.split(" + ")
                yield {**shared, "judges": pair, "measure": figure.measure, "value": figure.value}
