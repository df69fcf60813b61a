"""Loading the `bridge` group: how often each dataset is built, how long it takes and how much memory.

The `bridge` group through lm-eval's `TaskManager`, rows in BRIDGE's own layout: how often each dataset is
built, seconds of `load`, peak memory of the process. lm-eval's scan of its own tasks is not counted.
"""

from __future__ import annotations

import json
import random
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common import TASKS, Row, fresh, peak_gigabytes, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from medtasks_ext.registry import Dataset

SECONDS, GIGABYTES = 10, 2


def run(quick: bool) -> Iterator[Row]:
    n_rows = 160 if quick else 1600
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder), n_rows)
        places = {f"MEDTASKS_{name.upper()}_DIR": str(Path(folder) / name) for name in ("data", "tasks")}
        measured = fresh("loading", "load", env=places, built=str(Path(folder) / "built"))
    yield _builds(measured)
    yield _umbrella(measured, n_rows)


def _builds(measured: dict[str, Any]) -> Row:
    name = f"builds of {measured['tasks']} datasets that several parts of `bridge` name"
    figures = f"{measured['built']} for {measured['asked']} requests"
    return Row(name, figures, "one each", measured["built"] == measured["tasks"])


def _umbrella(measured: dict[str, Any], n_rows: int) -> Row:
    name = f"load `bridge`: {measured['tasks']} tasks of {n_rows:,} rows"
    figures = (
        f"{measured['seconds']:.1f} s, {measured['peak']:.2f} GB (imports alone {measured['before']:.2f} GB)"
    )
    met = measured["seconds"] < SECONDS and measured["peak"] < GIGABYTES
    return Row(name, figures, f"under {SECONDS} s, {GIGABYTES} GB", met)


def prepare(folder: Path, n_rows: int, n_words: int = 200) -> None:
    """Copy the BRIDGE tasks, build what lm-eval indexes, and write rows for them."""
    from medtasks_ext.registry import Registry
    from medtasks_ext.registry.build import build

    root = folder / "tasks"
    shutil.copytree(TASKS / "bridge", root / "bridge")
    registry = Registry(root)
    build(registry, folder / "built")
    for item in registry.datasets.values():
        _write(item, folder / "data" / "bridge", n_rows, n_words)


def _official(dataset: Dataset) -> str:
    return dataset.blocks["rows"]["official_name"]


def _write(dataset: Dataset, folder: Path, n_rows: int, n_words: int) -> None:
    """Rows in BRIDGE's layout: random inputs, gold answers taken from the sample rows."""
    rng = random.Random(dataset.id)
    samples = [json.loads(line) for line in dataset.sample_file.read_text(encoding="utf-8").splitlines()]
    golds = [row["output"] for row in samples if row.get("output")]
    language = dataset.metadata.language
    instruction = text(rng, language, 150)
    for path, size in (
        (folder / f"{_official(dataset)}.SFT.json", n_rows),
        (folder / "example" / f"{_official(dataset)}.example.json", 5),
    ):
        rows = [
            {
                "task": _official(dataset),
                "split": "test",
                "id": f"{path.name} {number}",
                "instruction": instruction,
                "input": text(rng, language, n_words),
                "output": rng.choice(golds),
            }
            for number in range(size)
        ]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8")


def load(built: str) -> dict[str, Any]:
    from lm_eval.tasks import TaskManager

    from medtasks_ext.prompts.load import _build

    before = peak_gigabytes()
    manager = TaskManager(include_path=built)  # its scan of lm-eval's own tasks is not counted
    began = time.perf_counter()
    loaded = manager.load(["bridge"])["tasks"]
    seconds = time.perf_counter() - began
    cache = _build.cache_info()
    return {
        "tasks": len(loaded),
        "seconds": seconds,
        "before": before,
        "peak": peak_gigabytes(),
        "built": cache.misses,
        "asked": cache.misses + cache.hits,
    }
