"""Rows, not bytes: what two independent copies of a dataset's rows agree on stands in its lock."""

import json

import pytest

from medtasks_ext.data.rowlock import compare_rows
from medtasks_ext.prompts.load import check_rows
from medtasks_ext.registry import forget, registry
from medtasks_ext.registry.datalock import DOCUMENTS_FILE, read_lock
from tests.conftest import write_jsonl

ROWS = [
    {"question": f"Invented question {n}?", "choices": [f"{word} {n}" for word in "abcd"], "answer": n % 4}
    for n in range(12)
]


@pytest.fixture
def folder(tasks_of, medtasks):
    found = tasks_of("clinicbench/mmlu_med") / "clinicbench" / "mmlu_med"
    (found / "data.lock").write_text('{\n  "revision": "' + "c" * 40 + '"\n}\n', "utf-8")
    (found / DOCUMENTS_FILE).unlink(missing_ok=True)
    forget()
    return found


def pin(medtasks, tmp_path, *copies, by=("--by", "two places")):
    files = [write_jsonl(tmp_path / f"copy{place}.jsonl", rows) for place, rows in enumerate(copies)]
    flags = [flag for file in files for flag in ("--copy", file)]
    return medtasks("data", "pin", "clinicbench_mmlu_med", *flags, *by)


def test_copies_that_agree_say_what_the_rows_are_and_pin_no_file(folder, medtasks, tmp_path, monkeypatch):
    other = [{**row, "source": "another column"} for row in ROWS]
    outcome = pin(medtasks, tmp_path, ROWS, other)
    assert outcome.code == 0 and "rows: 12 to ask" in outcome.out
    lock = read_lock(folder)
    assert lock.rows.basis == "copies" and lock.rows.seen.by == "two places" and not lock.files
    assert len((folder / DOCUMENTS_FILE).read_text("utf-8").splitlines()) == lock.rows.test.n == 12
    forget()
    dataset = registry().datasets["clinicbench_mmlu_med"]
    assert not dataset.is_pinned
    data = tmp_path / "data"
    write_jsonl(
        data / "clinicbench" / "mmlu_med" / "test.jsonl", [*ROWS[:5], {**ROWS[5], "answer": 3}, *ROWS[6:]]
    )
    pool = [
        row
        for row in map(json.loads, dataset.sample_file.open(encoding="utf-8"))
        if row["_split"] == "fewshot"
    ]
    write_jsonl(data / "clinicbench" / "mmlu_med" / "fewshot.jsonl", pool)
    monkeypatch.setenv("MEDTASKS_DATA_DIR", str(data))
    found = compare_rows(dataset, lock, check_rows(dataset, "local").test)
    assert found.other_gold == ["test row 6"] and found.n_same == 11


@pytest.mark.parametrize(
    ("copies", "by", "message"),
    [
        ((ROWS,), ("--by", "x"), "one copy proves nothing"),
        (
            (ROWS, [{**ROWS[0], "answer": 1}, *ROWS[1:]]),
            ("--by", "x"),
            "of which 1 are others than in copy0.jsonl",
        ),
        (
            (ROWS, ROWS[:-1]),
            ("--by", "x"),
            "has 11 rows, of which 0 are others than in copy0.jsonl with its 12",
        ),
        ((ROWS, [{**row, "answer": 9} for row in ROWS]), ("--by", "x"), "copy1.jsonl"),
        ((ROWS, ROWS), (), "somebody has seen them"),
    ],
)
def test_copies_that_prove_nothing_change_no_lock(folder, medtasks, tmp_path, copies, by, message):
    before = (folder / "data.lock").read_bytes()
    outcome = pin(medtasks, tmp_path, *copies, by=by)
    assert outcome.code == 2 and message in outcome.err
    assert (folder / "data.lock").read_bytes() == before and not (folder / DOCUMENTS_FILE).exists()


def test_a_copy_that_is_not_there_is_named(folder, medtasks, tmp_path):
    outcome = medtasks(
        "data", "pin", "clinicbench_mmlu_med", "--copy", "a.jsonl", "--copy", "b.jsonl", "--by", "x"
    )
    assert outcome.code == 2 and "a.jsonl: no such file" in outcome.err


def test_copies_of_data_that_is_not_open_are_refused(medtasks, tasks_of, tmp_path):
    tasks_of("bridge/mednli")
    files = [write_jsonl(tmp_path / f"{name}.jsonl", [{"a": 1}]) for name in "ab"]
    outcome = medtasks("data", "pin", "bridge_mednli", "--copy", files[0], "--copy", files[1], "--by", "x")
    assert outcome.code == 2 and "is not open" in outcome.err
