"""A provider of batches: answers request lines as a model would, with OpenAI's protocol around it."""

from __future__ import annotations

import json
import threading
import urllib.request
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.judge.server import Asked, Reply


def request_lines(path: Path) -> list[dict[str, Any]]:
    """The requests in a file."""
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def conversation(body: dict[str, Any]) -> str:
    """What a request says, as a key."""
    return json.dumps(body.get("messages", body.get("prompt")), ensure_ascii=False)


class Model:
    """Answers by a table: two of three documents get the gold, the others a word that is none."""

    def __init__(self, oracle: Path, prompts: Path) -> None:
        """Read the gold from an oracle's run, and which prompt belongs to which document."""
        gold = {
            (path.stem, record["document"]): record["response"]
            for path in (oracle / "responses").glob("*.jsonl")
            for record in map(json.loads, path.read_bytes().splitlines())
        }
        self.answers: dict[str, str] = {}
        for path in sorted(prompts.glob("*.jsonl")):
            for place, line in enumerate(path.read_bytes().splitlines()):
                asked = json.loads(line)
                text = gold[path.stem, asked["document"]] if place % 3 else "no idea"
                self.answers[json.dumps(asked["prompt"], ensure_ascii=False)] = text

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


class BatchServer:
    """OpenAI's files and batches on loopback. A batch takes three looks; each third request fails."""

    def __init__(self, complete: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        self.complete = complete
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, dict[str, Any]] = {}
        handler = type("Handler", (_Handler,), {"server_": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> BatchServer:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def keep(self, content: bytes) -> str:
        name = f"file-{len(self.files)}"
        self.files[name] = content
        return name

    def look(self, batch: dict[str, Any]) -> dict[str, Any]:
        """One look at a batch: validating, in progress, completed."""
        states = ("validating", "in_progress", "completed")
        batch["status"] = states[min(2, states.index(batch["status"]) + 1)]
        if batch["status"] == "completed" and "output_file_id" not in batch:
            lines = [json.loads(line) for line in self.files[batch["input_file_id"]].splitlines()]
            good = [answered(line, self.complete(line["body"])) for i, line in enumerate(lines) if i % 3]
            bad = [refused(line, 500, message="try later") for line in lines[::3]]
            for name, records in (("output_file_id", good), ("error_file_id", bad)):
                content = "".join(json.dumps(record) + "\n" for record in records).encode()
                batch[name] = self.keep(content)
        return batch


class _Handler(BaseHTTPRequestHandler):
    server_: BatchServer

    def _send(self, content: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        assert self.headers["Authorization"] == "Bearer key"
        if self.path == "/v1/files":
            boundary = self.headers["Content-Type"].partition("boundary=")[2].encode()
            parts = [part.partition(b"\r\n\r\n") for part in content.split(b"--" + boundary)[1:-1]]
            assert any(b'name="purpose"' in head and body == b"batch\r\n" for head, _, body in parts)
            file = next(body for head, _, body in parts if b'name="file"' in head)
            self._send(json.dumps({"id": self.server_.keep(file.removesuffix(b"\r\n"))}).encode())
        else:
            batch = {
                **json.loads(content),
                "id": f"batch-{len(self.server_.batches)}",
                "status": "validating",
            }
            self.server_.batches[batch["id"]] = batch
            self._send(json.dumps(batch).encode())

    def do_GET(self) -> None:
        _, _, kind, name, *rest = self.path.split("/")
        if kind == "files" and rest == ["content"]:
            self._send(self.server_.files[name])
        else:
            self._send(json.dumps(self.server_.look(self.server_.batches[name])).encode())

    def log_message(self, *_: object) -> None:
        pass


def through_the_interface(url: str, requests: Path, folder: Path) -> list[Path]:
    """What a user does with OpenAI's interface: upload, create, look again and again, download."""
    headers = {"Authorization": "Bearer key"}

    def ask(path: str, data: bytes | None = None, kind: str = "application/json") -> bytes:
        more = {"Content-Type": kind} if data else {}
        with urllib.request.urlopen(urllib.request.Request(url + path, data, {**headers, **more})) as reply:
            return reply.read()

    form = b'--b\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
    form += b'--b\r\nContent-Disposition: form-data; name="file"; filename="requests.jsonl"\r\n\r\n'
    form += requests.read_bytes() + b"\r\n--b--\r\n"
    file = json.loads(ask("/files", form, "multipart/form-data; boundary=b"))["id"]
    wanted = {"input_file_id": file, "endpoint": "/v1/chat/completions", "completion_window": "24h"}
    batch = json.loads(ask("/batches", json.dumps(wanted).encode()))
    while batch["status"] not in ("completed", "failed", "expired", "cancelled"):
        batch = json.loads(ask(f"/batches/{batch['id']}"))
    paths = []
    for name in ("output_file_id", "error_file_id"):
        paths.append(folder / f"{name}.jsonl")
        paths[-1].write_bytes(ask(f"/files/{batch[name]}/content"))
    return paths
