"""A provider of batches: answers request lines as a model would."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from tests.conftest import outcomes
from tests.judge.server import Asked, Reply


def request_lines(path: Path) -> list[dict[str, Any]]:
    """The requests in a file."""
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def conversation(body: dict[str, Any]) -> str:
    """What a request says, as a key."""
    return json.dumps(body.get("messages", body.get("prompt")), ensure_ascii=False)


class Model:
    """Answers by a table: two of three documents get the gold, the others a word that is none."""

    def __init__(self, oracle: Path, run: Path, requests: Path) -> None:
        """Read the gold from an oracle's run, and which request belongs to which document."""
        gold = {(row["task"], row["document"]): row["text"] for row in outcomes(oracle)}
        bodies = {line["custom_id"]: line["body"] for line in request_lines(requests)}
        places = Counter[str]()
        self.answers: dict[str, str] = {}
        for asked in outcomes(run, "", "question"):
            task = asked["task"]
            text = gold[task, asked["document"]] if places[task] % 3 else "no idea"
            places[task] += 1
            self.answers[conversation(bodies[asked["key"]])] = text

    def completion(self, body: dict[str, Any]) -> dict[str, Any]:
        """The body of a reply with status 200."""
        text = self.answers[conversation(body)]
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        return {"id": "chatcmpl-1", "object": "chat.completion", "model": "m-2026", "choices": [choice],
                "usage": usage}  # fmt: skip

    def script(self, asked: Asked, seen: int) -> Reply:
        """The same for the scripted server."""
        return Reply(body=json.dumps(self.completion(asked.body)))


def answered(line: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    """A line of OpenAI's output file."""
    response = {"status_code": 200, "request_id": f"req-{line['custom_id'][:8]}", "body": body}
    return {"id": "batch_req_1", "custom_id": line["custom_id"], "response": response, "error": None}


def refused(line: dict[str, Any], status: int, **error: str) -> dict[str, Any]:
    """A line of OpenAI's error file."""
    response = {"status_code": status, "request_id": "req-0", "body": {"error": error}}
    return {"id": "batch_req_2", "custom_id": line["custom_id"], "response": response, "error": None}


def expired(line: dict[str, Any]) -> dict[str, Any]:
    """A line of a batch that took too long."""
    error = {"code": "batch_expired", "message": "This request could not be executed before the end."}
    return {"id": "batch_req_3", "custom_id": line["custom_id"], "response": None, "error": error}


def write_lines(path: Path, records: list[dict[str, Any]]) -> Path:
    """Write results."""
    path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records))
    return path
