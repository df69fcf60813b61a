"""The probe as a planner of a stream: inputs of tasks, requests at their cuts, verdicts."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from medtasks_ext.engines.records import Answer, Request
from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts import load_documents
from medtasks_ext.results.frames import table_of
from medtasks_ext.runner.planner import TaskPlanner
from medtasks_ext.runner.requests import request_key
from medtasks_ext.runner.work import Work
from medtasks_ext.runs.choice import Choice
from medtasks_ext.runs.outcomes import OutcomeLog, read_outcomes
from medtasks_lab.studies.contamination.probe import (
    CUTS,
    Completion,
    Tokenizer,
    completions,
    is_match,
)

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from medtasks_ext.egress import Text
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.prompts.documents import Document
    from medtasks_ext.registry import Dataset
    from medtasks_ext.registry.yamlfile import Config
    from medtasks_ext.runner.charge import Charge
    from medtasks_ext.runner.planner import Watcher


def inputs(dataset: Dataset, origin: str | None) -> list[Document]:
    """The test documents of a dataset, each question once where options are permuted.

    Raises:
        MedtasksError: data that is missing or does not satisfy the task's schema.
    """
    documents = load_documents(dataset, cot=False, origin=origin, prompts="own")["test"]
    return [document for document in documents if not document.get("trial")]


def inputs_of(
    datasets: Iterable[Dataset], origin: str | None, limit: float | None
) -> tuple[dict[str, list[Document]], dict[str, MedtasksError]]:
    """Dataset -> its first test documents, as many as `--limit` says; and what is wrong with the others."""
    documents, faults = {}, {}
    for dataset in datasets:
        try:
            all_inputs = inputs(dataset, origin)
            documents[dataset.id] = [
                all_inputs[place] for place in Choice(limit=limit).places(len(all_inputs))
            ]
        except MedtasksError as error:
            faults[dataset.id] = error
    return documents, faults


@dataclass(frozen=True)
class ProbedAnswers:
    """What a task gave."""

    verdicts: pa.Table  # the frame: a rating per document and cut, 1 where the model wrote what follows
    n_cuts_moved: int  # to whole characters


class _Probed(Work):
    """One task on its way through the stream."""

    def __init__(self, name: str, log: OutcomeLog, documents: list[Document], text: Text) -> None:
        super().__init__(name, log)
        self.documents, self.text = documents, text
        self.found: list[list[Completion]] = []  # of each document, its cuts
        self.asked: dict[str, tuple[int, Completion]] = {}  # key of a request -> place of the document, cut
        self.error: Exception | None = None  # what ended the building of requests

    def result(self) -> ProbedAnswers:
        """The verdicts.

        Raises:
            NoAnswerError: a request has no answer.
        """
        if self.error is not None:
            raise self.error
        matches: list[dict[int, float]] = [{} for _ in self.documents]
        answered = set()
        for stored in read_outcomes(self.log.path.parent, self.name):
            if isinstance(stored.entry, Answer) and stored.key in self.asked:
                index, completion = self.asked[stored.key]
                matches[index][completion.cut] = float(is_match(completion.expected, stored.entry.text))
                answered.add(stored.key)
        if missing := len(self.asked) - len(answered):
            raise NoAnswerError(missing, next((reason for _, reason in self.faults), ""))
        rows: list[Json] = []
        for document, by_cut in zip(self.documents, matches, strict=True):
            of = {"task": self.name, "document": str(document["id"]), "judge": ""}
            rows += [{**of, "item": f"cut {cut}", "rating": match} for cut, match in by_cut.items()] or [
                {**of, "item": None, "rating": None}
            ]
        verdicts = table_of("verdicts", rows)
        return ProbedAnswers(verdicts, sum(completion.moved for cuts in self.found for completion in cuts))


class ProbePlanner(TaskPlanner[_Probed]):
    """Has a model continue the inputs of tasks at each cut; stored responses are not asked for again.

    Args:
        folder: of the outcomes, a file a task.
        tasks: name -> its documents, and whose text they hold.
        identity: digest of the model, a part of the key of each request.
        fixed: generation settings beside the number of tokens.
        ended: called with a task and its end once all of its requests have theirs.
    """

    def __init__(
        self,
        folder: Path,
        tasks: Mapping[str, tuple[list[Document], Text]],
        tokenizer: Tokenizer,
        *,
        identity: str,
        fixed: Config,
        watcher: Watcher,
        ended: Callable[[str, Callable[[], ProbedAnswers]], None],
        charge: Charge | None = None,
    ) -> None:
        works = [_Probed(name, OutcomeLog(folder, name), *given) for name, given in tasks.items()]
        super().__init__(works, watcher, charge)
        self._tokenizer, self._identity, self._fixed, self._ended = tokenizer, identity, fixed, ended

    def requests_of(self, work: _Probed) -> Generator[Request, None, None]:
        """The requests of a task, a document after the other."""
        work.found = [completions(document.input, self._tokenizer) for document in work.documents]
        requests = {}
        for index, cuts in enumerate(work.found):
            for completion in cuts:
                document, name = work.documents[index], work.name
                request = _request(self._identity, name, document, completion, self._fixed, work.text)
                requests[request.key], work.asked[request.key] = request, (index, completion)
        work.log.load()
        there = sum(key in work.log.answered for key in requests)
        too_short = sum(not cuts for cuts in work.found)
        self._watcher.stored(work.name, there + too_short * len(CUTS), work.log.unsure)
        for key, request in requests.items():
            if key not in work.log.answered:
                yield request

    def failed(self, work: _Probed, error: Exception) -> None:
        """Note what ended the building of a task's requests."""
        work.error = error

    def completed(self, work: _Probed) -> None:
        """Give the end of a task, unless a fault ended all."""
        work.log.close()
        if self.trouble.cause is None:
            self._ended(work.name, work.result)

    def close(self) -> None:
        """Bring what came to the disk."""
        for work in self._works.values():
            work.log.close()


class NoAnswerError(Exception):
    """Requests of a task have no answer; those that came are stored."""

    def __init__(self, n: int, reason: str) -> None:
        super().__init__(f"{reason or 'not asked to the end'} ({n:,} requests without an answer)")


def _request(
    identity: str,
    task: str,
    document: Document,
    completion: Completion,
    fixed: Config,
    text: Text,
) -> Request:
    settings = {**fixed, "until": [], "max_gen_toks": completion.n_tokens}
    name = f"{document['id']} cut {completion.cut}"
    row = {"id": name, "expected": completion.expected}
    key = request_key(identity, task, name, completion.prefix, settings)
    return Request(key, task, name, completion.prefix, settings, row, text=text)
