"""A model that is asked in files: requests in OpenAI's batch format out, results in."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from medtasks_ext.atomic import atomic_file, check_regular
from medtasks_ext.engines import WAIT_SECONDS, Answer, Done, Engine, Fault, FaultKind, Feed, Outcome, Request
from medtasks_ext.engines.api import after_thinking, payload, prepared, reader_of
from medtasks_ext.engines.replies import (
    FILTERED,
    Reader,
    Server,
    chat_answer,
    error_message,
    is_filtered,
    status_fault,
    text_answer,
)
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import JsonError, parse_json
from medtasks_ext.run.store import Answers

#: Requests and bytes of a file at most, as OpenAI's batch interface takes them.
MOST_REQUESTS, MOST_BYTES = 50_000, 200_000_000
_URLS: Mapping[Reader, str] = {chat_answer: "/v1/chat/completions", text_answer: "/v1/completions"}
_ASKED = Server("the server of the batch", "the model of the batch", "the key of the batch")


class BatchFiles(Engine):
    """Takes answers from files of results; where none are given, writes requests in place of sending them.

    Attributes:
        path: the file of requests; what is over the limits of a batch goes into others beside it.
        n: answers that were taken.
        written: file of requests -> how many it holds.
    """

    window, sends = 1024, False

    def __init__(self, model: str, path: Path | None, results: Sequence[Path]) -> None:
        self.path, self.n, self.written = path and _free(path), 0, dict[Path, int]()
        self.file = str(path.resolve()) if path else ""
        self._read = _reader(model)
        self._results, self._others = _results(results, self._read)

    def of(self, lm: Any) -> BatchFiles:
        """The same, for requests of a model."""
        self._lm = lm
        return self

    def prepare(self, request: Request) -> Request | Fault:
        return prepared(self._lm, request)

    def run(self, feed: Feed, done: Done) -> None:
        thinking = getattr(self._lm, "think_end_token", None) if self._read is chat_answer else None
        with ExitStack() as files:
            file: IO[bytes] | None = None
            path, n = self.path or Path(), 0
            while not feed.over:
                if (request := feed.take()) is None:
                    feed.wait(WAIT_SECONDS)
                elif outcome := self._results.get(request.key):
                    if isinstance(outcome, Answer):
                        self.n += 1
                        outcome = replace(outcome, text=after_thinking(outcome.text, thinking))
                    done(request, outcome)
                else:
                    self.later(request)
                    if not self.path:
                        continue
                    about = {"custom_id": request.key, "method": "POST", "url": _URLS[self._read]}
                    text = json.dumps({**about, "body": payload(self._lm, request)}, ensure_ascii=False)
                    # half of a surrogate pair, which files may not hold, becomes `?`
                    line = text.encode(errors="replace") + b"\n"
                    if file is None or file.tell() + len(line) > MOST_BYTES or n == MOST_REQUESTS:
                        if file is not None:
                            path = _free(self.path.with_stem(f"{self.path.stem}-{len(self.written) + 1}"))
                        file, n = files.enter_context(atomic_file(path)), 0
                    file.write(line)
                    n = self.written[path] = n + 1

    def summary(self, known: Answers) -> Iterator[str]:
        """What was written, or taken of results; `known`: the answers that are there now."""
        if self.path:
            yield from (f"{path}: {n:,} requests" for path, n in self.written.items())
            if not self.written:
                yield "nothing is left to ask"
            return
        answers = [key for key, outcome in self._results.items() if isinstance(outcome, Answer)]
        yield f"{self.n:,} of {len(answers):,} answers are new"
        strange = {"answers to other requests": sum(key not in known for key in answers)}
        for reason, n in {**strange, **self._others}.items():
            if n:
                yield f"✗ {n:,} results: {reason}"


def _free(path: Path) -> Path:
    if path.exists():
        raise MedtasksError("exists already", where=path, remedy="name another file: --to-batch FILE")
    return path


def check_out(out: Mapping[str, str]) -> None:
    """Refuse to ask what waits in a file of a batch, and would be paid for twice.

    `out`: as `Answers.out`.
    """
    for file, n in Counter(out.values()).items():
        if (path := Path(file)).is_file():
            what = f"holds {n:,} requests of this run whose results were not taken"
            how = "--from-batch RESULTS takes them; remove the file to have the requests asked again"
            raise MedtasksError(what, where=path, remedy=how)


def _reader(model: str) -> Reader:
    from medtasks_ext.harness import get_model

    try:
        read = reader_of(get_model(model))
    except (KeyError, ValueError, ImportError):
        read = None
    if read is None or read not in _URLS:
        remedy = "use local-chat-completions (also of vLLM), local-completions or openai-chat-completions"
        raise MedtasksError(f"{model} is not asked in batches", where="--model", remedy=remedy)
    return read


def _results(paths: Iterable[Path], read: Reader) -> tuple[dict[str, Outcome], Counter[str]]:
    """Id of a request -> its first answer, else its fault; why lines hold no answer -> how many."""
    found, others = dict[str, Outcome](), Counter[str]()
    for path in paths:
        check_regular(path)
        if not path.is_file():
            raise MedtasksError("no such file", where=path, remedy="name a file of results")
        with path.open("rb") as lines:
            for line in filter(bytes.strip, lines):
                try:
                    record = parse_json(line)
                    key, outcome = record["custom_id"], _outcome(record, read)
                except (JsonError, KeyError, TypeError, ValueError, AttributeError):
                    others["lines without a result"] += 1
                    continue
                if isinstance(outcome, Fault):
                    others[outcome.in_words] += 1
                    found.setdefault(key, outcome)
                elif isinstance(found.get(key), Answer):
                    others["answers that came twice"] += 1
                else:
                    found[key] = outcome
    return found, others


def _outcome(record: Mapping[str, Any], read: Reader) -> Outcome:
    response: Any = record.get("response")
    error = record.get("error")
    # servers give the error as an object, the reply around it, or a text
    said = error if isinstance(error, dict) and "error" in error else {"error": error}
    if not response and error:
        return Fault(FaultKind.ENGINE, f"the batch failed{error_message(said, quote=False)}")
    status, body = response.get("status_code", 200), response.get("body")
    if not error and 200 <= status < 300:
        outcome = read(body, False)
    elif is_filtered(status, body or said):
        outcome = read(FILTERED, False)
    else:
        return status_fault(status, body or said, _ASKED, quote=False)
    name = response.get("request_id")
    return replace(outcome, request_id=name) if isinstance(name, str) else outcome
