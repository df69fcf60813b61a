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
from medtasks_ext.results.store.tables import lacking, read_document_scores, read_experiments, read_samples
from medtasks_ext.runs.conditions import run_conditions


def read_store(folder: Path, tasks: Registry, faults: list[Fault]) -> list[Entry]:
    """The runs of a store, an entry for each, by model and start; labels are left to `label_entries`.

    Args:
        faults: what is found wrong is added here.

    Raises:
        MedtasksError: there is no store, it is damaged, or of another layout.
    """
    store = open_store(folder, tasks)
    runs = sorted(store.runs.values(), key=lambda run: (run.model, str(run.manifest.get("started"))))
    return [stored_entry(store, run, faults) for run in runs]


def stored_entry(store: Store, run: StoredRun, faults: list[Fault]) -> Entry:
    """A run of a store; what an earlier version did not keep of it is a note."""
    experiments, unknown = read_experiments(store.folder, store.tasks, run)
    if unknown:
        faults.append(unknown_tasks(unknown, str(store.folder / run.tables(RESULTS)[0])))
    for item in experiments.values():
        _readers(store, run, item, faults)
    return Entry(
        model=run.model,
        label="",
        kind=run.kind,
        conditions=of_all(run_conditions(run.manifest), experiments),
        experiments=experiments,
        folders=(store.folder,),
        notes=(*run.notes, *_note(lacking(store.folder, run))),
        manifest=run.manifest,
    )


def _note(lacked: list[str]) -> list[str]:
    what = ", ".join(dict.fromkeys(lacked))
    return [f"stored by an earlier version, without {what}: ingest the run's folder again"] if lacked else []


def _readers(store: Store, run: StoredRun, item: Experiment, faults: list[Fault]) -> None:
    """Let an experiment read what else is stored of it."""
    if item.task in run.texts:
        texts = store.folder / run.table_of(RESPONSES, item.task)
        item.read_samples = partial(read_samples, texts, item.task)
    rows = run.documents.get(item.task)
    if rows is None:
        return
    path = store.folder / run.table_of(DOCUMENTS, item.task)
    statistic = score_statistic(item.dataset, item.strategy)
    if rows.statistic != statistic.name:
        what = f"the score was {rows.statistic}, and is {statistic.name} in this version"
        remedy = "medtasks rescore RUN, then ingest it again"
        faults.append(Fault(f"{path}, {item.task}", what, remedy, skipped=False))
        return
    item.read_documents = partial(read_document_scores, path, rows, statistic)
    item.read_resampled = partial(store.resampled, item.dataset.id, run.run, item.task)
