"""The process in which a model's SQL runs, started by `sql` as a script; standard library only.

Requests and answers are lines of JSON: the first request names the database (a file URI) and the limits, each
further one is a query.
"""

from __future__ import annotations

import json
import math
import os
import resource
import sqlite3
from contextlib import suppress
from random import Random
from typing import Any

#: Instructions of SQLite's virtual machine between two looks at their number.
_STEPS = 5_000
#: What a statement may do. Everything else (ATTACH, PRAGMA, writes, transactions, …) is refused.
_ALLOWED = frozenset(
    (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)
)
#: Functions that reach beyond the database, in whatever build of SQLite they may be compiled in.
_REFUSED_FUNCTIONS = frozenset(("load_extension", "readfile", "writefile", "edit", "fts3_tokenizer"))

#: What a query may use (`sql.Limits`), and `too_long`: what is said of one that had its steps.
Limits = dict[str, Any]
#: SQLite's own limits, by the names of its constants; the name of one of ours, or a number.
_OF_SQLITE: dict[str, str | int] = {
    "SQLITE_LIMIT_LENGTH": "cell_bytes",
    "SQLITE_LIMIT_SQL_LENGTH": "sql_bytes",
    "SQLITE_LIMIT_ATTACHED": 0,
    "SQLITE_LIMIT_COLUMN": 500,
    "SQLITE_LIMIT_COMPOUND_SELECT": 50,
    "SQLITE_LIMIT_EXPR_DEPTH": 500,
    "SQLITE_LIMIT_FUNCTION_ARG": 100,
    "SQLITE_LIMIT_LIKE_PATTERN_LENGTH": 1_000,
    "SQLITE_LIMIT_TRIGGER_DEPTH": 1,
    "SQLITE_LIMIT_VARIABLE_NUMBER": 1,
    "SQLITE_LIMIT_VDBE_OP": 25_000,
    "SQLITE_LIMIT_WORKER_THREADS": 0,
}


def main() -> None:
    # the pipes get numbers of their own: nothing that prints can disturb the answers
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")

    def say(answer: dict[str, Any]) -> None:
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()

    setup = json.loads(requests.readline())
    try:
        session = _Session(setup["database"], setup["limits"])
    except sqlite3.Error as error:
        say({"error": str(error)})
        return
    _confine(setup["limits"])
    say({})
    for request in requests:
        _allow_cpu(setup["limits"]["cpu_seconds"])
        say(session.run(json.loads(request)["sql"]))


class _Session:
    """One read-only connection under all limits that SQLite knows."""

    def __init__(self, database: str, limits: Limits) -> None:
        self.limits = limits
        self.looks = 0  # at the number of steps that are left
        self.connection = sqlite3.connect(
            f"{database}?mode=ro&immutable=1", uri=True, isolation_level=None, cached_statements=0
        )
        for pragma in (
            "temp_store=MEMORY",  # sorting makes no files
            "query_only=ON",
            "trusted_schema=OFF",
            "mmap_size=0",
            f"hard_heap_limit={limits['heap_bytes']}",
        ):
            self.connection.execute(f"PRAGMA {pragma}").fetchall()
        self.connection.execute("SELECT name FROM sqlite_master").fetchall()  # is it a database at all?
        if hasattr(self.connection, "enable_load_extension"):
            self.connection.enable_load_extension(False)
        if hasattr(self.connection, "setlimit"):  # Python 3.11 and newer
            for name, value in _OF_SQLITE.items():
                most = limits[value] if isinstance(value, str) else value
                self.connection.setlimit(getattr(sqlite3, name), most)
        named = self.connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
        lists = {f"sqlite_{temporary}{kind}" for temporary in ("", "temp_") for kind in ("master", "schema")}
        #: what may be read: the tables and views of the database, and the tables that list these
        self.tables = lists | {name.lower() for (name,) in named}
        #: virtual tables that newer builds of SQLite have unasked: `json_each`, the raw pages of the file
        self.modules = {name.lower() for (name,) in self.connection.execute("PRAGMA module_list")}
        self.chance = Random()
        # the same numbers for every statement: a score must not depend on chance
        self.connection.create_function("random", 0, lambda: self.chance.getrandbits(64) - (1 << 63))
        self.connection.set_authorizer(self._authorise)
        self.connection.set_progress_handler(self._is_too_long, _STEPS)

    def _authorise(
        self, action: int, first: str | None, second: str | None, schema: str | None, *_: object
    ) -> int:
        if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in _REFUSED_FUNCTIONS:
            return sqlite3.SQLITE_DENY
        table = (first or "").lower()
        # a table has no schema where no column is read, as in a count
        known = table in self.tables or (schema is None and table not in self.modules)
        if action == sqlite3.SQLITE_READ and not known:
            return sqlite3.SQLITE_DENY
        return sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY

    def run(self, sql: str) -> dict[str, Any]:
        self.looks = 0
        self.chance.seed(0)
        try:
            return self._rows(sql)
        except MemoryError:
            return {"error": "out of memory"}
        except Exception as error:  # whatever a model's SQL brings about is its own result
            return {"error": self.limits["too_long"] if self._is_too_long(0) else f"{error}"[:500]}

    def _is_too_long(self, more: int = 1) -> bool:
        """Whether a statement has had its steps. They are the same on any machine, however busy."""
        self.looks += more
        return bool(self.looks * _STEPS > self.limits["steps"])

    def _rows(self, sql: str) -> dict[str, Any]:
        # Results are compared as sets of rows, so repeated rows need not be kept.
        rows: set[tuple[Any, ...]] = set()
        size = 0
        cursor = self.connection.cursor()
        try:
            for row in cursor.execute(sql):
                if row in rows:
                    continue
                rows.add(row)
                size += sum(len(cell) if isinstance(cell, (str, bytes)) else 8 for cell in row)
                if len(rows) > self.limits["rows"]:
                    return {"error": f"more than {self.limits['rows']} rows"}
                if size > self.limits["result_bytes"]:
                    return {"error": f"a result of more than {self.limits['result_bytes']} bytes"}
        finally:
            cursor.close()
        written = ([{"hex": x.hex()} if isinstance(x, bytes) else x for x in row] for row in rows)
        return {"rows": list(written)}


def _confine(limits: Limits) -> None:
    """What the system can refuse this process besides: files, children, memory."""
    ceilings = {
        "RLIMIT_AS": limits["memory_bytes"],
        "RLIMIT_NOFILE": 0,  # no further file; those that are open stay
        "RLIMIT_FSIZE": 0,
        "RLIMIT_NPROC": 0,
        "RLIMIT_CORE": 0,
    }
    for name, ceiling in ceilings.items():
        try:
            resource.setrlimit(getattr(resource, name), (ceiling, ceiling))
        except (AttributeError, ValueError, OSError):
            continue  # this system does not know or not grant it; the other limits stand


def _allow_cpu(seconds: int) -> None:
    """Processor time of one query: what ends a single step that takes for ever, and an orphan."""
    used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(used + seconds), hard))


if __name__ == "__main__":
    main()
