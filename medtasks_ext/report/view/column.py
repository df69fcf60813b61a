"""The answers of one run to one task, read as far as they are needed.

A column of a large file is read in steps of a given time. What is kept of a document is a few numbers; its
texts are read again when they are shown.
"""

from __future__ import annotations

import math
import time
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import IntFlag
from itertools import islice, starmap
from typing import TYPE_CHECKING, Any, NamedTuple

from medtasks_ext.engines.records import Answer
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import read_json
from medtasks_ext.judge.store import verdicts_in
from medtasks_ext.prompts.dialogue import shown
from medtasks_ext.prompts.documents import document_key
from medtasks_ext.report.view.runs import LOG_SAMPLES, Answers, outcomes_in
from medtasks_ext.results.document_scores import document_scores, score_statistic
from medtasks_ext.results.error_clusters import (
    TEXTS,
    Answered,
    Cluster,
    ClusterCost,
    costs,
    error_of,
    right_value,
)
from medtasks_ext.run.store import Asked
from medtasks_ext.runs.folder import RunFolder
from medtasks_ext.runs.samples import RESCORE, SampleFile, parsed_of

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.results.document_scores import DocumentScores
    from medtasks_ext.runs.records import Sample
    from medtasks_ext.stats.statistic import Statistic

#: Mean ratings of two judges that disagree differ by as much.
_APART = 1.0
#: Records between two looks at the clock.
_STEP = 64
#: Clusters as the numbers that are kept.
CLUSTERS = tuple(Cluster)
NO_CLUSTER = 255


class Flag(IntFlag):
    """What is known of an answer; the filters of the page."""

    RIGHT = 1  # its score is 1
    WRONG = 2  # its score is below 1; not of running text, whose scores are graded
    UNREADABLE = 4
    CUT = 8  # the budget ran out, or a reasoning trace never ended
    EMPTY = 16
    DISPUTED = 32  # its judges disagree
    DAMAGED = 64  # its record cannot be read
    WAITING = 128  # it is not read and scored yet


@dataclass(frozen=True)
class Outcome:
    finish: str = ""  # why it ended
    tokens: int | None = None  # of the response
    prompt_tokens: int | None = None
    reasoning: str = ""  # what the server returned apart from the text
    seconds: float | None = None


class _Numbers(NamedTuple):
    """What the frame `documents` says of one document; NaN where it says nothing."""

    score: float
    valid: float
    unclosed: float


class _Documents:
    """The frame `documents` of a task: as it is stored, or of the records that are read."""

    def __init__(self, answers: Answers, statistic: Statistic) -> None:
        self._statistic, self._file = statistic, answers.samples
        self._stored: DocumentScores | None = None
        if answers.documents is not None:
            with suppress(MedtasksError):
                self._stored = answers.documents()
        self._places = _places(self._stored) if self._stored else {}

    def of(self, samples: Sequence[Sample]) -> Iterator[_Numbers]:
        keys = [document_key(sample["doc"]) for sample in samples]
        frame, places = self._stored, self._places
        if frame is None or not places.keys() >= set(keys):
            try:
                frame = document_scores(samples, self._statistic)
            except (ValueError, TypeError) as error:
                raise MedtasksError(
                    "scores of documents are not such as the task gives", where=self._file, remedy=RESCORE
                ) from error
            places = _places(frame)
        rows = [places[key] for key in keys]
        columns = (column[rows].tolist() for column in (frame.scores, frame.valid, frame.unclosed))
        return starmap(_Numbers, zip(*columns, strict=True))


def _places(frame: DocumentScores) -> dict[str, int]:
    return {key: row for row, key in enumerate(frame.documents)}


class Column:
    def __init__(self, answers: Answers) -> None:
        self.answers = answers
        remedy = RESCORE if answers.folder else LOG_SAMPLES
        self._file = SampleFile(answers.samples, remedy=remedy)
        self._live = None if answers.scored else _live_samples(answers)
        self._kind = str(answers.dataset.config["answer"]["kind"])
        self._judged = _judged(answers)
        self._disputed = _disputed(answers, self._judged or {})
        self._statistic = score_statistic(answers.dataset)
        self._documents = _Documents(answers, self._statistic)
        self._cut_off: frozenset[str] | None = None  # keys of requests whose budget ran out
        self.keys: list[str] = []  # of the documents, in the order of the file
        self.flags = array("B")  # `Flag` of each
        self.clusters = array("B")  # place in `CLUSTERS` of each
        self.scores = array("d")  # of each alone; NaN where it has none
        self.pairs: list[tuple[str, str] | None] = []  # gold and parsed label of each, of single labels
        self._values: list[Any] = []
        self._right: dict[int, Any] = {}
        self.complete = False
        self._costs: list[ClusterCost] | None = None

    def read(self, seconds: float | None = None) -> bool:
        """Read on for so many seconds, or to the end; returns whether all is read."""
        if self.complete:
            return True
        if self._cut_off is None:
            self._cut_off = frozenset(_cut_off(self.answers))
        end = time.monotonic() + seconds if seconds is not None else math.inf
        if self._live is not None:
            for sample in self._live:
                empty = Flag.EMPTY if not sample["resps"][0][0].strip() else Flag(0)
                flags = Flag.WAITING | empty | self._ran_out(sample)
                self._keep(document_key(sample["doc"]), flags, None, math.nan, None, None)
        else:
            source = self._file.further()
            while some := list(islice(source, _STEP)):
                self._add(some)
                if time.monotonic() > end:
                    return False
        self.complete = True
        return True

    def _add(self, samples: Sequence[Sample | None]) -> None:
        sound = [sample for sample in samples if sample is not None]
        for item in sound:
            self._judge(item)
        numbers = iter(self._documents.of(sound))
        for sample in samples:
            if sample is None:
                named = f"damaged record {len(self.keys) + 1}"
                self._keep(named, Flag.DAMAGED, None, math.nan, None, None)
            else:
                self._add_one(sample, next(numbers))

    def _judge(self, sample: Sample) -> None:
        if self._judged is not None:
            sample.pop("score", None)
            item = self._judged.get(document_key(sample["doc"]))
            if item is not None and item["score"] is not None:
                sample["score"] = (item.get("run", ""), item["score"])

    def _add_one(self, sample: Sample, numbers: _Numbers) -> None:
        place, document = len(self.keys), sample["doc"]
        key, parsed, response = document_key(document), parsed_of(sample), _response(sample)
        value: Any = sample.get("score")
        # a trial of a question is right or wrong by itself, also where only all of them make a score
        alone = "trial" in document and isinstance(value, list | tuple)
        score = float(value[2]) if alone else numbers.score
        flags = self._ran_out(sample) | (Flag.EMPTY if not response.strip() else Flag(0))
        if numbers.unclosed == 1:
            flags |= Flag.CUT
        if numbers.valid == 0:
            flags |= Flag.UNREADABLE
        if not math.isnan(score):
            if score >= 1 - 1e-9:
                flags |= Flag.RIGHT
            elif self._kind not in TEXTS:
                flags |= Flag.WRONG
        if key in self._disputed:
            flags |= Flag.DISPUTED
        answered = Answered(
            document, parsed, response, None if math.isnan(score) else score, cut=bool(flags & Flag.CUT)
        )
        error = error_of(self.answers.dataset, answered)
        if error is not None and value is not None and self._judged is None:
            right = right_value(self.answers.dataset, sample)
            if right is not None:
                self._right[place] = right
        self._keep(key, flags, error.cluster if error else None, score, value, _pair(document, parsed))

    def _keep(
        self, key: str, flags: Flag, cluster: Cluster | None, score: float, value: Any, pair: Any
    ) -> None:
        self.keys.append(key)
        self.flags.append(flags)
        self.clusters.append(NO_CLUSTER if cluster is None else CLUSTERS.index(cluster))
        self.scores.append(score)
        self._values.append(value)
        self.pairs.append(pair)

    def _ran_out(self, sample: Sample) -> Flag:
        return Flag.CUT if sample.get("request", "") in (self._cut_off or ()) else Flag(0)

    def record(self, place: int) -> Sample:
        return self._live[place] if self._live is not None else self._file.record(place)

    def holding(self, words: str) -> Iterator[int]:
        """Places of documents whose prompt, gold answer or response holds a text; it is folded."""
        places = range(len(self.keys)) if self._live is not None else self._file.holding(words)
        for place in places:
            if self.flags[place] & Flag.DAMAGED:
                continue
            sample = self.record(place)
            document = sample["doc"]
            texts = (shown(document), document["target"], _response(sample), self.keys[place])
            if any(words in str(text).casefold() for text in texts):
                yield place

    def outcome(self, sample: Sample) -> Outcome:
        """Empty of plain lm_eval, which does not keep it."""
        folder, key = self.answers.folder, sample.get("request", "")
        if folder is None or not key:
            return Outcome()
        if (answer := outcomes_in(folder).known([key]).get(key)) is None:
            return Outcome()
        usage = answer.usage
        return Outcome(
            finish=answer.finish,
            tokens=usage.completion if usage else None,
            prompt_tokens=usage.prompt if usage else None,
            reasoning=answer.reasoning,
            seconds=answer.seconds,
        )

    @property
    def judged(self) -> Mapping[str, Mapping[str, Any]] | None:
        return self._judged

    def value(self) -> float | None:
        values = [value for value in self._values if value is not None]
        return self._statistic(values) if values else None

    def costs(self) -> list[ClusterCost]:
        if self._costs is not None:
            return self._costs
        clusters = [None if item == NO_CLUSTER else CLUSTERS[item] for item in self.clusters]
        cluster_costs = costs(self._statistic, self._values, clusters, self._right)
        if self.complete:
            self._costs = cluster_costs
        return cluster_costs


def _response(sample: Sample) -> str:
    given = sample["resps"][0][0]
    return given if isinstance(given, str) else ""


def _pair(document: Mapping[str, Any], parsed: Mapping[str, Any]) -> tuple[str, str] | None:
    gold, answer = document.get("gold"), parsed.get("answer")
    if not isinstance(gold, str):
        return None
    return gold, answer if isinstance(answer, str) and parsed.get("valid") else ""


def _judged(answers: Answers) -> dict[str, Json] | None:
    if answers.folder is None:
        return None
    file = RunFolder(answers.folder).judged_file(answers.task)
    return {item["document"]: item for item in read_json(file)["documents"]} if file.is_file() else None


def _disputed(answers: Answers, judged: Mapping[str, Mapping[str, Any]]) -> frozenset[str]:
    """As an adjudicator says; else where the mean ratings of two judges are a step of the scale apart."""
    if any("disputed" in item for item in judged.values()):
        return frozenset(key for key, item in judged.items() if item.get("disputed"))
    ratings: dict[str, dict[str, list[float]]] = {}
    if judged and answers.folder is not None:
        for row in verdicts_in(answers.folder, answers.task):
            judges = ratings.setdefault(row["document"], {})
            judges.setdefault(row["judge"], []).extend(row["ratings"].values())
    means = {
        key: [sum(values) / len(values) for values in judges.values() if values]
        for key, judges in ratings.items()
    }
    return frozenset(key for key, found in means.items() if found and max(found) - min(found) >= _APART)


def _cut_off(answers: Answers) -> Iterator[str]:
    for answer, item in _stored(answers).values():
        if answer.finish == "length":
            yield item.key


def _live_samples(answers: Answers) -> list[Sample]:
    """The answers of a task that is not scored yet, as records without readings."""
    live: list[Any] = [
        {
            "doc_id": number,
            "doc": {"id": document, "system": "", "prompt": "", "target": "", "gold": None},
            "arguments": [["", {}]],
            "resps": [[answer.text]],
            "filtered_resps": [{}],
            "request": item.key,
        }
        for number, (document, (answer, item)) in enumerate(_stored(answers).items())
    ]
    return live


def _stored(answers: Answers) -> dict[str, tuple[Answer, Asked]]:
    """Document -> its answer, and what it was asked."""
    if answers.folder is None:
        return {}
    outcomes = outcomes_in(answers.folder)
    asked = outcomes.answered(answers.task)
    known = outcomes.known(item.key for item in asked.values())
    return {document: (known[item.key], item) for document, item in asked.items()}


def open_column(answers: Answers) -> Column:
    try:
        return Column(answers)
    except (KeyError, TypeError) as error:
        raise MedtasksError(
            f"damaged ({type(error).__name__})", where=answers.samples, remedy="medtasks rescore RUN"
        ) from None
