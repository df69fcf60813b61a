"""EHRSQL: a thousand replies through filter and metrics, one in a hundred of them hostile.

A thousand replies to the EHRSQL sample rows through filter and `process_results` on two cores: gold
queries, each spelled differently, and ten hostile ones (endless queries, some of which nothing inside
SQLite can interrupt, attempts at files, schema and extensions). Seconds with and without the hostile ones,
wrong scores, and what they leave behind.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from common import TASKS, Row, fresh

if TYPE_CHECKING:
    from collections.abc import Iterator

TARGET = 60
_ENDLESS = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) "
#: Half of them run for as long as they are let, two of those beyond what SQLite can interrupt.
HOSTILE = (
    _ENDLESS + "SELECT count(*) FROM r",
    "SELECT count(*) FROM cost a, cost b, cost c, cost d, cost e, cost f, cost g, cost h, cost i, cost j",
    "SELECT instr(hex(zeroblob(499000)), hex(zeroblob(249000)) || '1')",
    "SELECT length(printf('%.*c', 2000000000, 'x'))",
    _ENDLESS + "SELECT count(*) FROM r WHERE datetime(current_time) > n",
    "ATTACH '/etc/passwd' AS x",
    "PRAGMA writable_schema = 1",
    "DROP TABLE patient",
    "SELECT load_extension('/tmp/x.so')",
    _ENDLESS + "SELECT n, hex(zeroblob(400000)) FROM r",
)


def run(quick: bool) -> Iterator[Row]:
    n = 100 if quick else 1000
    measured = fresh("ehrsql", "measure", n=n)
    yield Row(
        f"EHRSQL, {n:,} replies, {measured['hostile']} of them hostile",
        f"{measured['seconds']:.1f} s ({measured['plain']:.1f} s without the hostile ones),"
        f" {measured['wrong']} wrong scores",
        f"{TARGET} s on two cores",
        measured["seconds"] < TARGET and not measured["wrong"],
    )
    yield Row(
        "  what the hostile ones left behind",
        f"{measured['files']} files, {measured['processes']} processes,"
        f" database {'changed' if measured['changed'] else 'unchanged'}",
        "nothing",
        not (measured["files"] or measured["processes"] or measured["changed"]),
    )


def measure(n: int) -> dict[str, float]:
    """Gold queries of the sample rows, each reply spelled differently so that none is run once for many."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:2]))
    from medtasks_ext.answers.filter import ParseAnswer
    from medtasks_ext.metrics import sql
    from medtasks_ext.prompts import load_documents
    from medtasks_ext.registry import Dataset

    with tempfile.TemporaryDirectory() as folder:
        os.environ["MEDTASKS_CACHE"] = folder
        documents = load_documents(Dataset(TASKS / "medhelm" / "ehrsql"), cot=False, origin="sample")["test"]
        database = Path(documents[0].loaded.database_file or "")
        before, content = _below(folder), database.read_bytes()
        asked = [documents[place % len(documents)] for place in range(n)]
        replies = [
            f"-- {place}\n{document['target']}" if document["target"] else ""
            for place, document in enumerate(asked)
        ]
        attacked = list(range(50, n, 100))
        times = {}
        for name in ("plain", "seconds"):
            if name == "seconds":
                for place, index in enumerate(attacked):
                    replies[index] = HOSTILE[place % len(HOSTILE)]
            started = time.perf_counter()
            read = ParseAnswer({"kind": "sql"}).apply([[reply] for reply in replies], asked)
            results = [
                sql.process_ehrsql(document, [answer]) for document, answer in zip(asked, read, strict=True)
            ]
            times[name] = time.perf_counter() - started
        wrong = sum(result["score"] != (place not in attacked) for place, result in enumerate(results))
        sql._sandbox(database).close()
        return {
            **times,
            "hostile": len(attacked),
            "wrong": wrong,
            "files": len(_below(folder) ^ before),
            "processes": _children(),
            "changed": database.read_bytes() != content,
        }


def _below(folder: str) -> set[str]:
    return {str(path) for path in Path(folder).rglob("*")}


def _children() -> int:
    found = subprocess.run(
        ["pgrep", "-P", str(os.getpid()), "-f", "sql_worker"], capture_output=True, text=True
    )
    return len(found.stdout.split())
