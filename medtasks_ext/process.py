"""This process: the seed of its draws, and Python's garbage collector.

The collector is paused where millions of objects grow that hold no cycles.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256

#: The seed of every draw, where neither an option nor the rule of a benchmark says otherwise.
SEED = 42


def random_rank(seed: int, name: str) -> bytes:
    """What sorts names in a random order that neither their number nor their order in a file changes."""
    return sha256(f"{seed} {name}".encode()).digest()


#: How many blocks spare the collector now. `gc.get_freeze_count` would walk over all that is frozen.
_sparing = 0


@contextmanager
def collector_paused() -> Iterator[None]:
    """The collector would look at all objects again and again while they become more.

    What has grown counts as old afterwards: the collector does not walk over all of that at once. Nothing
    stays frozen: what is frozen is not freed when the process ends, and libraries complain of it then.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if not _sparing:  # else what is spared would thaw, too
            gc.freeze()
            gc.unfreeze()  # into the oldest generation
        if was_on:
            gc.enable()


@contextmanager
def collector_sparing() -> Iterator[None]:
    """The collector leaves alone what is there already, so that its pauses stay short while requests wait."""
    global _sparing
    _sparing += 1
    gc.freeze()
    try:
        yield
    finally:
        _sparing -= 1
        if not _sparing:
            gc.unfreeze()
