"""Local rows: `data check` of a large file, and `data status` of files that did not change."""

from __future__ import annotations

import json
import random
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common import Row, fresh, peak_gigabytes, words

if TYPE_CHECKING:
    from collections.abc import Iterator

CHECK_SECONDS, GIGABYTES, STATUS_SECONDS = 10, 0.5, 1


def run(quick: bool) -> Iterator[Row]:
    n = 20_000 if quick else 200_000
    with tempfile.TemporaryDirectory() as folder:
        _write(Path(folder) / "data" / "medhelm" / "hospice_referral", n)
        env = {
            "MEDTASKS_DATA_DIR": f"{folder}/data",
            "MEDTASKS_CACHE": f"{folder}/cache",
            "MEDTASKS_SHOW_TEXT": "0",
        }
        check = fresh("rows", "command", env=env, words=["data", "check"])
        figures = f"{check['seconds']:.1f} s, {check['peak']:.2f} GB"
        met = check["seconds"] < CHECK_SECONDS and check["peak"] < GIGABYTES
        yield Row(f"data check: {n:,} rows of 1 kB", figures, f"under {CHECK_SECONDS} s, {GIGABYTES} GB", met)
        first, again = (fresh("rows", "command", env=env, words=["data", "status"]) for _ in range(2))
        yield Row("data status, first look", f"{first['seconds']:.1f} s")
        met = again["seconds"] < STATUS_SECONDS
        yield Row("data status, repeated", f"{again['seconds']:.1f} s", f"under {STATUS_SECONDS} s", met)


def _write(folder: Path, n: int) -> None:
    rng = random.Random(n)
    folder.mkdir(parents=True)
    with (folder / "test.jsonl").open("w", encoding="utf-8") as file:
        for number in range(n):
            row = {
                "id": str(number),
                "prompt": "Eligible?",
                "context": words(rng, 160),
                "label": "AB"[number % 2],
            }
            file.write(json.dumps(row) + "\n")


def command(words: list[str]) -> dict[str, Any]:
    """Seconds of the processor for a command, imports included: other work of the machine does not count."""
    from medtasks_ext.cli.main import app

    app(words, standalone_mode=False)
    return {"seconds": time.process_time(), "peak": peak_gigabytes()}
