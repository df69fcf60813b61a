"""`medtasks view` of a run under way: how soon the first answer is seen, and what the watching costs the run.

A loopback server with 256 places answers as in `runner`. The same run goes alone and watched in turn; the
viewer is asked every two seconds, as its page does. Spans go from the first request to the last answer as the
server saw them.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import runner
from common import ROOT, Row

if TYPE_CHECKING:
    from collections.abc import Iterator

TASKS, N, PAIRS = 8, 1600, 5
POLL, FIRST, SHARE = 2.0, 2.0, 0.02


def run(quick: bool) -> Iterator[Row]:
    n, pairs = (N // 4, 1) if quick else (N, PAIRS)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        rows = runner.prepare(folder / "rows", TASKS, n // TASKS)
        ratios, waits = [], []
        for pair in range(pairs):
            alone = _span(folder / f"alone-{pair}", rows)
            seen: dict[str, Any] = {}
            watched = _span(folder / f"watched-{pair}", rows, seen)
            ratios.append(watched / alone)
            waits.append(seen["first"])
        what = f"watch: {n:,} requests of {TASKS} tasks"
        found = statistics.median(waits)
        yield Row(
            f"{what}, first page after the first answer, the command's start included",
            f"{found:.2f} s",
            f"within {FIRST:g} s",
            found <= FIRST,
        )
        found = statistics.median(ratios)
        yield Row(
            "watch: the run's time, watched over alone",
            f"{found:.3f} times ({min(ratios):.3f} to {max(ratios):.3f})",
            f"at most {1 + SHARE:g}",
            found <= 1 + SHARE,
        )


def _span(out: Path, rows: runner.Rows, seen: dict[str, Any] | None = None) -> float:
    """Seconds of a run; where somebody watches, `seen` gets what they saw."""
    log = out.with_suffix(".log")
    with runner.server(log, runner.Scripted()) as url:
        command = runner.command(rows, url, out, runner.Scripted().places)
        environment = runner.environment_of(rows)
        process = subprocess.Popen(
            command, env=environment, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        if seen is None:
            process.wait()
        else:
            answers = out / "answers.jsonl"
            while process.poll() is None and not (answers.is_file() and answers.stat().st_size):
                time.sleep(0.02)
            _watch(out, environment, process, seen)
    answered = [item for item in runner.log_of(log) if "answered" in item]
    return max(item["answered"] for item in answered) - min(item["came"] for item in answered)


def _watch(
    out: Path, environment: dict[str, str], run: subprocess.Popen[bytes], seen: dict[str, Any]
) -> None:
    """Open the viewer at the first answer, and ask it as the page does until the run has ended."""
    began = time.monotonic()
    seen.update(first=float("inf"))
    with _viewer(out, environment) as address:
        while run.poll() is None:
            with suppress(OSError, ValueError), urlopen(f"{address}live") as reply:
                [found] = json.load(reply)["runs"]
                if found["done"]:
                    seen["first"] = min(seen["first"], time.monotonic() - began)
            with suppress(subprocess.TimeoutExpired):
                run.wait(POLL)


@contextmanager
def _viewer(out: Path, environment: dict[str, str]) -> Iterator[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "medtasks_ext", "view", str(out)],
        env=environment,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    try:
        address = process.stdout.readline().strip()
        threading.Thread(target=process.stdout.read, daemon=True).start()
        yield address
    finally:
        process.kill()
        process.wait()
