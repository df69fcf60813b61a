"""A run's requests as a file in OpenAI's batch format, and the results taken back.

{"custom_id": …, "method": "POST", "url": …, "body": …}  gives  {"custom_id": …, "response": …, "error": …}
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

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
from medtasks_ext.jsonfile import Json, JsonError, parse_json
from medtasks_ext.runner.asking import RunAsker
from medtasks_ext.runner.evaluate import Settings
from medtasks_ext.runner.run import Run
from medtasks_ext.runner.tally import Tally
from medtasks_ext.runs.manifest import TaskEntry, TaskState

if TYPE_CHECKING:
    from medtasks_ext.harness import Task, TemplateAPI

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

    def __init__(self, file: IO[bytes], url: str, lm: TemplateAPI) -> None:
        self._file, self._url, self._lm, self.written = file, url, lm, 0

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
            self._file.write(json.dumps(line, ensure_ascii=False).encode(errors="replace") + b"\n")
            self.written += 1
            self.later(request)


def write_requests(
    run: Run, lm: TemplateAPI, tasks: Mapping[str, Task], settings: Settings, file: Path
) -> tuple[int, Tally]:
    """Write the requests of all documents that have no answer yet; what cannot be put is counted."""
    url, _ = interface_of(run.manifest.identity.model["model"])
    tally = Tally({name: len(run.places(task)) for name, task in tasks.items()})
    with atomic_file(file) as lines:
        engine = _Writer(lines, url, lm)
        RunAsker(run, lm, engine, tasks, settings, tally).go()  # notes the questions before the file is there
    return engine.written, tally


def _results_in(path: Path, read: Reader) -> Iterator[tuple[str, Outcome] | str]:
    """Id of a request and its outcome, or what is wrong with a line; status 200 is read as an answer."""
    check_regular(path)
    if not path.is_file():
        raise MedtasksError("no such file", where=path, remedy="name a file of results")
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                record = parse_json(line)
            except JsonError:
                yield f"line {number} is no JSON"
                continue
            if not isinstance(record, dict) or not isinstance(record.get("custom_id"), str):
                yield f"line {number} has no custom_id"
            elif "body" in record:
                raise MedtasksError(
                    "holds requests", where=path, remedy="give the file of results that was made of it"
                )
            elif (outcome := _outcome(record, read)) is None:
                yield f"line {number} does not say what became of the request"
            else:
                yield record["custom_id"], outcome


def _outcome(record: Json, read: Reader) -> Outcome | None:
    response, error = record.get("response"), record.get("error")
    if not isinstance(response, dict):
        if not error:
            return None
        return Fault(FaultKind.ENGINE, f"the batch failed{error_message(_as_body(error), quote=False)}")
    status = response.get("status_code", 200)
    if type(status) is not int:
        return None
    if error or not 200 <= status < 300:
        body = response.get("body") or _as_body(error)
        if is_filtered(status, body):
            return read(FILTERED, False)
        return status_fault(status, body, _ASKED, quote=False)
    outcome = read(response.get("body"), False)
    name = response.get("request_id")
    if isinstance(outcome, Answer) and isinstance(name, str):
        return replace(outcome, request_id=name)
    return outcome


def _as_body(error: Any) -> Json:
    """An error as a server's reply has it: servers give the object, the reply around it, or a text."""
    return error if isinstance(error, dict) and "error" in error else {"error": error}


def take_results(run: Run, paths: Iterable[Path], say: Callable[[str], None]) -> bool:
    """Store results, each once, and score what is complete; whether every line was a result of this run."""
    model = run.manifest.identity.model
    _, read = interface_of(model["model"])
    thinking = model["model_args"].get("think_end_token") if read is chat_answer else None
    answers, sound, taken = run.answers, True, Counter[str]()
    waiting = [name for name in run.manifest.tasks if name in answers.asked and not run.is_done(name)]
    asked = {name: {item.key: document for document, item in answers.asked[name].items()} for name in waiting}
    whose = {key: name for name, keys in asked.items() for key in keys}
    try:
        for path in paths:
            new, there, unknown, broken = 0, 0, list[str](), list[str]()
            for item in _results_in(path, read):
                if isinstance(item, str):
                    broken.append(item)
                    continue
                key, outcome = item
                if key in answers or answers.faults.get(key) == outcome:
                    there += 1
                elif (name := whose.get(key)) is None:
                    unknown.append(key)
                else:
                    if isinstance(outcome, Answer):
                        outcome = replace(outcome, text=after_thinking(outcome.text, thinking))
                        taken[name] += 1
                    document = asked[name][key]
                    answers.put(key, outcome, name, document, {"cut": answers.asked[name][document].cut})
                    new += 1
            say(f"{path}: {new:,} new results, {there:,} stored before")
            for what, lines in (("results of other requests", unknown), ("lines without a result", broken)):
                if lines:
                    sound = False
                    say(f"✗ {path}: {len(lines):,} {what}: {some(lines)}")
    finally:
        entries = {name: _entry(run, asked[name], taken[name]) for name in waiting}
        for name, entry in entries.items():
            run.note(name, entry)
        run.save()
    for name, entry in entries.items():
        if entry.state is TaskState.ANSWERED:
            run.note_result(name, run.rescored(name), lambda name, what: say(f"{name}: {what}"))
    return sound


def _entry(run: Run, keys: Iterable[str], generated: int) -> TaskEntry:
    """What a task's outcomes make of it."""
    left = [key for key in keys if key not in run.answers]
    faults = [run.answers.faults[key] for key in left if key in run.answers.faults]
    state = TaskState.INCOMPLETE if left else TaskState.ANSWERED
    reasons = Counter(fault.in_words for fault in faults).most_common(1)
    return TaskEntry(
        state=TaskState.WAITING if len(left) > len(faults) else state,
        generated=generated,
        faults=dict(Counter(fault.kind.value for fault in faults)),
        reason=reasons[0][0] if reasons else "",
    )
