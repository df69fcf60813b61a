"""The folders that hold data: the user's own, and what was fetched into it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from medtasks_ext.errors import MedtasksError

#: Below the data folder: downloads that were carried there (`medtasks data fetch --to`).
FETCHED = "fetched"
#: What helps where the cache cannot be written.
CACHE_REMEDY = "set MEDTASKS_CACHE to a folder that can be written"


def data_dir() -> Path | None:
    """`$MEDTASKS_DATA_DIR`; MedtasksError where it names a folder that does not exist."""
    named = os.environ.get("MEDTASKS_DATA_DIR")
    if not named:
        return None
    folder = Path(named).expanduser()
    if not folder.is_dir():
        raise MedtasksError("no such folder", where=f"MEDTASKS_DATA_DIR={named}", remedy="correct the path")
    return folder


@contextmanager
def data_folder(folder: Path) -> Iterator[None]:
    before = os.environ.get("MEDTASKS_DATA_DIR")
    os.environ["MEDTASKS_DATA_DIR"] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ["MEDTASKS_DATA_DIR"]
        else:
            os.environ["MEDTASKS_DATA_DIR"] = before
