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


_BYTES = 16 << 20  # two million resamples


def save_resampled(path: Path, values: Array | None) -> None:
    """None (nothing to resample) removes an older file."""
    if values is None:
        remove(path)
        return
    with atomic_file(path) as file:
        np.save(file, values)


def load_resampled(path: Path) -> Array | None:
    """The values, (resamples,); None where no file is, (0,) where it is not as `save_resampled` writes it.

    The header of a file of somebody else may claim more values than a machine holds, so none is believed.
    """
    try:
        content = path.read_bytes() if path.stat().st_size <= _BYTES else b""
    except FileNotFoundError:
        return None
    except OSError:
        content = b""
    start = int.from_bytes(content[8:10], "little") + 10
    n = (len(content) - start) // 8
    if n <= 0 or content[:start] != _header(n):
        return np.empty(0)
    return np.frombuffer(content, offset=start, count=n)


@lru_cache(maxsize=16)
def _header(n: int) -> bytes:
    file = BytesIO()
    np.save(file, np.zeros(n))
    return file.getvalue()[: -8 * n] if n else b""
