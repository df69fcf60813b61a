"""The final answers of a submission: a Parquet file beside it, which the record names by its SHA-256.

It is never in git: of 226,446 documents it takes some 14 to 130 MB. Only answers to open data stand in it,
without the reasoning before them. One row group for each task, a row for each document in the order of the
test file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks_ext.answers.normalise import fold
from medtasks_ext.atomic import atomic_file
from medtasks_ext.errors import MedtasksError
from medtasks_ext.rows.digests import sha256_of
from medtasks_ext.rows.remote import RemoteFile

if TYPE_CHECKING:
    import pyarrow as pa

    from medtasks_ext.report.submissions.record import AnswersFile

#: Bytes of the file at most, and of what one task of it unpacks to.
MOST_BYTES, MOST_OF_A_TASK = 1_000_000_000, 2_000_000_000
_OPEN, _CLOSE = "<think>", "</think>"


@dataclass(frozen=True, slots=True)
class FinalAnswer:
    document: str  # its key within the task
    prompt: str  # hash of its turns as the task renders them
    answer: str  # without its reasoning


def final_answer(text: str) -> str:
    """Without its reasoning, which every reader reads as it reads the whole.

    The marks of a trace stay. A trace that never ended stays whole: some official readers read it.
    """
    head, end, rest = text.partition(_CLOSE)
    if not end or _CLOSE in fold(head):  # an official reader folds letters, and would cut before
        return text
    return f"{_OPEN if _OPEN in head else ''}{_CLOSE}{rest}"


def write_answers(path: Path, tasks: Iterable[tuple[str, Sequence[FinalAnswer]]]) -> bool:
    """No file, and False, where there are none."""
    import pyarrow as pa
    from pyarrow import parquet

    found = False
    with atomic_file(path) as file, parquet.ParquetWriter(file, _schema(), compression="zstd") as writer:
        for task, items in tasks:
            columns = {name: [getattr(item, name) for item in items] for name in FinalAnswer.__slots__}
            table = pa.table({"task": [task] * len(items), **columns}, schema=_schema())
            writer.write_table(table, row_group_size=max(len(items), 1))
            found = True
    if not found:
        path.unlink()
    return found


def _schema() -> pa.Schema:
    import pyarrow as pa

    return pa.schema([(name, pa.string()) for name in ("task", *FinalAnswer.__slots__)])


def read_answers(path: Path) -> Iterator[tuple[str, list[FinalAnswer]]]:
    """Task -> its answers, one by one; MedtasksError where one is too large or stands there twice."""
    import pyarrow as pa
    from pyarrow import parquet

    seen: set[str] = set()
    try:
        file = parquet.ParquetFile(path)
        if file.schema_arrow != _schema():
            raise _damaged("has other columns than a file of answers", path)
        for number in range(file.metadata.num_row_groups):
            if file.metadata.row_group(number).total_byte_size > MOST_OF_A_TASK:
                raise _damaged(f"a task unpacks to more than {MOST_OF_A_TASK:,} bytes", path)
            table = file.read_row_group(number, use_threads=False)
            names = set(table["task"].to_pylist())
            if len(names) != 1 or names & seen or any(column.null_count for column in table.columns):
                raise _damaged("a value is missing, or a task stands there twice", path)
            seen |= names
            columns = [table[name].to_pylist() for name in FinalAnswer.__slots__]
            yield names.pop(), [FinalAnswer(*row) for row in zip(*columns, strict=True)]
    except (pa.ArrowException, OSError) as error:
        raise _damaged(f"is no table ({type(error).__name__})", path) from None


def _damaged(what: str, where: Path | str = "answers") -> MedtasksError:
    remedy = "`medtasks submit` writes the file; name it as it was written"
    return MedtasksError(what, where=where, remedy=remedy)


def the_file(said: AnswersFile, here: Path | None) -> Path:
    """The one that is here, else downloaded; MedtasksError where it is another one than the record names."""
    if said.size > MOST_BYTES:
        raise _damaged(f"is larger than {MOST_BYTES:,} bytes")
    if here is None and said.address is None:
        remedy = "upload the file, then submit with --address URL; or check with --answers FILE"
        raise MedtasksError("no address says where the file is had", where="answers", remedy=remedy)
    if here is None:
        digest = f"sha256:{said.sha256}"
        here = RemoteFile(said.address or "", "", digest=digest, size=said.size, of_stranger=True).get()
    if not here.is_file():
        raise MedtasksError("no such file", where=here, remedy="name the file of answers")
    if here.stat().st_size != said.size or sha256_of(here) != said.sha256:
        raise _damaged("is another file than the one that submission.json names", here)
    return here
