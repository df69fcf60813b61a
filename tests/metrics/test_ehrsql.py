"""EHRSQL: HELM's metrics against a plain implementation."""

import json
import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtasks_ext.answers import answer_format
from medtasks_ext.errors import MedtasksError
from medtasks_ext.metrics import sql
from medtasks_ext.metrics.sql import QueryResult, SqlSandbox
from medtasks_ext.models import Oracle
from medtasks_ext.prompts import load_documents
from medtasks_ext.registry import registry
from medtasks_ext.runner.evaluate import Settings, build_task, evaluate_task
from tests.conftest import read_json, write_jsonl
from tests.metrics.build import documents

TASKS = registry()
DATASET = TASKS.datasets["medhelm_ehrsql"]
FORMAT = answer_format({"kind": "sql"})
HELM = ["execution_accuracy", "query_validity", "precision_answerable", "recall_answerable"]


@pytest.fixture(scope="module")
def database(tmp_path_factory) -> str:
    """Three patients; two are women."""
    path = tmp_path_factory.mktemp("ehrsql") / "tiny.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "CREATE TABLE patient (id INT, gender TEXT, heartrate INT, admitted TEXT, discharged TEXT);"
            "INSERT INTO patient VALUES (1, 'female', 88, '2105-03-01 10:00:00', '2105-04-02 10:00:00'),"
            "(2, 'male', 130, '2104-12-30 00:00:00', NULL), (3, 'female', NULL, '2105-12-31 08:00:00', NULL);"
        )
    return str(path)


def gold(query: str, *, answerable: bool = True, slots: bool = True) -> dict:
    return {"query": query, "answerable": answerable, "slots": slots}


UNANSWERABLE = gold("null", answerable=False, slots=False)
WOMEN = gold("select id from patient where gender = 'female'")


def scored(reply: str, gold: dict, database: str) -> dict:
    (document,) = documents([gold])
    document.loaded.database_file = database
    reading = FORMAT.read(reply, document, cot=False)
    parsed = {"answer": reading.answer, "valid": reading.valid, "unclosed_reasoning": False}
    return sql.process_ehrsql(document, [parsed])


NONE = gold("select id from patient where gender = 'x'")
NONE_WITHOUT_SLOTS = gold("select id from patient where gender = 'x'", slots=False)
BROKEN = gold("select id from patient where heartrate > heart_rate_upper")

BY_HAND = [
    # reply, gold, accuracy, validity, precision and recall of answerable
    ("select id from patient where gender = 'female'", WOMEN, 1, 1, 1),
    ("select id from patient where gender <> 'male' order by id desc", WOMEN, 1, 1, 1),
    ("select 1 union all select 3 union all select 3", WOMEN, 1, 1, 1),  # order and repeats do not count
    ("select 1.0 union select 3.0", WOMEN, 1, 1, 1),
    ("select '1' union select '3'", WOMEN, 0, 1, 1),
    ("select id, 1 from patient where gender = 'female'", WOMEN, 0, 1, 1),
    ("select id from patient", WOMEN, 0, 1, 1),
    ("select id from patient where 0", WOMEN, 0, 1, 1),
    ("", WOMEN, 0, 0, 0),
    ("selct", WOMEN, 0, 0, 1),
    ("null", UNANSWERABLE, 0, 0, 0),  # attempted, and the question has no answer
    ("", UNANSWERABLE, 1, 0, 0),
    ("<sql></sql>", UNANSWERABLE, 0, 0, 0),  # not blank: an attempt
    ("select 1", UNANSWERABLE, 0, 1, 0),
    ("select 1 where 0", UNANSWERABLE, 0, 1, 0),
    ("select id from patient where gender = 'x'", NONE, 0, 1, 1),  # the gold query itself
    ("", NONE, 0, 0, 0),
    ("select id from patient where gender = 'x'", NONE_WITHOUT_SLOTS, 0, 1, 1),
    ("", NONE_WITHOUT_SLOTS, 1, 0, 0),
    (BROKEN["query"], BROKEN, 0, 0, 1),
    ("drop table patient", WOMEN, 0, 0, 1),
]


@pytest.mark.parametrize(("reply", "own", "accuracy", "validity", "answerable"), BY_HAND)
def test_helms_metrics_by_hand(database, reply, own, accuracy, validity, answerable):
    got = scored(reply, own, database)
    assert [got[f"ehr_sql_{name}"] for name in HELM] == [accuracy, validity, answerable, answerable]
    assert got["score"] == accuracy


def plain_helm(reply: str, own: dict, database: str) -> list[int]:
    """HELM's annotator and metric once more, on a connection of their own."""

    def run(sql: str) -> tuple[list, bool]:
        with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
            try:
                return connection.execute(sql).fetchall(), True
            except Exception:
                return [], False

    expected = run(own["query"])[0]
    if not expected and own["slots"]:
        expected = ["slot value"]
    prediction = reply.strip()
    tagged = re.search(r"<\s*sql\s*>(.*?)<\/?\s*sql\s*>", prediction, re.S | re.I)
    sql = (tagged.group(1) if tagged else prediction).strip().replace("`", "").strip()
    sql = re.sub(r"^sql\n", "", sql, flags=re.M)
    found, ran = run(sql) if sql else ([], False)
    if expected and found:
        accuracy = set(expected) == set(found)
    else:
        accuracy = not expected and not found and not prediction
    attempted = bool(prediction) and own["answerable"]
    return [int(accuracy), int(bool(prediction) and ran), int(attempted), int(attempted)]


QUERIES = [reply for reply, *_ in BY_HAND if "drop" not in reply] + [
    "```sql\nselect count(*) from patient\n```", "<sql>select 2</sql>", "select max(heartrate) from patient",
    "select null", "select 0", "select count(*) > 0 from patient where strftime('%y', admitted) = '2105'",
    "select id from patient where datetime(admitted) >= datetime(current_time, '-1 year')", "sql\nselect 2",
]  # fmt: skip


@given(st.sampled_from(QUERIES), st.sampled_from(QUERIES), st.booleans(), st.booleans())
def test_helms_metrics_are_those_of_a_plain_implementation(database, reply, query, answerable, slots):
    own = gold(query or "null", answerable=answerable, slots=slots and answerable)
    got = scored(reply, own, database)
    assert [got[f"ehr_sql_{name}"] for name in HELM] == plain_helm(reply, own, database)


def test_a_missing_database_is_said_before_anything_is_asked(data_dir, tmp_path, monkeypatch):
    monkeypatch.setenv("MEDTASKS_CACHE", str(tmp_path / "cache"))
    folder = data_dir / "medhelm" / "ehrsql"
    write_jsonl(folder / "test.jsonl", [{"id": "1", "question": "?", "query": "null", "is_impossible": True}])
    with pytest.raises(MedtasksError, match="medhelm_ehrsql needs this database") as caught:
        load_documents(DATASET, cot=False)
    assert str(folder / "eicu.sqlite") in str(caught.value)
    (folder / "eicu.sqlite").write_bytes(b"<!doctype html>" * 500)
    with pytest.raises(MedtasksError, match="is not an SQLite database"):
        load_documents(DATASET, cot=True)


REAL_ROWS = os.environ.get("MEDTASKS_REAL_ROWS", "")


@pytest.mark.skipif(not REAL_ROWS, reason="MEDTASKS_REAL_ROWS is not set")
def test_real_rows_on_the_sample_database(data_dir):
    rows = read_json(Path(REAL_ROWS) / "ehrsql_eicu" / "eicu" / "valid.json")
    folder = data_dir / "medhelm" / "ehrsql"
    folder.mkdir(parents=True)
    (folder / "test.json").write_text(json.dumps(rows))
    with closing(sqlite3.connect(folder / "eicu.sqlite")) as connection:
        connection.executescript((DATASET.folder / "sample_db.sql").read_text())
    loaded = load_documents(DATASET, cot=False, origin="local")["test"]
    assert len(loaded) == len(rows)
    expected = [
        plain_helm(document["target"], document["gold"], str(folder / "eicu.sqlite")) for document in loaded
    ]
    settings = Settings(data="local")
    got = evaluate_task(Oracle(), build_task(TASKS, DATASET.task("zero_shot"), settings), settings).metrics
    for place, name in enumerate(HELM):
        assert got[f"ehr_sql_{name}"] == pytest.approx(sum(row[place] for row in expected) / len(rows)), name
    assert got["valid"] == 1
    assert 1 / 3 <= got["score"] < 1


def test_a_gold_query_that_runs_out_of_time_is_said(database, caplog):
    forever = "with recursive r(n) as (select 1 union all select n + 1 from r) select count(*) from r"
    assert scored("select 1", gold(forever), database)["score"] == 0
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "gave no result (too many steps)" in caplog.text and forever in caplog.text
    scored("select 2", gold(forever), database)
    assert len(caplog.records) == 1


def test_a_query_that_is_not_decided_is_counted_and_asked_again(database, caplog, monkeypatch):
    """A fault of processes is no result: it is not kept, and shows in a metric of its own."""
    failing = [True]
    run = SqlSandbox.run

    def run_or_fail(sandbox, queries):
        if failing[0]:
            return [QueryResult(None, "its process died", decided=False) for _ in queries]
        return run(sandbox, queries)

    monkeypatch.setattr(SqlSandbox, "run", run_or_fail)
    own = gold("select id from patient where gender = 'female' and 1")
    got = scored("select 1 union select 3 -- not decided", own, database)
    assert got["ehr_sql_not_decided"] == 1 and got["score"] == 0
    assert "gave no result (its process died)" in caplog.text
    failing[0] = False
    got = scored("select 1 union select 3 -- not decided", own, database)
    assert got["ehr_sql_not_decided"] == 0 and got["score"] == 1
