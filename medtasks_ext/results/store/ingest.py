"""Putting runs into a store."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from filelock import FileLock, Timeout

from medtasks_ext.atomic import private_files, sync_folder
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import write_json
from medtasks_ext.registry import Registry
from medtasks_ext.results.document_scores import DocumentScores
from medtasks_ext.results.experiments import Entry, Experiment, Fault
from medtasks_ext.results.reading import check_runs, read_runs, samples_file
from medtasks_ext.results.store.layout import (
    LOCK,
    RUN,
    SCHEMA,
    STAGING,
    StoredRun,
    check_folder,
    fingerprint,
    folder_name,
    is_store,
    layout_of,
    read_index,
    remove_divided,
    run_id,
    sweep,
    write_index,
)
from medtasks_ext.results.store.read import stored_entry
from medtasks_ext.results.store.resample import Store, open_store
from medtasks_ext.results.store.tables import write_documents, write_responses, write_results
from medtasks_ext.runs.folder import RunFolder


@dataclass(frozen=True)
class Ingested:
    """What became of one run."""

    run: str  # its id in the store
    model: str  # as its user names it
    folder: str  # where it was read
    state: Literal["new", "replaced", "unchanged"]  # of its files in the store
    tasks: int  # that are stored
    documents: int  # of these tasks
    sample: bool  # whether rows are synthetic
    text: bool  # whether texts are stored


def ingest(
    paths: Sequence[Path],
    folder: Path,
    tasks: Registry,
    *,
    with_text: bool = False,
    report: Callable[[Ingested], None] = lambda item: None,
    waiting: Callable[[], None] = lambda: None,
) -> tuple[list[Ingested], list[Fault]]:
    """Put runs into a store: all of them, or none if something goes wrong on the way.

    A run that is stored as it is now is left alone; one that went on or was scored again takes the place of
    its former state.

    Args:
        paths: folders of runs, or results files, as `read_runs` takes them.
        folder: of the store; made where there is none.
        with_text: store lm-eval's records with all texts, those of gated and private data among them: what is
            written is its owner's alone.
        report: called with each run when it is ready.
        waiting: called if another ingest is at work.

    Returns:
        What became of each run, and what was left out or must be known.

    Raises:
        MedtasksError: a path holds no runs, or the folder can be no store or cannot be written to.
    """
    check_folder(folder)
    for path in paths:
        if is_store(path):
            raise MedtasksError("is a store, not a run", where=path, remedy="name the folders of runs")
        check_runs(path)
    with private_files(with_text), _alone(folder, waiting), ThreadPoolExecutor(os.cpu_count()) as pool:
        work = _Ingest(folder, tasks, pool, with_text)
        for path in paths:
            for entry in read_runs(path, tasks, work.faults):
                item = work.take(entry)
                if item is not None:
                    report(item)
        work.commit()
    return list(work.done.values()), work.faults


@contextmanager
def _alone(folder: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """One ingest at a time; before and after it, the store holds nothing that does not count."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / LOCK)
        try:
            held = lock.acquire(timeout=0.5)
        except Timeout:
            waiting()
            held = lock.acquire()
        with held:
            check_folder(folder)
            try:
                sweep(folder)
                yield
            finally:
                sweep(folder)
    except (OSError, NotImplementedError) as error:  # no room, no permission, no locks on this file system
        remedy = "mend that and ingest again; nothing is lost"
        raise MedtasksError(f"the ingest stopped: {error}", where=folder, remedy=remedy) from None


class _Ingest:
    """The runs of one call; nothing of them counts before `commit`."""

    def __init__(self, folder: Path, tasks: Registry, pool: ThreadPoolExecutor, with_text: bool) -> None:
        self.folder, self.tasks, self.pool, self.with_text = folder, tasks, pool, with_text
        self.done: dict[str, Ingested] = {}
        self.faults: list[Fault] = []
        self._index = read_index(folder) if is_store(folder) else {}
        self._staging = Path(tempfile.mkdtemp(prefix=STAGING, dir=folder))

    def take(self, entry: Entry) -> Ingested | None:
        """Write a run unless it is stored; None if there is nothing to store or it was given twice."""
        place = str(entry.folders[0])
        if not entry.experiments:
            self.faults.append(
                Fault(place, "no task has results, so nothing of it is stored", "finish the run first")
            )
            return None
        run = run_id(entry)
        state = fingerprint(_files(entry, self.with_text), entry.experiments, text=self.with_text)
        name, former = folder_name(run, state), self._index.get(run)
        if run in self.done:
            if former == name:
                return None
            raise MedtasksError(
                f"is the run of {self.done[run].folder}, in another state",
                where=place,
                remedy="name one of the two",
            )
        same = former == name and (self.folder / name).is_dir()
        if not same:
            place_of_run = str(entry.folders[0].resolve())
            self._write(entry, run, state, folder=place_of_run, with_text=self.with_text)
            self._index[run] = name
        self.done[run] = Ingested(
            run=run,
            model=entry.model,
            folder=place,
            state="unchanged" if same else "new" if former is None else "replaced",
            tasks=len(entry.experiments),
            documents=sum(item.n for item in entry.experiments.values()),
            sample=entry.sample,
            text=self.with_text,
        )
        return self.done[run]

    def commit(self) -> None:
        """Move what was written into place, and let it count; runs of an earlier layout are converted."""
        former: list[StoredRun] = []
        if is_store(self.folder) and layout_of(self.folder) < SCHEMA:
            store = open_store(self.folder, self.tasks)
            former = [run for run in store.runs.values() if run.run in self.done or self._convert(store, run)]
        written = sorted(self._staging.iterdir())
        for place in written:
            place.rename(self.folder / place.name)
        if written:
            sync_folder(self.folder)
            write_index(self._staging, self.folder, self._index)
            remove_divided(self.folder, [run for run in former if run.parts])

    def _convert(self, store: Store, run: StoredRun) -> bool:
        """Write a run of an earlier layout anew: the folder that it was read from may be gone.

        Returns:
            Whether it was; a run of which that cannot be done whole stays as it is, and is read so.
        """
        faults: list[Fault] = []
        entry = stored_entry(store, run, faults)
        if faults:
            return False
        state = fingerprint([], [run.state, *entry.experiments], text=bool(run.texts))
        self._write(entry, run.run, state, folder=run.folder, with_text=bool(run.texts))
        self._index[run.run] = folder_name(run.run, state)
        return True

    def _write(self, entry: Entry, run: str, state: str, *, folder: str, with_text: bool) -> None:
        place = self._staging / folder_name(run, state)
        place.mkdir()
        # models are read side by side in the order of datasets
        experiments = sorted(entry.experiments.values(), key=lambda item: (item.dataset.id, item.strategy))
        lacking: dict[str, MedtasksError] = {}
        scored: list[tuple[Experiment, DocumentScores]] = []
        for item, scores in zip(experiments, self.pool.map(_documents, experiments), strict=True):
            if isinstance(scores, MedtasksError):
                lacking[item.task] = scores
            elif scores is not None:
                scored.append((item, scores))
        write_results(place, run, entry.part({item.task: item for item in experiments}), self.tasks)
        documents = write_documents(place, entry.model, run, scored)
        texts = write_responses(place, entry.model, run, experiments, lacking) if with_text else []
        stored = StoredRun(
            run=run,
            state=state,
            kind=entry.kind,
            model=entry.model,
            folder=folder,
            notes=list(entry.notes),
            manifest=_without_text(entry.manifest),
            documents=documents,
            texts=texts,
            layout=SCHEMA,
        )
        write_json(place / RUN, stored.model_dump())
        if lacking:
            self.faults.append(_fault(entry, lacking))


def _files(entry: Entry, with_text: bool) -> Iterator[Path]:
    """The files from which follows what is stored of a run."""
    place = entry.folders[0]
    if entry.kind == "lm_eval":
        yield place
        yield from (samples_file(place, task) for task in entry.experiments)
        return
    files = RunFolder(place)
    yield files.manifest
    for task in entry.experiments:
        yield from (files.task_file(task), files.scores_file(task))
        if with_text:
            yield from (files.samples_file(task), files.judged_file(task))


def _documents(item: Experiment) -> DocumentScores | MedtasksError | None:
    """What the documents contributed; why that is not known; None where a run has logged none."""
    if item.read_documents is None:
        return None
    try:
        scores = item.read_documents()
    except MedtasksError as error:
        return error
    odd = np.flatnonzero(~np.isfinite(scores.counts).all(axis=1))
    if not len(odd):
        return scores
    what = f"{len(odd)} of {len(scores.documents)} scores are not numbers (the first at place {odd[0] + 1})"
    return MedtasksError(what, remedy="medtasks rescore RUN")


def _fault(entry: Entry, lacking: dict[str, MedtasksError]) -> Fault:
    task, error = next(iter(lacking.items()))
    return Fault(
        str(entry.folders[0]),
        f"{len(lacking)} of {len(entry.experiments)} tasks lack documents or texts, so that nothing can be "
        f"resampled or shown of them (first: {task}: {error.what})",
        error.remedy or "medtasks rescore RUN",
    )


def _without_text(manifest: dict[str, Any]) -> dict[str, Any]:
    """A run's manifest; of unforeseen errors the kind alone, since what they say may quote a row."""
    if "tasks" not in manifest:
        return manifest
    states = {}
    for task, state in manifest["tasks"].items():
        states[task] = {key: value for key, value in state.items() if key != "traceback"}
        if state.get("traceback"):
            states[task]["error"] = state["traceback"].strip().rpartition("\n")[2].partition(":")[0]
    return {**manifest, "tasks": states}
