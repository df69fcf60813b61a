"""Loading the `bridge` group: how often each dataset is built, how long it takes and how much memory."""

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

ALL, SECONDS, GIGABYTES = 87, 10, 2


def run(quick: bool) -> Iterator[Row]:
    n_rows, present = 160 if quick else 1600, 0
    for size in (0, ALL):
        if size and present >= size:
            break
        with tempfile.TemporaryDirectory() as folder:
            n, repeated = prepare(Path(folder), n_rows, size)
            places = {f"MEDTASKS_{name.upper()}_DIR": str(Path(folder) / name) for name in ("data", "tasks")}
            measured = fresh("loading", "load", env=places, tasks=str(Path(folder) / "built"))
        if not size:
            present = n
            yield _builds(measured)
        yield _umbrella(measured, n_rows, repeated)


def _builds(measured: dict[str, Any]) -> Row:
    name = f"builds of {measured['tasks']} datasets that several parts of `bridge` name"
    figures = f"{measured['built']} for {measured['asked']} requests"
    return Row(name, figures, "one each", measured["built"] == measured["tasks"])


def _umbrella(measured: dict[str, Any], n_rows: int, repeated: int) -> Row:
    name = f"load `bridge`: {measured['tasks']} tasks of {n_rows:,} rows"
    if repeated:
        name += f" ({repeated} repeated under other names)"
    figures = (
        f"{measured['seconds']:.1f} s, {measured['peak']:.2f} GB (imports alone {measured['before']:.2f} GB)"
    )
    if measured["tasks"] < ALL:
        return Row(name, figures)
    met = measured["seconds"] < SECONDS and measured["peak"] < GIGABYTES
    return Row(name, figures, f"under {SECONDS} s, {GIGABYTES} GB", met)


def prepare(folder: Path, n_rows: int, size: int) -> tuple[int, int]:
    """Copy the BRIDGE tasks that have sample rows and write rows for them.

    With `size`, folders are repeated under other names until there are so many.
    Returns how many there are and how many of them are repetitions.
    """
    from medtasks_ext.registry import Registry
    from medtasks_ext.registry.build import build

    root = folder / "tasks"
    shutil.copytree(TASKS, root, ignore=_others)
    here = Registry(root)
    for broken in here.broken:
        shutil.rmtree(broken)
    datasets = list(here.datasets.values())
    for item in datasets:
        if not item.sample_file.is_file():
            shutil.rmtree(item.folder)
    present = [item for item in datasets if item.sample_file.is_file()]
    for number in range(len(present), size):
        _repeat(present[number % len(present)], f"_{number}")
    registry = Registry(root)
    build(registry, folder / "built")
    final = registry.datasets.values()
    for item in final:
        _write(item, folder / "data" / "bridge", n_rows)
    return len(final), len(final) - len(present)


def _others(path: str, names: list[str]) -> list[str]:
    return [name for name in names if Path(path) == TASKS and name in ("medhelm", "clinicbench", "mlb")]


def _repeat(dataset: Dataset, suffix: str) -> None:
    copy = dataset.folder.with_name(dataset.folder.name + suffix)
    shutil.copytree(dataset.folder, copy)
    file = copy / "task.yaml"
    written = file.read_text(encoding="utf-8")
    folder = "/".join(dataset.folder.parts[-2:])
    for key, value in (("task", dataset.id), ("dataset", folder)):
        written = written.replace(f"{key}: {value}\n", f"{key}: {value}{suffix}\n")
    # a dataset that the paper does not list says which file is its own
    named = f"rows:\n  official_name: {_official(dataset)}{suffix}\n"
    if "\nrows:\n" in written:
        written = written.replace("rows:\n", named, 1)
    else:
        written = written.replace("prompt:\n", f"{named}\nprompt:\n", 1)
    file.write_text(written, encoding="utf-8")


def _official(dataset: Dataset) -> str:
    return dataset.blocks["rows"]["official_name"]


def _write(dataset: Dataset, folder: Path, n_rows: int) -> None:
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
                "input": text(rng, language, 200),
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
