"""What a lock keeps of rows: changed golds, texts and parts are told; nothing of data that is not open is."""

import re

import pytest

from medtasks_ext.data import rowlock
from medtasks_ext.data.rowlock import are_locked, folded, lock_of_rows
from medtasks_ext.prompts.load import check_rows
from medtasks_ext.registry import forget, registry
from medtasks_ext.registry.datalock import LOCK_FILE, DataLock, Seen, is_sha256
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


def written(dataset, found) -> DataLock:
    """The dataset's lock, with these rows."""
    lock = (dataset.lock or DataLock()).model_copy(update={"rows": lock_of_rows(dataset, found, SEEN)})
    dataset.folder.joinpath(LOCK_FILE).write_text(lock.text, encoding="utf-8")
    forget()
    return lock


def test_equal_rows_are_equal_and_changes_are_told(place):
    rows = rows_of(GAD)
    written(*place(GAD, rows))
    assert are_locked(registry().datasets[GAD], place(GAD, rows)[1].test) is True
    gold = [{**row, "label": rows[number - 1]["label"]} for number, row in enumerate(rows)]
    text = [{**rows[0], "sentence": rows[0]["sentence"] + " and more"}, *rows[1:]]
    for changed in (gold, text, rows[::-1], rows[1:]):
        assert are_locked(registry().datasets[GAD], place(GAD, changed)[1].test) is False


def test_of_data_that_is_not_open_nothing_is_kept_but_a_number(place):
    dataset, found = place(MNLI, rows_of(MNLI))
    assert dataset.metadata.access != "open"
    lock = written(dataset, found)
    assert lock.rows.test.n == len(found.test) and lock.rows.test.folded is None
    assert folded(found.test) not in lock.text and are_locked(registry().datasets[MNLI], found.test) is None


@pytest.mark.parametrize("name", [GAD, MNLI])
def test_a_run_compares_the_rows_that_it_asks_and_reads_them_once(place, monkeypatch, name):
    rows = rows_of(name)
    dataset, found = place(name, rows)
    written(dataset, found)
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
    if dataset.metadata.access != "open" and dataset.lock.rows:
        assert dataset.lock.rows.test.folded is None  # guesses of whole rows, right ones too, find nothing
    answer = dataset.blocks["answer"]
    labels = {str(label) for label in (*answer.get("letters", ()), *answer.get("labels", ()))}
    fields = {
        "revision", "files", "database", "digest", "size", "hosts", "seen", "day", "by", "rows", "sample",
    }  # fmt: skip
    fields |= {"basis", "test", "fewshot", "n", "folded"}
    names = set(dataset.lock.files)
    for key, text in texts:
        known = text in fields | labels | names | {"bytes", "copies"} or _HASH.match(text)
        assert known or key in ("hosts", "by", "revision") or text.startswith("http"), (name, key, text)


def test_no_dataset_counts_as_pinned_without_a_sha256_of_each_file():
    for name in TASKS.leaves("medtasks_pinned"):
        dataset = TASKS.tasks[name][0]
        files = {**dataset.lock.files} if dataset.lock else {}
        stated = dataset.config["rows"]["download"].get("digests", {})
        assert files or stated, name
        assert all(is_sha256(file.digest) for file in files.values()), name
