"""A server on loopback that answers like the hub and like a plain web server, and can misbehave."""

import hashlib
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit


class Hub:
    """Serves `files` by path. `faults` says what goes wrong with a path.

    `corrupt`: other bytes of the same length; `cut`: the first connection ends halfway; `cut for good`:
    each one does; `unsaid`: the length is not said; `whole`: ranges are not understood; `slow`: a byte at a
    time; `stall`: the first one stays open halfway without another byte; `416`: the first range is refused;
    `to URL`: a redirect; a number: that status; a list: one of these for each request, in order, the last
    for all others.
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.faults: dict[str, str | int | list] = {}
        self.asked: Counter[str] = Counter()  # downloads by path, HEAD requests aside
        self.headers: list[dict[str, str]] = []  # of downloads
        self.commits: dict[str, str] = {}  # branch -> its commit
        self.done = threading.Event()  # connections that stall end with the server
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None: ...

            def do_HEAD(self) -> None:
                hub.answer(self, body=False)

            def do_GET(self) -> None:
                self.path = urlsplit(self.path).path  # a proxy is asked for the whole URL
                hub.asked[self.path] += 1
                hub.headers.append({key.lower(): value for key, value in self.headers.items()})
                hub.answer(self, body=True)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def put(self, repo: str, revision: str, name: str, content: bytes) -> str:
        """A file of a hub dataset; returns its path on the server."""
        path = f"/datasets/{repo}/resolve/{revision}/{name}"
        self.files[path] = content
        return path

    def answer(self, request: BaseHTTPRequestHandler, *, body: bool) -> None:
        fault, content = self.faults.get(request.path), self.files.get(request.path)
        if isinstance(fault, list):
            fault = fault[min(self.asked[request.path], len(fault)) - 1]
        if isinstance(fault, str) and fault.startswith("to "):
            request.send_response(302)
            request.send_header("Location", fault[3:])
            request.send_header("Content-Length", "0")
            request.end_headers()
            return
        if content is None or isinstance(fault, int):
            code = fault if isinstance(fault, int) else 404
            request.send_response(code)
            if kind := {403: "GatedRepo", 404: "EntryNotFound"}.get(code):
                request.send_header("X-Error-Code", kind)
            if code == 429:
                request.send_header("Retry-After", "7")
            request.send_header("Content-Length", "0")
            request.end_headers()
            return
        start = int((request.headers.get("Range") or "bytes=0-").removeprefix("bytes=").rstrip("-"))
        if start >= len(content) or (fault == "416" and start):
            self.faults.pop(request.path, None)
            request.send_response(416)
            request.send_header("Content-Length", "0")
            request.end_headers()
            return
        if fault == "whole":
            start = 0
        request.send_response(206 if start else 200)
        if "/resolve/" in request.path:
            revision = request.path.split("/resolve/")[1].split("/")[0]
            request.send_header("X-Repo-Commit", self.commits.get(revision, revision))
            request.send_header("ETag", f'"{self._etag(request.path, content)}"')
        if start:
            request.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        if fault == "unsaid":
            request.send_header("Connection", "close")
        else:
            request.send_header("Content-Length", str(len(content) - start))
        request.end_headers()
        if not body:
            return
        if fault == "corrupt":
            content = bytes(byte ^ 1 for byte in content)
        first = self.asked[request.path] == 1
        if fault == "cut for good" or (fault in ("cut", "stall") and first):
            request.wfile.write(content[start : start + (len(content) - start) // 2])
            request.wfile.flush()
            request.close_connection = True
            if fault == "stall":
                self.done.wait()
            return
        if fault == "slow":
            for byte in content[start:]:
                request.wfile.write(bytes([byte]))
                request.wfile.flush()
            return
        request.wfile.write(content[start:])

    @staticmethod
    def _etag(path: str, content: bytes) -> str:
        """SHA-256 for Parquet, as for large files on the hub, git's hash for the others."""
        if path.endswith(".parquet"):
            return hashlib.sha256(content).hexdigest()
        return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()

    def take_place(self, monkeypatch: Any, folder: Path) -> None:
        """Stand in for the hub: what is fetched is kept below a folder, and nothing waits."""
        monkeypatch.setenv("MEDTASKS_CACHE", str(folder / "cache"))
        monkeypatch.setenv("HF_HUB_OFFLINE", "0")
        template = self.url + "/{repo_id}/resolve/{revision}/{filename}"
        values = {"HF_HUB_OFFLINE": False, "ENDPOINT": self.url, "HUGGINGFACE_CO_URL_TEMPLATE": template}
        for name, value in {**values, "HF_HUB_CACHE": str(folder / "hub")}.items():
            monkeypatch.setattr(f"huggingface_hub.constants.{name}", value)
        monkeypatch.setattr("huggingface_hub.file_download.time.sleep", lambda seconds: None)

    def close(self) -> None:
        self.done.set()
        self.server.shutdown()
        self.server.server_close()
