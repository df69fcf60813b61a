"""The smallest difference between two models that a test set can show.

(z_alpha + z_beta) x standard error of the difference: found with 80 % power by a two-sided test at 5 %.
This is MedHELM's definition (Nature Medicine 2026, Methods), with its rounded z; clusters are ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from medtasks_ext.results.medhelm import Z_ALPHA, Z_BETA
from medtasks_ext.results.statistics import by_unit

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from numpy.typing import ArrayLike


def detectable_difference(
    first: ArrayLike, second: ArrayLike, units: Sequence[Hashable] | None = None
) -> float:
    """From the scores of documents. Without units it is that of `medhelm.minimum_detectable_effect`.

    Args:
        first: (n,) scores of one model.
        second: (n,) scores of the other on the same documents.
        units: (n,) which documents belong together; the standard error is then that of a mean of
            clusters of unequal size.

    Raises:
        ValueError: there is no document, or lengths differ.
    """
    differences = np.asarray(first, dtype=float) - np.asarray(second, dtype=float)
    if not differences.size or (units is not None and len(units) != len(differences)):
        raise ValueError("both models and the units need the same documents")
    residuals = differences - differences.mean()
    if units is not None:
        residuals = by_unit(residuals[:, None], units)[:, 0]
    return float((Z_ALPHA + Z_BETA) * np.sqrt((residuals**2).sum()) / len(differences))


def detectable_on_resamples(differences: ArrayLike) -> float:
    """From resampled differences, (resamples,): of any metric, task or group."""
    return float((Z_ALPHA + Z_BETA) * np.std(np.asarray(differences, dtype=float), ddof=1))
