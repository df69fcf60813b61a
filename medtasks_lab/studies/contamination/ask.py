"""One task through a model: its inputs, the requests at their cuts, the verdicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from medtasks_ext.engines.engine import Engine, prepared
from medtasks_ext.engines.feed import ListFeed
from medtasks_ext.engines.records import Answer, Fault, Outcome, Request
from medtasks_ext.prompts import load_documents
from medtasks_ext.runner.requests import request_key
from medtasks_lab.studies.contamination.probe import (
    CUTS,
    Completion,
    Tokenizer,
    Verdict,
    completions,
    is_match,
)

if TYPE_CHECKING:
    from medtasks_ext.egress import Text
    from medtasks_ext.prompts.documents import Document
    from medtasks_ext.registry import Dataset
    from medtasks_ext.registry.yamlfile import Config
    from medtasks_ext.runner.stream import Watcher
    from medtasks_ext.runs.outcomes import OutcomeLog


def inputs(dataset: Dataset, origin: str | None) -> list[Document]:
    """The test documents of a dataset, each question once where options are permuted.

    Raises:
        MedtasksError: data that is missing or does not satisfy the task's schema.
    """
    documents = load_documents(dataset, cot=False, origin=origin, prompts="own")["test"]
    return [document for document in documents if not document.get("trial")]


@dataclass(frozen=True)
class Asked:
    """What a task gave: a verdict per document, and how many cuts were moved to whole characters."""

    verdicts: list[Verdict]
    n_cuts_moved: int


def ask(
    engine: Engine,
    log: OutcomeLog,
    task: str,
    documents: list[Document],
    tokenizer: Tokenizer,
    *,
    identity: str,
    fixed: Config,
    text: Text,
    watcher: Watcher,
) -> Asked:
    """Have a model continue the inputs of a task at each cut; stored responses are not asked for again.

    Args:
        engine: answers with the model.
        log: outcomes of the task; read here, closed by the caller.
        documents: with their input texts.
        identity: digest of the model, a part of the key of each request.
        fixed: generation settings beside the number of tokens.

    Raises:
        NoAnswerError: a request has none.
    """
    found = [completions(document.input, tokenizer) for document in documents]
    requests = {
        request.key: (request, index, completion)
        for index, cuts in enumerate(found)
        for completion in cuts
        for request in [_request(identity, task, documents[index], completion, fixed, text)]
    }
    texts = {
        stored.key: stored.entry.text
        for stored in log.read()
        if isinstance(stored.entry, Answer) and stored.key in requests
    }
    too_short = sum(not cuts for cuts in found)
    watcher.began(task)
    watcher.stored(task, len(texts) + too_short * len(CUTS))
    faults: list[Fault] = []

    def done(request: Request, outcome: Outcome) -> None:
        log.add(request.key, request.document, outcome)
        if isinstance(outcome, Answer):
            texts[request.key] = outcome.text
            watcher.answered(request, outcome)
        else:
            faults.append(outcome)
            watcher.faulted(request, outcome)

    waiting = (request for key, (request, _, _) in requests.items() if key not in texts)
    engine.run(ListFeed(prepared(engine, waiting, done)), done)
    if faults or len(texts) < len(requests):
        raise NoAnswerError(len(requests) - len(texts), faults)
    matches = [0] * len(documents)
    for key, (_, index, completion) in requests.items():
        matches[index] += is_match(completion.expected, texts[key])
    verdicts = [
        Verdict(str(document["id"]), count if cuts else None)
        for document, count, cuts in zip(documents, matches, found, strict=True)
    ]
    return Asked(verdicts, sum(completion.moved for cuts in found for completion in cuts))


class NoAnswerError(Exception):
    """Requests of a task have no answer; those that came are stored."""

    def __init__(self, n: int, faults: list[Fault]) -> None:
        self.fault = faults[0] if faults else None  # one of the reasons, if there is one
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
