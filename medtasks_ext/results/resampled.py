"""A task's score on each bootstrap resample, kept beside its results: `RUN/tasks/TASK.npy`.

Any group of tasks gets its interval from these files, and two models are compared resample by resample.
"""

from __future__ import annotations

from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from medtasks_ext.atomic import atomic_file, remove

if TYPE_CHECKING:
    from medtasks_ext.stats.statistic import Array


def save_resampled(path: Path, values: Array | None) -> None:
    """Write the values, whole or not at all; None (nothing to resample) removes an older file."""
    if values is None:
        remove(path)
        return
    with atomic_file(path) as file:
        np.save(file, values)


def load_resampled(path: Path) -> Array | None:
    """The values, (resamples,); None where there are none or the file is damaged."""
    try:
        content = path.read_bytes()
        values = _values(content)
        return np.load(path, allow_pickle=False) if values is None else values
    except (OSError, ValueError, EOFError):
        return None


def _values(content: bytes) -> Array | None:
    """The values of a file as `save_resampled` writes it, a report reads thousands; None for another one."""
    start = int.from_bytes(content[8:10], "little") + 10
    n = (len(content) - start) // 8
    if content[:start] != _header(n):
        return None
    return np.frombuffer(content, offset=start, count=n)


@lru_cache(maxsize=16)
def _header(n: int) -> bytes:
    file = BytesIO()
    np.save(file, np.zeros(n))
    return file.getvalue()[: -8 * n] if n else b""
