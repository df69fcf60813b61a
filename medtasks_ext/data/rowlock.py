"""What `data.lock` keeps of a dataset's rows, and how rows at hand differ from it.

Of open data each test document has a hash in three parts: its question, its text with options, its gold
answer. So a row with another gold answer is told from another row. Of all other data, no hash is kept that
says whether a guess of one text or one answer is right: salted hashes of short passages give a note back word
by word, and the hash of a public question with its answer gives the answer away. One folded hash over all
documents stays, which is stretched (PBKDF2), and left out where so few documents are folded that all their
answers could be guessed.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from medtasks_ext.prompts.load import check_rows
from medtasks_ext.registry.datalock import LockedPart, LockedRows, read_documents

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from medtasks_ext.prompts.documents import Document, Documents
    from medtasks_ext.prompts.load import RowCheck
    from medtasks_ext.registry import Dataset
    from medtasks_ext.registry.datalock import DataLock, Seen

#: Hashes of questions that a sketch has at most.
SKETCH = 64
#: Documents that bear one label, below which the label's share is not kept.
FEWEST_OF_A_LABEL = 10
#: Documents below which those that are not open get no folded hash.
FEWEST_FOLDED = 50
_ROUNDS = 200_000  # of PBKDF2, some 0.1 s a guess
_CHARACTERS = 6  # of a part of a document's hash: 36 bits
_PIECE = 6  # bytes of a hash in a sketch
_QUANTILES = (10, 25, 50, 75, 90)


@dataclass(frozen=True)
class DocumentHash:
    """The hash of one document: three parts of 6 characters each, a line of `documents.lock`."""

    question: str  # of what tells its row from others (`rows.identity`), white space aside
    text: str  # of its whole input and options, white space aside
    gold: str  # of its gold answer to this question

    def __str__(self) -> str:
        return self.question + self.text + self.gold

    @classmethod
    def read(cls, line: str) -> DocumentHash:
        """Of a line of `documents.lock`."""
        return cls(line[:_CHARACTERS], line[_CHARACTERS : 2 * _CHARACTERS], line[2 * _CHARACTERS :])


def document_hash(document: Document) -> DocumentHash:
    """The hash of a document that `check_rows` made.

    Documents are as own words ask them, whatever words a run uses.
    """
    question, text, gold = document.question, _text(document), _gold(document)
    return DocumentHash(_short(question), _short(question, text), _short(question, "", gold))


def folded(documents: Iterable[Document]) -> str:
    """The SHA-256 of all documents in their order: input, options and gold, to the letter."""
    hasher = hashlib.sha256()
    for item in documents:
        parts = [item.question, item.input, json.dumps(item.get("options"), ensure_ascii=False), _gold(item)]
        hasher.update(_sha256("\x1f".join(parts)))
    return hasher.hexdigest()


def sketch(documents: Iterable[Document]) -> list[str]:
    """Hashes of at most 64 questions: the smallest, so that two sketches of the same questions are equal."""
    hashes = {_sha256(item.question)[:_PIECE] for item in documents}
    return [_in_base64(item) for item in sorted(hashes)[:SKETCH]]


def once(documents: Iterable[Document]) -> list[Document]:
    """The documents, those of several trials once: as they are asked first."""
    return [item for item in documents if not item.get("trial")]


def lock_of_rows(dataset: Dataset, row_check: RowCheck, seen: Seen) -> tuple[LockedRows, list[str]]:
    """What a lock says of rows, and the lines of `documents.lock`, none where the data is not open.

    Args:
        dataset: whose rows were read.
        found: test rows and pool, without faults.
        seen: by whom.
    """
    is_open = dataset.metadata.access == "open"
    test, pool = once(row_check.test), once(row_check.fewshot)
    lines = [str(document_hash(item)) for item in test] if is_open else []
    kept = {"folded": kept_hash(dataset, test)}
    if is_open:
        kept["documents"] = hashlib.sha256(documents_text(lines).encode()).hexdigest()
    known = {name: hash_ for name, hash_ in kept.items() if hash_}
    part = profile_of(dataset, test).model_copy(update=known)
    fewshot = LockedPart(n=len(pool), sketch=sketch(pool) if is_open else []) if pool else None
    return LockedRows(sample=sample_hash(dataset), seen=seen, test=part, fewshot=fewshot), lines


def documents_text(lines: Sequence[str]) -> str:
    """The content of `documents.lock`."""
    return "".join(f"{line}\n" for line in lines)


def profile_of(dataset: Dataset, documents: Sequence[Document]) -> LockedPart:
    """What is kept of any rows: their number, lengths of inputs, shares of labels."""
    return LockedPart(
        n=len(documents),
        lengths=_lengths([len(item.input) for item in documents]),
        labels=_labels(dataset, documents),
    )


def stretched(hash_: str) -> str:
    """A folded hash of data that is not open: slow to make, so that few guesses can be tried."""
    return hashlib.pbkdf2_hmac("sha256", bytes.fromhex(hash_), b"medtasks data.lock", _ROUNDS).hex()


def sample_hash(dataset: Dataset) -> str:
    """Identifies how a task reads rows: a hash of the documents that it makes of its sample rows."""
    row_check = check_rows(dataset, "sample")
    return folded([*once(row_check.test), *once(row_check.fewshot)])[:12]


# ---------------------------------------------------------------------- comparison


@dataclass(frozen=True)
class RowsCompared:
    """How test rows at hand differ from those of the lock. Rows are named, never quoted.

    Attributes:
        lock: the test part of the lock.
        n: documents at hand.
        is_current: False where the task reads rows in another way than when the lock was written: nothing
            else can be said then.
        is_equal: every document is the locked one, in its order; None where no hash of them is kept.
        here: number, lengths and label shares of the rows at hand, as the lock has them.
        has_documents: whether the lock knows each document; without, the lists below are empty.
        other_gold: rows whose question and text are locked, with another gold answer.
        other_text: rows whose question is locked, with another text or other options.
        unknown: rows whose question the lock does not have.
        of_pool: rows whose question is one of the few-shot part.
        n_missing: locked documents whose question is not at hand.
        n_same: rows that stand in the lock as they are.
        is_moved: all documents are locked ones, in another order.
    """

    lock: LockedPart
    n: int
    is_current: bool
    is_equal: bool | None
    here: LockedPart
    has_documents: bool = False
    other_gold: list[str] = field(default_factory=list)
    other_text: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    of_pool: list[str] = field(default_factory=list)
    n_missing: int = 0
    n_same: int = 0
    is_moved: bool = False

    @cached_property
    def label_moves(self) -> dict[str, tuple[float, float]]:
        """Label -> its share in the lock and here, for labels that the lock knows."""
        return {label: (share, self.here.labels.get(label, 0.0)) for label, share in self.lock.labels.items()}


def compare_rows(dataset: Dataset, lock: DataLock | None, documents: Documents) -> RowsCompared | None:
    """Compare test documents with a lock.

    Args:
        dataset: whose documents they are.
        lock: `dataset.lock`.
        documents: those that `check_rows` made, all or some of the test rows.

    Returns:
        None where the lock says nothing of rows.

    Raises:
        MedtasksError: `documents.lock` is missing, or not the one that the lock names.
    """
    if lock is None or lock.rows is None:
        return None
    locked, test = lock.rows.test, once(documents)
    here = profile_of(dataset, test)
    if lock.rows.sample != sample_hash(dataset):
        return RowsCompared(locked, len(test), is_current=False, is_equal=None, here=here)
    hash_ = folded(test)
    is_open = dataset.metadata.access == "open"
    is_equal = None if locked.folded is None else locked.folded == (hash_ if is_open else stretched(hash_))
    lines = read_documents(dataset.folder, lock)
    if not lines:
        return RowsCompared(locked, len(test), is_current=True, is_equal=is_equal, here=here)
    known = [DocumentHash.read(line) for line in lines]
    questions = {item.question for item in known}
    texts = Counter((item.question, item.text) for item in known)
    whole = Counter(lines)
    hashes = [(item.row, document_hash(item)) for item in test]
    pool = set(lock.rows.fewshot.sketch) if lock.rows.fewshot else set()
    left = whole - (whole - Counter(str(item) for _, item in hashes))
    same: list[str] = []
    other_gold: list[str] = []
    other_text: list[str] = []
    unknown: list[str] = []
    for row, item in hashes:
        if left[str(item)]:
            left[str(item)] -= 1
            same.append(row)
        elif (item.question, item.text) in texts:
            other_gold.append(row)
        else:
            (other_text if item.question in questions else unknown).append(row)
    asked = {item.question for _, item in hashes}
    return RowsCompared(
        locked,
        len(test),
        is_current=True,
        is_equal=is_equal,
        here=here,
        has_documents=True,
        other_gold=other_gold,
        other_text=other_text,
        unknown=unknown,
        of_pool=[item.row for item in test if _in_base64(_sha256(item.question)[:_PIECE]) in pool],
        n_missing=sum(item.question not in asked for item in known),
        n_same=len(same),
        is_moved=len(same) == len(lines) == len(test) and [str(item) for _, item in hashes] != lines,
    )


@dataclass(frozen=True)
class LocalRows:
    """What is known of local rows before they are asked.

    Attributes:
        folded: their hash as a lock keeps it; None where none is kept.
        differs: the lock knows the suite's rows, and these are others.
    """

    folded: str | None
    differs: bool


def local_rows(dataset: Dataset) -> LocalRows:
    """What is known of the local rows of a dataset, read once per process.

    Raises:
        MedtasksError: they cannot be read, or the lock does not fit its own files.
    """
    environment = tuple(os.environ.get(name, "") for name in ("MEDTASKS_DATA_DIR", "MEDTASKS_DATA"))
    return _local_rows(dataset, str(dataset.file), environment)


@lru_cache(maxsize=256)
def _local_rows(dataset: Dataset, _file: str, _environment: tuple[str, ...]) -> LocalRows:
    test = check_rows(dataset, "local").test
    compared = compare_rows(dataset, dataset.lock, test)
    unlike = compared is not None and compared.is_current and compared.is_equal is False
    # the lock of a source says nothing of the suite's own file, which is made of it
    return LocalRows(
        kept_hash(dataset, test), unlike and not test[0].loaded.record["rebuilt"] and _is_suites(dataset)
    )


def _is_suites(dataset: Dataset) -> bool:
    """Whether the rows of the lock are those that the suite asks, and not those of its source."""
    lock = dataset.lock
    return lock is not None and lock.rows is not None and lock.rows.test.n == dataset.n_documents


def kept_hash(dataset: Dataset, documents: Sequence[Document]) -> str | None:
    """The hash of test rows as a lock keeps it; None where it would give answers away."""
    test = once(documents)
    if dataset.metadata.access == "open":
        return folded(test)
    return stretched(folded(test)) if len(test) >= FEWEST_FOLDED else None


# ---------------------------------------------------------------------- parts


def _text(document: Document) -> str:
    options = document.get("options")
    return " ".join(document.input.split()) + "\x1f" + json.dumps(options, ensure_ascii=False)


def _gold(document: Document) -> str:
    gold = document["gold"] if document["gold"] is not None else document["target"]
    return json.dumps([gold, document.get("points")], ensure_ascii=False, default=str, sort_keys=True)


def _lengths(sizes: list[int]) -> list[int]:
    ordered = sorted(sizes)
    places = [ordered[(len(ordered) - 1) * share // 100] for share in _QUANTILES] if ordered else []
    return [int(float(f"{length:.2g}")) for length in places]


def _labels(dataset: Dataset, documents: Sequence[Document]) -> dict[str, float]:
    """Shares of the labels that the task file lists; others may be a row's text."""
    answer = dataset.blocks["answer"]
    golds = Counter(
        label
        for item in documents
        for label in {
            str(gold).casefold()
            for gold in (item["gold"] if isinstance(item["gold"], list) else [item["gold"]])
        }
    )
    counts = {
        str(name): golds[str(name).casefold()]
        for name in (*answer.get("letters", ()), *answer.get("labels", ()))
    }
    kept = {name: n for name, n in counts.items() if n >= FEWEST_OF_A_LABEL}
    return {name: round(n / len(documents), 2) for name, n in sorted(kept.items())}


def _short(*texts: str) -> str:
    return _in_base64(_sha256("\x1e".join(texts)))[:_CHARACTERS]


def _sha256(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="surrogatepass")).digest()


def _in_base64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")
