"""This process: the seed of its draws, and Python's garbage collector."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256

#: The seed of every draw, where neither an option nor the rule of a benchmark says otherwise.
SEED = 42


def random_rank(seed: int, name: str) -> bytes:
    """What sorts names in a random order that neither their number nor their order in a file changes."""
    return sha256(f"{seed} {name}".encode()).digest()


def give_memory_back() -> None:
    """Have the C library return free memory to the system, which it else keeps for itself."""
    with suppress(AttributeError, OSError):  # it is not glibc
        ctypes.CDLL(None).malloc_trim(0)


#: New objects after which the collector looks at them while others are spared; looks before an older look.
SELDOM = (100_000, 50, 50)


@contextmanager
def collector_paused() -> Iterator[None]:
    """The collector would look again and again at millions of objects without cycles that become more."""
    if gc.get_threshold() == SELDOM:  # it looks seldom, and what is garbage by now should not become old
        yield
        return
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.unfreeze()  # into the oldest generation; what stays frozen would not be freed at the end
        if was_on:
            gc.enable()


@contextmanager
def collector_sparing() -> Iterator[None]:
    """The collector leaves alone what is there, and looks seldom at what comes: a fifth of a run's time."""
    before = gc.get_threshold()
    gc.set_threshold(*SELDOM)
    gc.freeze()
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
