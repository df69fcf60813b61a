"""Reading a store: its runs as lines of a leaderboard."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from medtasks_ext.registry import Registry
from medtasks_ext.results.document_scores import score_statistic
from medtasks_ext.results.experiments import Entry, Experiment, Fault
from medtasks_ext.results.reading import of_all, unknown_tasks
from medtasks_ext.results.store.layout import DOCUMENTS, RESPONSES, RESULTS, StoredRun, stored_runs
from medtasks_ext.results.store.tables import read_document_scores, read_experiments, read_samples
from medtasks_ext.runs.conditions import run_conditions
from medtasks_ext.stats.statistic import Array


class Store:
    """A store as it was when it was opened.

    Attributes:
        folder: where it lies.
        tasks: the registry.
        runs: id -> run.
    """

    def __init__(self, folder: Path, tasks: Registry, runs: dict[str, StoredRun]) -> None:
        self.folder, self.tasks, self.runs = folder, tasks, runs
        self._resampled: dict[tuple[str, str], Array] = {}
        self._datasets: set[str] = set()

    def resampled(self, dataset: str, run: str, task: str) -> Array | None:
        """A score on each resample, (resamples,); computed for all models at once, and kept.

        The first dataset that is asked for is read alone. Who asks for a second wants them all, and
        reading them together is many times faster.
        """
        if dataset not in self._datasets:
            self._compute(None if self._datasets else [dataset])
        return self._resampled.get((run, task))

    def _compute(self, datasets: list[str] | None) -> None:
        from medtasks_ext.results.store.resample import task_bootstrap

        for item in task_bootstrap(self, datasets):
            self._resampled.update(zip(item.experiments, item.resampled, strict=True))
        self._datasets.update(self.tasks.datasets if datasets is None else datasets)


def open_store(folder: Path, tasks: Registry) -> Store:
    """Open a store for `task_bootstrap`.

    Raises:
        MedtasksError: there is none, it is damaged, or of another layout.
    """
    return Store(folder, tasks, stored_runs(folder))


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
    path = store.folder / run.name / RESULTS
    found, unknown = read_experiments(path, store.tasks, run.manifest)
    if unknown:
        faults.append(unknown_tasks(unknown, str(path)))
    for item in found:
        _readers(store, run, item, faults)
    experiments = {item.task: item for item in found}
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
