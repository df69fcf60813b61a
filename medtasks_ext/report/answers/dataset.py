"""All answers to one dataset: the list of its documents, and each of them with its texts."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, Any

from medtasks_ext.errors import MedtasksError, near
from medtasks_ext.metrics.glossary import rule
from medtasks_ext.registry.strategies import strategy_title
from medtasks_ext.report.answers.column import Column, Flag
from medtasks_ext.report.answers.document import document_view
from medtasks_ext.results.error_clusters import MEANING, TEXTS, Cluster

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.report.answers.column import Row, Source

#: Documents of one file of texts.
PART = 100
#: Labels of a confusion matrix; the rarer ones are one row.
_LABELS = 24
#: An answer, or a gold answer, that names nothing.
_NOTHING = "nothing"
_OTHER, _UNREADABLE = "(other)", "(unreadable)"
#: Characters of a text in the list of documents.
_SHORT, _INPUT = 80, 140
#: Kinds of answers that are one label.
_SINGLE = (
    *("label", "label_word", "relation_label", "exact_letter"),
    *("verified_letter", "option_letter", "choice", "category"),
)


class DatasetAnswers:
    """All answers to one dataset, those of several runs beside each other.

    `named`: whether documents are called by their keys; else they are numbered, since a key of data that are
    not open may name a patient.
    """

    def __init__(self, columns: Sequence[Column], *, named: bool = True) -> None:
        self.dataset, self.columns = columns[0].source.dataset, columns
        self._kind = str(self.dataset.config["answer"]["kind"])
        places: dict[str, list[int | None]] = {}  # of each document in each column
        for number, column in enumerate(columns):
            for place, row in enumerate(column.rows):
                places.setdefault(row.key, [None] * len(columns))[number] = place
        self.keys = [*places] if named else [f"#{number}" for number in range(1, len(places) + 1)]
        self._places = [*places.values()]

    @property
    def parts(self) -> int:
        return -(-len(self.keys) // PART)

    def head(self) -> Json:
        """What the list of documents shows: figures of all documents, and the beginnings of their texts."""
        metadata = self.dataset.metadata
        return {
            "id": self.dataset.id,
            "single": self._kind in _SINGLE,
            "graded": self._kind in TEXTS,
            "metric": metadata.primary_metric,
            "rule": rule(self.dataset),
            "meaning": {item.value: MEANING[item] for item in Cluster},
            "columns": [self._column(number) for number in range(len(self.columns))],
            "documents": self.keys,
            "per_part": PART,
            **self._texts(),
        }

    def _rows(self, number: int) -> list[Row | None]:
        rows = self.columns[number].rows
        return [None if (place := places[number]) is None else rows[place] for places in self._places]

    def _column(self, number: int) -> Json:
        column, rows, clusters = self.columns[number], self._rows(number), [*Cluster]
        source = column.source
        flags = [row.flags for row in column.rows]
        return {
            "label": self._label(source),
            "task": source.task,
            "score": source.item.score if source.item else None,
            "n": source.item.n if source.item else None,
            "read": len(flags),
            "sample": source.sample,
            "judged": column.judged is not None,
            "flags": [row.flags if row else -1 for row in rows],
            "clusters": [clusters.index(row.cluster) if row and row.cluster else -1 for row in rows],
            "scores": [None if row is None or math.isnan(row.score) else round(row.score, 4) for row in rows],
            "replies": [_short(row.reply, _INPUT, end=True) if row else None for row in rows],
            "answers": [
                None if row is None or row.answer is None else _short(row.answer, _SHORT) or _NOTHING
                for row in rows
            ],
            "totals": {
                flag.name.lower(): sum(bool(one & flag) for one in flags) for flag in Flag if flag.name
            },
            "errors": [
                {"cluster": item.cluster.value, "documents": item.documents, "mended": item.mended}
                for item in column.costs()
            ],
            "confusion": _confusion(rows) if self._kind in _SINGLE else None,
        }

    def _label(self, source: Source) -> str:
        several = len({column.source.strategy for column in self.columns}) > 1
        return f"{source.label}, {strategy_title(source.strategy)}" if several else source.label

    def _texts(self) -> Json:
        """Gold answers and prompts, these from where they differ: all may begin with the same words."""
        by_column = [self._rows(number) for number in range(len(self.columns))]
        rows = [next(row for row in one if row) for one in zip(*by_column, strict=True)]
        prompts = [row.prompt for row in rows if row.prompt]
        same = _alike(prompts)
        before = "… " if same else ""
        return {
            "golds": [None if row.gold is None else _short(row.gold, _SHORT) or _NOTHING for row in rows],
            "prompts": [row.prompt and before + _short(row.prompt[same:], _INPUT) for row in rows],
        }

    def part(self, number: int) -> list[Json]:
        """Documents as they were asked and answered, so many of them at once."""
        return [self.document(place) for place in range(len(self.keys))[number * PART : (number + 1) * PART]]

    def document(self, place: int, *, whole: bool = False) -> Json:
        return document_view(self.keys[place], self.columns, self._places[place], whole=whole)

    def place_of(self, key: str) -> int:
        """By its key, or its place from 0; MedtasksError where there is no such document."""
        if key in self.keys:
            return self.keys.index(key)
        if key.isdigit() and int(key) < len(self.keys):
            return int(key)
        raise MedtasksError(
            f"no document {key!r}{near(key, self.keys)}",
            where=self.dataset.id,
            remedy=f"there are {len(self.keys):,}, the first is {self.keys[0]}; a number counts from 0"
            if self.keys
            else "there is none yet",
        )


def _confusion(rows: Sequence[Row | None]) -> Json:
    """How often a gold label was answered by which label.

    `cells`: of each document, its row times the columns, plus its column; -1 where it is in none.
    """
    golds = Counter(row.gold for row in rows if row and isinstance(row.gold, str))
    common = {label for label, _ in golds.most_common(_LABELS)}
    pairs = [_labels(row, common) if row and isinstance(row.gold, str) else None for row in rows]
    counts = Counter(pair for pair in pairs if pair)
    gold = [*sorted(common), *([_OTHER] if any(one == _OTHER for one, _ in counts) else [])]
    answers = [
        *sorted(common),
        *(name for name in (_OTHER, _UNREADABLE) if any(to == name for _, to in counts)),
    ]
    return {
        "gold": gold,
        "answers": answers,
        "counts": [[counts[one, to] for to in answers] for one in gold],
        "cells": [
            gold.index(pair[0]) * len(answers) + answers.index(pair[1]) if pair else -1 for pair in pairs
        ],
    }


def _labels(row: Row, common: Container[str]) -> tuple[str, str]:
    given = row.answer if isinstance(row.answer, str) else ""
    answer = given if given in common else _OTHER if given else _UNREADABLE
    return row.gold if row.gold in common else _OTHER, answer


def _alike(texts: Sequence[str]) -> int:
    """With how many characters all of several texts begin, up to the beginning of a word."""
    if len(texts) < 2:
        return 0
    first, last = min(texts), max(texts)
    differ = (place for place, (one, other) in enumerate(zip(first, last, strict=False)) if one != other)
    return first.rfind(" ", 0, next(differ, 0)) + 1


def _short(value: Any, length: int, *, end: bool = False) -> str:
    """The beginning of an answer in one line, or its end, where that is said."""
    text = _line(value)
    if len(text) <= length:
        return text
    return f"…{text[1 - length :]}" if end else f"{text[: length - 1]}…"


def _line(value: Any, between: str = "; ") -> str:
    """Items between semicolons, their parts between points."""
    if value is None:
        return ""
    if isinstance(value, list):
        return between.join(_line(item, " · ") for item in value)
    if isinstance(value, dict):
        first = value.get("tuples")
        return _line(first) if isinstance(first, list) else json.dumps(value, ensure_ascii=False, default=str)
    return str(value)
