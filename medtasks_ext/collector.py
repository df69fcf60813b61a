"""Python's garbage collector, paused where millions of objects grow that hold no cycles."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """The collector would look at all objects again and again while they become more.

    What has grown is not looked at afterwards either, until the next such block.
    """
    was_on = gc.isenabled()
    gc.disable()
    gc.unfreeze()
    try:
        yield
    finally:
        if was_on:
            gc.freeze()
            gc.enable()


@contextmanager
def collector_sparing() -> Iterator[None]:
    """The collector leaves alone what is there already, so that its pauses stay short while requests wait."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
