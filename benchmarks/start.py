"""How long the commands take to start: `medtasks ls`, and a run until the model gets its first request.

Wall time of `medtasks ls`, best of three. Seconds from process start to the first request that a model
gets, for `medtasks run` and for plain `lm_eval --include_path`, on the sample rows of every dataset that
has some (the zero-shot tasks).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from common import ROOT, TASKS, Row, environment, fresh

if TYPE_CHECKING:
    from collections.abc import Iterator

REPEATS = 3


def run(quick: bool) -> Iterator[Row]:
    from medtasks_ext.registry import Registry
    from medtasks_ext.registry.build import build

    command = Path(sys.executable).with_name("medtasks")
    listing = min(_seconds([str(command), "ls"]) for _ in range(REPEATS))
    yield Row("medtasks ls", f"{listing:.2f} s", "under 1 s", listing < 1)
    tasks, left_out = fresh("start", "loadable")
    what = f"first request, sample rows of {len(tasks)} tasks"
    if left_out:
        what += f" ({left_out} not loadable now)"
    own = min(fresh("start", "medtasks", tasks=tasks) for _ in range(REPEATS))
    yield Row(f"medtasks run: {what}", f"{own:.2f} s", "under 3 s", own < 3)
    with tempfile.TemporaryDirectory() as folder:
        build(Registry(TASKS), Path(folder))
        once = range(1 if quick else REPEATS)
        plain = min(fresh("start", "lm_eval", tasks=tasks, built=folder) for _ in once)
    yield Row("the same by lm_eval --include_path", f"{plain:.2f} s ({plain / own:.1f} times as long)")


def _seconds(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, cwd=ROOT, env=environment(), check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def loadable() -> tuple[list[str], int]:
    """Tasks with sample rows, and how many of them are faulty at the moment."""
    from medtasks_ext.errors import MedtasksError
    from medtasks_ext.prompts import load_documents
    from medtasks_ext.registry import Registry

    datasets = [item for item in Registry(TASKS).datasets.values() if item.sample_file.is_file()]
    tasks = []
    for dataset in datasets:
        try:
            load_documents(dataset, cot=False, origin="sample")
            tasks.append(dataset.id)
        except MedtasksError:
            continue
    return tasks, len(datasets) - len(tasks)


def medtasks(tasks: list[str]) -> float | None:
    """Seconds from process start to the first request of `medtasks run`."""
    from dummy import Dummy

    from medtasks_ext.cli.run import run_command

    with tempfile.TemporaryDirectory() as folder:
        names = ["--tasks", ",".join(tasks), "--data", "sample", "--model", "bench-dummy"]
        assert run_command([*names, "--output_path", folder]) == 0
    return Dummy.seconds_to_first_request


def lm_eval(tasks: list[str], built: str) -> float | None:
    """Seconds from process start to the first request of plain `lm_eval`."""
    from dummy import Dummy
    from lm_eval.__main__ import cli_evaluate

    names = ["--tasks", ",".join(tasks), "--metadata", "data=sample", "--model", "bench-dummy"]
    sys.argv = ["lm_eval", "run", *names, "--include_path", built]
    cli_evaluate()
    return Dummy.seconds_to_first_request
