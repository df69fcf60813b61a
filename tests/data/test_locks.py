"""All locks of the tasks: what they say holds, and gives no text and no answer of data that is not open."""

import hashlib
import json
import re
from itertools import product

import pytest

from medtasks_ext.data.rowlock import DocumentHash, document_hash
from medtasks_ext.prompts.load import check_rows
from medtasks_ext.registry import registry
from medtasks_ext.registry.datalock import DOCUMENTS_FILE, LOCK_FILE, is_sha256, read_documents, read_lock
from tests.conftest import read_json

TASKS = registry()
LOCKED = {name: item for name, item in TASKS.datasets.items() if item.lock is not None}
SHUT = {name: item for name, item in LOCKED.items() if item.metadata.access != "open"}
OPEN = {name: item for name, item in LOCKED.items() if item.metadata.access == "open" and item.lock.rows}
_HASH = re.compile(r"^(?:(?:sha256|git|members):)?[0-9a-f]{12,64}$|^[A-Za-z0-9_-]{8}$|^\d{4}-\d\d-\d\d$")


@pytest.mark.parametrize("name", LOCKED)
def test_a_lock_is_as_the_command_writes_it_and_fits_its_documents(name):
    dataset = LOCKED[name]
    lock = read_lock(dataset.folder)
    assert read_json(dataset.folder / LOCK_FILE) == json.loads(lock.text)
    lines = read_documents(dataset.folder, lock)
    assert (dataset.folder / DOCUMENTS_FILE).exists() == bool(lines)
    if lines:
        assert len(lines) == lock.rows.test.n
        assert all(re.fullmatch(r"[A-Za-z0-9_-]{18}", line) for line in lines)


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


@pytest.mark.parametrize("name", list(OPEN)[::4])
def test_what_public_hashes_give_is_what_is_public_already(name):
    """36 bits of a question that one must know whole: its letters one by one give nothing."""
    lines = {DocumentHash.read(line).question for line in read_documents(OPEN[name].folder, OPEN[name].lock)}
    alphabet = "abcdefghijklmnopqrstuvwxyz 0123456789"
    from medtasks_ext.data import rowlock

    guesses = {rowlock._short("".join(letters)) for n in (1, 2, 3) for letters in product(alphabet, repeat=n)}
    assert not lines & guesses


def test_no_dataset_counts_as_pinned_without_a_sha256_of_each_file():
    for name in TASKS.leaves("medtasks_pinned"):
        dataset = TASKS.tasks[name][0]
        files = {**dataset.lock.files} if dataset.lock else {}
        stated = dataset.config["rows"]["download"].get("digests", {})
        assert files or stated, name
        assert all(is_sha256(file.digest) for file in files.values()), name


def test_rows_of_copies_do_not_pin_a_file():
    copies = [item for item in LOCKED.values() if item.lock.rows and item.lock.rows.basis == "copies"]
    cantemist = {f"bridge_cantemist_{part}" for part in ("coding", "ner", "norm")}
    codiesp = {f"bridge_codiesp_icd10_{part}" for part in ("cm", "pcs")}
    clinicbench = {"clinicbench_medqa", "clinicbench_mmlu_med"}
    medhelm = {"medhelm_medhallu"}
    leaderboard = {name for name in LOCKED if re.fullmatch(r"open_medical_llm_(medqa|mmlu_\w+)", name)}
    assert {item.id for item in copies} == {*clinicbench, *medhelm, *cantemist, *codiesp, *leaderboard}
    assert len(leaderboard) == 7
    # of MMLU and MedQA others state the digest of the bytes as well; of CodiEsp two copies have all members
    pinned = {item.id for item in copies if TASKS.datasets[item.id].is_pinned}
    assert pinned == {*clinicbench, *codiesp, *leaderboard}
