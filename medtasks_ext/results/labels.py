"""Scores on the documents with a label: a level of difficulty, a department, leaked or clean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from medtasks_ext.errors import MedtasksError
from medtasks_ext.hooks import LABELS, results
from medtasks_ext.results.experiments import Entry, Experiment, Fault
from medtasks_ext.results.frames import table_of
from medtasks_ext.stats.intervals import Interval, of_tasks

if TYPE_CHECKING:
    import pyarrow as pa

    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Registry
    from medtasks_ext.results.document_scores import DocumentScores


@dataclass(frozen=True)
class Labels:
    axis: str  # what the labels are: `difficulty`, `department`, `contamination`
    task: str  # whose documents were labelled
    tasks: frozenset[str]  # tasks with the same documents, this one among them
    origin: str  # of the rows
    rows_hash: str  # identifies the documents as that task asks them
    by_question: Mapping[str, tuple[str, ...]]  # id of a question -> its labels, none or several
    values: tuple[str, ...]  # the labels in the order of display
    where: str  # the file that says it
    model: str | None = None  # whose answers they are about; None where they are about the questions
    #: whose words `rows_hash` is taken in; None for those of the runs that the labels come from
    wording: str | None = None

    @property
    def sources(self) -> list[str]:
        """The name of the file that says it; none where the rows do."""
        return [] if self.where == self.task else [Path(self.where).name]

    def of(self, document: str) -> tuple[str, ...] | None:
        """The labels of a document by its question's id, or that and its trial; None: not known."""
        return self.by_question.get(document, self.by_question.get(document.rpartition("#")[0]))


def labelled(item: Experiment, labels: Labels) -> DocumentScores:
    """Its documents; MedtasksError where these have no scores, or the labels are of other documents."""
    if item.read_documents is None:
        raise MedtasksError(
            "has no scores of its documents", where=item.task, remedy="run lm_eval with --log_samples"
        )
    scores = item.read_documents()
    asked_alike = item.task == labels.task and labels.wording in (None, item.loaded.get("instruction"))
    other = asked_alike and item.loaded.get("rows_hash") != labels.rows_hash
    n = sum(labels.of(document) is None for document in scores.documents)
    if other or n or item.loaded.get("origin") != labels.origin:
        missing = f"; {n:,} of {len(scores.documents):,} documents are not in it" if n else ""
        what = f"says {labels.axis} of other rows than {item.task} was asked here{missing}"
        raise MedtasksError(what, where=labels.where, remedy="label the rows that this run was asked")
    return scores


def _with_label(scores: DocumentScores, labels: Labels, value: str) -> DocumentScores | None:
    places = [place for place, name in enumerate(scores.documents) if value in (labels.of(name) or ())]
    return scores.at(places) if scores.scored[places].any() else None


def restricted(item: Experiment, labels: Labels, value: str) -> Experiment | None:
    """An experiment on its documents with a label; None where none of them has a score."""
    some = _with_label(labelled(item, labels), labels, value)
    if some is None:
        return None
    interval = some.interval(item.dataset.id)
    return replace(
        item,
        metrics={"score": some.value, **{k: v for k, v in item.metrics.items() if k == "judged"}},
        intervals={} if interval is None else {"score": interval},
        n=len(some.documents),
        conditions=replace(item.conditions, documents=f"{labels.axis} {value}", n=len(some.documents)),
        read_resampled=lambda: some.draws(item.dataset.id),
        read_documents=lambda: some,
        read_samples=None,
    )


def own_labels(item: Experiment) -> list[Labels]:
    """What an experiment's rows say of themselves: levels of difficulty, and the labels of its suite.

    A run without its samples says nothing: its scores need them no more.
    """
    rows = item.dataset.blocks.get("rows", {})
    schemas = [rows, *rows.get("schemas", ())]
    named = {name for one in schemas for key in ("columns", "optional") for name in one.get(key, ())}
    # labels that the rows may have: samples of others need not be read
    columns = {name: label for name, label in item.dataset.suite.labels.items() if name in named}
    if item.read_samples is None or item.score is None or not columns:
        return []
    try:
        documents: list[Any] = [sample["doc"] for sample in item.read_samples()]
    except MedtasksError:
        return []
    origin, rows_hash = str(item.loaded.get("origin")), str(item.loaded.get("rows_hash"))
    of_rows = []
    for column, label in columns.items():
        by_question = {}
        for document in documents:
            said = document.get(column) or []
            question = str(document.get("item") or document["id"])
            by_question[question] = label.shown([said] if isinstance(said, str) else said)
        if any(by_question.values()):
            of_whom = column, item.task, frozenset({item.task}), origin, rows_hash
            of_rows.append(Labels(*of_whom, by_question, values=label.order, where=item.task))
    return of_rows


#: A score, its interval, and the documents behind it.
_Figures: TypeAlias = "tuple[float, Interval | None, int]"
_OF_PART = ("score", "interval_low", "interval_high", "documents")
_OF_ALL = ("score_of_all", "of_all_low", "of_all_high", "documents_of_all")


def label_scores(
    entries: Sequence[Entry], labels: Sequence[Labels], tasks: Registry
) -> tuple[pa.Table, list[Fault]]:
    """Scores by label of each entry, suite and strategy (frame `labels`), and what labels were no use for.

    A score is a mean over the tasks that have such documents, each counting once; beside it stands that of
    the same tasks on all of their documents. A file goes before what rows say themselves.
    """
    faults: list[Fault] = []
    asked: set[tuple[str, str]] = set()
    known: dict[tuple[str, Any], list[Labels]] = {}
    rows: list[Json] = []
    for entry in entries:
        #: (suite, strategy, axis) -> label -> of each task with such documents: part, all, who says it
        found: dict[tuple[str, ...], dict[str, list[tuple[_Figures, _Figures, list[str]]]]] = {}
        for item in entry.experiments.values():
            if item.score is None or not item.dataset.metadata.grouped:
                continue
            asked.add((item.task, entry.model))
            whole = item.score, item.intervals.get("score"), item.n
            for one in _labels_of(entry, item, labels, known):
                try:
                    scores = labelled(item, one)
                except MedtasksError as error:
                    faults.append(Fault(str(error.where or item.task), error.what, error.remedy))
                    continue
                of_labels = found.setdefault((item.dataset.suite.id, item.strategy, one.axis), {})
                for value in one.values:
                    of_value = of_labels.setdefault(value, [])
                    if some := _with_label(scores, one, value):
                        part = some.value, some.interval(item.dataset.id), len(some.documents)
                        of_value.append((part, whole, one.sources))
        rows += (
            _row(entry, place, value, some)
            for place, values in found.items()
            for value, some in values.items()
            if some
        )
    for given in labels:
        if not any(task in given.tasks and given.model in (None, model) for task, model in asked):
            of = f" by {given.model}" if given.model else ""
            what = f"no run here has a score of {given.task}{of}, whose {given.axis} it says"
            faults.append(Fault(given.where, what, "name a run of this task", skipped=False))
    return table_of("labels", rows), faults


def _labels_of(
    entry: Entry,
    item: Experiment,
    labels: Sequence[Labels],
    known: dict[tuple[str, Any], list[Labels]],
) -> list[Labels]:
    """Of files, and what the rows say of other axes: models that were asked the same rows share it."""
    given = [one for one in labels if item.task in one.tasks and one.model in (None, entry.model)]
    axes, key = {one.axis for one in given}, (item.task, item.loaded.get("rows_hash"))
    if item.dataset.suite.labels.keys() <= axes:
        return given
    own = known.get(key) or own_labels(item)
    if key[1]:
        known[key] = own
    return [*given, *(one for one in own if one.axis not in axes)]


def _row(
    entry: Entry, place: Sequence[str], value: str, found: Sequence[tuple[_Figures, _Figures, list[str]]]
) -> Json:
    *sides, sources = zip(*found, strict=True)
    row: Json = {
        **{"entry": entry.label, "model": entry.model, "sample": entry.sample},
        **dict(zip(("suite", "strategy", "axis"), place, strict=True)),
        **{"value": value, "tasks": len(found), "sources": sorted({*chain.from_iterable(sources)})},
    }
    for figures, names in zip(sides, (_OF_PART, _OF_ALL), strict=True):
        scores, intervals, sizes = zip(*figures, strict=True)
        interval = of_tasks([1 / len(found)] * len(found), scores, intervals, sizes)
        low, high = (interval.low, interval.high) if interval else (None, None)
        row.update(zip(names, (float(np.mean(scores)), low, high, sum(sizes)), strict=True))
    return row


_REMEDY = "name files of `medtasks study difficulty` or `departments`, or the folder of a contamination probe"


def read_labels(paths: Iterable[Path], tasks: Registry) -> list[Labels]:
    """The labels in files of studies, or in folders of such files."""
    labels = [one for path in paths for one in _read(path, tasks)]
    seen: dict[tuple[str, str, str | None], str] = {}
    for one in labels:
        if (other := seen.setdefault((one.axis, one.task, one.model), one.where)) is not one.where:
            what = f"{one.axis} of {one.task} is in {other}, too"
            raise MedtasksError(what, where=one.where, remedy="name one of the files")
    return labels


def _read(path: Path, tasks: Registry) -> list[Labels]:
    for _, labels_in in results(LABELS):
        labels: list[Labels] | None = labels_in(path, tasks)
        if labels is not None:
            return labels
    raise MedtasksError("holds no labels of documents", where=path, remedy=_REMEDY)
