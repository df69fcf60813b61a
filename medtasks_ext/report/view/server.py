"""The page on this machine: a server on loopback, behind a word that nobody can guess.

Patients' texts may be among the answers. So the server listens on loopback alone, answers only under a random
path, and only where the browser believes to speak with this machine: another site's page, or another user of
the machine, gets nothing.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from medtasks_ext.atomic import atomic_file, cannot_write, make_private, private_files
from medtasks_ext.egress import is_loopback
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import json_bytes, write_json
from medtasks_ext.privacy import what_happened
from medtasks_ext.report.view.dataset_page import DatasetPage
from medtasks_ext.report.view.page import render

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.report.view.viewer import Viewer


# The answers as files: a page for each dataset and one that lists them, which ask no server. A bundle holds
# what everyone may see, unless more is allowed; then the folder is its owner's alone.

MARK = "medtasks-view.json"
#: Documents of a dataset that a page holds unless told otherwise.
DOCUMENTS = 500


def write_bundle(
    folder: Path, viewer: Viewer, *, documents: int = DOCUMENTS, private: bool = False
) -> list[Path]:
    """Write the pages, and return the files, the one to open first.

    Args:
        documents: of a dataset at most; figures are of all of them.
        private: it holds what not everyone may see.
    """
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir()) and not (folder / MARK).is_file()):
        what = "is a file" if folder.is_file() else "holds something that no `medtasks view` wrote"
        raise MedtasksError(what, where=folder, remedy="give another folder to -o")
    with private_files(private):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for stale in folder.glob("*.html"):  # of datasets that are left out this time
                stale.unlink()
        except OSError as error:
            raise cannot_write(folder, error, "give another folder to -o") from None
        if private:
            make_private(folder)
        write_json(folder / MARK, {"schema": 1, "private": private, "datasets": viewer.datasets})
        overview = _overview(viewer)
        files = [_write(folder / "index.html", {"overview": overview, "pages": viewer.datasets}, "Answers")]
        for name in viewer.datasets:
            page = viewer.page(name)
            page.read()
            title = f"{page.dataset.metadata.name} · answers"
            files.append(_write(folder / f"{name}.html", _dataset(viewer, page, documents), title))
    return files


def _overview(viewer: Viewer) -> Json:
    found = viewer.overview()
    runs = [{**run, "place": Path(run["place"]).name, "going_on": False} for run in found["runs"]]
    faults = [{**fault, "where": Path(fault["where"]).name} for fault in found["faults"]]
    return {**found, "live": False, "runs": runs, "faults": faults}


def _dataset(viewer: Viewer, page: DatasetPage, documents: int) -> Json:
    held = range(min(documents, len(page.keys)))
    return {
        "overview": {**_overview(viewer), "datasets": []},
        "pages": viewer.datasets,
        "dataset": page.head(),
        "errors": page.errors(),
        "confusion": page.confusion(),
        "rows": [page.row(place) for place in held],
        "views": [page.document(place) for place in held],
    }


def _write(file: Path, data: Json, title: str) -> Path:
    with atomic_file(file) as opened:
        opened.write(render({"live": False, **data}, title).encode(errors="replace"))
    return file


HOST = "127.0.0.1"


class ViewServer(ThreadingHTTPServer):
    """On port 0, any that is free is taken."""

    daemon_threads = True

    def __init__(self, viewer: Viewer, port: int = 0) -> None:
        self.viewer, self.lock = viewer, threading.Lock()
        self.token = secrets.token_urlsafe(18)
        try:
            super().__init__((HOST, port), _Handler)
        except OSError as error:
            raise MedtasksError(
                f"port {port} cannot be used ({error.strerror})",
                where="--port",
                remedy="leave it out, or name another",
            ) from None

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.server_address[1]}/{self.token}/"


class _Handler(BaseHTTPRequestHandler):
    server: ViewServer
    server_version, sys_version = "medtasks", ""

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        token, _, what = parts.path.lstrip("/").partition("/")
        if not self._is_for_this_machine():
            self._send(HTTPStatus.MISDIRECTED_REQUEST, {"what": "this page is for this machine alone"})
        elif not secrets.compare_digest(token.encode(), self.server.token.encode()):
            self._send(HTTPStatus.NOT_FOUND, {"what": "no such page; `medtasks view` printed its address"})
        elif not what:
            page = render({"live": True}, "medtasks view")
            self._write(HTTPStatus.OK, page.encode(errors="replace"), "text/html; charset=utf-8")
        else:
            self._answer(what, dict(parse_qsl(parts.query, keep_blank_values=True)))

    def _is_for_this_machine(self) -> bool:
        """Whether the browser asks for a name of this machine: another name may lead here, too."""
        host = self.headers.get("Host", "")
        try:
            return is_loopback(f"http://{host}")
        except ValueError:
            return False

    def _answer(self, what: str, query: Mapping[str, str]) -> None:
        try:
            with self.server.lock:  # files are read on by one request at a time
                found = self.server.viewer.answer(what, query)
        except MedtasksError as error:
            self._send(HTTPStatus.BAD_REQUEST, {"what": error.what, "remedy": error.remedy})
        except Exception as error:  # one odd record ends no server; texts of rows stay out of messages
            self._send(HTTPStatus.INTERNAL_SERVER_ERROR, {"what": what_happened(error)})
        else:
            self._send(HTTPStatus.OK, found)

    def _send(self, status: HTTPStatus, content: Any) -> None:
        self._write(status, json_bytes(content), "application/json")

    def _write(self, status: HTTPStatus, body: bytes, kind: str) -> None:
        self.send_response(status)
        for name, value in (
            ("Content-Type", kind),
            ("Content-Length", str(len(body))),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
            ("X-Frame-Options", "DENY"),
            ("Referrer-Policy", "no-referrer"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            ("Cross-Origin-Opener-Policy", "same-origin"),
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: a log would hold ids of documents."""
