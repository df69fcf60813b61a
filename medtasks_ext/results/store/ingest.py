"""Putting runs into a store."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from medtasks_ext import __version__
from medtasks_ext.data.documents import document_key
from medtasks_ext.errors import MedtasksError
from medtasks_ext.results.experiments import Fault
from medtasks_ext.results.reading import check_runs, read_runs, samples_file
from medtasks_ext.results.store.change import changing
from medtasks_ext.results.store.layout import (
    DOCUMENTS,
    INFO,
    RESPONSES,
    RESULTS,
    SCHEMA,
    Part,
    Rows,
    StoredRun,
    check_folder,
    fingerprint,
    is_store,
    partition,
    run_id,
    stored_runs,
)
from medtasks_ext.results.store.tables import Responses, documents_table, results_table, rows_of, write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from medtasks_ext.registry import Registry
    from medtasks_ext.results.document_scores import DocumentScores
    from medtasks_ext.results.experiments import Entry, Experiment
    from medtasks_ext.results.store.change import Change

State = Literal["new", "replaced", "unchanged"]


@dataclass(frozen=True)
class Ingested:
    """What became of one run.

    Attributes:
        run: its id in the store.
        model: as its user names it.
        folder: where it was read.
        state: of its files in the store.
        tasks: that are stored.
        documents: of these tasks.
        sample: whether rows are synthetic.
        text: whether texts are stored.
    """

    run: str
    model: str
    folder: str
    state: State
    tasks: int
    documents: int
    sample: bool
    text: bool


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
        tasks: the registry.
        with_text: store lm-eval's records with all texts, those of gated and private data among them.
        report: called with each run when it is ready.
        waiting: called if another ingest is at work.

    Returns:
        What became of each run, and what was left out or must be known.

    Raises:
        MedtasksError: a path holds no runs, or the folder can be no store.
    """
    check_folder(folder)
    for path in paths:
        if is_store(path):
            raise MedtasksError("is a store, not a run", where=path, remedy="name the folders of runs")
        check_runs(path)
    faults: list[Fault] = []
    with changing(folder, waiting) as change, ThreadPoolExecutor(os.cpu_count()) as pool:
        work = _Ingest(folder, change, pool, with_text, faults)
        for path in paths:
            for entry in read_runs(path, tasks, faults):
                item = work.take(entry)
                if item is not None:
                    report(item)
        if change:
            if not (folder / INFO).is_file():
                change.write_json(INFO, {"schema": SCHEMA, "medtasks": __version__})
            change.commit()
    return list(work.done.values()), faults


class _Ingest:
    """The runs of one call."""

    def __init__(
        self, folder: Path, change: Change, pool: ThreadPoolExecutor, with_text: bool, faults: list[Fault]
    ) -> None:
        self.known = stored_runs(folder)
        self.change, self.pool, self.with_text, self.faults = change, pool, with_text, faults
        self.done: dict[str, Ingested] = {}
        self._lacking: dict[str, MedtasksError] = {}

    def take(self, entry: Entry) -> Ingested | None:
        """Stage a run unless it is stored; None if there is nothing to store or it was given twice."""
        place = str(entry.folders[0])
        if not entry.experiments:
            self.faults.append(
                Fault(place, "no task has results, so nothing of it is stored", "finish the run first")
            )
            return None
        name = run_id(entry)
        mark = fingerprint(_files(entry, self.with_text), entry.experiments, text=self.with_text)
        former = self.known.get(name)
        same = former is not None and former.fingerprint == mark
        if name in self.done:
            if same:
                return None
            raise MedtasksError(
                f"is the run of {self.done[name].folder}, in another state",
                where=place,
                remedy="name one of the two",
            )
        if not same:
            self.known[name] = self._store(entry, name, mark)
            self._replace(former, self.known[name])
        self.done[name] = Ingested(
            run=name,
            model=entry.model,
            folder=place,
            state="unchanged" if same else "new" if former is None else "replaced",
            tasks=len(entry.experiments),
            documents=sum(item.n for item in entry.experiments.values()),
            sample=entry.sample,
            text=self.with_text,
        )
        return self.done[name]

    def _replace(self, former: StoredRun | None, run: StoredRun) -> None:
        if former is not None:
            self.change.delete(sorted({*former.files()} - {*run.files()}))
        self.change.write_json(run.file(), run.content())

    def _store(self, entry: Entry, name: str, mark: str) -> StoredRun:
        """Stage the tables of a run."""
        self._lacking = {}
        parts = []
        for path, experiments in _by_file(entry, name):
            table = results_table(name, entry.settings, experiments)
            write(self.change.new(f"{RESULTS}/{path}"), table, mark)
            documents = self._store_documents(path, experiments, name, mark)
            texts = self.with_text and self._store_texts(path, experiments, name, mark)
            parts.append(Part(path, documents, texts))
        if self._lacking:
            self.faults.append(_fault(entry, self._lacking))
        return StoredRun(
            run=name,
            fingerprint=mark,
            kind=entry.kind,
            model=entry.model,
            folder=str(entry.folders[0].resolve()),
            text=self.with_text,
            notes=list(entry.notes),
            manifest=_without_text(entry.manifest),
            parts=parts,
        )

    def _store_documents(
        self, path: str, experiments: Sequence[Experiment], name: str, mark: str
    ) -> dict[str, Rows]:
        """Stage the documents of tasks that have them; where those of each lie."""
        found: list[tuple[Experiment, DocumentScores]] = []
        for item, scores in zip(experiments, self.pool.map(_documents, experiments), strict=True):
            if isinstance(scores, MedtasksError):
                self._lacking[item.task] = scores
            elif scores is not None:
                found.append((item, scores))
        # what follows from `score` lies together, so that `counts` need not be read with it
        found.sort(key=lambda pair: pair[1].statistic.name)
        tables, rows, first = [], {}, 0
        for item, scores in found:
            tables.append(documents_table(item.task, name, item.sample, scores))
            rows[item.task] = rows_of(first, tables[-1], scores)
            first += tables[-1].num_rows
        if tables:
            write(self.change.new(f"{DOCUMENTS}/{path}"), pa.concat_tables(tables), mark)
        return rows

    def _store_texts(self, path: str, experiments: Sequence[Experiment], name: str, mark: str) -> bool:
        """Stage the texts of tasks that have them; whether there are any."""
        readers = [(item.task, item.read_samples) for item in experiments if item.read_samples is not None]
        if not readers:
            return False
        with closing(Responses(self.change.new(f"{RESPONSES}/{path}"), name, mark)) as responses:
            for task, read in readers:
                try:
                    samples = read()
                except MedtasksError as error:
                    self._lacking[task] = error
                    continue
                responses.add(task, [document_key(sample["doc"]) for sample in samples], samples)
        return True


def _files(entry: Entry, with_text: bool) -> Iterator[Path]:
    """The files from which follows what is stored of a run."""
    place = entry.folders[0]
    if entry.kind == "lm_eval":
        yield place
        yield from (samples_file(place, task) for task in entry.experiments)
        return
    yield place / "run.json"
    for task in entry.experiments:
        yield from (place / "tasks" / f"{task}.{suffix}" for suffix in ("json", "parquet"))
        if with_text:
            yield from (place / f"samples_{task}.jsonl", place / "judgements" / f"{task}.json")


def _by_file(entry: Entry, name: str) -> Iterator[tuple[str, list[Experiment]]]:
    """Experiments that share their files, in the order of datasets: models are read side by side in it."""
    found: dict[tuple[str, str], list[Experiment]] = {}
    for item in sorted(entry.experiments.values(), key=lambda item: item.dataset.id):
        found.setdefault((item.dataset.metadata.suite, item.strategy), []).append(item)
    for (suite, strategy), experiments in sorted(found.items()):
        yield f"{partition(suite, entry.model, strategy)}/{name}.parquet", experiments


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
