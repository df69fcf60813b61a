"""A report over many models, each with all datasets in three strategies.

The folders of runs are synthetic and look as `medtasks run` leaves them: results of one real run on the
sample rows, with scores drawn anew for every model and without the marks of sample rows. Samples files
hold a hundred documents; the models share them, since a report opens a few of them only.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common import Row, fresh, peak_gigabytes
from invented import new_run, on_real_rows, sample_run

if TYPE_CHECKING:
    from collections.abc import Iterator

MODELS, PROCESSES, DOCUMENTS = 20, 2, 100
SECONDS, MEGABYTES = 12, 5
GROUPS = ("bridge", "medhelm", "clinicbench", "mlb")
SUFFIXES = ("", "_cot", "_5shot")


def run(quick: bool) -> Iterator[Row]:
    models = MODELS // 10 if quick else MODELS
    with tempfile.TemporaryDirectory() as folder:
        made = fresh("report", "make_runs", folder=folder, models=models, timeout=1800)
        what = f"{models} models, {made['experiments']:,} experiments"
        for published in ("none", "all"):
            done = fresh("report", "report", folder=folder, published=published)
            beside = "" if published == "none" else ", beside all published models"
            figures = (
                f"{done['seconds']:.1f} s ({done['processor']:.1f} s of the processor; {done['peak']:.2f} GB)"
            )
            yield Row(f"report of {what}{beside}", figures, f"under {SECONDS} s", done["seconds"] < SECONDS)
            yield Row(
                "  its page", f"{done['page']:.2f} MB", f"under {MEGABYTES} MB", done["page"] < MEGABYTES
            )


def report(folder: str, published: str) -> dict[str, float]:
    """`medtasks report` over all runs, from its start in a new process to the last file."""
    from medtasks_ext.cli import report as command

    runs = [str(path) for path in sorted(Path(folder, "runs").iterdir())]
    out = Path(folder, published)
    command.report(runs, str(out), published=published)
    seconds = time.time() - float(os.environ["BENCH_STARTED"])
    page = (out / "report.html").stat().st_size / 1e6
    return {"seconds": seconds, "processor": time.process_time(), "peak": peak_gigabytes(), "page": page}


# ---------------------------------------------------------------------- runs


def make_runs(folder: str, models: int) -> dict[str, int]:
    """Write the run folders."""
    template = Path(folder, "template")
    sample_run(template, (f"{group}{suffix}" for group in GROUPS for suffix in SUFFIXES))
    for file in template.glob("samples_*.jsonl"):
        _lengthen(file)
    with get_context("spawn").Pool(PROCESSES) as pool:
        sizes = pool.starmap(_make_run, [(folder, number) for number in range(models)], chunksize=1)
    return {"experiments": sum(sizes)}


def _lengthen(file: Path) -> None:
    """As many documents as a small test file has, by repeating the sample rows."""
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    for row in rows:
        row.pop("SAMPLE_DATA", None)
    with file.open("w", encoding="utf-8") as lines:
        for number in range(DOCUMENTS):
            row = {**rows[number % len(rows)], "doc_id": number}
            lines.write(json.dumps(row, ensure_ascii=False) + "\n")


def _make_run(folder: str, number: int) -> int:
    import numpy as np

    from medtasks_ext.jsonfile import write_json
    from medtasks_ext.runs.folder import RunFolder
    from medtasks_ext.runs.manifest import Manifest
    from medtasks_ext.runs.records import results_content

    template, target = RunFolder(Path(folder, "template")), RunFolder(Path(folder, "runs", f"{number:02d}"))
    new_run(template.path, target.path, number)
    generator, records = np.random.default_rng(number), template.read_tasks()
    for name, record in records.items():
        score = float(generator.beta(4, 4))
        records[name] = _scored(record, score)
        np.save(target.resampled_file(name), np.clip(generator.normal(score, 0.02, 1000), 0, 1))
        os.link(template.scores_file(name), target.scores_file(name))
        os.link(template.samples_file(name), target.samples_file(name))
    write_json(target.results_file, results_content(records, {}, Manifest.read(target.path)))
    return len(records)


def _scored(record: dict[str, Any], score: float) -> dict[str, Any]:
    """The record of a task with this score: judged and ungolded ones get one, too."""
    record = on_real_rows(record)  # a run on all rows, as a model's author makes it
    n, record["metrics"]["score"] = record["n"], score
    record["tokens"] = {"input": 1000 * n, "output": 50 * n}
    record["cut"] = {**record["cut"], "answers_cut": 1}
    interval = {"interval_low": score - 0.04, "interval_high": score + 0.04, "resamples": 1000}
    record["intervals"]["score"] = {**interval, "interval_method": "Wilson, 95 %"}
    return record
