"""Putting runs into a store."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from medtasks_ext import __version__
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
from medtasks_ext.runner.store import document_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa

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


@dataclass
class _Bundle:
    """Experiments of one suite and strategy, and what was found wrong with them."""

    entry: Entry
    run: StoredRun
    experiments: list[Experiment]
    path: str
    lacking: list[tuple[str, MedtasksError]] = field(default_factory=list)


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
        paths: folders of runs, or results files, as `read_results` takes them.
        folder: of the store; made where there is none.
        tasks: the registry.
        with_text: store responses and lm-eval's records, texts of gated and private data among them.
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
    done: dict[str, Ingested] = {}
    with changing(folder, waiting) as change:
        known = stored_runs(folder)
        for path in paths:
            for entry in read_runs(path, tasks, faults):
                item = _ingest(entry, known, done, change, with_text, faults)
                if item is not None:
                    report(item)
        if change:
            if not (folder / INFO).is_file():
                change.write_json(INFO, {"schema": SCHEMA, "medtasks": __version__})
            change.commit()
    return list(done.values()), faults


def _ingest(
    entry: Entry,
    known: dict[str, StoredRun],
    done: dict[str, Ingested],
    change: Change,
    with_text: bool,
    faults: list[Fault],
) -> Ingested | None:
    place = str(entry.folders[0])
    if not entry.experiments:
        faults.append(Fault(place, "no task has results, so nothing is stored of it", "finish the run first"))
        return None
    name = run_id(entry)
    mark = fingerprint(_files(entry, with_text), entry.experiments, text=with_text)
    former = known.get(name)
    if name in done:
        if former is None or former.fingerprint != mark:
            raise MedtasksError(
                f"is the same run as {done[name].folder}, in another state", where=place, remedy="name one of them"
            )
        return None
    if former is not None and former.fingerprint == mark:
        done[name] = _ingested(former, entry, "unchanged")
        return done[name]
    run = _store(entry, name, mark, change, with_text, faults)
    if former is not None:
        change.delete(sorted({*former.files()} - {*run.files()}))
    known[name] = run
    done[name] = _ingested(run, entry, "new" if former is None else "replaced")
    return done[name]


def _ingested(run: StoredRun, entry: Entry, state: State) -> Ingested:
    documents = sum(item.n for item in entry.experiments.values())
    return Ingested(
        run=run.run,
        model=run.model,
        folder=str(entry.folders[0]),
        state=state,
        tasks=len(entry.experiments),
        documents=documents,
        sample=entry.sample,
        text=run.text,
    )


def _files(entry: Entry, with_text: bool) -> Iterator[Path]:
    """The files that what is stored of a run follows from."""
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


def _store(
    entry: Entry, name: str, mark: str, change: Change, with_text: bool, faults: list[Fault]
) -> StoredRun:
    """Stage all files of a run."""
    run = StoredRun(
        run=name,
        fingerprint=mark,
        kind=entry.kind,
        model=entry.model,
        folder=str(entry.folders[0].resolve()),
        text=with_text,
        notes=list(entry.notes),
        manifest=_without_text(entry.manifest),
    )
    lacking: list[tuple[str, MedtasksError]] = []
    for bundle in _bundles(entry, run):
        write(change.new(f"{RESULTS}/{bundle.path}"), results_table(name, entry.settings, bundle.experiments), mark)
        documents = _store_documents(bundle, change)
        responses = with_text and _store_responses(bundle, change)
        run.parts.append(Part(bundle.path, documents, responses))
        lacking += bundle.lacking
    change.write_json(run.file(), run.content())
    if lacking:
        faults.append(_fault(entry, lacking))
    return run


def _bundles(entry: Entry, run: StoredRun) -> Iterator[_Bundle]:
    """Experiments by suite and strategy, each in the order of datasets: files are read in that order."""
    found: dict[tuple[str, str], list[Experiment]] = {}
    for item in sorted(entry.experiments.values(), key=lambda item: item.dataset.id):
        found.setdefault((item.dataset.metadata.benchmark, item.strategy), []).append(item)
    for (suite, strategy), experiments in sorted(found.items()):
        path = f"{partition(suite, entry.model, strategy)}/{run.run}.parquet"
        yield _Bundle(entry, run, experiments, path)


def _store_documents(bundle: _Bundle, change: Change) -> dict[str, Rows]:
    import pyarrow as pa

    tables: list[pa.Table] = []
    rows: dict[str, Rows] = {}
    first = 0
    for item in bundle.experiments:
        try:
            scores = _documents(item)
        except MedtasksError as error:
            bundle.lacking.append((item.task, error))
            continue
        if scores is not None:
            table = documents_table(item.task, bundle.run.run, item.sample, scores)
            rows[item.task] = rows_of(first, table, scores)
            tables.append(table)
            first += table.num_rows
    if tables:
        file = change.new(f"{DOCUMENTS}/{bundle.path}")
        write(file, pa.concat_tables(tables), bundle.run.fingerprint)
    return rows


def _documents(item: Experiment) -> DocumentScores | None:
    if item.read_documents is None:
        return None
    scores = item.read_documents()
    odd = np.flatnonzero(~np.isfinite(scores.counts).all(axis=1))
    if len(odd):
        raise MedtasksError(
            f"{len(odd)} of {len(scores.documents)} scores are no numbers (place {odd[0] + 1} is the first)",
            where=item.task,
            remedy="medtasks rescore RUN",
        )
    return scores


def _store_responses(bundle: _Bundle, change: Change) -> bool:
    """Store texts; whether there are any."""
    found = []
    for item in bundle.experiments:
        if item.read_samples is not None:
            found.append(item)
    if not found:
        return False
    file = change.new(f"{RESPONSES}/{bundle.path}")
    with closing(Responses(file, bundle.run.run, bundle.run.fingerprint)) as responses:
        for item in found:
            try:
                samples = item.read_samples() if item.read_samples else []
                responses.add(item.task, [document_key(sample["doc"]) for sample in samples], samples)
            except MedtasksError as error:
                bundle.lacking.append((item.task, error))
    return True


def _fault(entry: Entry, lacking: list[tuple[str, MedtasksError]]) -> Fault:
    task, error = lacking[0]
    names = dict(lacking)
    return Fault(
        str(entry.folders[0]),
        f"{len(names)} of {len(entry.experiments)} tasks go in without documents or texts, "
        f"so without paired comparisons (first: {task}: {error.what})",
        error.remedy or "medtasks rescore RUN",
    )


def _without_text(manifest: dict[str, Any]) -> dict[str, Any]:
    """A run's manifest; of errors that this package did not word only the kind, since they may quote rows."""
    states = {}
    for task, state in manifest.get("tasks", {}).items():
        kept = {key: state[key] for key in state if key != "traceback"}
        if state.get("traceback"):
            kept["error"] = state["traceback"].strip().rpartition("\n")[2].partition(":")[0]
        states[task] = kept
    return {**manifest, "tasks": states} if states else manifest
