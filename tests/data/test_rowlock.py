"""What a lock keeps of rows: changed golds, texts and parts are told; nothing of data that is not open is."""

import hashlib
import re

import pytest

from medtasks_ext.data import rowlock
from medtasks_ext.data.rowlock import compare_rows, document_hash, documents_text, folded, lock_of_rows
from medtasks_ext.prompts.load import check_rows
from medtasks_ext.registry import forget, registry
from medtasks_ext.registry.datalock import DOCUMENTS_FILE, LOCK_FILE, DataLock, Seen, is_sha256
from medtasks_ext.task import MedicalTask
from tests.conftest import read_json, write_jsonl

SEEN = Seen(day="2026-11-24", by="a test")
GAD, MNLI = "clinicbench_gad", "bridge_mednli"
N = 80


def rows_of(name, n=N):
    if name == GAD:
        return [{"sentence": f"@GENE$ {i} and @DISEASE$ {i % 7}", "label": str(i % 3 % 2)} for i in range(n)]
    labels = ["entailment", "neutral", "contradiction"]
    given, text = (
        {"task": "MedNLI", "split": "test"},
        "Premise statement: note {}.\\nHypothesis statement: {}",
    )
    return [
        {**given, "input": text.format(i, i % 11), "output": f"relation: {labels[i % 3]}"} for i in range(n)
    ]


@pytest.fixture
def place(tmp_path, monkeypatch, tasks_of):
    """Writes local rows of a dataset whose folder is a copy; returns dataset and what check_rows finds."""
    monkeypatch.setenv("MEDTASKS_DATA_DIR", str(tmp_path / "data"))
    tasks_of("clinicbench/gad", "bridge/mednli")

    def placed(name, rows, pool=()):
        dataset = registry().datasets[name]
        there = tmp_path / "data" / dataset.metadata.suite / dataset.folder.name
        there.mkdir(parents=True, exist_ok=True)
        for split, content in (("test", rows), ("fewshot", pool)):
            file = there / f"{split}.jsonl"
            file.unlink(missing_ok=True)
            if content:
                write_jsonl(file, content)
        found = check_rows(dataset, "local")
        assert not found.faults, found.faults
        return dataset, found

    return placed


def lock_files(dataset, found):
    rows, lines = lock_of_rows(dataset, found, SEEN)
    if lines:
        (dataset.folder / DOCUMENTS_FILE).write_text(documents_text(lines), encoding="utf-8")
    return DataLock(rows=rows), lines


def test_equal_rows_are_equal_and_each_change_is_told(place):
    rows = rows_of(GAD)
    dataset, found = place(GAD, rows)
    lock, lines = lock_files(dataset, found)
    same = compare_rows(dataset, lock, found.test)
    assert same.is_current and same.is_equal and same.n_same == len(lines) == lock.rows.test.n
    assert not (same.other_gold or same.other_text or same.unknown or same.n_missing)

    changed = [dict(row) for row in rows]
    picked = list(found.test[:20])
    for document in picked[:7]:
        row = changed[int(document["id"]) - 1]
        row["label"] = "10"[int(row["label"])]
    for document in picked[7:10]:
        changed[int(document["id"]) - 1]["sentence"] += " and more"
    told = compare_rows(dataset, lock, place(GAD, changed)[1].test)
    assert told.is_equal is False
    assert told.other_gold == [document.row for document in picked[:7]]
    assert told.unknown == [document.row for document in picked[7:10]] and told.n_missing == 3
    assert told.n_same == lock.rows.test.n - 10


def test_a_shifted_label_column_and_another_order_are_told(place):
    rows = rows_of(GAD)
    dataset, found = place(GAD, rows, rows_of(GAD, 120)[N:])
    lock, _ = lock_files(dataset, found)
    shifted = [{**row, "label": rows[place_ - 1]["label"]} for place_, row in enumerate(rows)]
    told = compare_rows(dataset, lock, place(GAD, shifted, rows_of(GAD, 120)[N:])[1].test)
    moved = sum(rows[i]["label"] != rows[i - 1]["label"] for i in range(N))
    assert len(told.other_gold) == moved and told.n_same == N - moved and not told.unknown
    turned = compare_rows(dataset, lock, place(GAD, rows[::-1], rows_of(GAD, 120)[N:])[1].test)
    assert turned.n_same == N and not turned.is_equal


def test_of_data_that_is_not_open_no_guess_can_be_confirmed(place):
    rows = rows_of(MNLI)
    dataset, found = place(MNLI, rows)
    assert dataset.metadata.access != "open"
    lock, lines = lock_files(dataset, found)
    assert lines == [] and lock.rows.test.documents is None and lock.rows.test.n == len(found.test)
    said = lock.text
    # the attacker knows every question, and guesses golds: no hash of one row is there to compare with
    for document in found.test:
        parts = document_hash(document)
        assert not any(part in said for part in (parts.question, parts.text, parts.gold))
    assert folded(found.test) not in said and lock.rows.test.folded is None
    assert compare_rows(dataset, lock, found.test).is_equal is None


@pytest.mark.parametrize("name", [GAD, MNLI])
def test_a_run_compares_the_rows_that_it_asks_and_reads_them_once(place, monkeypatch, name):
    rows = rows_of(name)
    dataset, found = place(name, rows)
    lock = (dataset.lock or DataLock()).model_copy(update={"rows": lock_files(dataset, found)[0].rows})
    dataset.folder.joinpath(LOCK_FILE).write_text(lock.text, encoding="utf-8")
    forget()
    monkeypatch.setattr(type(dataset), "n_documents", len(found.test))  # as many as the suite has
    dataset, _ = place(name, [*rows[1:], rows[0]])

    def recorded(strategy):
        monkeypatch.setattr(rowlock, "_known", {})
        record = MedicalTask.of(dataset, strategy, {"data": "local"}).config.metadata["medtasks"]["loaded"]
        return record.get("folded"), record.get("differs")

    read_again = recorded("cot")
    monkeypatch.setattr(rowlock, "check_rows", lambda dataset, origin: pytest.fail(origin))
    monkeypatch.setattr(rowlock, "sample_hash", lambda dataset: dataset.lock.rows.sample)
    assert recorded("zero_shot") == read_again
    assert (read_again[0] is None, read_again[1]) == ((False, True) if name == GAD else (True, None))


TASKS = registry()
LOCKED = {name: item for name, item in TASKS.datasets.items() if item.lock is not None}
SHUT = {name: item for name, item in LOCKED.items() if item.metadata.access != "open"}
_HASH = re.compile(r"^(?:(?:sha256|git|members):)?[0-9a-f]{12,64}$|^[A-Za-z0-9_-]{8}$|^\d{4}-\d\d-\d\d$")


@pytest.mark.parametrize("name", LOCKED)
def test_no_text_stands_in_a_lock(name):
    """Each text is a hash, a day, an address, a name of a file, a label, or who has seen it."""
    dataset, texts = LOCKED[name], []

    def walk(value, key):
        if isinstance(value, dict):
            for inner, part in value.items():
                texts.append((key, inner))
                walk(part, inner)
        elif isinstance(value, list):
            for part in value:
                walk(part, key)
        elif isinstance(value, str):
            texts.append((key, value))

    walk(read_json(dataset.folder / LOCK_FILE), "")
    answer = dataset.blocks["answer"]
    labels = {str(label) for label in (*answer.get("letters", ()), *answer.get("labels", ()))}
    fields = {
        "revision", "files", "database", "digest", "size", "hosts", "seen", "day", "by", "rows", "sample",
    }  # fmt: skip
    fields |= {"basis", "test", "fewshot", "n", "folded", "documents"}
    names = set(dataset.lock.files)
    for key, text in texts:
        known = text in fields | labels | names | {"bytes", "copies"} or _HASH.match(text)
        assert known or key in ("hosts", "by", "revision") or text.startswith("http"), (name, key, text)


@pytest.mark.parametrize("name", SHUT)
def test_rows_that_are_not_open_cannot_be_rebuilt(name):
    """No hash of one text or one answer: guesses of whole rows, right ones too, find nothing in the lock."""
    dataset, lock = SHUT[name], SHUT[name].lock
    assert not (dataset.folder / DOCUMENTS_FILE).exists()
    if lock.rows is None:
        return
    part = lock.rows.test
    assert part.documents is None and part.folded is None
    kept = (dataset.folder / LOCK_FILE).read_text("utf-8")
    for document in check_rows(dataset, "sample").test:
        guess = document_hash(document)
        pieces = (guess.question, guess.text, guess.gold, str(guess))
        whole = hashlib.sha256(document.input.encode()).hexdigest()
        assert not any(piece in kept for piece in (*pieces, whole))


def test_no_dataset_counts_as_pinned_without_a_sha256_of_each_file():
    for name in TASKS.leaves("medtasks_pinned"):
        dataset = TASKS.tasks[name][0]
        files = {**dataset.lock.files} if dataset.lock else {}
        stated = dataset.config["rows"]["download"].get("digests", {})
        assert files or stated, name
        assert all(is_sha256(file.digest) for file in files.values()), name
