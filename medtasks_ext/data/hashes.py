"""What to add to `data.lock` so that local rows are confirmed as the suite's: hashes, and never a text."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from medtasks_ext.data.rowlock import FEWEST_FOLDED, kept_hash, once, sample_hash
from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts.load import check_rows, load_documents
from medtasks_ext.registry.datalock import LockedPart, LockedRows, Seen, Site

if TYPE_CHECKING:
    from medtasks_ext.registry import Dataset


@dataclass(frozen=True)
class RowsHash:
    """The hash of local rows, and of the words that they carry.

    Attributes:
        n: documents.
        folded: their hash as a lock keeps it; None of so few that their answers could be guessed from it.
        is_known: whether the lock confirms them.
        add: key of `data.lock` -> what to add there; empty where nothing is new.
    """

    n: int
    folded: str | None
    is_known: bool
    add: dict[str, Any]

    @property
    def remark(self) -> str:
        """Where it stands, in words."""
        if self.folded is None:
            return f"fewer than {FEWEST_FOLDED} documents that are not open: no hash is kept of them"
        if self.is_known:
            return "data.lock confirms these rows"
        return "nobody has confirmed these rows: two sites with one hash and a maintainer's `signed` do"


def rows_hash(dataset: Dataset, by: str) -> RowsHash:
    """The hash of the local rows of a dataset.

    Args:
        dataset: whose rows are here.
        by: who has them, for the lock.

    Raises:
        MedtasksError: there are none, or they have faults.
    """
    row_check = check_rows(dataset, "local")
    if row_check.faults:
        raise row_check.faults[0]
    test, lock = once(row_check.test), dataset.lock
    folded, locked = kept_hash(dataset, row_check.test), lock.rows if lock else None
    day = time.strftime("%Y-%m-%d")
    add: dict[str, Any] = {}
    is_known = folded is not None and locked is not None and locked.confirmed == folded
    if folded is not None and not is_known:
        site = Site(day=day, by=by, folded=folded)
        if locked is None:
            rows = LockedRows(
                sample=sample_hash(dataset),
                basis="sites",
                seen=Seen(day=day, by=by),
                sites=[site],
                test=LockedPart(n=len(test), folded=folded),
            )
            add["rows"] = rows.model_dump(exclude_defaults=True)
        elif locked.basis == "sites":
            add["rows.sites"] = [site.model_dump()]
        # public bytes are pinned by `data pin`; rows of one's own do not become the suite's
    words = [item for item in _words(dataset) if lock is None or item not in lock.words]
    if words:
        add["words"] = words
    return RowsHash(len(test), folded, is_known, add)


def _words(dataset: Dataset) -> list[str]:
    """Hashes of official words that local rows carry, of both strategies."""
    hashes: dict[str, None] = {}
    for cot in (False, True):
        try:
            record = load_documents(dataset, cot=cot, origin="local")["test"][0].loaded.record
        except MedtasksError:  # the words of the other strategy need a file that is not here
            continue
        if record["instruction"] == "official" and "artefact" not in record:
            hashes[record["prompt_hash"]] = None
    return list(hashes)
