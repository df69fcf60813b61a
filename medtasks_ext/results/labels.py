"""Scores on the documents with a label: a level of difficulty, a department, leaked or clean."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from medtasks_ext.errors import MedtasksError
from medtasks_ext.hooks import LABELS, loaded
from medtasks_ext.results.experiments import Entry, Experiment, Fault
from medtasks_ext.results.frames import table_of
from medtasks_ext.stats.intervals import Interval, of_tasks

if TYPE_CHECKING:
    import pyarrow as pa

    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Registry
    from medtasks_ext.results.document_scores import DocumentScores
    from medtasks_ext.stats.statistic import Array


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


def is_within(row: Json) -> bool:
    """Whether a row of the frame `labels` is of a value within another one, which has a row, too."""
    return ", " in row["value"]


@dataclass(frozen=True)
class Labelled:
    item: Experiment
    scores: DocumentScores  # of its documents
    labels: Labels

    @cached_property
    def places(self) -> Mapping[str, Array]:
        """Label -> the places of its documents, for the labels that some of them have."""
        by_value: dict[str, list[int]] = {}
        for place, document in enumerate(self.scores.documents):
            for value in dict.fromkeys(self.labels.of(document) or ()):
                by_value.setdefault(value, []).append(place)
        return {value: np.array(some) for value, some in by_value.items()}


def labelled(item: Experiment, labels: Labels) -> Labelled:
    """MedtasksError where its documents have no scores, or the labels are of other documents."""
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
    return Labelled(item, scores, labels)


def restricted(found: Labelled, value: str) -> Experiment | None:
    item, labels, scores = found.item, found.labels, found.scores
    places = found.places.get(value)
    if places is None or not scores.scored[places].any():
        return None
    some = scores.at(places)
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
    named = {name for schema in schemas for key in ("columns", "optional") for name in schema.get(key, ())}
    # labels that the rows may have: samples of others need not be read
    columns = {name: label for name, label in item.dataset.suite.labels.items() if name in named}
    if item.read_samples is None or item.score is None or not columns:
        return []
    try:
        documents: list[Mapping[str, Any]] = [{**sample["doc"]} for sample in item.read_samples()]
    except MedtasksError:
        return []
    labels_of_rows = []
    for column, label in columns.items():
        by_question = {}
        for document in documents:
            said = document.get(column) or []
            question = str(document.get("item") or document["id"])
            by_question[question] = label.shown([said] if isinstance(said, str) else said)
        if any(by_question.values()):
            labels_of_rows.append(
                Labels(
                    axis=column,
                    task=item.task,
                    tasks=frozenset({item.task}),
                    origin=str(item.loaded.get("origin")),
                    rows_hash=str(item.loaded.get("rows_hash")),
                    by_question=by_question,
                    values=label.order,
                    where=item.task,
                )
            )
    return labels_of_rows


def label_scores(
    entries: Sequence[Entry], labels: Sequence[Labels], tasks: Registry
) -> tuple[pa.Table, list[Fault]]:
    """Scores by label of each entry, suite and strategy (frame `labels`), and what labels were no use for.

    A score is a mean over the tasks that have such documents, each counting once; beside it stands that of
    the same tasks on all of their documents.

    What rows say themselves needs no file; a file goes before them.
    """
    faults: list[Fault] = []
    used: set[int] = set()
    known: dict[tuple[str, str], list[Labels]] = {}
    tables: list[tuple[Entry, str, str, str, list[Labelled]]] = []
    for entry in entries:
        places: dict[tuple[str, str, str], list[Labelled]] = {}
        for item in entry.experiments.values():
            if item.score is None or not item.dataset.metadata.grouped:
                continue
            try:
                for one in _of_item(entry, item, labels, used, faults, known):
                    place = (item.dataset.suite.id, item.strategy, one.labels.axis)
                    places.setdefault(place, []).append(one)
            except MedtasksError as error:
                faults.append(Fault(str(error.where or item.task), error.what, error.remedy))
        tables += ((entry, *place, some) for place, some in places.items())
    parts = _parts([one for *_, some in tables for one in some])
    rows = [row for table in tables for row in _scores(*table, parts)]
    for number, given in enumerate(labels):
        if number not in used:
            of = f" by {given.model}" if given.model else ""
            what = f"no run here has a score of {given.task}{of}, whose {given.axis} it says"
            faults.append(Fault(given.where, what, "name a run of this task", skipped=False))
    return table_of("labels", rows), faults


def _of_item(
    entry: Entry,
    item: Experiment,
    labels: Sequence[Labels],
    used: set[int],
    faults: list[Fault],
    known: dict[tuple[str, str], list[Labels]],
) -> Iterator[Labelled]:
    axes = set()
    for number, one in enumerate(labels):
        if item.task in one.tasks and one.model in (None, entry.model):
            used.add(number)
            axes.add(one.axis)
            try:
                yield labelled(item, one)
            except MedtasksError as error:
                faults.append(Fault(str(error.where), error.what, error.remedy))
    if item.dataset.suite.labels.keys() <= axes:
        return
    # models that were asked the same rows have in common what these name, and it is read once
    rows = item.loaded.get("rows_hash")
    own = known.get((item.task, str(rows))) if rows else None
    if own is None:
        own = own_labels(item)
        if rows and item.read_samples is not None:
            known[item.task, str(rows)] = own
    for one in own:
        if one.axis not in axes:
            yield labelled(item, one)


#: A score, its interval, and the documents behind it.
_Figures: TypeAlias = "tuple[float, Interval | None, int]"
#: (`id` of an experiment with labels, label) -> figures of its part
_Parts: TypeAlias = "dict[tuple[int, str], _Figures]"


def _figures(item: Experiment) -> _Figures:
    return item.score or 0.0, item.intervals.get("score"), item.n


def _parts(found: Iterable[Labelled]) -> _Parts:
    """Every part, dataset by dataset: models that were asked the same documents share their resamples."""
    by_dataset: dict[str, dict[int, Labelled]] = {}
    for one in found:
        by_dataset.setdefault(one.item.dataset.id, {})[id(one)] = one
    return {
        (key, value): _figures(part)
        for same in by_dataset.values()
        for value in dict.fromkeys(value for one in same.values() for value in one.places)
        for key, one in same.items()
        if (part := restricted(one, value)) is not None
    }


def _scores(
    entry: Entry, suite: str, strategy: str, axis: str, found: Sequence[Labelled], parts: _Parts
) -> Iterator[Json]:
    for value in dict.fromkeys(value for one in found for value in one.labels.values):
        some = [(part, _figures(one.item)) for one in found if (part := parts.get((id(one), value)))]
        if not some:
            continue
        row: Json = {
            **{"entry": entry.label, "model": entry.model, "sample": entry.sample},
            **{"suite": suite, "strategy": strategy, "axis": axis, "value": value, "tasks": len(some)},
            "sources": sorted(
                {source for one in found if value in one.places for source in one.labels.sources}
            ),
        }
        for figures, names in zip(zip(*some, strict=True), (_OF_PART, _OF_ALL), strict=True):
            scores, intervals, sizes = zip(*figures, strict=True)
            interval = of_tasks([1 / len(some)] * len(some), scores, intervals, sizes)
            low, high = (interval.low, interval.high) if interval else (None, None)
            row.update(zip(names, (float(np.mean(scores)), low, high, sum(sizes)), strict=True))
        yield row


_OF_PART = ("score", "interval_low", "interval_high", "documents")
_OF_ALL = ("score_of_all", "of_all_low", "of_all_high", "documents_of_all")
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
    for _, labels_in in loaded(LABELS):
        labels: list[Labels] | None = labels_in(path, tasks)
        if labels is not None:
            return labels
    raise MedtasksError("holds no labels of documents", where=path, remedy=_REMEDY)
