"""The page of a report with every answer, to a browser on this machine, and how far runs under way are."""

from __future__ import annotations

import secrets
import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from medtasks_ext.egress import is_loopback
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import Json, json_bytes
from medtasks_ext.privacy import what_happened
from medtasks_ext.process import collector_paused
from medtasks_ext.report.answers.column import (
    Source,
    Sources,
    columns_of,
    outcomes_in,
    runs_of,
    sources_named,
    sources_of,
)
from medtasks_ext.report.answers.dataset import FOLDER, DatasetAnswers, script
from medtasks_ext.report.gather import Report, gather
from medtasks_ext.report.payload import payload, render
from medtasks_ext.run.lock import holder_of
from medtasks_ext.run.store import files_of
from medtasks_ext.runs.folder import RunFolder
from medtasks_ext.runs.manifest import Manifest, TaskState

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry
    from medtasks_ext.results.experiments import Fault

_DAMAGED = "is damaged → the same `medtasks run` command asks again what the line held"
_REASONS = 8


def _under_way(folder: Path, manifest: Manifest) -> Json:
    """How far a run is, as its folder says; no text of any row. Nothing there is written or locked."""
    outcomes, worker, since = outcomes_in(folder), holder_of(folder), _started(manifest)
    asked = {name: entry.asked or entry.n or 0 for name, entry in manifest.tasks.items()}
    ended = {name for name, entry in manifest.tasks.items() if entry.state is not TaskState.WAITING}
    done = sum(n if name in ended else min(n, len(outcomes.answered(name))) for name, n in asked.items())
    times = [at for at in outcomes.times if at >= since]  # of answers of this call
    left = sum(asked.values()) - done
    reasons = Counter(reason.partition("\n")[0] for reason in outcomes.faults.values())
    return {
        "label": manifest.identity.model_name,
        "worker": worker,
        "done": done,
        "asked": done + left,
        "left": left * (max(times) - since) / len(times) if worker and times else None,
        "faults": [{"reason": reason, "n": n} for reason, n in reasons.most_common(_REASONS)],
        "answers": {"answers": len(outcomes.times), **outcomes.ends},
        "finished": len(ended),
        "tasks": len(asked),
        "notes": [*manifest.notes, *(f"{line} {_DAMAGED}" for line in outcomes.damaged)],
    }


def _started(manifest: Manifest) -> float:
    started = manifest.sessions[-1].started if manifest.sessions else manifest.started
    try:
        return time.mktime(time.strptime(started, "%Y-%m-%dT%H:%M:%S"))
    except ValueError:
        return 0.0


HOST = "127.0.0.1"


class Viewed:
    """The report of runs as they are now, and their answers.

    MedtasksError where a path holds no results, and no run that is under way.
    """

    def __init__(self, paths: Sequence[Path], registry: Registry) -> None:
        self._paths, self._registry = list(paths), registry
        self._kept: tuple[Any, DatasetAnswers] | None = None
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

    def state(self) -> list[Any]:
        """What changes when a run has another result."""
        folders = [RunFolder(folder) for folder, _ in runs_of(self._paths)]
        return _stats(file for of in folders for file in (of.manifest, of.results_file))

    def page(self) -> str:
        report = self.report()
        answers = {"held": [*self._sources()], "withheld": [], "live": self.live()}
        return render({**payload(report), "answers": answers})

    def live(self) -> Json:
        """How far runs are that are under way, and what says that the page is older than the results."""
        runs = [
            _under_way(folder, manifest)
            for folder, manifest in runs_of(self._paths)
            if any(entry.state is TaskState.WAITING for entry in manifest.tasks.values())
        ]
        return {"state": hash(str(self.state())) & 0xFFFFFFFF, "runs": runs}

    def answers(self, name: str) -> DatasetAnswers:
        """By the dataset's id, or by the name of one of its tasks."""
        sources = sources_named(self._sources(), name, self._registry)
        state = [name, *map(_state, sources)]
        if self._kept is None or self._kept[0] != state:
            faults: list[Fault] = []
            if not (columns := columns_of(sources, faults)):
                raise MedtasksError(faults[0].what, where=faults[0].where, remedy=faults[0].remedy)
            self._kept = state, DatasetAnswers(columns)
        return self._kept[1]

    def script(self, name: str) -> str:
        """A file of a report's answers: the list of a dataset, or `DATASET-PART`."""
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


def _stats(files: Iterable[Path]) -> list[Any]:
    """What changes when files do; those that are not there have none."""
    found = []
    for file in files:
        with suppress(OSError):
            stat = file.stat()
            found.append((str(file), stat.st_mtime_ns, stat.st_size))
    return found


def _state(source: Source) -> tuple[Any, ...]:
    """What changes when a task has more answers than before."""
    files = [source.samples] if source.samples.is_file() else files_of(source.folder or source.samples)
    return source.label, source.task, _stats(files)


class ViewServer(ThreadingHTTPServer):
    """On any port of this machine that is free."""

    daemon_threads = True

    def __init__(self, viewed: Viewed) -> None:
        self.viewed, self.lock = viewed, threading.Lock()
        self.token = secrets.token_urlsafe(18)
        super().__init__((HOST, 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.server_address[1]}/{self.token}/"


class _Handler(BaseHTTPRequestHandler):
    server: ViewServer
    server_version, sys_version = "medtasks", ""

    def do_GET(self) -> None:
        token, _, what = urlsplit(self.path).path.lstrip("/").partition("/")
        if not self._is_for_this_machine():
            self._send(HTTPStatus.MISDIRECTED_REQUEST, {"what": "this page is only for this machine"})
        elif not secrets.compare_digest(token.encode(), self.server.token.encode()):
            self._send(HTTPStatus.NOT_FOUND, {"what": "no such page; `medtasks view` printed its address"})
        else:
            self._answer(unquote(what))

    def _is_for_this_machine(self) -> bool:
        """Whether the browser asks for a name of this machine: another name may lead here, too."""
        try:
            return is_loopback(f"http://{self.headers.get('Host', '')}")
        except ValueError:
            return False

    def _answer(self, what: str) -> None:
        viewed, (folder, _, name) = self.server.viewed, what.rpartition("/")
        try:
            with self.server.lock:  # files are read by one request at a time
                if not what:
                    self._send(HTTPStatus.OK, viewed.page(), "text/html; charset=utf-8")
                elif what == "live":
                    self._send(HTTPStatus.OK, viewed.live())
                elif folder == FOLDER and name.endswith(".js"):
                    self._send(HTTPStatus.OK, viewed.script(name.removesuffix(".js")), "text/javascript")
                else:
                    self._send(HTTPStatus.NOT_FOUND, {"what": "no such file"})
        except MedtasksError as error:
            self._send(HTTPStatus.BAD_REQUEST, {"what": error.what, "remedy": error.remedy})
        except Exception as error:  # one odd record ends no server; texts of rows stay out of messages
            self._send(HTTPStatus.INTERNAL_SERVER_ERROR, {"what": what_happened(error)})

    def _send(self, status: HTTPStatus, content: Json | str, kind: str = "application/json") -> None:
        body = content.encode(errors="replace") if isinstance(content, str) else json_bytes(content)
        self.send_response(status)
        for name, value in {
            "Content-Type": kind,
            "Content-Length": str(len(body)),
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Cross-Origin-Opener-Policy": "same-origin",
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: a log would hold ids of documents."""
