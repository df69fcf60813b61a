"""1,000-resample intervals of all 87 BRIDGE tasks of one model, and the same by a plain loop.

The 1,000-resample intervals of all metrics of all 87 BRIDGE tasks of one model, from the items that lm-eval
logs: test files of the published sizes, labels as many as the task lists (600 where it lists none), a few
of them frequent. Then some tasks by drawing documents and calling every aggregation on them, timed over 20
resamples and scaled up to 1,000.
"""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Any

from common import Row, fresh, peak_gigabytes

if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS = 5
#: labels where the task lists none (codes)
CODES = 600
#: one task of each kind for the loop; the size of its test file lies in the middle of its kind
LOOPED = ("bridge_chip_ctc", "bridge_clip", "bridge_cares_icd10_subblock", "bridge_mie", "bridge_meddg")
LOOPS = 20


def run(quick: bool) -> Iterator[Row]:
    done = fresh("intervals", "vectorised", share=10 if quick else 1)
    name = f"1,000-resample intervals of {done['tasks']} tasks, {done['documents']:,} documents"
    figures = (
        f"{done['seconds']:.1f} s ({done['processor']:.1f} s of processor time;"
        f" {done['metrics']} metrics; counting {done['counting']:.1f} s;"
        f" {done['peak']:.2f} GB, of which imports and items {done['before']:.2f} GB)"
    )
    yield Row(name, figures, f"under {SECONDS} s", done["seconds"] < SECONDS)
    for row in fresh("intervals", "loop", share=10 if quick else 1):
        name = f"one task by a loop over resamples: {row['task']}, {row['n']:,} documents{row['labels']}"
        times = row["loop"] / row["vectorised"]
        yield Row(name, f"{row['loop']:.1f} s against {row['vectorised']:.3f} s ({times:.0f} times as long)")


def _tasks(names: tuple[str, ...] | None = None) -> Iterator[tuple[Any, Any]]:
    """(dataset, built task) of BRIDGE."""
    from medtasks_ext.registry import registry
    from medtasks_ext.runner.evaluate import Settings, build_task

    here = registry()
    for dataset in here.datasets.values():
        if dataset.metadata.suite == "bridge" and (names is None or dataset.id in names):
            yield dataset, build_task(here, dataset.id, Settings(data="sample"))


def _samples(dataset: Any, task: Any, share: int) -> tuple[list[dict[str, Any]], str]:
    """Items of a model that is right six times in ten, as many as the published test file has."""
    from medtasks_ext.stats.statistic import statistic_of

    rng = random.Random(dataset.id)
    answer = dataset.blocks["answer"]
    labels = [f"label {number}" for number in range(len(answer.get("labels") or range(CODES)))]
    several = answer["kind"] in ("label_list", "code_list")
    statistics = {name: statistic_of(item) for name, item in task.aggregation().items()}
    samples = []
    for number in range(dataset.metadata.n_test // share):
        sample: dict[str, Any] = {"doc_id": number, "doc": {}}
        counts, pair = tuple(rng.choices(range(6), k=3)), (_several if several else _one)(rng, labels)
        for metric, statistic in statistics.items():
            if metric not in ("SAMPLE_DATA", "bertscore_f1"):
                sample[metric] = (
                    rng.random()
                    if statistic.name == "mean"
                    else counts
                    if statistic.name == "micro_f1"
                    else pair
                )
        samples.append(sample)
    return samples, f", {len(labels)} labels" if "f1_macro" in statistics else ""


def _one(rng: random.Random, labels: list[str]) -> tuple[str, str]:
    gold = labels[int(rng.paretovariate(1)) % len(labels)]  # few frequent labels, many rare ones
    return gold, gold if rng.random() < 0.6 else rng.choice(labels)


def _several(rng: random.Random, labels: list[str]) -> tuple[list[str], list[str]]:
    pairs = [_one(rng, labels) for _ in range(3)]
    return sorted({pair[0] for pair in pairs}), sorted({pair[1] for pair in pairs})


def vectorised(share: int) -> dict[str, Any]:
    from medtasks_ext.stats.bootstrap import task_intervals
    from medtasks_ext.stats.statistic import counts_of
    from medtasks_ext.suites.scores import t_interval_of_bootstrap_mean

    inputs = [
        (dataset.id, task.aggregation(), _samples(dataset, task, share)[0]) for dataset, task in _tasks()
    ]
    before, metrics = peak_gigabytes(), 0
    began = time.perf_counter()
    for _, aggregations, samples in inputs:
        counts_of(samples, aggregations)
    counting = time.perf_counter() - began
    began, busy = time.perf_counter(), time.process_time()
    for name, aggregations, samples in inputs:
        metrics += len(task_intervals(samples, aggregations, name, t_interval_of_bootstrap_mean)[0])
    return {
        "seconds": time.perf_counter() - began,
        "processor": time.process_time() - busy,
        "counting": counting,
        "tasks": len(inputs),
        "documents": sum(len(samples) for _, _, samples in inputs),
        "metrics": metrics,
        "before": before,
        "peak": peak_gigabytes(),
    }


def loop(share: int) -> list[dict[str, Any]]:
    """Draw documents, call every aggregation on them; some resamples, scaled up to 1,000."""
    from medtasks_ext.stats.bootstrap import RESAMPLES, task_intervals
    from medtasks_ext.suites.scores import t_interval_of_bootstrap_mean

    rows = []
    for dataset, task in _tasks(LOOPED):
        samples, n_labels = _samples(dataset, task, share)
        aggregations = task.aggregation()
        columns = {name: [sample[name] for sample in samples] for name in aggregations if name in samples[0]}
        rng, n = random.Random(0), len(samples)
        began = time.perf_counter()
        for _ in range(LOOPS):
            drawn = rng.choices(range(n), k=n)
            for metric, items in columns.items():
                aggregations[metric]([items[place] for place in drawn])
        plain = (time.perf_counter() - began) * RESAMPLES / LOOPS
        began = time.perf_counter()
        task_intervals(samples, aggregations, dataset.id, t_interval_of_bootstrap_mean)
        found = {"vectorised": time.perf_counter() - began, "loop": plain}
        rows.append({"task": dataset.id, "n": n, "labels": n_labels, **found})
    return rows
