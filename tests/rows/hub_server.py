"""A server on loopback that answers like the hub and like a plain web server, and can misbehave."""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Hub:
    """Serves `files` by path. `faults` says what goes wrong with a path.

    `corrupt`: other bytes of the same length; `cut`: the first connection ends halfway; `cut for good`: each
    one does; a number: that status.
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.faults: dict[str, str | int] = {}
        self.asked: Counter[str] = Counter()  # downloads by path, HEAD requests aside
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None: ...

            def do_HEAD(self) -> None:
                hub.answer(self, body=False)

            def do_GET(self) -> None:
                hub.asked[self.path] += 1
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
        if content is None or isinstance(fault, int):
            code = fault if isinstance(fault, int) else 404
            request.send_response(code)
            if kind := {403: "GatedRepo", 404: "EntryNotFound"}.get(code):
                request.send_header("X-Error-Code", kind)
            request.send_header("Content-Length", "0")
            request.end_headers()
            return
        start = int((request.headers.get("Range") or "bytes=0-").removeprefix("bytes=").rstrip("-"))
        request.send_response(206 if start else 200)
        if "/resolve/" in request.path:
            request.send_header("X-Repo-Commit", request.path.split("/resolve/")[1].split("/")[0])
            request.send_header("ETag", f'"{self._etag(request.path, content)}"')
        if start:
            request.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        request.send_header("Content-Length", str(len(content) - start))
        request.end_headers()
        if not body:
            return
        if fault == "corrupt":
            content = bytes(byte ^ 1 for byte in content)
        if fault == "cut for good" or (fault == "cut" and self.asked[request.path] == 1):
            request.wfile.write(content[start : start + (len(content) - start) // 2])
            request.wfile.flush()
            request.close_connection = True
            return
        request.wfile.write(content[start:])

    @staticmethod
    def _etag(path: str, content: bytes) -> str:
        """SHA-256 for Parquet, as for large files on the hub, git's hash for the others."""
        if path.endswith(".parquet"):
            return hashlib.sha256(content).hexdigest()
        return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
