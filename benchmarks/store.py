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
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common import Row, fresh, peak_gigabytes
from invented import new_run, on_real_rows, sample_run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from medtasks_ext.registry import Dataset
    from medtasks_ext.results.document_scores import DocumentScores

MODELS, PROCESSES = 95, 2
INGEST_SECONDS, TASK_SECONDS, TASK_GIGABYTES, GROUP_SECONDS = 180, 10, 2, 30
SUFFIXES = ("", "_cot", "_5shot")
OVERALL = tuple(f"bridge{suffix}" for suffix in SUFFIXES)
#: models whose experiments are resampled one by one
LOOPED = 2


def run(quick: bool) -> Iterator[Row]:
    models = MODELS // 10 if quick else MODELS
    with tempfile.TemporaryDirectory() as folder:
        made = fresh("store", "make_runs", folder=folder, models=models, timeout=1800)
        yield from measure(folder, made)


def measure(folder: str, made: dict[str, Any]) -> Iterator[Row]:
    """The figures of run folders that `make_runs` wrote."""
    n = f"{made['experiments']:,} experiments, {made['scores'] / 1e6:.1f} million scores of documents"
    first = fresh("store", "put", folder=folder, timeout=1800)
    yield Row(
        f"ingest {made['models']} runs: {n}",
        f"{_times(first)}; the store has {first['gigabytes']:.2f} GB",
        f"under {INGEST_SECONDS} s",
        first["seconds"] < INGEST_SECONDS,
    )
    yield Row("  the same again, which changes nothing", _times(fresh("store", "put", folder=folder)))
    found = fresh("store", "intervals", folder=folder)
    yield Row(
        f"from the store, means and intervals of {found['experiments']:,} experiments",
        _times(found),
        f"under {TASK_SECONDS} s, {TASK_GIGABYTES} GB",
        found["seconds"] < TASK_SECONDS and found["peak"] < TASK_GIGABYTES,
    )
    seconds = found["groups"] + found["pairs"]
    yield Row(
        f"  besides, {found['n_groups']:,} groups, and {found['n_pairs']:,} pairs of the overall",
        f"{seconds:.1f} s (pairs {found['pairs']:.1f} s; {found['peak_pairs']:.2f} GB)",
        f"under {GROUP_SECONDS} s",
        seconds < GROUP_SECONDS,
    )
    each = fresh("store", "loop", folder=folder)
    times = each["seconds"] / each["experiments"] / (found["seconds"] / found["experiments"])
    figures = f"{1000 * each['seconds'] / each['experiments']:.1f} ms each ({times:.0f} times as long)"
    yield Row(f"  intervals one by one, {each['experiments']} of them", figures)
    yield Row("  all results as a report gets them", _times(fresh("store", "read", folder=folder)))


def _times(figures: dict[str, float]) -> str:
    seconds, processor, peak = (figures[name] for name in ("seconds", "processor", "peak"))
    return f"{seconds:.1f} s ({processor:.1f} s of processor time), {peak:.2f} GB"


# ---------------------------------------------------------------------- runs


def make_runs(folder: str, models: int) -> dict[str, Any]:
    """Write the run folders."""
    template = Path(folder, "template")
    sample_run(template, OVERALL)
    with get_context("spawn").Pool(PROCESSES) as pool:
        sizes = pool.starmap(_make_run, [(folder, number) for number in range(models)], chunksize=1)
    experiments, scores = map(sum, zip(*sizes, strict=True))
    return {"models": models, "experiments": experiments, "scores": scores}


def _make_run(folder: str, number: int) -> tuple[int, int]:
    from medtasks_ext.results.document_scores import save_document_scores
    from medtasks_ext.runs.seal import RunLease

    template, run = Path(folder, "template"), Path(folder, "runs", f"{number}")
    new_run(template, run, number)
    total = 0
    for dataset in _datasets():
        for suffix in SUFFIXES:
            scores = _scores(dataset, suffix, number)
            file = run / "tasks" / f"{dataset.id}{suffix}"
            save_document_scores(file.with_name(f"{file.name}.parquet"), scores)
            record = _record(template, file.name, len(scores.documents))
            record["metrics"]["score"] = scores.value
            record["intervals"] = {}  # those of the sample rows; the store works out its own
            file.with_name(f"{file.name}.json").write_text(json.dumps(record, ensure_ascii=False, indent=1))
            total += record["n"]
    with RunLease(run, "a benchmark"):  # seals the folder as it is found
        pass
    return len(_datasets()) * len(SUFFIXES), total


@cache
def _datasets() -> list[Dataset]:
    from medtasks_ext.registry import registry

    return [item for item in registry().datasets.values() if item.metadata.suite == "bridge"]


@cache
def _record(template: Path, task: str, n: int) -> dict[str, Any]:
    """Results of a task as a real run leaves them, without the marks of sample rows."""
    return on_real_rows(json.loads((template / "tasks" / f"{task}.json").read_text()), n)


def _seed(dataset: Dataset, suffix: str) -> int:
    return random.Random(dataset.id + suffix).getrandbits(32)


@cache
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

    from medtasks_ext.results.document_scores import DocumentScores, score_statistic
    from medtasks_ext.stats.statistic import mean

    keys, contents, hardness, gold = _documents(dataset, suffix)
    rng = np.random.default_rng([number, _seed(dataset, suffix)])
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


class Clock:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self.began, self.busy = time.perf_counter(), time.process_time()

    def read(self) -> dict[str, float]:
        return {
            "seconds": time.perf_counter() - self.began,
            "processor": time.process_time() - self.busy,
            "peak": peak_gigabytes(),
        }


def _registry() -> Any:
    """With all tasks' files read, which is no part of what is measured."""
    from medtasks_ext.registry import registry

    here = registry()
    assert here.groups and all(item.config for item in here.datasets.values())
    return here


def put(folder: str) -> dict[str, float]:
    """Ingest all runs."""
    from medtasks_ext.results.store.ingest import ingest

    here, runs, store = _registry(), sorted(Path(folder, "runs").iterdir()), Path(folder, "store")
    clock = Clock()
    _, faults = ingest(runs, store, here)
    found = clock.read()
    if faults:
        raise RuntimeError(str(faults[0]))
    return {**found, "gigabytes": sum(file.stat().st_size for file in store.rglob("*.parquet")) / 1e9}


def intervals(folder: str) -> dict[str, float]:
    """Means and intervals of all tasks; then those of groups, and all pairs of the overall."""
    import numpy as np

    from medtasks_ext.results.store.resample import open_store, task_bootstrap
    from medtasks_ext.stats.bootstrap import percentile_interval
    from medtasks_ext.stats.comparison import all_pairs

    here = _registry()
    clock = Clock()
    found = [(item, item.intervals) for item in task_bootstrap(open_store(Path(folder, "store"), here))]
    first = {**clock.read(), "experiments": sum(len(interval) for _, interval in found)}

    clock, n_groups, overall = Clock(), 0, []
    scores: dict[str, dict[str, tuple[float, Any]]] = {}
    for item, _ in found:
        for (run, task), value, draws in zip(item.experiments, item.values, item.resampled, strict=True):
            scores.setdefault(run, {})[task] = value, draws
    for done in scores.values():
        for group in here.groups:
            if not (group.startswith("bridge") and set(here.leaves(group)) <= set(done)):
                continue
            parts = [[done[task] for task in part] for part in here.parts(group)]
            score = np.mean([np.mean([value for value, _ in part]) for part in parts])
            draws = np.mean([np.mean([values for _, values in part], axis=0) for part in parts], axis=0)
            percentile_interval(draws)
            n_groups += 1
            if group in OVERALL:
                overall.append((score, draws))
    groups = clock.read()["seconds"]
    clock = Clock()
    all_pairs([score for score, _ in overall], np.stack([draws for _, draws in overall]))
    pairs = clock.read()
    return {
        **first,
        "groups": groups,
        "n_groups": n_groups,
        "pairs": pairs["seconds"],
        "n_pairs": len(overall) * (len(overall) - 1) // 2,
        "peak_pairs": pairs["peak"],
    }


def loop(folder: str) -> dict[str, float]:
    """Intervals of some models' tasks one by one."""
    from medtasks_ext.results.store.read import read_store
    from medtasks_ext.stats.bootstrap import percentile_interval, resample

    entries = read_store(Path(folder, "store"), _registry(), [])[:LOOPED]
    experiments = [item for entry in entries for item in entry.experiments.values()]
    clock = Clock()
    for item in experiments:
        counts = item.read_documents().by_unit()
        percentile_interval(resample([counts], item.dataset.id)["score"].values)
    return {**clock.read(), "experiments": len(experiments)}


def read(folder: str) -> dict[str, float]:
    """What a report starts from."""
    from medtasks_ext.results.entries import read_results

    here = _registry()
    clock = Clock()
    read_results([Path(folder, "store")], here)
    return clock.read()
