"""A model's SQL can read one database and do nothing else."""

import os
import queue
import re
import signal
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtasks_ext.metrics import sql
from medtasks_ext.metrics.sql import Limits, SqlSandbox

pytestmark = pytest.mark.long

WORKER = Path(sql.__file__).with_name("sql_worker.py")
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A folder with a database, and beside it a text and a second database that nobody may read."""
    folder = tmp_path_factory.mktemp("sandbox")
    for name, word in (("db #1.sqlite", "public"), ("other.sqlite", "canary")):
        with closing(sqlite3.connect(folder / name)) as connection:
            connection.executescript("CREATE TABLE t (number INT, word TEXT); CREATE INDEX i ON t (number);")
            connection.executemany("INSERT INTO t VALUES (?, ?)", [(1, word), (2, word), (3, None)])
            connection.commit()
    (folder / "secret.txt").write_text("canary")
    return folder


@pytest.fixture(scope="module")
def sandbox(folder):
    sandbox = SqlSandbox(folder / "db #1.sqlite")
    yield sandbox
    sandbox.close()


@pytest.fixture(scope="module")
def hurried(folder):
    """Few steps, little time, memory and room, so that bombs are small."""
    limits = Limits(steps=5_000_000, cpu_seconds=1, rows=1000, result_bytes=1_000_000, heap_bytes=16 << 20)
    sandbox = SqlSandbox(folder / "db #1.sqlite", limits=limits)
    yield sandbox
    sandbox.close()


def state(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM t", "SELECT word FROM t", "VALUES (1), (2)", "SELECT 1 WHERE 0", "",
        "SELECT 1, 2.5, 9e999, NULL, 'é\x07', x'00ff', 9223372036854775807",
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r LIMIT 50) SELECT n FROM r",
        "SELECT number, dense_rank() OVER (ORDER BY word) FROM t", "SELECT name FROM sqlite_master",
        "SELECT strftime('%Y', '2105-01-01'), julianday('2105-01-01')", "SELECT count(*) FROM T",
        "WITH a AS (SELECT 1 AS n), b AS (SELECT 2) SELECT count(*), max(a.n) FROM a, b",
        "SELECT count(*) FROM (SELECT NUMBER FROM main.t AS u)", "-- a comment\nSELECT 1;",
    ],
)  # fmt: skip
def test_a_query_gives_the_rows_that_sqlite_gives(sandbox, folder, sql):
    (outcome,) = sandbox.run([sql])
    with closing(sqlite3.connect(folder / "db #1.sqlite")) as plain:
        assert outcome.rows == set(plain.execute(sql).fetchall())
    assert outcome.error is None


OUTSIDE = [
    "ATTACH 'other.sqlite' AS o", "ATTACH '{folder}/other.sqlite' AS o",
    "ATTACH 'file:{folder}/other.sqlite?mode=ro' AS o", "ATTACH '{folder}/new.sqlite' AS o",
    "ATTACH ':memory:' AS o", "DETACH main", "VACUUM", "VACUUM INTO '{folder}/copy.sqlite'",
    "PRAGMA table_info(t)", "PRAGMA writable_schema = 1", "PRAGMA hard_heap_limit = 0",
    "PRAGMA temp_store_directory = '{folder}'", "SELECT * FROM pragma_table_info('t')",
    "SELECT * FROM pragma_database_list", "SELECT load_extension('{folder}/evil.so')",
    "SELECT LOAD_EXTENSION('evil', 'main')",
    "SELECT * FROM t WHERE number = (SELECT load_extension('evil'))",
    "SELECT readfile('{folder}/secret.txt')", "SELECT writefile('{folder}/new.txt', 'x')",
    "SELECT edit('x', 'vi')", "SELECT * FROM fsdir('{folder}')",
    "CREATE VIRTUAL TABLE temp.c USING csv(filename='{folder}/secret.txt')",
    "CREATE VIRTUAL TABLE f USING fts5(x)", "SELECT fts3_tokenizer('simple', x'41414141')",
    "INSERT INTO t VALUES (4, 'x')", "INSERT INTO t VALUES (4, 'x') RETURNING number",
    "REPLACE INTO t VALUES (1, 'x')", "UPDATE t SET word = 'x'", "DELETE FROM t",
    "WITH a AS (SELECT 1) DELETE FROM t", "CREATE TABLE u (x)", "CREATE TABLE u AS SELECT * FROM t",
    "CREATE TEMP TABLE u (x)", "CREATE TEMP VIEW u AS SELECT 1",
    "CREATE TRIGGER g AFTER INSERT ON t BEGIN SELECT 1; END", "CREATE INDEX j ON t (word)", "DROP TABLE t",
    "DROP TABLE IF EXISTS t", "ALTER TABLE t RENAME TO u", "UPDATE sqlite_master SET sql = ''", "ANALYZE",
    "REINDEX", "BEGIN IMMEDIATE", "COMMIT", "SAVEPOINT s", "SELECT 1; DROP TABLE t",
    "SELECT 1; -- x\nATTACH 'other.sqlite' AS o", "SELECT * FROM json_each('[1, 2]')",
    "SELECT count(*) FROM json_each('[1, 2]')", "SELECT data FROM sqlite_dbpage",
    "SELECT count(*) FROM sqlite_dbpage", "SELECT * FROM other.t",
]  # fmt: skip


@pytest.mark.parametrize("attack", OUTSIDE)
def test_nothing_beyond_the_rows_can_be_reached(sandbox, folder, attack):
    before = state(folder)
    (outcome,) = sandbox.run([attack.format(folder=folder)])
    assert outcome.rows is None and outcome.error
    assert state(folder) == before
    assert sandbox.run(["SELECT word FROM t WHERE number = 1"])[0].rows == {("public",)}


ENDLESS = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) "
NUMBERS = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r LIMIT {}) "


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        (ENDLESS + "SELECT count(*) FROM r", "too many steps"),
        (ENDLESS + "SELECT 1 FROM r", "too many steps"),  # one row for ever
        (NUMBERS.format(3000) + "SELECT count(*) FROM r a, r b, r c, r d", "too many steps"),
        (ENDLESS + "SELECT n FROM r", "more than 1000 rows"),
        (NUMBERS.format(900) + "SELECT n, hex(zeroblob(4000)) FROM r", "more than 1000000 bytes"),
        ("SELECT " + "9" * 200_000, "statement of more than 100000 bytes"),
        ("SELECT '" + "é" * 60_000 + "'", "too big|too large|bytes"),
    ],
)
def test_a_bomb_ends_at_its_limit(hurried, sql, reason):
    (outcome,) = hurried.run([sql])
    assert outcome.rows is None
    assert re.search(reason, outcome.error), outcome.error
    assert hurried.run(["SELECT 1"])[0].rows == {(1,)}


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Connection.setlimit came with Python 3.11")
@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT zeroblob(2000000000)", "too big"),
        ("SELECT replace(hex(zeroblob(100000)), '00', hex(zeroblob(100000)))", "too big"),
        (NUMBERS.format(9000) + "SELECT group_concat(hex(zeroblob(400)), '') FROM r", "too big"),
        ("SELECT " + "+".join(["1"] * 600), "too large"),
        (" UNION ".join(["SELECT 1"] * 60), "too many terms"),
        ("SELECT " + ",".join(["1"] * 600), "too many columns"),
        ("SELECT 'a' LIKE '" + "%a" * 600 + "'", "too complex"),
        ("SELECT max(" + ",".join(["1"] * 110) + ")", "too many arguments"),
        ("SELECT ?5", "variable number"),
    ],
)
def test_sizes_are_limited_before_they_cost_anything(hurried, sql, reason):
    (outcome,) = hurried.run([sql])
    assert outcome.rows is None and reason in outcome.error


def test_memory_is_limited(folder):
    sandbox = SqlSandbox(folder / "db #1.sqlite", limits=Limits(heap_bytes=8 << 20))
    sql = NUMBERS.format(5000) + "SELECT count(*) FROM (SELECT n, hex(zeroblob(5000)) x FROM r ORDER BY x)"
    assert sandbox.run([sql])[0].error == "out of memory"
    assert sandbox.run(["SELECT 1"])[0].rows == {(1,)}
    sandbox.close()


@on_linux
def test_a_step_that_takes_for_ever_ends_with_its_processor_time(hurried):
    # one instruction of SQLite's machine, which nothing can interrupt from inside
    search = "SELECT instr(hex(zeroblob(490000)), hex(zeroblob(240000)) || '1')"
    first, second = hurried.run([search, search])
    assert first.rows is None and first.error == second.error == "too much processor time"
    assert first.decided and first.took_too_long
    assert hurried.run(["SELECT 1", "SELECT 2"])[1].rows == {(2,)}


@pytest.mark.parametrize(
    "sql",
    ["null", "I cannot answer this.", "SELECT \x00", "SELECT '\ud800'", "SELECT CAST(x'ff' AS TEXT)",
     "SELECT ?", "SELECT FROM", "SELECT * FROM nowhere", "SELECT abs(-9223372036854775808)",
     "SELECT json('{')", "◇◇◇", "SELECT 'open", ";" * 99 + "x", "EXPLAIN DROP TABLE t"],
)  # fmt: skip
def test_what_is_no_sql_fails_with_a_reason(sandbox, sql):
    (outcome,) = sandbox.run([sql])
    assert outcome.rows is None and outcome.error


STATEMENT = (
    "SELECT * FROM t WHERE number word = ( ) , ; ' \" -- /* */ 1 2.5 x'00' NULL UNION ALL WITH AS LIMIT"
)
ACTIONS = "RECURSIVE ORDER BY JOIN ON ATTACH PRAGMA INSERT INTO VALUES DROP TABLE load_extension count max"
WORDS = [*STATEMENT.split(), *ACTIONS.split(), "\x00", "\ud800", "é", "\n", "{", "%s"]


@given(st.lists(st.sampled_from(WORDS), max_size=12), st.text(max_size=20))
def test_no_text_raises_or_changes_anything(sandbox, folder, words, tail):
    before = state(folder)
    (outcome,) = sandbox.run([" ".join(words) + tail])
    assert (outcome.rows is None) == (outcome.error is not None)
    assert state(folder) == before


def test_chance_gives_every_statement_the_same_numbers(folder):
    queries = [
        "SELECT random(), random()", "SELECT number FROM t ORDER BY random() LIMIT 1", "SELECT random()",
    ]  # fmt: skip
    outcomes = []
    for _ in range(2):
        sandbox = SqlSandbox(folder / "db #1.sqlite")
        outcomes += [[outcome.rows for outcome in sandbox.run(some)] for some in (queries, queries[::-1])]
        sandbox.close()
    first, turned, again, turned_again = outcomes
    assert first == turned[::-1] == again == turned_again[::-1] and None not in first
    assert len(set(next(iter(first[0])))) == 2  # but not the same number each time


def workers_of(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            command = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
            if b"sql_worker.py" in command and f"PPid:\t{pid}\n" in (entry / "status").read_text():
                found.append(int(entry.name))
        except OSError:
            continue  # it ended meanwhile
    return found


def wait_for_end(pid: int) -> None:
    with suppress(OSError):
        while "State:\tZ" not in Path(f"/proc/{pid}/status").read_text():
            time.sleep(0.01)


@on_linux
def test_a_worker_has_no_environment_and_no_way_out(folder, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "secret")
    sandbox = SqlSandbox(folder / "db #1.sqlite")
    before = set(workers_of(os.getpid()))
    sandbox.run(["SELECT 1"])
    (pid,) = set(workers_of(os.getpid())) - before
    assert Path(f"/proc/{pid}/environ").read_bytes() == b""
    limits = Path(f"/proc/{pid}/limits").read_text()
    for name in ("Max file size", "Max open files", "Max processes", "Max core file size"):
        assert re.search(rf"{name} +0 +0 ", limits), name
    opened = [str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()]
    files = [name for name in opened if not name.startswith("pipe:") and name != "/dev/null"]
    assert files == [str(folder / "db #1.sqlite")]
    sandbox.close()
    wait_for_end(pid)


@on_linux
def test_the_system_refuses_files_and_sockets_to_a_worker(folder):
    script = f"""
import importlib.util, socket, sys
spec = importlib.util.spec_from_file_location("worker", {str(WORKER)!r})
worker = importlib.util.module_from_spec(spec); spec.loader.exec_module(worker)
worker._confine({{"memory_bytes": 1 << 30}})
def attempt(action):
    try: action()
    except (OSError, MemoryError) as error: return type(error).__name__
    return "done"
print(attempt(lambda: open({str(folder / "secret.txt")!r})), attempt(lambda: open("new.txt", "w")),
      attempt(socket.socket), attempt(lambda: bytearray(2 << 30)))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=folder)
    assert done.stdout.split() == ["OSError", "OSError", "OSError", "MemoryError"], done.stderr
    assert not (folder / "new.txt").exists()


@on_linux
def test_a_killed_parent_leaves_no_worker_behind(folder):
    script = f"""
import time
from pathlib import Path
from medtasks_ext.metrics.sql import Limits, SqlSandbox
sandbox = SqlSandbox(Path({str(folder / "db #1.sqlite")!r}), limits=Limits(steps=20_000_000))
sandbox.run(["SELECT 1"])
print(next(iter(sandbox._live)).process.pid, flush=True)
sandbox.run([{ENDLESS + "SELECT count(*) FROM r"!r}])
"""
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    worker = int(parent.stdout.readline())
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    wait_for_end(worker)


LONG = NUMBERS.format(3_000_000) + "SELECT count(*) FROM r"


@on_linux
@pytest.mark.parametrize(("kills", "rows", "decided"), [(1, {(3_000_000,)}, True), (2, None, False)])
def test_a_worker_that_is_killed_in_a_query_is_replaced_once(folder, kills, rows, decided, monkeypatch):
    sandbox = SqlSandbox(folder / "db #1.sqlite")
    begun: queue.Queue[int] = queue.Queue()
    ask = sql._Worker.ask

    def noted(worker, request, seconds):
        if "sql" in request:
            begun.put(worker.process.pid)
        return ask(worker, request, seconds)

    monkeypatch.setattr(sql._Worker, "ask", noted)
    with ThreadPoolExecutor(1) as threads:
        answer = threads.submit(sandbox.run, [LONG])
        for _ in range(kills):
            os.kill(begun.get(), signal.SIGKILL)
        (outcome,) = answer.result()
    assert (outcome.rows, outcome.decided) == (rows, decided)
    assert decided or outcome.error == "its process died"
    assert sandbox.run(["SELECT 2"])[0].rows == {(2,)}
    sandbox.close()


def test_a_silent_worker_is_given_up_and_the_query_is_not_decided(folder):
    sandbox = SqlSandbox(folder / "db #1.sqlite", limits=Limits(seconds=0.3))
    (outcome,) = sandbox.run([ENDLESS + "SELECT count(*) FROM r"])
    assert (outcome.rows, outcome.decided) == (None, False) and "did not answer within" in outcome.error
    assert sandbox.run(["SELECT 2"])[0].rows == {(2,)}
    sandbox.close()
