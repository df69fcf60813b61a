"""Batch files in OpenAI's format: requests as lines of a file, results as lines of what comes back.

{"custom_id": …, "method": "POST", "url": …, "body": …}  gives  {"custom_id": …, "response": …, "error": …}

Most providers take it, `vllm run-batch`, and Ray Data.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from medtasks_ext.atomic import check_regular
from medtasks_ext.engines.completion import FILTERED, Reader
from medtasks_ext.engines.engine import WAIT_SECONDS, Done, Engine, Feed
from medtasks_ext.engines.faults import ServerNames, error_message, is_filtered, status_fault
from medtasks_ext.engines.records import Answer, Fault, FaultKind, Outcome, Request
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import Json, JsonError, parse_json

_ASKED = ServerNames("the server of the batch", "the model of the batch", "the key of the batch")


class BatchEngine(Engine):
    """Their outcomes come later, in files of results; `ready` runs in the thread that builds requests."""

    window, sends = 1024, False

    def __init__(
        self,
        file: IO[bytes],
        url: str,
        body: Callable[[Request], Json],
        ready: Callable[[Request], Request | Fault],
    ) -> None:
        self._file, self._url, self._body, self._ready, self.written = file, url, body, ready, 0

    def prepare(self, request: Request) -> Request | Fault:
        return self._ready(request)

    def run(self, feed: Feed, done: Done) -> None:
        """Write until the feed is over. Half of a surrogate pair, which files may not hold, becomes `?`."""
        while not feed.over:
            if (request := feed.take()) is None:
                feed.wait(WAIT_SECONDS)
                continue
            line = {"custom_id": request.key, "method": "POST", "url": self._url, "body": self._body(request)}
            self._file.write(json.dumps(line, ensure_ascii=False).encode(errors="replace") + b"\n")
            self.written += 1
            self.later(request)


def results_in(path: Path, read: Reader) -> Iterator[tuple[str, Outcome] | str]:
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
