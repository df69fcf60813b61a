"""The probe as a planner of a stream: inputs of tasks, requests at their cuts, verdicts."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from medtasks_ext.engines.records import Answer, Fault, Outcome, Request
from medtasks_ext.engines.stream import Planner
from medtasks_ext.prompts import load_documents
from medtasks_ext.runner.requests import request_key
from medtasks_ext.runs.outcomes import OutcomeLog
from medtasks_lab.studies.contamination.probe import (
    CUTS,
    Completion,
    Tokenizer,
    Verdict,
    completions,
    is_match,
)

if TYPE_CHECKING:
    from pathlib import Path

    from medtasks_ext.egress import Text
    from medtasks_ext.prompts.documents import Document
    from medtasks_ext.registry import Dataset
    from medtasks_ext.registry.yamlfile import Config
    from medtasks_ext.runner.stream import Watcher


def inputs(dataset: Dataset, origin: str | None) -> list[Document]:
    """The test documents of a dataset, each question once where options are permuted.

    Raises:
        MedtasksError: data that is missing or does not satisfy the task's schema.
    """
    documents = load_documents(dataset, cot=False, origin=origin, prompts="own")["test"]
    return [document for document in documents if not document.get("trial")]


@dataclass(frozen=True)
class ProbedAnswers:
    """What a task gave: a verdict per document, and how many cuts were moved to whole characters."""

    verdicts: list[Verdict]
    n_cuts_moved: int


class _Probed:
    """One task on its way through the stream."""

    def __init__(self, log: OutcomeLog, documents: list[Document], text: Text) -> None:
        self.log, self.documents, self.text = log, documents, text
        self.found: list[list[Completion]] = []  # of each document, its cuts
        self.asked: dict[str, tuple[int, Completion]] = {}  # key of a request -> place of the document, cut
        self.texts: dict[str, str] = {}  # key -> what the model wrote
        self.faults: list[Fault] = []
        self.error: Exception | None = None  # what ended the building of requests
        self.fed = False  # whether all requests are built
        self.under_way = 0

    @property
    def complete(self) -> bool:
        """Whether every request has its outcome."""
        return self.fed and not self.under_way

    def result(self) -> ProbedAnswers:
        """The verdicts.

        Raises:
            NoAnswerError: a request has no answer.
        """
        if self.error is not None:
            raise self.error
        if self.faults or len(self.texts) < len(self.asked):
            raise NoAnswerError(len(self.asked) - len(self.texts), self.faults)
        matches = [0] * len(self.documents)
        for key, (index, completion) in self.asked.items():
            matches[index] += is_match(completion.expected, self.texts[key])
        verdicts = [
            Verdict(str(document["id"]), count if cuts else None)
            for document, count, cuts in zip(self.documents, matches, self.found, strict=True)
        ]
        return ProbedAnswers(verdicts, sum(completion.moved for cuts in self.found for completion in cuts))


class ProbePlanner(Planner):
    """Has a model continue the inputs of tasks at each cut; stored responses are not asked for again.

    Args:
        folder: of the outcomes, a file a task.
        tasks: name -> its documents, and whose text they hold.
        identity: digest of the model, a part of the key of each request.
        fixed: generation settings beside the number of tokens.
        ended: called with a task and its end once all of its requests have theirs.

    Attributes:
        fault: of a request, which no other would escape; it ends the probe.
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
    ) -> None:
        super().__init__()
        self._tokenizer, self._identity, self._fixed = tokenizer, identity, fixed
        self._watcher, self._ended = watcher, ended
        self._tasks = {name: _Probed(OutcomeLog(folder, name), *given) for name, given in tasks.items()}
        self._fresh: deque[tuple[Request, Outcome]] = deque()
        self._complete: deque[str] = deque()
        self.fault: Fault | None = None

    def requests(self, engine: str, rest: Callable[[], bool]) -> Generator[Request, None, None]:
        """The requests of all tasks, one task after the other."""
        for name, task in self._tasks.items():
            try:
                yield from self._requests_of(name, task)
            except Exception as error:  # any fault of one task must not cost the others
                task.error = error
            with self.lock:
                task.fed = True
                if task.complete:
                    self._complete.append(name)

    def _requests_of(self, name: str, task: _Probed) -> Generator[Request, None, None]:
        task.found = [completions(document.input, self._tokenizer) for document in task.documents]
        requests = {
            request.key: request
            for index, cuts in enumerate(task.found)
            for completion in cuts
            for request in [self._request(name, task, index, completion)]
        }
        task.texts = {
            stored.key: stored.entry.text
            for stored in task.log.read()
            if isinstance(stored.entry, Answer) and stored.key in requests
        }
        too_short = sum(not cuts for cuts in task.found)
        self._watcher.began(name)
        self._watcher.stored(name, len(task.texts) + too_short * len(CUTS))
        for request in [request for key, request in requests.items() if key not in task.texts]:
            with self.lock:
                task.under_way += 1
            yield request

    def _request(self, name: str, task: _Probed, index: int, completion: Completion) -> Request:
        document = task.documents[index]
        request = _request(self._identity, name, document, completion, self._fixed, task.text)
        task.asked[request.key] = (index, completion)
        return request

    def outcome(self, request: Request, outcome: Outcome, settles: float | None) -> None:
        """Store what became of a request."""
        task = self._tasks[request.task]
        task.log.add(request.key, request.document, outcome)
        task.under_way -= 1
        if isinstance(outcome, Answer):
            task.texts[request.key] = outcome.text
        else:
            task.faults.append(outcome)
            if outcome.kind.ends_all:
                self.fault, self.over = outcome, True
        self._fresh.append((request, outcome))
        if task.complete:
            self._complete.append(request.task)

    def visit(self) -> None:
        """Bring what is new to the disk, and give the end of each task that is complete."""
        with self.lock:
            fresh = [self._fresh.popleft() for _ in range(len(self._fresh))]
            complete = [self._complete.popleft() for _ in range(len(self._complete))]
        for task in {self._tasks[request.task] for request, _ in fresh}:
            task.log.sync()
        for request, outcome in fresh:
            if isinstance(outcome, Answer):
                self._watcher.answered(request, outcome)
            else:
                self._watcher.faulted(request, outcome)
        for name in complete:
            self._tasks[name].log.close()
            if self.fault is None:
                self._ended(name, self._tasks[name].result)

    def close(self) -> None:
        """Bring what came to the disk."""
        for task in self._tasks.values():
            task.log.close()


class NoAnswerError(Exception):
    """Requests of a task have no answer; those that came are stored."""

    def __init__(self, n: int, faults: list[Fault]) -> None:
        why = faults[0].reason if faults else "not asked to the end"
        super().__init__(f"{why} ({n:,} requests without an answer)")


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
