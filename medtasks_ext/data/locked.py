"""What `data check` says of local rows that are not those of the public file, as `data.lock` knows it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from medtasks_ext.data.rowlock import compare_rows
from medtasks_ext.data.texts import Fault

if TYPE_CHECKING:
    from medtasks_ext.data.rowlock import RowsCompared
    from medtasks_ext.prompts.documents import Documents
    from medtasks_ext.registry import Dataset

_PUBLIC = "`medtasks data fetch` brings the public file; rows of your own are a dataset of their own"
#: Rows by which shares and lengths of a file without hashes are judged.
_ENOUGH = 50
#: So far may a label's share, and the median length, lie from those of the lock.
_SHARE, _TIMES = 0.15, 2.0


def locked_faults(dataset: Dataset, documents: Documents) -> tuple[list[Fault], list[str]]:
    """Faults and notes of test rows, compared with the lock of the dataset; none where it knows no rows.

    Args:
        dataset: whose rows they are.
        documents: those that `check_rows` made.

    Raises:
        MedtasksError: the lock does not fit its own files.
    """
    compared = compare_rows(dataset, dataset.lock, documents)
    if compared is None:
        return [], []
    if not compared.is_current:
        return [], ["rows cannot be compared with data.lock, which is of another version of this task"]
    if compared.is_equal:
        return [], ["the rows are those of the public file, to the letter"]
    if compared.has_documents:
        return list(_of_documents(compared)), []
    return list(_of_profile(compared)), []


def _of_documents(compared: RowsCompared) -> Iterator[Fault]:
    total = f"of the {compared.lock.n:,} rows of the public file"
    if compared.of_pool and len(compared.of_pool) > 0.2 * compared.n:
        yield Fault("is a row of the few-shot or training part, and no test row", _PUBLIC, compared.of_pool)
    if compared.other_gold:
        yield Fault("has another gold answer than the public file", _PUBLIC, compared.other_gold)
    if compared.other_text:
        yield Fault("has another text or other options than the public file", _PUBLIC, compared.other_text)
    if compared.unknown:
        yield Fault("is no row of the public file", _PUBLIC, compared.unknown)
    if compared.n_missing and compared.n_missing < compared.lock.n:
        yield Fault(f"{compared.n_missing:,} {total} are missing", _PUBLIC, [])
    faulty = len(compared.other_gold) + len(compared.other_text) + len(compared.unknown)
    if not faulty and compared.n > compared.lock.n:
        yield Fault(f"{compared.n:,} rows where the public file has {compared.lock.n:,}", _PUBLIC, [])


def _of_profile(compared: RowsCompared) -> Iterator[Fault]:
    """Of data that is not open the lock has no hash of a row: lengths and label shares alone."""
    if compared.n < _ENOUGH or compared.lock.n < _ENOUGH:
        return
    moved = {label: pair for label, pair in compared.label_moves.items() if abs(pair[0] - pair[1]) > _SHARE}
    if moved:
        said = ", ".join(
            f"{label} {there:.0%} there, {here:.0%} here" for label, (there, here) in moved.items()
        )
        yield Fault(f"the labels are not those of the suite's file: {said}", "compare the files", [])
    there, here = (part.lengths[len(part.lengths) // 2] for part in (compared.lock, compared.here))
    if max(there, here) > _TIMES * max(1, min(there, here)):
        what = f"inputs have {here:,} characters (median), those of the suite's file {there:,}"
        yield Fault(what, "export the whole texts, in their own columns", [])
