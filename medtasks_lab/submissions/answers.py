"""The final answers of a submission: a file beside it, which `submission.json` names by its SHA-256.

It is never in git: of 226,446 documents it takes some 14 to 130 MB. Only answers to data that is open stand
in it. Reasoning before an answer is left out; its length and hash stay. One row group for each task, in the
order of the record, and a row for each document, in the order of the test file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks_ext.answers.normalise import fold
from medtasks_ext.atomic import atomic_file
from medtasks_ext.errors import MedtasksError
from medtasks_ext.rows.digests import sha256_of
from medtasks_ext.rows.remote import RemoteFile
from medtasks_lab.submissions.record import AnswersFile

if TYPE_CHECKING:
    import pyarrow as pa

#: Bytes of the file at most, and of what one task of it unpacks to.
MOST_BYTES, MOST_OF_A_TASK = 1_000_000_000, 2_000_000_000
_OPEN, _CLOSE = "<think>", "</think>"
_MADE = "`medtasks submit` writes the file; name it as it was written"
_HASH = 32  # hexadecimal digits of a hash


@dataclass(frozen=True, slots=True)
class FinalAnswer:
    """The answer to one document.

    Attributes:
        document: its key within the task.
        prompt: hash of its turns as the task renders them (`prompt_hash`).
        as_rendered: whether these turns stood in what was sent; not where they had to be cut.
        answer: the text without its reasoning; of a task that is asked by likelihood, JSON of the
            log-likelihood of each option and whether greedy decoding writes it.
        reasoning: characters of that.
        reasoning_hash: of the reasoning; empty without one.
    """

    document: str
    prompt: str
    as_rendered: bool
    answer: str
    reasoning: int = 0
    reasoning_hash: str = ""


def final_answer(text: str) -> tuple[str, str]:
    """A response without its reasoning, which every reader reads as it reads the whole; and the reasoning.

    The marks of a trace stay. A trace that never ended stays whole: some official readers read it.
    """
    head, end, rest = text.partition(_CLOSE)
    if not end or _CLOSE in fold(head):  # an official reader folds letters, and would cut before
        return text, ""
    before, opened, inside = head.partition(_OPEN)
    return f"{opened}{_CLOSE}{rest}", before + inside


def short_hash(*texts: str) -> str:
    """A hash of texts."""
    found = sha256()
    for text in texts:
        found.update(text.encode(errors="surrogatepass") + b"\x1e")
    return found.hexdigest()[:_HASH]


def answers_digest(items: Iterable[FinalAnswer]) -> str:
    """Identifies the answers to a task's documents in their order, whoever gave them."""
    return short_hash(*(text for item in items for text in (item.document, item.answer)))


# ---------------------------------------------------------------------- the file


def write_answers(path: Path, tasks: Iterable[tuple[str, Sequence[FinalAnswer]]]) -> dict[str, str]:
    """Write the answers of tasks, one after the other; so many are in memory as one task has.

    Returns:
        Task -> digest of its answers (`answers_digest`); no file is written where there are none.
    """
    import pyarrow as pa
    from pyarrow import parquet

    digests: dict[str, str] = {}
    with (
        atomic_file(path) as file,
        parquet.ParquetWriter(file, _schema(), compression="zstd", compression_level=12) as writer,
    ):
        for task, items in tasks:
            digests[task] = answers_digest(items)
            columns = {name: [getattr(item, name) for item in items] for name in FinalAnswer.__slots__}
            table = pa.table({"task": [task] * len(items), **columns}, schema=_schema())
            writer.write_table(table, row_group_size=max(len(items), 1))
    if not digests:
        path.unlink()
    return digests


def _schema() -> pa.Schema:
    import pyarrow as pa

    text = pa.string()
    return pa.schema(
        [
            ("task", text),
            ("document", text),
            ("prompt", text),
            ("as_rendered", pa.bool_()),
            ("answer", text),
            ("reasoning", pa.int64()),
            ("reasoning_hash", text),
        ]
    )


def described(path: Path, addresses: Sequence[str]) -> AnswersFile:
    """What a record says of a file of answers."""
    return AnswersFile(sha256=sha256_of(path), size=path.stat().st_size, addresses=list(addresses))


def read_answers(path: Path) -> Iterator[tuple[str, list[FinalAnswer]]]:
    """Task -> its answers, one after the other.

    Raises:
        MedtasksError: it is no such file, or a task of it is too large.
    """
    import pyarrow as pa
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(path)
        if file.schema_arrow != _schema():
            raise MedtasksError("has other columns than a file of answers", where=path, remedy=_MADE)
        for number in range(file.metadata.num_row_groups):
            if file.metadata.row_group(number).total_byte_size > MOST_OF_A_TASK:
                raise MedtasksError(
                    f"a task unpacks to more than {MOST_OF_A_TASK:,} bytes", where=path, remedy=_MADE
                )
            table = file.read_row_group(number, use_threads=False)
            if not table.num_rows:
                continue
            if any(column.null_count for column in table.columns):
                raise MedtasksError("an answer lacks a value", where=path, remedy=_MADE)
            names = table["task"].unique().to_pylist()
            if len(names) != 1:
                raise MedtasksError("a row group holds answers to several tasks", where=path, remedy=_MADE)
            columns = [table[name].to_pylist() for name in FinalAnswer.__slots__]
            yield names[0], [FinalAnswer(*row) for row in zip(*columns, strict=True)]
    except (pa.ArrowException, OSError) as error:
        raise MedtasksError(f"is no table ({type(error).__name__})", where=path, remedy=_MADE) from None


def the_file(said: AnswersFile, here: Path | None) -> Path:
    """The file of answers that a record names: the one that is here, else downloaded.

    Raises:
        MedtasksError: it cannot be had, or is another one than the record names.
    """
    if said.size > MOST_BYTES:
        raise MedtasksError(f"is larger than {MOST_BYTES:,} bytes", where="answers", remedy=_MADE)
    if here is None and not said.addresses:
        raise MedtasksError(
            "no address says where the file is had",
            where="answers",
            remedy="upload the file, then submit with --address URL; or check with --answers FILE",
        )
    path = here or _downloaded(said)
    if not path.is_file():
        raise MedtasksError("no such file", where=path, remedy="name the file of answers")
    if path.stat().st_size != said.size or sha256_of(path) != said.sha256:
        what = "is another file than the one that submission.json names"
        raise MedtasksError(what, where=path, remedy=_MADE)
    return path


def _downloaded(said: AnswersFile) -> Path:
    first, *others = said.addresses
    digest = f"sha256:{said.sha256}"
    named = RemoteFile(first, "", digest=digest, mirrors=tuple(others), size=said.size, of_stranger=True)
    return named.get()
