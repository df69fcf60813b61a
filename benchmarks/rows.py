"""Local rows: `data check` of a large file, and `data status` of files that did not change.

`data check` of 200,000 local rows of 1 kB (a dataset that draws 1,000 of them, and one that renders all),
and `data status` of the same file twice: seconds of the processor, imports included, and peak memory.
"""

from __future__ import annotations

import json
import random
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common import Row, fresh, peak_gigabytes, words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CHECK_SECONDS, GIGABYTES, STATUS_SECONDS = 10, 0.5, 1


def run(quick: bool) -> Iterator[Row]:
    n = 20_000 if quick else 200_000
    yield _check("which draws 1,000 of them", "medhelm/hospice_referral", n, _referral)
    yield _check("all of them rendered", "bridge/mednli", n, _inference)
    yield from _status(n)


def _check(name: str, dataset: str, n: int, row: Callable[[random.Random, int], dict[str, str]]) -> Row:
    with tempfile.TemporaryDirectory() as folder:
        env = _written(folder, dataset, n, row)
        found = fresh("rows", "command", env=env, words=["data", "check"])
    figures = f"{found['seconds']:.1f} s, {found['peak']:.2f} GB"
    met = found["seconds"] < CHECK_SECONDS and found["peak"] < GIGABYTES
    goal = f"under {CHECK_SECONDS} s, {GIGABYTES} GB"
    return Row(f"data check: {n:,} rows of 1 kB, {name}", figures, goal, met)


def _status(n: int) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        env = _written(folder, "medhelm/hospice_referral", n, _referral)
        first, again = (fresh("rows", "command", env=env, words=["data", "status"]) for _ in range(2))
        yield Row("data status, first look", f"{first['seconds']:.1f} s")
        met = again["seconds"] < STATUS_SECONDS
        yield Row("data status, repeated", f"{again['seconds']:.1f} s", f"under {STATUS_SECONDS} s", met)


def _written(
    folder: str, dataset: str, n: int, row: Callable[[random.Random, int], dict[str, str]]
) -> dict[str, str]:
    """The environment in which a dataset has n rows."""
    rng, place = random.Random(n), Path(folder) / "data" / dataset
    place.mkdir(parents=True)
    with (place / "test.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(f"{json.dumps({'id': str(number), **row(rng, number)})}\n" for number in range(n))
    return {
        "MEDTASKS_DATA_DIR": f"{folder}/data",
        "MEDTASKS_CACHE": f"{folder}/cache",
        "MEDTASKS_SHOW_TEXT": "0",
    }


def _referral(rng: random.Random, number: int) -> dict[str, str]:
    return {"prompt": "Eligible?", "context": words(rng, 160), "label": "AB"[number % 2]}


def _inference(rng: random.Random, number: int) -> dict[str, str]:
    label = ("entailment", "contradiction", "neutral")[number % 3]
    text = f"Premise statement: {words(rng, 130)}\nHypothesis statement: {words(rng, 10)}"
    return {"task": "MedNLI", "split": "test", "input": text, "output": f"relation: {label}"}


def command(words: list[str]) -> dict[str, Any]:
    """Seconds of the processor for a command, imports included: other work of the machine does not count."""
    from medtasks_ext.cli.main import app

    app(words, standalone_mode=False)
    return {"seconds": time.process_time(), "peak": peak_gigabytes()}
