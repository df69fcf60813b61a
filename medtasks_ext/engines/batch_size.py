"""How many requests a transformers model answers at a time.

lm-eval's own search for `auto` runs the whole context through the model, with the logits of every position,
and does so anew in each call. What the search finds is far below what generation needs, since generation
keeps the logits of one position. Here the first batch has the largest size that is allowed. Where the
memory does not hold a batch, the size is halved, and the requests without an answer are asked again. What
fitted is kept for the rest of the run, as rows times tokens.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lm_eval.api.model import LM

#: Rows that `auto` takes on a CPU at most: more gain little, and a system without memory kills the process.
CPU_ROWS = 8
_OUT_OF_MEMORY = ("out of memory", "can't allocate memory")


class BatchSize:
    """The size of a transformers model's batches.

    Args:
        model: of lm-eval, with `batch_size_per_gpu` (a number or `auto`) and `max_batch_size`.

    Attributes:
        most: rows of a batch at most.
        rows: rows of a batch now.
    """

    def __init__(self, model: LM, say: Callable[[str], None]) -> None:
        self._model, self._say = model, say
        wanted = vars(model)["batch_size_per_gpu"]
        if wanted == "auto":
            on_cpu = getattr(getattr(model, "device", None), "type", "") == "cpu"
            wanted = min(model.max_batch_size, CPU_ROWS) if on_cpu else model.max_batch_size
        self.most = self.rows = int(wanted)
        self._tokens = 1
        self._room: int | None = None

    @staticmethod
    def has(model: LM) -> bool:
        """Whether the model's batches have a size that may change between its calls."""
        return bool(vars(model).keys() >= {"batch_size_per_gpu", "max_batch_size"})

    def choose(self, tokens: int) -> None:
        """Set the size for requests of so many tokens, prompt and answer together, at most."""
        self._tokens = max(1, tokens)
        fit = self.most if self._room is None else self._room // self._tokens
        self._set(max(1, min(self.most, fit)))

    def shrink(self, error: Exception) -> bool:
        """Halve the size if an error says that the memory did not suffice; whether that was done."""
        if self.rows == 1 or not is_out_of_memory(error):
            return False
        self._set(self.rows // 2)
        self._room = self.rows * self._tokens
        self._say(f"note: the memory does not hold a batch of {2 * self.rows}; going on with {self.rows}")
        return True

    def _set(self, rows: int) -> None:
        self.rows = self._model.batch_size_per_gpu = rows


def is_out_of_memory(error: Exception) -> bool:
    """Whether a model failed because its device, or the machine, has no memory left."""
    said = str(error)
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and any(words in said for words in _OUT_OF_MEMORY)
    )


def free_memory() -> None:
    """Give back what a failed batch held, once its error is gone."""
    gc.collect()
    with suppress(ImportError):  # of a model without torch there is nothing to give back
        from lm_eval.models.utils_hf import clear_torch_cache

        clear_torch_cache()
