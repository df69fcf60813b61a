"""A server on loopback whose answers follow from what it is asked, and which keeps what it was asked.

Its path names who asks: `http://127.0.0.1:PORT/NAME/v1`, so that each run has a server of its own. Standard
library only.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_CODE = re.compile(r"<<<\w+ (\w{16})$", re.MULTILINE)
_TAIL = 160  # characters by which a prompt is known again


def number(*texts: str) -> int:
    """A large number that follows from texts."""
    return int.from_bytes(hashlib.sha256("\0".join(texts).encode()).digest()[:8], "big")


class Answers:
    """What a model says.

    Attributes:
        gold: end of a prompt -> the right answer.
    """

    def __init__(self) -> None:
        self.gold: dict[str, str] = {}

    def learn(self, prompt: str, target: str) -> None:
        """Keep the right answer of a prompt."""
        self.gold[prompt.strip()[-_TAIL:]] = target

    def answer(self, model: str, body: dict[str, Any]) -> tuple[str, str]:
        """Text and finish reason."""
        if "response_format" in body:
            return self._verdict(model, body), "stop"
        text = str(body["messages"][-1]["content"]) if "messages" in body else str(body["prompt"])
        drawn = number(model, text)
        right = self.gold.get(text.strip()[-_TAIL:])
        if right is None:
            return f"I do not know; perhaps {'ABCDE'[drawn % 5]}.", "stop"
        if drawn % 11 == 0:
            return "", "stop"
        if drawn % 7 == 0:
            return right[: max(1, len(right) // 2)], "length"
        if drawn % 5 == 0:
            others = sorted(self.gold.values())
            return others[drawn // 5 % len(others)], "stop"
        if drawn % 4 == 0:
            return f"<think>Let me see.</think>\n\nThe answer is {right}", "stop"
        return right, "stop"

    def _verdict(self, model: str, body: dict[str, Any]) -> str:
        """An object that the schema allows; now and then one that it does not."""
        user = body["messages"][-1]["content"]
        schema = body["response_format"]["json_schema"]["schema"]
        code = _CODE.search(user)
        drawn = number(user)
        # in two of three cases all judges are of one mind
        made = _of_schema(schema, f"{model if drawn % 3 == 0 else ''} {drawn}", "")
        if isinstance(made, dict) and "code" in made and code:
            made["code"] = code[1]
        return json.dumps(made, ensure_ascii=False)


def _of_schema(schema: dict[str, Any], seed: str, path: str) -> Any:
    drawn = number(seed, path)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][drawn % len(schema["enum"])]
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = kind[0]
    if kind == "object":
        return {
            name: _of_schema(item, seed, f"{path}/{name}")
            for name, item in schema.get("properties", {}).items()
        }
    if kind == "array":
        n = max(schema.get("minItems", 0), min(1, schema.get("maxItems", 1)))
        return [_of_schema(schema.get("items", {}), seed, f"{path}/{place}") for place in range(n)]
    if kind in ("integer", "number"):
        low, high = schema.get("minimum", 0), schema.get("maximum", 5)
        return low + drawn % (int(high - low) + 1)
    if kind == "boolean":
        return drawn % 3 > 0
    return f"because of {drawn % 100}"


class Server:
    """The server; `with Server() as server: server.url("NAME")`."""

    def __init__(self) -> None:
        self.answers = Answers()
        self._lock = threading.Lock()
        self._bodies: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self._seen: dict[tuple[str, str], int] = defaultdict(int)
        self._held: dict[str, tuple[int, threading.Event]] = {}
        handler = type("Handler", (_Handler,), {"golden": self})
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._http.daemon_threads = True

    def __enter__(self) -> Server:
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()

    def url(self, name: str) -> str:
        """The address of a server of this name."""
        return f"http://127.0.0.1:{self._http.server_port}/{name}/v1"

    def hold(self, name: str, after: int) -> threading.Event:
        """Answer nobody any more after so many requests; the event is set when the next one came."""
        event = threading.Event()
        self._held[name] = (after, event)
        return event

    def asked(self, name: str) -> list[dict[str, Any]]:
        """What came to a name so far, sorted; probes of one token are left out."""
        with self._lock:
            bodies = [body for body in self._bodies[name] if body.get("max_tokens") != 1]
        return sorted(bodies, key=lambda body: json.dumps(body, sort_keys=True))

    def forget(self, name: str) -> None:
        """Begin anew to count."""
        with self._lock:
            self._bodies[name] = []
            self._held.pop(name, None)

    def completion(self, body: dict[str, Any]) -> dict[str, Any]:
        """What a model replies, as OpenAI's interface says it."""
        text, finish = self.answers.answer(str(body.get("model")), body)
        length = len(json.dumps(body.get("messages", body.get("prompt"))))
        usage = {"prompt_tokens": length // 4, "completion_tokens": 1 + len(text) // 4}
        said = {"message": {"role": "assistant", "content": text}} if "messages" in body else {"text": text}
        choice = {"index": 0, **said, "finish_reason": finish}
        return {
            "id": f"c-{number(json.dumps(body, sort_keys=True)) % 10**9}",
            "model": f"{body.get('model')}{'' if body.get('model') == 'one' else '-2026'}",
            "choices": [choice],
            "usage": {**usage, "total_tokens": sum(usage.values())},
        }

    def reply(self, name: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        """Status and content; None: no answer at all."""
        key = json.dumps(body, sort_keys=True)
        with self._lock:
            held = self._held.get(name)
            if held and len(self._bodies[name]) >= held[0]:
                held[1].set()
                return None
            self._seen[name, key] += 1
            seen = self._seen[name, key]
            self._bodies[name].append(body)
        drawn = number(key)
        if seen == 1 and drawn % 13 == 0:
            return 503, {"error": {"message": "busy, as scripted"}}
        if "response_format" in body and seen == 1 and drawn % 9 == 0:
            told = self.completion(body)
            told["choices"][0]["message"]["content"] = "I would rather not say."
            return 200, told
        if name == "warm" and drawn % 5 == 0:
            return 400, {"error": {"message": "refused, as scripted", "code": "invalid_prompt"}}
        return 200, self.completion(body)


class _Handler(BaseHTTPRequestHandler):
    golden: Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._send(404, {})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        told = self.golden.reply(self.path.split("/")[1], body)
        if told is None:
            threading.Event().wait(600)
            return
        self._send(*told)

    def _send(self, status: int, content: dict[str, Any]) -> None:
        data = json.dumps(content, ensure_ascii=False).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if status == 503:
            self.send_header("Retry-After", "0")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Say nothing."""
