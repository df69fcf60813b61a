"""`medtasks verify` of a run with 138,000 answers: seconds of the processor and memory, imports included.

The run is made by the stream of requests with a model that answers at once, on local rows of one dataset, so
that its chains, heads and scores are those of a real run.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common import Row, fresh, peak_gigabytes

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCUMENTS, TASK = 138_000, "bridge_mednli"
SECONDS = 20.0


def run(quick: bool) -> Iterator[Row]:
    n = DOCUMENTS // 10 if quick else DOCUMENTS
    with tempfile.TemporaryDirectory() as folder:
        env = {"MEDTASKS_DATA_DIR": f"{folder}/data", "MEDTASKS_CACHE": f"{folder}/cache"}
        n = fresh("verify", "make_run", env=env, timeout=3_600, folder=folder, n=n)
        done = fresh("verify", "verified", env=env, folder=folder)
        yield Row(
            f"verify of {n:,} answers",
            f"{done['seconds']:.1f} s of the processor, {done['gigabytes']:.2f} GB",
            f"under {SECONDS:g} s",
            done["seconds"] < SECONDS,
        )


def make_run(folder: str, n: int) -> int:
    """Local rows that repeat the sample rows under other ids, and a run on them; returns its answers."""
    from medtasks_ext.cli.run import run_command
    from medtasks_ext.registry import registry

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
    run_command(["--tasks", TASK, "--model", "random-label", "--output_path", str(Path(folder, "run"))])
    record = json.loads(Path(folder, "run", "tasks", f"{TASK}.json").read_text(encoding="utf-8"))
    return int(record["n"])


def verified(folder: str) -> dict[str, float]:
    """From the start of a process until the command has found nothing."""
    from medtasks_ext.cli.main import app

    code = app(["verify", str(Path(folder, "run"))], standalone_mode=False)
    if code:
        raise RuntimeError(f"verify ended with {code}")
    return {"seconds": time.process_time(), "gigabytes": peak_gigabytes()}
