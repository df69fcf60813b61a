"""Which documents of a task are asked: what `--limit`, `--samples` and `--error` say of one task."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from pydantic import BaseModel, ConfigDict

#: How the words of drawn documents begin.
DRAWN = "drawn for "


class Drawn(BaseModel):
    """Documents that were drawn so that scores have a stated error (`stats.sampling`)."""

    model_config = ConfigDict(frozen=True)

    error: float  # half of the 95 % interval that was aimed at, in points
    scores: tuple[str, ...]  # groups whose scores have that error
    seed: int
    documents: int  # of the task, of which these are some
    units: int  # of the task: documents, or clusters of them


class Choice(BaseModel):
    """Documents of one task; all of them without a limit and without samples."""

    model_config = ConfigDict(frozen=True)

    limit: float | None = None  # how many from the first on, or below 1 their share
    samples: tuple[int, ...] | None = None  # places in the test file, in its order
    drawn: Drawn | None = None  # how the samples were drawn; None of others

    @classmethod
    def of(cls, task: str, limit: float | None, samples: Mapping[str, Sequence[int]] | None) -> Choice:
        """A task without a list in `samples` is under the limit."""
        if listed := (samples or {}).get(task):
            return cls(samples=tuple(sorted(set(listed))))
        return cls(limit=limit)

    @property
    def whole(self) -> bool:
        return self.limit is None and self.samples is None

    @property
    def words(self) -> str:
        if self.drawn is not None:
            return f"{DRAWN}±{self.drawn.error:g} points"
        if self.samples is not None:
            return "chosen documents"
        if self.limit is None:
            return "all"
        return f"the first {int(self.limit)}" if self.limit >= 1 else f"the first {100 * self.limit:g} %"

    def places(self, n: int) -> Sequence[int]:
        """A share is rounded up, which is lm-eval's rule; samples may name places beyond `n`."""
        if self.samples is not None:
            return self.samples
        if self.limit is None:
            return range(n)
        return range(min(n, int(self.limit) if self.limit >= 1 else math.ceil(n * self.limit)))
