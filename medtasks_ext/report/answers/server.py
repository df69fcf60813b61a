"""The report on this machine, with all answers: a server on loopback, behind a word that nobody can guess.

Patients' texts may be among the answers. So the server listens on loopback alone, answers only under a random
path, and only where the browser believes to speak with this machine: another site's page, or another user of
the machine, gets nothing. The report is made anew as soon as a task of a run has its score.
"""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Sequence
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from medtasks_ext.egress import is_loopback
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import json_bytes
from medtasks_ext.privacy import what_happened
from medtasks_ext.process import collector_paused
from medtasks_ext.report.answers.column import outcomes_in
from medtasks_ext.report.answers.dataset import DatasetAnswers
from medtasks_ext.report.answers.files import (
    FOLDER,
    Sources,
    columns_of,
    runs_of,
    script,
    sources_named,
    sources_of,
)
from medtasks_ext.report.answers.live import LiveRun, call_of, is_under_way
from medtasks_ext.report.gather import Report, gather
from medtasks_ext.report.page import render
from medtasks_ext.report.payload import payload
from medtasks_ext.run.lock import holder_of
from medtasks_ext.run.store import files_of
from medtasks_ext.runs.folder import RunFolder

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Registry
    from medtasks_ext.report.answers.column import Source
    from medtasks_ext.results.experiments import Fault

HOST = "127.0.0.1"
#: Datasets whose answers are kept in memory.
_KEPT = 4


class Viewed:
    """The report of runs as they are now, and their answers.

    MedtasksError where a path holds no results, and no run that is under way.
    """

    def __init__(self, paths: Sequence[Path], registry: Registry) -> None:
        self._paths, self._registry = list(paths), registry
        self._live = dict[Path, LiveRun]()
        self._kept = OrderedDict[str, tuple[Any, DatasetAnswers]]()
        self._report: tuple[Any, Report] | None = None
        self.report()

    def report(self) -> Report:
        """The report, made anew where a run has another result than before."""
        state = self.state()
        if self._report is None or self._report[0] != state:
            runs = [folder for folder, _ in runs_of(self._paths)]
            begun = any(holder_of(folder) or outcomes_in(folder).asked for folder in runs)
            with collector_paused():
                self._report = state, gather(self._paths, self._registry, under_way=begun)
        return self._report[1]

    def state(self) -> list[tuple[str, int, int]]:
        """What changes when a run has another result."""
        files = (
            file
            for folder, _ in runs_of(self._paths)
            for file in (RunFolder(folder).manifest, RunFolder(folder).results_file)
        )
        return [(str(file), stat.st_mtime_ns, stat.st_size) for file in files if (stat := _stat(file))]

    def page(self) -> str:
        report = self.report()
        answers = {"held": [*self._sources()], "withheld": [], "live": self.live()}
        return render({**payload(report), "answers": answers})

    def live(self) -> Json:
        """How far runs are that are under way, and what says that the page is older than the results."""
        runs = []
        for folder, manifest in runs_of(self._paths):
            if not is_under_way(manifest):
                continue
            known = self._live.get(folder)
            if known is None or known.call != call_of(manifest):
                known = self._live[folder] = LiveRun(folder, manifest)
            runs.append(known.figures(manifest))
        return {"state": hash(str(self.state())) & 0xFFFFFFFF, "runs": runs}

    def answers(self, name: str) -> DatasetAnswers:
        """By the dataset's id, or by the name of one of its tasks."""
        sources = sources_named(self._sources(), name, self._registry)
        state = [_state(item) for item in sources]
        kept = self._kept.get(name)
        if kept is None or kept[0] != state:
            faults: list[Fault] = []
            if not (columns := columns_of(sources, faults)):
                raise MedtasksError(faults[0].what, where=faults[0].where, remedy=faults[0].remedy)
            kept = self._kept[name] = state, DatasetAnswers(columns)
        self._kept.move_to_end(name)
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return kept[1]

    def script(self, name: str) -> str:
        """A file of `report.answers.files`: the list of a dataset, or `DATASET-PART`."""
        dataset, _, part = name.rpartition("-")
        if dataset and part.isdigit():
            return script(name, self.answers(dataset).part(int(part)))
        answers = self.answers(name)
        head = answers.head()
        for shown, column in zip(head["columns"], answers.columns, strict=True):
            shown["place"] = str(column.source.place)
        return script(name, head)

    def _sources(self) -> Sources:
        return sources_of(self.report().own, self._registry, self._paths)


def _stat(file: Path) -> Any:
    try:
        return file.stat()
    except OSError:
        return None


def _state(source: Source) -> tuple[Any, ...]:
    """What changes when a task has more answers than before."""
    files = [source.samples] if source.samples.is_file() else files_of(source.folder or source.samples)
    stats = [stat for file in files if (stat := _stat(file))]
    return source.label, source.task, [(stat.st_mtime_ns, stat.st_size) for stat in stats]


class ViewServer(ThreadingHTTPServer):
    """On port 0, any that is free is taken."""

    daemon_threads = True

    def __init__(self, viewed: Viewed, port: int = 0) -> None:
        self.viewed, self.lock = viewed, threading.Lock()
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
        token, _, what = urlsplit(self.path).path.lstrip("/").partition("/")
        if not self._is_for_this_machine():
            self._send(HTTPStatus.MISDIRECTED_REQUEST, {"what": "this page is for this machine alone"})
        elif not secrets.compare_digest(token.encode(), self.server.token.encode()):
            self._send(HTTPStatus.NOT_FOUND, {"what": "no such page; `medtasks view` printed its address"})
        else:
            self._answer(unquote(what))

    def _is_for_this_machine(self) -> bool:
        """Whether the browser asks for a name of this machine: another name may lead here, too."""
        host = self.headers.get("Host", "")
        try:
            return is_loopback(f"http://{host}")
        except ValueError:
            return False

    def _answer(self, what: str) -> None:
        viewed, folder, name = self.server.viewed, *what.rpartition("/")[::2]
        send = partial(self._write, HTTPStatus.OK)
        try:
            with self.server.lock:  # files are read by one request at a time
                if not what:
                    send(viewed.page(), "text/html; charset=utf-8")
                elif what == "live":
                    self._send(HTTPStatus.OK, viewed.live())
                elif folder == FOLDER and name.endswith(".js"):
                    send(viewed.script(name.removesuffix(".js")), "text/javascript")
                else:
                    self._send(HTTPStatus.NOT_FOUND, {"what": "no such file"})
        except MedtasksError as error:
            self._send(HTTPStatus.BAD_REQUEST, {"what": error.what, "remedy": error.remedy})
        except Exception as error:  # one odd record ends no server; texts of rows stay out of messages
            self._send(HTTPStatus.INTERNAL_SERVER_ERROR, {"what": what_happened(error)})

    def _send(self, status: HTTPStatus, content: Json) -> None:
        self._write(status, json_bytes(content).decode(), "application/json")

    def _write(self, status: HTTPStatus, text: str, kind: str) -> None:
        body = text.encode(errors="replace")
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
