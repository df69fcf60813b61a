"""Reading a store: its runs as lines of a leaderboard."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from medtasks_ext.registry import Registry
from medtasks_ext.results.document_scores import score_statistic
from medtasks_ext.results.experiments import Entry, Experiment, Fault
from medtasks_ext.results.reading import of_all, unknown_tasks
from medtasks_ext.results.store.layout import DOCUMENTS, RESPONSES, RESULTS, StoredRun
from medtasks_ext.results.store.resample import Store, open_store
from medtasks_ext.results.store.tables import read_document_scores, read_experiments, read_samples
from medtasks_ext.runs.conditions import run_conditions


def read_store(folder: Path, tasks: Registry, faults: list[Fault]) -> list[Entry]:
    """The runs of a store, an entry for each, by model and start; labels are left to `told_apart`.

    Args:
        faults: what is found wrong is added here.

    Raises:
        MedtasksError: there is no store, it is damaged, or of another layout.
    """
    store = open_store(folder, tasks)
    runs = sorted(store.runs.values(), key=lambda run: (run.model, str(run.manifest.get("started"))))
    return [_entry(store, run, faults) for run in runs]


def _entry(store: Store, run: StoredRun, faults: list[Fault]) -> Entry:
    folder = store.folder / run.name
    experiments, unknown = read_experiments(folder, store.tasks, run)
    if unknown:
        faults.append(unknown_tasks(unknown, str(folder / RESULTS)))
    for item in experiments.values():
        _readers(store, run, item, faults)
    return Entry(
        model=run.model,
        label="",
        kind=run.kind,
        conditions=of_all(run_conditions(run.manifest), experiments),
        experiments=experiments,
        folders=(store.folder,),
        notes=tuple(run.notes),
        manifest=run.manifest,
    )


def _readers(store: Store, run: StoredRun, item: Experiment, faults: list[Fault]) -> None:
    """Let an experiment read what else is stored of it."""
    folder = store.folder / run.name
    if item.task in run.texts:
        item.read_samples = partial(read_samples, folder / RESPONSES, item.task)
    rows = run.documents.get(item.task)
    if rows is None:
        return
    path, statistic = folder / DOCUMENTS, score_statistic(item.dataset)
    if rows.statistic != statistic.name:
        what = f"the score was {rows.statistic}, and is {statistic.name} in this version"
        remedy = "medtasks rescore RUN, then ingest it again"
        faults.append(Fault(f"{path}, {item.task}", what, remedy, skipped=False))
        return
    item.read_documents = partial(read_document_scores, path, rows, statistic)
    item.read_resampled = partial(store.resampled, item.dataset.id, run.run, item.task)
