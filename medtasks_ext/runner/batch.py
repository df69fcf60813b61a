"""A run's requests as a file in OpenAI's batch format, and the results taken back.

{"custom_id": …, "method": "POST", "url": …, "body": …}  gives  {"custom_id": …, "response": …, "error": …}
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING

from medtasks_ext.atomic import atomic_file, check_regular
from medtasks_ext.engines.api import after_thinking, payload, prepared, reader_of
from medtasks_ext.engines.engine import WAIT_SECONDS, Done, Engine, Feed
from medtasks_ext.engines.records import Answer, Fault, FaultKind, Outcome, Request
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
from medtasks_ext.errors import MedtasksError, some
from medtasks_ext.jsonfile import JsonError, parse_json
from medtasks_ext.runner.asking import RunAsker
from medtasks_ext.runner.evaluate import Settings
from medtasks_ext.runner.run import Run
from medtasks_ext.runner.tally import Tally
from medtasks_ext.runs.manifest import TaskEntry, TaskState

if TYPE_CHECKING:
    from medtasks_ext.harness import Task, TemplateAPI

#: Requests and bytes of a file at most, as OpenAI's batch interface takes them.
MOST_REQUESTS, MOST_BYTES = 50_000, 200_000_000
_URLS: Mapping[Reader, str] = {chat_answer: "/v1/chat/completions", text_answer: "/v1/completions"}
_ASKED = Server("the server of the batch", "the model of the batch", "the key of the batch")


def interface_of(model: str) -> tuple[str, Reader]:
    """Address of each request to a type of model in a batch, and what reads the reply."""
    from medtasks_ext.harness import get_model

    try:
        read = reader_of(get_model(model))
    except (KeyError, ValueError, ImportError):
        read = None
    if read is None or read not in _URLS:
        raise MedtasksError(
            f"{model} is not asked in batches",
            where="--model",
            remedy="use local-chat-completions (also of vLLM), local-completions or openai-chat-completions",
        )
    return _URLS[read], read


class _Writer(Engine):
    """Writes requests in place of sending them; their outcomes come later, in files of results."""

    window, sends = 1024, False

    def __init__(self, path: Path, files: ExitStack, url: str, lm: TemplateAPI) -> None:
        self._path, self._files, self._url, self._lm = path, files, url, lm
        self.written: dict[Path, int] = {}  # file -> its requests
        self._file: IO[bytes]  # the last of them

    def prepare(self, request: Request) -> Request | Fault:
        return prepared(self._lm, request)

    def run(self, feed: Feed, done: Done) -> None:
        """Half of a surrogate pair, which files may not hold, becomes `?`."""
        while not feed.over:
            if (request := feed.take()) is None:
                feed.wait(WAIT_SECONDS)
                continue
            body = payload(self._lm, request)
            line = {"custom_id": request.key, "method": "POST", "url": self._url, "body": body}
            self._write(json.dumps(line, ensure_ascii=False).encode(errors="replace") + b"\n")
            self.later(request)

    def _write(self, line: bytes) -> None:
        path = next(reversed(self.written), None)
        if path is None or self.written[path] == MOST_REQUESTS or self._file.tell() + len(line) > MOST_BYTES:
            path = self._path.with_stem(f"{self._path.stem}-{len(self.written) + 1}") if path else self._path
            if path.exists():
                raise MedtasksError("is there already", where=path, remedy="name another file: -o FILE")
            self._file = self._files.enter_context(atomic_file(path))
            self.written[path] = 0
        self._file.write(line)
        self.written[path] += 1


def write_requests(
    run: Run, lm: TemplateAPI, tasks: Mapping[str, Task], settings: Settings, path: Path
) -> tuple[dict[Path, int], Tally]:
    """Write the requests of all documents that have no answer yet: file -> how many; what cannot be put."""
    url, _ = interface_of(run.manifest.identity.model["model"])
    tally = Tally({name: len(run.places(task)) for name, task in tasks.items()})
    with ExitStack() as files:
        engine = _Writer(path, files, url, lm)
        RunAsker(run, lm, engine, tasks, settings, tally).go()  # notes the questions before files are there
    return engine.written, tally


def _result(path: Path, line: bytes, read: Reader) -> tuple[str, Outcome]:
    """Id of a request and its outcome; status 200 is read as an answer."""
    record = parse_json(line)
    if "body" in record:
        remedy = "give the file of results that was made of it"
        raise MedtasksError("holds requests", where=path, remedy=remedy)
    key, response, error = record["custom_id"], record.get("response"), record.get("error")
    # servers give the error as an object, the reply around it, or a text
    said = error if isinstance(error, dict) and "error" in error else {"error": error}
    if not response and error:
        return key, Fault(FaultKind.ENGINE, f"the batch failed{error_message(said, quote=False)}")
    status, body = response.get("status_code", 200), response.get("body")
    if not error and 200 <= status < 300:
        outcome = read(body, False)
    elif is_filtered(status, body or said):
        outcome = read(FILTERED, False)
    else:
        return key, status_fault(status, body or said, _ASKED, quote=False)
    name = response.get("request_id")
    has_name = isinstance(outcome, Answer) and isinstance(name, str)
    return key, replace(outcome, request_id=name) if has_name else outcome


def take_results(run: Run, paths: Iterable[Path], say: Callable[[str], None]) -> bool:
    """Store results, each once, and score what is complete; whether every line was a result of this run."""
    model = run.manifest.identity.model
    _, read = interface_of(model["model"])
    thinking = model["model_args"].get("think_end_token") if read is chat_answer else None
    answers, sound, seen, taken = run.answers, True, set[str](), Counter[str]()
    waiting = [name for name in run.manifest.tasks if name in answers.asked and not run.is_done(name)]
    asked = {
        item.key: (name, document, item.cut)
        for name in waiting
        for document, item in answers.asked[name].items()
    }
    try:
        for path in paths:
            check_regular(path)
            if not path.is_file():
                raise MedtasksError("no such file", where=path, remedy="name a file of results")
            counts, refused = Counter[bool](), dict[str, list[str]]()
            with path.open("rb") as lines:
                for number, line in enumerate(lines, start=1):
                    if not line.strip():
                        continue
                    try:
                        key, outcome = _result(path, line, read)
                        known = key in answers or answers.faults.get(key) == outcome
                    except (JsonError, KeyError, TypeError, ValueError, AttributeError):
                        refused.setdefault("lines without a result", []).append(f"line {number}")
                        continue
                    if (twice := key in seen and isinstance(outcome, Answer)) or not (known or key in asked):
                        what = "answers that came twice" if twice else "results of other requests"
                        refused.setdefault(what, []).append(key)
                        continue
                    seen |= {key} if isinstance(outcome, Answer) else set()
                    counts[known] += 1
                    if known:
                        continue
                    name, document, cut = asked[key]
                    if isinstance(outcome, Answer):
                        outcome = replace(outcome, text=after_thinking(outcome.text, thinking))
                        taken[name] += 1
                    answers.put(key, outcome, name, document, {"cut": cut})
            say(f"{path}: {counts[False]:,} new results, {counts[True]:,} stored before")
            for what, of in refused.items():
                sound = False
                say(f"✗ {path}: {len(of):,} {what}: {some(of)}")
    finally:
        entries = {name: _entry(run, name, taken[name]) for name in waiting}
        for name, entry in entries.items():
            run.note(name, entry)
        run.save()
    for name, entry in entries.items():
        if entry.state is TaskState.ANSWERED:
            run.note_result(name, run.rescored(name), lambda name, what: say(f"{name}: {what}"))
    return sound


def _entry(run: Run, name: str, generated: int) -> TaskEntry:
    """What a task's outcomes make of it."""
    left = [item.key for item in run.answers.asked[name].values() if item.key not in run.answers]
    faults = [run.answers.faults[key] for key in left if key in run.answers.faults]
    state = TaskState.INCOMPLETE if left else TaskState.ANSWERED
    reasons = Counter(fault.in_words for fault in faults).most_common(1)
    return TaskEntry(
        state=TaskState.WAITING if len(left) > len(faults) else state,
        generated=generated,
        faults=dict(Counter(fault.kind.value for fault in faults)),
        reason=reasons[0][0] if reasons else "",
    )
