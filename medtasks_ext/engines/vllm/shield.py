"""Ctrl-C is for this process: a terminal sends it to every process of the group."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker


@contextmanager
def ctrl_c_stays_here() -> Iterator[None]:
    """Processes that are started within never get SIGINT, whatever handler they set.

    vLLM's engine process ends at Ctrl-C and takes along what is under way. A new process has the signal mask
    of the thread that started it, and so have its own children. This process goes on to hear the signal
    through another thread; Python then handles it in the main thread as ever.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # it is started once per process, and its start would unblock the signal
    resource_tracker.ensure_running()
    over = threading.Event()
    threading.Thread(target=over.wait, name="hears Ctrl-C", daemon=True).start()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        over.set()
