"""Reading samples files, which a run and plain `lm_eval --log_samples` write alike."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks_ext.errors import MedtasksError

if TYPE_CHECKING:
    from medtasks_ext.runs.records import Sample

#: What mends the samples file of a run.
RESCORE = "`medtasks rescore RUN` writes the file again from the stored responses"


def read_samples(path: Path, first: int | None = None, *, remedy: str = RESCORE) -> list[Sample]:
    """The records of a samples file; all, or so many of its first.

    Raises:
        MedtasksError: there is no such file, or a line of it is damaged, which is named.
    """
    return list(islice(iter_samples(path, remedy=remedy), first))


def iter_samples(path: Path, *, remedy: str = RESCORE) -> Iterator[Sample]:
    """The records of a samples file, one after the other. Raises as `read_samples`."""
    try:
        with path.open("rb") as lines:  # bytes: a text may hold other line separators than \n
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield _sample(line, number, path, remedy)
    except FileNotFoundError:
        raise MedtasksError("no such file", where=path, remedy=remedy) from None


def _sample(line: bytes, number: int, path: Path, remedy: str) -> Sample:
    try:
        sample: Sample = json.loads(line)
        sound = isinstance(sample["doc"], dict) and isinstance(sample["doc_id"], int)
    except (ValueError, KeyError, TypeError):
        sound = False
    if not sound:
        raise MedtasksError(f"line {number} is damaged or cut short", where=path, remedy=remedy)
    return sample
