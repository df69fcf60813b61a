"""Runs SQL that a model wrote, read-only, in a process with limits on everything (`sql_worker.py`).

A worker that dies, or is silent for too long, says nothing about its query, which is run once more in a new
one; where that fails, too, the query is not decided.
"""

from __future__ import annotations

import json
import logging
import signal
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from medtasks_ext.errors import MedtasksError
from medtasks_ext.metrics.common import Document, Metrics, scorer
from medtasks_ext.privacy import excerpt, shows_text

_WORKER = Path(__file__).with_name("sql_worker.py")
_MIB = 1 << 20
#: The reasons of a query that took longer than it may: a worker counted its steps, or the system ended it.
TOO_LONG, TOO_MUCH_TIME = "too many steps", "too much processor time"


@dataclass(frozen=True)
class Limits:
    steps: int = 300_000_000  # of SQLite's virtual machine: some 2 to 6 s on a machine that is idle
    cpu_seconds: int = 20  # of a processor, for what takes long within one step
    seconds: float = 120.0  # by the clock on the wall, after which a worker is killed
    rows: int = 50_000  # distinct rows of a result
    result_bytes: int = 16 * _MIB  # text, blobs and eight bytes per number in the distinct rows
    #: the longest text or blob, in results and on the way there (from Python 3.11)
    cell_bytes: int = 1_000_000
    sql_bytes: int = 100_000  # the longest statement
    heap_bytes: int = 256 * _MIB  # SQLite's memory
    memory_bytes: int = 1024 * _MIB  # address space of the process


class QueryResult(NamedTuple):
    """The distinct rows of a query, or None and the reason; not `decided` where workers failed."""

    rows: frozenset[tuple[Any, ...]] | None
    error: str | None = None
    decided: bool = True

    @property
    def took_too_long(self) -> bool:
        """Whether the query itself used up its steps or its processor time."""
        return self.error in (TOO_LONG, TOO_MUCH_TIME)


class _Worker:
    def __init__(self, database: Path, limits: Limits) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-B", str(_WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},
            cwd=tempfile.gettempdir(),
        )
        said = {**asdict(limits), "too_long": TOO_LONG}
        answer = self.ask({"database": database.resolve().as_uri(), "limits": said}, 30.0)
        if fault := answer.get("error"):
            self.kill()
            what = f"cannot be opened as an SQLite database ({fault})"
            raise MedtasksError(what, where=database, remedy="put the complete file there")

    def ask(self, request: Mapping[str, object], seconds: float) -> dict[str, Any]:
        """The worker's answer: `rows` or `error`; `lost` where its process failed before it answered."""
        assert self.process.stdin is not None and self.process.stdout is not None
        timer, end = threading.Timer(seconds, self.process.kill), time.monotonic() + seconds
        timer.daemon = True
        timer.start()
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
            answer: dict[str, Any] = json.loads(self.process.stdout.readline())
            return answer
        except (OSError, ValueError):
            pass  # a pipe that broke, or half an answer: told apart below
        finally:
            timer.cancel()
        if self.process.wait() == -signal.SIGXCPU:
            return {"error": TOO_MUCH_TIME}
        late = time.monotonic() >= end
        why = f"did not answer within {seconds:g} s" if late else "died"
        return {"error": f"its process {why}", "lost": True}

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            with suppress(OSError):  # it may hold bytes that nobody will read
                if pipe is not None:
                    pipe.close()


class SqlSandbox:
    """One SQLite file, which is never written, and the worker that reads it: it starts when it is needed."""

    def __init__(self, database: Path, *, limits: Limits | None = None) -> None:
        self.database, self.limits = database, limits or Limits()
        self._gold: dict[str, QueryResult] = {}
        self._turn = threading.Lock()
        self._live: list[_Worker] = []  # one at most
        self.close = weakref.finalize(self, _end, self._live)

    def run(self, queries: Sequence[str]) -> list[QueryResult]:
        """The outcome of each query, in order. Never raises on what a query says."""
        with self._turn:
            return [self._run(sql) for sql in queries]

    def outcomes(self, gold: str, predicted: str) -> dict[str, QueryResult]:
        """Those of a gold query and of a reply's, if it is not empty; each gold query is run once."""
        wanted = [query for query in dict.fromkeys((gold, predicted)) if query and query not in self._gold]
        found = {**self._gold, **dict(zip(wanted, self.run(wanted), strict=True))}
        outcome = found[gold]
        if gold not in self._gold:
            if outcome.decided:
                self._gold[gold] = outcome
            if outcome.took_too_long or not outcome.decided:
                shown = gold if shows_text() else excerpt(gold)
                why = f"gave no result ({outcome.error}), so no answer to it can be right"
                log.warning("a gold query %s: %s", why, shown)
        return {query: found[query] for query in (gold, predicted) if query}

    def _run(self, sql: str) -> QueryResult:
        if len(sql.encode(errors="surrogatepass")) > self.limits.sql_bytes:
            # before it is sent, and for Pythons without setlimit
            return QueryResult(None, f"a statement of more than {self.limits.sql_bytes} bytes")
        answer: dict[str, Any] = {"lost": True}
        for _ in range(2):
            if answer.get("lost"):
                answer = self._worker().ask({"sql": sql}, self.limits.seconds)
        if "rows" not in answer:
            return QueryResult(None, answer["error"], decided="lost" not in answer)
        rows = (
            [bytes.fromhex(x["hex"]) if isinstance(x, dict) else x for x in row] for row in answer["rows"]
        )
        return QueryResult(frozenset(map(tuple, rows)))

    def _worker(self) -> _Worker:
        if self._live and self._live[0].process.poll() is not None:
            _end(self._live)
        if not self._live:
            self._live.append(_Worker(self.database, self.limits))
        return self._live[0]


def _end(workers: list[_Worker]) -> None:
    while workers:
        workers.pop().kill()


log = logging.getLogger(__name__)


@scorer
def process_ehrsql(document: Document, gold: dict[str, Any], answer: dict[str, Any] | None) -> Metrics:
    """EHRSQL: SQL is run and its result compared (HELM, `ehr_sql_annotator` and `ehr_sql_metrics`).

    `ehr_sql_execution_accuracy` (the score) is 1 if both results have rows and the sets of rows are equal, or
    if the reply is empty and the gold has neither rows nor slot values. A query that is not decided counts as
    wrong. Precision and recall of answerable questions are indicators, averaged over all documents.
    """
    # where reasoning never ended: text that is no SQL, and no abstention
    answer = answer or {"empty": False, "sql": "unreadable"}
    gold_sql, sql = gold["query"], answer["sql"]
    database = _sandbox(Path(document.loaded.database_file))  # type: ignore[attr-defined]
    outcomes = database.outcomes(gold_sql, sql)
    result = outcomes.get(sql, QueryResult(None, "no statement"))
    rows, wanted = result.rows, outcomes[gold_sql].rows
    # HELM puts slot values in the place of an empty gold result; they never equal a row
    right = rows == wanted if rows and wanted else answer["empty"] and not wanted and not gold["slots"]
    attempted = float(not answer["empty"]) * gold["answerable"]
    return {
        **dict.fromkeys(("score", "ehr_sql_execution_accuracy"), float(right)),
        "ehr_sql_query_validity": float(result.error is None),
        "ehr_sql_not_decided": float(not all(outcome.decided for outcome in outcomes.values())),
        **dict.fromkeys(("ehr_sql_precision_answerable", "ehr_sql_recall_answerable"), attempted),
    }


_sandbox = lru_cache(maxsize=4)(SqlSandbox)
