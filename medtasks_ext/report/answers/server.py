"""A run under way, as its folder shows it: how far it is, how fast, and what it costs.

Manifest and outcomes are read as the run writes them, each outcome once, and counted by the tally that the
run's own display has. Nothing in the folder is written or locked.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from medtasks_ext.egress import is_loopback
from medtasks_ext.engines import Request
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
from medtasks_ext.report.page import render
from medtasks_ext.report.payload import payload
from medtasks_ext.run.charge import Budget
from medtasks_ext.run.lock import holder_of
from medtasks_ext.run.store import Follower, Row, files_of, outcome_of
from medtasks_ext.runner.tally import Tally, TaskTally
from medtasks_ext.runs.folder import RunFolder
from medtasks_ext.runs.manifest import Manifest, TaskState

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry
    from medtasks_ext.results.experiments import Fault

_DAMAGED = "is damaged → the same `medtasks run` command asks again what the line held"
_REASONS = 8


class LiveRun:
    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self._files, self.call = RunFolder(folder), call_of(manifest)
        self._since = _seconds(manifest)
        self._now, self._budget = self._since, Budget()
        self._priced = self._moving = False
        asked = {name: entry.asked or entry.n or 0 for name, entry in manifest.tasks.items()}
        self.tally = Tally(asked, budget=self._budget, clock=lambda: self._now)
        self._outcomes = Follower(folder)
        self._answered = set[str]()  # keys, which documents of other tasks may share
        self._earlier = set[str]()  # tasks that had their end before the call
        for name, entry in manifest.tasks.items():
            record = self._files.scores_file(name)
            if entry.state is TaskState.DONE and record.is_file() and record.stat().st_mtime < self._since:
                self._earlier.add(name)
                self.tally.stored(name, self.tally.tasks[name].asked)
                self.tally.finished(name)

    def figures(self, manifest: Manifest) -> Json:
        """What is known by now; no text of any row."""
        for row in self._outcomes.rows():
            if row["task"] not in self._earlier:
                self._count(row)
        for name, entry in manifest.tasks.items():
            if (known := self.tally.tasks.get(name)) is None:
                continue
            known.asked = max(known.asked, entry.asked or 0)  # it stands there once the rows are loaded
            if not known.finished and entry.state is not TaskState.WAITING:
                self.tally.finished(name)
        tally, worker = self.tally, holder_of(self._files.path)
        if worker and self._moving:
            self._now = max(self._now, time.time())
        tasks = list(tally.tasks.values())
        shown = [task for task in tasks if not task.finished]
        speed = tally.speed() if self._moving else None
        return {
            "label": manifest.identity.model_name,
            "worker": worker,
            "done": tally.done,
            "asked": tally.asked,
            "left": tally.seconds_left() if worker and self._moving else None,
            "speed": speed and asdict(speed),
            "usd": tally.spent if self._priced else None,
            "faults": [
                {"reason": reason.splitlines()[0] if reason else kind.value, "n": n}
                for (kind, reason), n in tally.reasons.most_common(_REASONS)
            ],
            "answers": _answers(tasks),
            "finished": sum(task.finished for task in tasks),
            "tasks": len(tasks),
            "under_way": [
                {"task": task.name, "done": task.done, "asked": task.asked, "faults": task.faults}
                | _answers([task])
                for task in shown
                if task.answers or task.faults
            ],
            "notes": [*manifest.notes, *(f"{line} {_DAMAGED}" for line in self._outcomes.damaged)],
        }

    def _count(self, row: Row) -> None:
        at, task, kind = row["at"], row["task"], row["outcome"]
        shared = kind == "question" and row["key"] in self._answered
        if kind == "answer":
            self._answered.add(row["key"])
        if shared or (kind == "answer" and at < self._since):
            if task in self.tally.tasks:
                self.tally.stored(task, 1)
            return
        if at < self._since or kind not in ("answer", "fault"):
            return
        entry = outcome_of(row)
        if not self._moving:
            self._moving = True
            self._now = max(self._since, at - (getattr(entry, "seconds", None) or 0.0))
            self.tally.begin()
        self._now = max(self._now, at)
        if entry.cost is not None:
            self._priced = True
            self._budget.settle(0.0, spent=entry.cost)
        self.tally.ended(Request(row["key"], task, row["document"], "", {}), entry)


def call_of(manifest: Manifest) -> tuple[str, int]:
    return manifest.started, len(manifest.sessions)


def _seconds(manifest: Manifest) -> float:
    started = manifest.sessions[-1].started if manifest.sessions else manifest.started
    try:
        return time.mktime(time.strptime(started, "%Y-%m-%dT%H:%M:%S"))
    except ValueError:
        return 0.0


def _answers(tasks: Sequence[TaskTally]) -> Json:
    names = ("answers", "empty", "cut")
    return {name: sum(getattr(task, name) for task in tasks) for name in names}


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
            if not any(entry.state is TaskState.WAITING for entry in manifest.tasks.values()):
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
