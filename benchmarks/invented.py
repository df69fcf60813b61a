"""Run folders of models that nobody ran: files of one run on the sample rows, as if it were on real ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable


def sample_run(template: Path, names: Iterable[str]) -> None:
    """Run tasks and groups on their sample rows."""
    from medtasks_ext.cli.run import run_command

    arguments = ["--tasks", ",".join(names), "--model", "random-label", "--data", "sample"]
    if run_command([*arguments, "--output_path", str(template)]):
        raise RuntimeError("the run on the sample rows failed")


def new_run(template: Path, target: Path, number: int) -> None:
    """Begin the folder of a run of model `number`; without answers."""
    manifest = json.loads((template / "run.json").read_text())
    manifest["identity"]["model"] = {"model": "vllm", "model_args": {"pretrained": f"ORG/model-{number}"}}
    manifest["identity"]["settings"]["data"] = None
    for task in manifest["tasks"].values():
        del task["n"]  # of the sample rows
    (target / "tasks").mkdir(parents=True)
    (target / "run.json").write_text(json.dumps(manifest, indent=1))


def on_real_rows(record: dict[str, Any], n: int | None = None) -> dict[str, Any]:
    """The record of a task without the marks of sample rows.

    Args:
        record: which is changed.
        n: documents; those of the suite by default.
    """
    n = record["config"]["about"]["n_test"] if n is None else n
    del record["metrics"]["SAMPLE_DATA"]
    record["loaded"]["origin"] = record["config"]["metadata"]["medtasks"]["loaded"]["origin"] = "local"
    record["n"] = record["loaded"]["n_test"] = n
    conditions = record["conditions"]
    conditions |= {"source": "suite", "origin": "local", "n_of_suite": n}
    conditions |= {"n": n, "n_here": n, "held_out": 0}
    return record
