"""A submission in the hands of somebody who has read the code: he edits anything, and makes the rest fit."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from medtasks_ext.registry import Registry
from medtasks_ext.results.document_scores import document_scores, score_statistic
from medtasks_ext.rows.folders import FETCHED
from medtasks_ext.rows.remote import RemoteFile
from medtasks_ext.stats.statistic import mean
from medtasks_lab.submissions.answers import (
    FinalAnswer,
    answers_digest,
    described,
    read_answers,
    write_answers,
)
from medtasks_lab.submissions.check import read_scores
from medtasks_lab.submissions.documents import PublicScores, public_scores, spread_of, write_documents
from medtasks_lab.submissions.make import suite_results
from medtasks_lab.submissions.read import submitted_entry
from medtasks_lab.submissions.record import DOCUMENTS, RECORD, Submission, read_record
from medtasks_lab.submissions.rescored import rebuilt


@dataclass
class Forgery:
    """What a submission says, to be changed.

    Attributes:
        model: ORG/MODEL, of the folder and the record.
        content: the record as JSON.
        documents: task -> what its documents contributed.
        answers: task -> final answers.
        after: what is done to the folder and the file of answers when they are written.
    """

    model: str
    date: str
    content: dict[str, Any]
    documents: dict[str, PublicScores]
    answers: dict[str, list[FinalAnswer]]
    tasks: Registry
    after: list[Callable[[Path, Path], None]]

    @classmethod
    def read(cls, folder: Path, answers: Path, tasks: Registry) -> Forgery:
        """A copy of a submission."""
        record = read_record(folder)
        return cls(
            record.model,
            record.date,
            json.loads((folder / RECORD).read_text(encoding="utf-8")),
            read_scores(folder, record, tasks),
            dict(read_answers(answers)),
            tasks,
            [],
        )

    @property
    def record(self) -> Submission:
        """The record as it is read."""
        return Submission.model_validate(copy.deepcopy(self.content))

    # ------------------------------------------------------------------ answers and scores

    def golds(self, task: str) -> dict[str, str]:
        """Document -> its gold answer, which every forger has of open data."""
        return {item["doc"]["id"]: str(item["target"]) for item in self._samples(task)}

    def answer(self, task: str, change: Callable[[str], str]) -> None:
        """Answer every document anew, from its gold answer; scores stay."""
        golds = self.golds(task)
        self.answers[task] = [
            replace(item, answer=change(golds[item.document])) for item in self.answers[task]
        ]

    def score_again(self) -> None:
        """Let the scores of open data follow from the answers, as an honest run has them."""
        for task in self.answers:
            samples = self._samples(task)
            dataset = self.tasks.asked(task)[0]
            self.documents[task] = public_scores(
                document_scores(samples, score_statistic(dataset)), is_open=True
            )
        self.sum_up()

    def _samples(self, task: str) -> Any:
        given = {item.document: item.answer for item in self.answers[task]}
        return rebuilt(task, self.record.tasks[task].conditions, given, self.tasks).samples

    def plant(self, task: str, value: float, share: float = 1.0) -> None:
        """Give documents a score, whatever their answers are."""
        found = self.documents[task]
        n = round(share * len(found.scores.scores))
        scores = found.scores.scores.copy()
        scores[:n] = value
        assert found.scores.statistic is mean and found.sums is None
        counts = np.column_stack([scores, np.ones(len(scores))])
        made = replace(found.scores, scores=scores, counts=counts, valid=np.ones(len(scores)))
        is_open = self.tasks.asked(task)[0].metadata.access == "open"
        self.documents[task] = public_scores(made, is_open=is_open)

    def keep(self, task: str, places: list[int]) -> None:
        """Keep some documents, and let everything fit."""
        found = self.documents[task].scores
        columns = {name: getattr(found, name)[places] for name in
                   ("units", "scored", "scores", "valid", "unclosed", "counts", "confidence")}  # fmt: skip
        columns["units"] = np.arange(len(places), dtype=np.int32)
        made = replace(found, documents=[""] * len(places), contents=[""] * len(places), **columns)
        self.documents[task] = PublicScores(made)
        if task in self.answers:
            self.answers[task] = [self.answers[task][place] for place in places]

    def sum_up(self) -> None:
        """Let the record follow from the documents: scores, shares, intervals, suites."""
        for task, item in self.content["tasks"].items():
            found = self.documents[task]
            interval = found.interval(self.tasks.asked(task)[0].id)
            spread = dict(zip(("low", "high", "sd"), spread_of(interval), strict=True)) if interval else None
            item |= {"score": found.value, "valid": found.valid, "unclosed": found.unclosed, "spread": spread}
            item["n"] = item["conditions"]["observed"]["n"] = len(found.scores.scores)
            for key in [key for key, value in item.items() if value is None]:
                del item[key]
        entry = submitted_entry(self.record, Path(self.model), self.tasks)
        groups = suite_results(entry, self.tasks)
        self.content["groups"] = {name: item.model_dump(mode="json") for name, item in groups.items()}

    # ------------------------------------------------------------------ files

    def write(self, root: Path, downloads: Path) -> Path:
        """Write the folder, and put the answers where a download would bring them.

        Hashes and digests fit what is written.
        """
        folder = root / self.model / self.date
        folder.mkdir(parents=True)
        self.content |= {"model": self.model, "date": self.date}
        given = hashlib.sha256(f"{self.model} {self.date}".encode()).hexdigest()
        self.content["heads"] = dict.fromkeys(self.content.get("heads", {}), given[:32])
        address = f"https://example.org/{given[:12]}.parquet"
        kept = {task: items for task, items in self.answers.items() if task in self.content["tasks"]}
        place = downloads / FETCHED / RemoteFile(address, "").carried
        place.parent.mkdir(parents=True, exist_ok=True)
        if kept:
            write_answers(place, kept.items())
            self.content["answers"] = described(place, [address]).model_dump(mode="json")
            for task, items in kept.items():
                self.content["tasks"][task]["answers"] = answers_digest(items)
        else:
            self.content.pop("answers", None)
        (folder / RECORD).write_text(json.dumps(self.content), encoding="utf-8")
        write_documents(folder / DOCUMENTS, [self.documents[task] for task in self.content["tasks"]])
        for change in self.after:
            change(folder, place)
        return folder
