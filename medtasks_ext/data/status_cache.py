"""What was found out about rows, kept by the content of their files: a second look reads no row."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks_ext.atomic import atomic_file
from medtasks_ext.errors import MedtasksError
from medtasks_ext.privacy import shows_text
from medtasks_ext.registry.folders import PACKAGE, cache_dir
from medtasks_ext.rows.digests import sha256_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from medtasks_ext.registry import Dataset


@dataclass(frozen=True)
class RowsLook:
    """What a look at all rows of a dataset found. No text of a row.

    Attributes:
        n_test: documents that can be evaluated.
        n_fewshot: rows of the pool.
        n_questions: different questions among the documents.
        faults: what is wrong, where, and what mends it.
        exclusions: which rows of the source are left out, and why.
    """

    n_test: int
    n_fewshot: int
    n_questions: int
    faults: list[tuple[str, str, str]] = field(default_factory=list)
    exclusions: str | None = None

    @property
    def errors(self) -> list[MedtasksError]:
        """The faults."""
        return [MedtasksError(what, where=where, remedy=remedy) for what, where, remedy in self.faults]


def cached_look(
    dataset: Dataset, origin: str, files: Sequence[Path], look: Callable[[], RowsLook]
) -> RowsLook:
    """What was found for files of this content, task file and program; else what is found now.

    Args:
        dataset: whose rows they are.
        origin: of the rows.
        files: all that are read; without any, nothing is kept.
        look: reads all rows.
    """
    if not files or shows_text():
        return look()
    said = [dataset.id, dataset.blocks, dataset.record, origin, _program()]
    contents = [(str(file), sha256_of(file)) for file in files]
    key = sha256(json.dumps([said, contents], default=str).encode()).hexdigest()[:32]
    path = cache_dir() / "status" / f"{key}.json"
    try:
        return RowsLook(**json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError):
        found = look()
    try:
        with atomic_file(path) as file:
            file.write(json.dumps(asdict(found)).encode())
    except MedtasksError:
        pass  # a cache that cannot be written costs time alone
    return found


def _program() -> int:
    """Changes with every change of the package."""
    return max(file.stat().st_mtime_ns for file in PACKAGE.rglob("*.py"))
