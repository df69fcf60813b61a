"""What the folder of a run holds, as tests read and change it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from medtasks_ext.runs.folder import RunFolder
from medtasks_ext.runs.manifest import Manifest
from medtasks_ext.runs.records import results_content


def results_file(run: Path | str) -> Path:
    return RunFolder(Path(run)).results_file


def results_of(run: Path | str) -> Any:
    """The whole results file."""
    return json.loads(results_file(run).read_text(encoding="utf-8"))


def samples_file(run: Path | str, task: str) -> Path:
    return RunFolder(Path(run)).samples_file(task)


def samples_of(run: Path | str, task: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in samples_file(run, task).read_bytes().splitlines()]


def result_of(run: Path | str, task: str) -> Any:
    """The result of a task."""
    return RunFolder(Path(run)).read_tasks()[task]


def write_stored(run: Path | str, records: dict[str, Any]) -> None:
    """A results file of these results alone."""
    for record in records.values():
        metadata = record["config"].get("metadata", {})
        record["config"]["metadata"] = {**metadata, "medtasks": {"loaded": record["loaded"]}}
    content = results_content(records, {}, Manifest.read(Path(run)))
    results_file(run).write_text(json.dumps(content, default=str), encoding="utf-8")


@contextmanager
def edited(run: Path | str, task: str) -> Iterator[Any]:
    """The result of a task, and what it is afterwards."""
    records = RunFolder(Path(run)).read_tasks()
    yield records[task]
    write_stored(run, records)


def without_result(run: Path | str, task: str) -> None:
    """As if a task had never been scored."""
    records = RunFolder(Path(run)).read_tasks()
    del records[task]
    write_stored(run, records)
