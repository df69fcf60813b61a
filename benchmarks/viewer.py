"""`medtasks view` of a run of 138,000 documents in one file: a run of many tasks reads only what is opened.

The run is made of the sample rows of one dataset, each record with another id and a prompt of 2,000
characters. Seconds of the processor and peak memory until the page is there, imports included; then of the
list of all documents, with clusters of errors and the confusion matrix, and of the texts of a hundred.
"""

from __future__ import annotations

import json
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common import Row, fresh, peak_gigabytes

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCUMENTS, TASK = 138_000, "bridge_mednli"
SECONDS, MEGABYTES = 5.0, 1000


def run(quick: bool) -> Iterator[Row]:
    n = DOCUMENTS // 10 if quick else DOCUMENTS
    with tempfile.TemporaryDirectory() as folder:
        size = fresh("viewer", "make_run", folder=folder, n=n)
        what = f"view of {n:,} documents in one file of {size:.0f} MB"
        done = fresh("viewer", "opened", folder=folder)
        yield Row(
            f"{what}: the page",
            f"{done['seconds']:.2f} s of the processor",
            f"under {SECONDS:g} s",
            done["seconds"] < SECONDS,
        )
        yield Row(
            "  memory", f"{done['megabytes']:.0f} MB", f"under {MEGABYTES} MB", done["megabytes"] < MEGABYTES
        )
        done = fresh("viewer", "read", folder=folder)
        yield Row(
            "  the list of all of them", f"{done['seconds']:.1f} s of the processor; {done['size']:.1f} MB"
        )
        yield Row("  a hundred of them", f"{done['part']:.2f} s of the processor")
        yield Row(
            "  memory", f"{done['megabytes']:.0f} MB", f"under {MEGABYTES} MB", done["megabytes"] < MEGABYTES
        )


def make_run(folder: str, n: int) -> float:
    """Write the run; returns megabytes of its samples."""
    from medtasks_ext.cli.run import run_command
    from medtasks_ext.engines import Answer, Usage
    from medtasks_ext.registry import registry
    from medtasks_ext.results.document_scores import (
        document_scores,
        save_document_scores,
        score_statistic,
    )
    from medtasks_ext.run.store import Answers
    from medtasks_ext.runs.folder import RunFolder

    made, run_folder = Path(folder, "made"), Path(folder, "run")
    run_command(["--tasks", TASK, "--model", "random-label", "--data", "sample", "--output_path", str(made)])
    (run_folder / "tasks").mkdir(parents=True)
    manifest = json.loads((made / "run.json").read_text(encoding="utf-8"))
    manifest["tasks"][TASK]["n"] = n
    (run_folder / "run.json").write_text(json.dumps(manifest))
    results = json.loads(RunFolder(made).results_file.read_text(encoding="utf-8"))
    results["n-samples"][TASK]["effective"] = n
    RunFolder(run_folder).results_file.write_text(json.dumps(results))
    lines = RunFolder(made).samples_file(TASK).read_text(encoding="utf-8").splitlines()
    samples: list[dict[str, Any]] = [json.loads(line) for line in lines]
    for sample in samples:
        sample["doc"]["prompt"] = sample["doc"]["prompt"] * (2000 // len(sample["doc"]["prompt"]) + 1)
    file = RunFolder(run_folder).samples_file(TASK)
    with file.open("w") as out, closing(Answers(run_folder)) as answers:
        for place in range(n):
            sample = samples[place % len(samples)]
            sample["doc_id"], sample["doc"]["id"], sample["request"] = place, f"d{place}", f"{place:032x}"
            out.write(json.dumps(sample, ensure_ascii=False) + "\n")
            answer = Answer(sample["resps"][0][0], "stop", Usage(500, 8))
            answers.put(sample["request"], answer, TASK, f"d{place}")
    numbered = (
        {**samples[place % len(samples)], "doc_id": place, "doc": {"id": f"d{place}"}} for place in range(n)
    )
    scores = document_scores(list(numbered), score_statistic(registry().tasks[TASK][0]))
    save_document_scores(run_folder / "tasks" / f"{TASK}.parquet", scores)
    return file.stat().st_size / 1e6


def opened(folder: str) -> dict[str, float]:
    """From the start of a process to the page, as its server sends it."""
    from medtasks_ext.registry import registry
    from medtasks_ext.report.answers.server import Viewed

    Viewed([Path(folder, "run")], registry()).page()
    return {"seconds": time.process_time(), "megabytes": peak_gigabytes() * 1000}


def read(folder: str) -> dict[str, float]:
    """The list of all documents with clusters of errors and confusion matrix, then a hundred documents."""
    from medtasks_ext.registry import registry
    from medtasks_ext.report.answers.server import Viewed

    viewed = Viewed([Path(folder, "run")], registry())
    begun = time.process_time()
    size = len(viewed.script(TASK))
    listed = time.process_time()
    viewed.script(f"{TASK}-0")
    return {
        "seconds": listed - begun,
        "size": size / 1e6,
        "part": time.process_time() - listed,
        "megabytes": peak_gigabytes() * 1000,
    }
