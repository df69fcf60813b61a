"""The whole of BRIDGE as published in one store: 95 models, 87 tasks, three strategies.

The folders of runs are synthetic and look as `medtasks run` leaves them, without responses and samples,
which ingest does not read: results of one real run on the sample rows, with scores of random answers to
test files of the published sizes. A document is right more often if it is easy and the model is able.
"""

from __future__ import annotations

import json
import random
import tempfile
import time
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common import Row, fresh, peak_gigabytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from medtasks_ext.registry import Dataset
    from medtasks_ext.results.document_scores import DocumentScores

MODELS, PROCESSES = 95, 2
INGEST_SECONDS, TASK_SECONDS, TASK_GIGABYTES, GROUP_SECONDS = 180, 10, 2, 30
SUFFIXES = ("", "_cot", "_5shot")
#: models whose experiments go through the plain loop
LOOPED = 2


def run(quick: bool) -> Iterator[Row]:
    models = MODELS // 10 if quick else MODELS
    with tempfile.TemporaryDirectory() as folder:
        made = fresh("store", "make_runs", folder=folder, models=models, timeout=1800)
        n = f"{made['experiments']:,} experiments, {made['scores'] / 1e6:.1f} million scores of documents"
        first = fresh("store", "put", folder=folder, timeout=1800)
        figures = (
            f"{first['seconds']:.0f} s ({first['peak']:.1f} GB; the store has {first['gigabytes']:.2f} GB)"
        )
        yield Row(
            f"ingest {models} runs: {n}",
            figures,
            f"under {INGEST_SECONDS} s",
            first["seconds"] < INGEST_SECONDS,
        )
        again = fresh("store", "put", folder=folder, timeout=1800)
        yield Row("  the same again, which changes nothing", f"{again['seconds']:.0f} s")
        found = fresh("store", "tasks", folder=folder, timeout=1800)
        figures = f"{found['seconds']:.1f} s, {found['peak']:.2f} GB"
        met = found["seconds"] < TASK_SECONDS and found["peak"] < TASK_GIGABYTES
        yield Row(
            f"means and intervals of {found['experiments']:,} experiments from the store",
            figures,
            f"under {TASK_SECONDS} s, {TASK_GIGABYTES} GB",
            met,
        )
        times = found["looped"] / (found["seconds"] / found["experiments"])
        figures = f"{1000 * found['looped']:.1f} ms each ({times:.0f} times as long)"
        yield Row(f"  a loop over {found['n_looped']} of them", figures)
        seconds = found["groups"] + found["pairs"]
        figures = f"{seconds:.1f} s ({found['n_groups']:,} groups {found['groups']:.1f} s, "
        figures += f"{found['n_pairs']:,} pairs {found['pairs']:.1f} s; {found['peak_pairs']:.2f} GB)"
        yield Row(
            "  groups, the overall, all pairs of the overall",
            figures,
            f"under {GROUP_SECONDS} s",
            seconds < GROUP_SECONDS,
        )
        read = fresh("store", "read", folder=folder, timeout=1800)
        yield Row(
            "  all experiments as a report gets them", f"{read['seconds']:.1f} s, {read['peak']:.2f} GB"
        )


# ---------------------------------------------------------------------- runs


def make_runs(folder: str, models: int) -> dict[str, Any]:
    """Write the run folders."""
    from medtasks_ext.cli.run import run_command

    names = "bridge,bridge_cot,bridge_5shot"
    arguments = ["--tasks", names, "--model", "random-label", "--data", "sample"]
    template = Path(folder, "template")
    if run_command([*arguments, "--output_path", str(template)]):
        raise RuntimeError("the run on the sample rows failed")
    with get_context("spawn").Pool(PROCESSES) as pool:
        sizes = pool.starmap(_make_run, [(folder, number) for number in range(models)], chunksize=1)
    return {"experiments": sum(size[0] for size in sizes), "scores": sum(size[1] for size in sizes)}


def _make_run(folder: str, number: int) -> tuple[int, int]:
    from medtasks_ext.results.document_scores import save_document_scores

    template, run = Path(folder, "template"), Path(folder, "runs", f"{number}")
    manifest = json.loads((template / "run.json").read_text())
    manifest["identity"]["model"] = {"model": "vllm", "model_args": {"pretrained": f"ORG/model-{number}"}}
    manifest["identity"]["settings"]["data"] = None
    (run / "tasks").mkdir(parents=True)
    (run / "run.json").write_text(json.dumps(manifest, indent=1))
    total = 0
    for dataset in _datasets():
        for suffix in SUFFIXES:
            scores = _scores(dataset, suffix, number)
            file = run / "tasks" / f"{dataset.id}{suffix}"
            save_document_scores(file.with_name(f"{file.name}.parquet"), scores)
            record = _record(template, file.name)
            record["metrics"]["score"], record["n"] = scores.value, len(scores.documents)
            file.with_name(f"{file.name}.json").write_text(json.dumps(record, ensure_ascii=False, indent=1))
            total += record["n"]
    return len(_datasets()) * len(SUFFIXES), total


@lru_cache
def _datasets() -> list[Dataset]:
    from medtasks_ext.registry import registry

    return [item for item in registry().datasets.values() if item.metadata.benchmark == "bridge"]


@lru_cache(maxsize=None)
def _record(template: Path, task: str) -> dict[str, Any]:
    """Results of a task as a real run leaves them, without the marks of sample rows."""
    record = json.loads((template / "tasks" / f"{task}.json").read_text())
    del record["metrics"]["SAMPLE_DATA"]
    record["loaded"]["origin"] = record["config"]["metadata"]["medtasks"]["loaded"]["origin"] = "local"
    return record


@lru_cache(maxsize=None)
def _documents(dataset: Dataset, suffix: str) -> tuple[list[str], list[str], Any, Any]:
    """Keys and hashes of documents, how hard they are, and how much is to be found in each."""
    import numpy as np

    n, rng = (
        dataset.metadata.n_test,
        np.random.default_rng(random.Random(dataset.id + suffix).getrandbits(32)),
    )
    keys = [f"{dataset.metadata.name}-{place}" for place in range(n)]
    return keys, [rng.bytes(8).hex() for _ in range(n)], rng.normal(size=n), rng.integers(1, 8, n)


def _scores(dataset: Dataset, suffix: str, number: int) -> DocumentScores:
    import numpy as np

    from medtasks_ext.metrics.statistic import mean
    from medtasks_ext.results.document_scores import DocumentScores, score_statistic

    keys, contents, hardness, gold = _documents(dataset, suffix)
    rng = np.random.default_rng([number, random.Random(dataset.id + suffix).getrandbits(32)])
    n, statistic = len(keys), score_statistic(dataset)
    right = 1 / (1 + np.exp(hardness - number / 50))
    if statistic is not mean:
        hits, extra = rng.binomial(gold, right), rng.integers(0, 4, n)
        counts = np.column_stack([hits, hits + extra, gold]).astype(float)
    elif dataset.metadata.primary_metric == "acc":
        counts = np.column_stack([rng.random(n) < right, np.ones(n)]).astype(float)
    else:
        counts = np.column_stack([right * rng.random(n), np.ones(n)])
    return DocumentScores(
        documents=keys,
        contents=contents,
        units=np.arange(n, dtype=np.int32),
        scored=np.ones(n, bool),
        scores=statistic.value(counts),
        valid=(rng.random(n) < 0.98).astype(float),
        unclosed=np.zeros(n),
        counts=counts,
        statistic=statistic,
    )


# ---------------------------------------------------------------------- measurements


def put(folder: str) -> dict[str, float]:
    """Ingest all runs."""
    from medtasks_ext.registry import registry
    from medtasks_ext.results.store.ingest import ingest

    runs, store = sorted(Path(folder, "runs").iterdir()), Path(folder, "store")
    began = time.perf_counter()
    _, faults = ingest(runs, store, registry())
    seconds = time.perf_counter() - began
    if faults:
        raise RuntimeError(str(faults[0]))
    size = sum(file.stat().st_size for file in store.rglob("*.parquet"))
    return {"seconds": seconds, "peak": peak_gigabytes(), "gigabytes": size / 1e9}


def tasks(folder: str) -> dict[str, float]:
    """Means and intervals of all tasks; of groups and pairs; and some of them by a plain loop."""
    import numpy as np

    from medtasks_ext.registry import registry
    from medtasks_ext.results.bootstrap import percentile_interval, resample
    from medtasks_ext.results.comparison import all_pairs
    from medtasks_ext.results.store.read import Store, read_store
    from medtasks_ext.results.store.resample import task_bootstrap

    here = registry()
    here.groups  # noqa: B018  (reading the tasks' files is no part of this)
    began = time.perf_counter()
    found = list(task_bootstrap(Store(Path(folder, "store"), here)))
    intervals = {
        place: interval
        for item in found
        for place, interval in zip(item.experiments, item.intervals().tolist(), strict=True)
    }
    seconds, peak = time.perf_counter() - began, peak_gigabytes()

    began = time.perf_counter()
    scores: dict[str, dict[str, tuple[float, Any]]] = {}
    for item in found:
        for (run, task), value, draws in zip(item.experiments, item.values, item.resampled, strict=True):
            scores.setdefault(run, {})[task] = value, draws
    n_groups, overall = 0, []
    for tasks in scores.values():
        for group in (
            name for name in here.groups if name.startswith("bridge") and set(here.leaves(name)) <= set(tasks)
        ):
            parts = here.parts(group)
            draws = np.mean([np.mean([tasks[task][1] for task in part], axis=0) for part in parts], axis=0)
            value = np.mean([np.mean([tasks[task][0] for task in part]) for part in parts])
            percentile_interval(draws)
            n_groups += 1
            if group in ("bridge", "bridge_cot", "bridge_5shot"):
                overall.append((value, draws))
    groups = time.perf_counter() - began
    began = time.perf_counter()
    pairs = all_pairs([item[0] for item in overall], np.stack([item[1] for item in overall]))
    result = {
        "pairs": time.perf_counter() - began,
        "n_pairs": pairs.difference.size // 2,
        "peak_pairs": peak_gigabytes(),
    }

    entries = read_store(Path(folder, "store"), here, [])[:LOOPED]
    experiments = [item for entry in entries for item in entry.experiments.values()]
    began = time.perf_counter()
    for item in experiments:
        counts = item.read_documents().by_unit()
        percentile_interval(resample([counts], item.dataset.id)["score"].values)
    looped = (time.perf_counter() - began) / len(experiments)
    return {
        "seconds": seconds, "peak": peak, "experiments": len(intervals), "looped": looped,
        "n_looped": len(experiments), "groups": groups, "n_groups": n_groups, **result,
    }  # fmt: skip


def read(folder: str) -> dict[str, float]:
    """What a report starts from."""
    from medtasks_ext.registry import registry
    from medtasks_ext.results.reading import read_results

    here = registry()
    here.groups  # noqa: B018
    began = time.perf_counter()
    read_results([Path(folder, "store")], here)
    return {"seconds": time.perf_counter() - began, "peak": peak_gigabytes()}
