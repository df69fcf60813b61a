"""A task's score on each bootstrap resample, kept beside its results: `RUN/tasks/TASK.npy`.

Any group of tasks gets its interval from these files, and two models are compared resample by resample.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

    from medtasks_ext.metrics.statistic import Array


def save_resampled(path: Path, values: Array | None) -> None:
    """Write the values, whole or not at all; None (nothing to resample) removes an older file."""
    if values is None:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".npy.part")
    with part.open("wb") as file:
        np.save(file, values)
    part.replace(path)


def load_resampled(path: Path) -> Array | None:
    """The values, (resamples,); None where there are none or the file is damaged."""
    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
