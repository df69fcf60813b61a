"""A run with 138,000 answers: what `medtasks verify` takes of it, and the seal's share of the run.

Seconds of the processor, imports included, and memory. The seal's share is the time in its journal (notes,
looks at the lease before each write, the root) and in hashing whole files. The model answers at once, so that
it is the largest that a run can have.

The run is made by the stream of requests with a model that answers at once, on local rows of one dataset, so
that its chains, heads and scores are those of a real run.
"""

from __future__ import annotations

import functools
import json
import tempfile
import threading
import time
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common import Row, fresh, peak_gigabytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DOCUMENTS, TASK = 138_000, "bridge_mednli"
SECONDS = 12.8  # twice what it took before files beside the answers were sealed
SHARE = 0.02


def run(quick: bool) -> Iterator[Row]:
    n = DOCUMENTS // 10 if quick else DOCUMENTS
    with tempfile.TemporaryDirectory() as folder:
        env = {"MEDTASKS_DATA_DIR": f"{folder}/data", "MEDTASKS_CACHE": f"{folder}/cache"}
        made = fresh("verify", "make_run", env=env, timeout=3_600, folder=folder, n=n)
        n, share = made["answers"], made["seal"] / made["seconds"]
        yield Row(
            f"seal of {n:,} answers",
            f"{share:.1%} of the run ({made['seal']:.2f} of {made['seconds']:.1f} s of the processor)",
            f"under {SHARE:.0%}",
            share < SHARE,
        )
        done = fresh("verify", "verified", env=env, folder=folder)
        yield Row(
            f"verify of {n:,} answers",
            f"{done['seconds']:.1f} s of the processor, {done['gigabytes']:.2f} GB",
            f"under {SECONDS:g} s",
            done["seconds"] < SECONDS,
        )


class _Timed:
    """Adds up the processor time of functions, of the outermost where one calls another."""

    def __init__(self) -> None:
        self.seconds, self._inside = 0.0, threading.local()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def timed(*given: Any, **named: Any) -> Any:
            if getattr(self._inside, "it", False):
                return function(*given, **named)
            self._inside.it, began = True, time.thread_time()
            try:
                return function(*given, **named)
            finally:
                self.seconds += time.thread_time() - began
                self._inside.it = False

        return timed


class _Digest:
    """SHA-256 of what a file gets, whose time is added up."""

    def __init__(self, timed: _Timed) -> None:
        digest = sha256()
        self.update, self.hexdigest = timed(digest.update), digest.hexdigest


def make_run(folder: str, n: int) -> dict[str, float]:
    """Local rows that repeat the sample rows under other ids, and a run on them."""
    from medtasks_ext import atomic
    from medtasks_ext.cli.run import run_command
    from medtasks_ext.registry import registry
    from medtasks_ext.runs.seal import Journal

    dataset = registry().datasets[TASK]
    samples: list[dict[str, Any]] = [
        json.loads(line) for line in dataset.sample_file.read_text(encoding="utf-8").splitlines() if line
    ]
    samples = [row for row in samples if row["_split"] == "test"]  # examples are not asked
    local = Path(folder, "data", "bridge", TASK.removeprefix("bridge_"))
    local.mkdir(parents=True)
    with (local / "test.jsonl").open("w", encoding="utf-8") as file:
        for place in range(n):
            file.write(json.dumps({**samples[place % len(samples)], "id": f"d{place}"}) + "\n")
    timed = _Timed()
    for name in ("begin", "writing", "taking", "removing", "appending", "seal"):
        setattr(Journal, name, timed(getattr(Journal, name)))
    atomic.sha256 = lambda: _Digest(timed)  # type: ignore[assignment,return-value]
    run_command(["--tasks", TASK, "--model", "random-label", "--output_path", str(Path(folder, "run"))])
    record = json.loads(Path(folder, "run", "tasks", f"{TASK}.json").read_text(encoding="utf-8"))
    return {"answers": int(record["n"]), "seal": timed.seconds, "seconds": time.process_time()}


def verified(folder: str) -> dict[str, float]:
    """From the start of a process until the command has found nothing."""
    from medtasks_ext.cli.main import app

    code = app(["verify", str(Path(folder, "run"))], standalone_mode=False)
    if code:
        raise RuntimeError(f"verify ended with {code}")
    return {"seconds": time.process_time(), "gigabytes": peak_gigabytes()}
