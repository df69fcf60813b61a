"""All answers to one dataset: its columns, documents, clusters of errors, confusion matrices."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from medtasks_ext.metrics.glossary import rule
from medtasks_ext.prompts.dialogue import shown
from medtasks_ext.registry.strategies import strategy_title
from medtasks_ext.report.view.column import CLUSTERS, Column, Flag, open_column
from medtasks_ext.report.view.document import document_view
from medtasks_ext.results.error_clusters import MEANING, TEXTS
from medtasks_ext.runs.samples import parsed_of

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry.tasks import Dataset
    from medtasks_ext.report.view.runs import Answers, Viewed

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


class DatasetPage:
    def __init__(self, dataset: Dataset, answers: Sequence[Answers], runs: Sequence[Viewed]) -> None:
        self.dataset, self._runs = dataset, runs
        self._kind = str(dataset.config["answer"]["kind"])
        self.columns: list[Column] = [open_column(item) for item in answers]
        self._joined: list[int] = [0] * len(self.columns)  # documents of each column that are joined
        self.keys: list[str] = []  # of all documents, in the order in which they were met
        self._place: dict[str, int] = {}
        self._rows: list[list[int]] = []  # place of each document in each column; -1 where it is not there

    @property
    def sample(self) -> bool:
        return any(column.answers.sample for column in self.columns)

    @property
    def complete(self) -> bool:
        return all(column.complete for column in self.columns)

    def read(self, seconds: float | None = None) -> None:
        """Read on, for a given time in all."""
        open_ones = [column for column in self.columns if not column.complete]
        for column in open_ones:
            column.read(None if seconds is None else seconds / len(open_ones))
        for number, column in enumerate(self.columns):
            for place in range(self._joined[number], len(column.keys)):
                row = self._place.setdefault(column.keys[place], len(self._rows))
                if row == len(self._rows):
                    self.keys.append(column.keys[place])
                    self._rows.append([-1] * len(self.columns))
                self._rows[row][number] = place
            self._joined[number] = len(column.keys)

    def progress(self) -> Json:
        """How far the answers are read, and what would change if the page were drawn anew."""
        return {
            "complete": self.complete,
            "columns": [
                {"read": len(column.keys), "state": column.answers.state, "score": column.answers.score}
                for column in self.columns
            ],
        }

    def head(self) -> Json:
        metadata = self.dataset.metadata
        return {
            "id": self.dataset.id,
            "name": metadata.name,
            "suite": self.dataset.suite.title,
            "summary": metadata.summary,
            "language": metadata.language,
            "single": self._kind in _SINGLE,
            "graded": self._kind in TEXTS,
            "metric": metadata.primary_metric,
            "rule": rule(self.dataset),
            "access": metadata.access,
            "sample": self.sample,
            "complete": self.complete,
            "cluster_names": [item.value for item in CLUSTERS],
            "columns": [self._column(number) for number in range(len(self.columns))],
            "documents": self.keys,
        }

    def _column(self, number: int) -> Json:
        column = self.columns[number]
        answers = column.answers
        places = [row[number] for row in self._rows]
        flags, clusters, scores = column.flags, column.clusters, column.scores
        return {
            "label": self._label(answers),
            "run": answers.run,
            "task": answers.task,
            "state": answers.state,
            "score": answers.score,
            "n": answers.result["n"] if answers.result else None,
            "read": len(column.keys),
            "sample": answers.sample,
            "judged": column.judged is not None,
            "flags": [flags[place] if place >= 0 else -1 for place in places],
            "clusters": [clusters[place] if place >= 0 else -1 for place in places],
            "scores": [_rounded(scores[place]) if place >= 0 else None for place in places],
            "totals": self.totals(column),
        }

    def _label(self, answers: Answers) -> str:
        run = self._runs[answers.run].label
        several = len({column.answers.strategy for column in self.columns}) > 1
        return f"{run}, {strategy_title(answers.strategy)}" if several else run

    @staticmethod
    def totals(column: Column) -> dict[str, int]:
        counts = Counter(column.flags)
        return {
            flag.name.lower(): sum(n for value, n in counts.items() if value & flag)
            for flag in Flag
            if flag.name is not None
        }

    def errors(self) -> Json:
        return {
            "complete": self.complete,
            "meaning": {item.value: MEANING[item] for item in CLUSTERS},
            "columns": [
                {
                    "score": column.value(),
                    "clusters": [
                        {"cluster": item.cluster.value, "documents": item.documents, "mended": item.mended}
                        for item in column.costs()
                    ],
                }
                for column in self.columns
            ],
        }

    def confusion(self) -> list[Json | None]:
        """The confusion matrix of each column; None where answers are no single labels."""
        if self._kind not in _SINGLE:
            return [None] * len(self.columns)
        return [
            _confusion([column.pairs[row[number]] if row[number] >= 0 else None for row in self._rows])
            for number, column in enumerate(self.columns)
        ]

    def row(self, place: int) -> Json:
        gold = asked = ""
        answers: list[str | None] = []
        for column, at in zip(self.columns, self._rows[place], strict=True):
            if at < 0 or column.flags[at] & Flag.DAMAGED:
                answers.append(None)
                continue
            sample = column.record(at)
            document, parsed = sample["doc"], parsed_of(sample)
            known = document.get("gold")
            gold = gold or (_short(known, _SHORT) or _NOTHING if known is not None else "")
            asked = asked or _short(" ".join(shown(document).split()), _INPUT)
            answers.append(_short(parsed["answer"], _SHORT) or _NOTHING if parsed.get("valid") else "")
        return {"key": self.keys[place], "gold": gold, "input": asked, "answers": answers}

    def document(self, place: int, *, whole: bool = False) -> Json:
        places = [None if at < 0 else at for at in self._rows[place]]
        return document_view(self.keys[place], self.columns, places, whole=whole)

    def place_of(self, key: str) -> int | None:
        return self._place.get(key)

    def search(self, words: str) -> list[int]:
        found = {
            self._place[column.keys[at]] for column in self.columns for at in column.holding(words.casefold())
        }
        return sorted(found)


def _confusion(pairs: Sequence[tuple[str, str] | None]) -> Json:
    """How often a gold label was answered by which label, of the (gold, answer) pairs of the documents.

    `cells`: of each document, its row times the columns, plus its column; -1 where it is in none.
    """
    common = [label for label, _ in Counter(pair[0] for pair in pairs if pair).most_common(_LABELS)]
    known = set(common)

    def named(pair: tuple[str, str]) -> tuple[str, str]:
        gold, answer = pair
        given = answer if answer in known else _OTHER if answer else _UNREADABLE
        return gold if gold in known else _OTHER, given

    counts = Counter(named(pair) for pair in pairs if pair)
    rows = [*sorted(common), *([_OTHER] if any(gold == _OTHER for gold, _ in counts) else [])]
    columns = [
        *sorted(common),
        *(name for name in (_OTHER, _UNREADABLE) if any(to == name for _, to in counts)),
    ]
    place = {(row, to): i * len(columns) + j for i, row in enumerate(rows) for j, to in enumerate(columns)}
    return {
        "gold": rows,
        "answers": columns,
        "counts": [[counts[row, to] for to in columns] for row in rows],
        "cells": [place[named(pair)] if pair else -1 for pair in pairs],
    }


def _short(value: Any, length: int) -> str:
    """The beginning of an answer in one line: items between semicolons, their parts between points."""
    text = _line(value)
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _line(value: Any, between: str = "; ") -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return between.join(_line(item, " · ") for item in value)
    if isinstance(value, dict):
        first = value.get("tuples")
        return _line(first) if isinstance(first, list) else json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def _rounded(score: float) -> float | None:
    return None if math.isnan(score) else round(score, 4)
