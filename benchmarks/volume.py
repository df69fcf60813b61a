"""Scoring one model's answers to all 87 BRIDGE test files, by two processes.

The files are synthetic and have the published sizes: documents per task from the tasks' metadata, mean
words of input and output from `tests/rows/published_lengths.csv` (BRIDGE, arXiv 2504.19467, Table S9; a
Chinese or Japanese character is a word). An answer is the gold, another document's gold, the same after some
prose, or prose of the gold's length. Where NLTK's Punkt data is not installed, empty parameters stand
in for it: sentences are then split as fast, though not as well.
"""

from __future__ import annotations

import csv
import json
import logging
import os
import random
import tempfile
import time
from collections import defaultdict
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common import CHARACTERS, WORDS, Row, fresh, peak_gigabytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from medtasks_ext.registry import Dataset

SECONDS, PROCESSES = 120, 2
LENGTHS = Path(__file__).parents[1] / "tests" / "rows" / "published_lengths.csv"
FAMILIES = {
    "label": "labels",
    "label_list": "label and code lists",
    "code_list": "label and code lists",
    "text": "texts",
    "passages": "texts",
}
_rng = random.Random(1)
LONG = {"words": _rng.choices(WORDS, k=500_000), "characters": _rng.choices(CHARACTERS, k=500_000)}


def run(quick: bool) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        done = fresh("volume", "measure", env={"MEDTASKS_DATA_DIR": folder}, share=10 if quick else 1)
    tasks = done["tasks"]
    n = sum(task["n"] for task in tasks)
    wall = _makespan(tasks, "read", "score", "aggregate")
    name = f"read and score {n:,} answers to {len(tasks)} BRIDGE tasks, {PROCESSES} processes"
    figures = f"{wall:.0f} s, {n / wall:,.0f}/s ({done['peak']:.1f} GB in one process"
    figures += ")" if done["punkt"] else "; empty Punkt parameters)"
    yield Row(name, figures, f"under {SECONDS} s", wall < SECONDS)
    for family in sorted({task["family"] for task in tasks}):
        part = [task for task in tasks if task["family"] == family]
        seconds = {key: sum(task[key] for task in part) for key in ("read", "score", "aggregate")}
        figures = f"{sum(seconds.values()):.1f} s of one core ("
        figures += ", ".join(f"{key} {value:.1f}" for key, value in seconds.items()) + ")"
        yield Row(f"  of it {family}: {sum(task['n'] for task in part):,} answers", figures)
    yield Row("  besides, files to documents", f"{_makespan(tasks, 'load'):.0f} s")
    yield Row("  besides, intervals of 1,000 resamples", f"{_makespan(tasks, 'intervals'):.1f} s")


def _makespan(tasks: list[dict[str, Any]], *parts: str) -> float:
    """Seconds of the busier process."""
    busy: dict[int, float] = defaultdict(float)
    for task in tasks:
        busy[task["process"]] += sum(task[part] for part in parts)
    return max(busy.values())


def measure(share: int) -> dict[str, Any]:
    from medtasks_ext.metrics.generation import tokeniser
    from medtasks_ext.registry import registry

    logging.getLogger("medtasks_ext").setLevel(logging.ERROR)
    punkt = tokeniser("en") is not None
    if not punkt:
        _stand_in_for_punkt(Path(os.environ["MEDTASKS_DATA_DIR"]) / "nltk")

    datasets = [item for item in registry().datasets.values() if item.metadata.suite == "bridge"]
    datasets.sort(key=lambda item: -item.metadata.n_test * _words()[item.id][1])
    with get_context("spawn").Pool(PROCESSES) as pool:
        jobs = [(str(dataset.folder), share) for dataset in datasets]
        tasks = pool.starmap(_score, jobs, chunksize=1)
    return {"tasks": tasks, "peak": max(task["peak"] for task in tasks), "punkt": punkt}


def _stand_in_for_punkt(folder: Path) -> None:
    """Punkt without parameters, where NLTK of the processes to come will find it."""
    for language in ("english", "french"):
        place = folder / "tokenizers" / "punkt_tab" / language
        place.mkdir(parents=True)
        for name in ("collocations.tab", "sent_starters.txt", "abbrev_types.txt", "ortho_context.tab"):
            (place / name).touch()
    os.environ["NLTK_DATA"] = str(folder)


def _words() -> dict[str, tuple[float, float]]:
    """BRIDGE's datasets -> mean words of input and of output."""
    rows = csv.DictReader(LENGTHS.open(encoding="utf-8", newline=""))
    return {
        row["id"]: (float(row["input"]), float(row["output"]))
        for row in rows
        if row["id"].startswith("bridge_") and row["output"]
    }


def _score(folder: str, share: int) -> dict[str, Any]:
    """Write, load and score one task; seconds of each part."""
    from medtasks_ext.registry import Dataset, registry
    from medtasks_ext.runner.evaluate import Settings, build_task
    from medtasks_ext.stats.bootstrap import task_intervals
    from medtasks_ext.suites.scores import t_interval_of_bootstrap_mean

    dataset = Dataset(Path(folder))
    _write(dataset, share)
    times = [time.perf_counter()]
    task = build_task(registry(), dataset.id, Settings(data="local"))
    documents = list(task.eval_docs)
    times.append(time.perf_counter())
    responses = _responses(documents, dataset)
    arguments = task.config.filter_list[0]["filter"][0]
    reader = arguments["function"](answer=arguments["answer"])
    times.append(time.perf_counter())
    parsed = reader.apply([[response] for response in responses], documents)
    times.append(time.perf_counter())
    results = [
        task.process_results(document, [answer]) for document, answer in zip(documents, parsed, strict=True)
    ]
    times.append(time.perf_counter())
    aggregations = task.aggregation()
    for metric in results[0]:
        aggregations[metric]([result[metric] for result in results])
    times.append(time.perf_counter())
    samples = [{"doc_id": i, "doc": documents[i], **result} for i, result in enumerate(results)]
    task_intervals(samples, aggregations, dataset.id, t_interval_of_bootstrap_mean)
    times.append(time.perf_counter())
    load, _, read, score, aggregate, intervals = (after - before for before, after in pairwise(times))
    return {
        "family": FAMILIES.get(arguments["answer"]["kind"], "events and relations"),
        "n": len(documents),
        "load": load,
        "read": read,
        "score": score,
        "aggregate": aggregate,
        "intervals": intervals,
        "process": os.getpid(),
        "peak": peak_gigabytes(),
    }


def _write(dataset: Dataset, share: int) -> None:
    """The test file in BRIDGE's layout."""
    from medtasks_ext.prompts import load_documents

    rng, language = random.Random(dataset.id), dataset.metadata.language
    words_in, words_out = _words()[dataset.id]
    config = dataset.blocks
    golds = [document["target"] for document in load_documents(dataset, cot=False, origin="sample")["test"]]
    name, kind = config["rows"]["official_name"], config["answer"]["kind"]
    rows = [
        {
            "task": name,
            "split": "test",
            "id": str(number),
            "input": _text(rng, language, words_in),
            "output": _gold(rng, language, kind, golds, words_out),
        }
        for number in range(max(dataset.metadata.n_test // share, 2))
    ]
    path = Path(os.environ["MEDTASKS_DATA_DIR"]) / "bridge" / f"{name}.SFT.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8")


def _gold(rng: random.Random, language: str, kind: str, golds: list[str], n_words: float) -> str:
    """Text of the published length, lines of events up to it, or a label of the sample rows."""
    if kind == "text":
        return _text(rng, language, n_words)
    gold = rng.choice(golds)
    if kind in FAMILIES:
        return gold
    while _length(gold, language) < n_words:
        gold += "\n" + rng.choice(golds)
    return gold


def _text(rng: random.Random, language: str, n_words: float) -> str:
    """Between half and one and a half times as many words."""
    n = max(1, round(rng.uniform(0.5, 1.5) * n_words))
    start = rng.randrange(400_000)
    if language in ("zh", "ja"):
        return "".join(LONG["characters"][start : start + n])
    return " ".join(LONG["words"][start : start + n])


def _length(text: str, language: str) -> int:
    return len(text) if language in ("zh", "ja") else len(text.split())


def _responses(documents: list[Any], dataset: Dataset) -> list[str]:
    rng, language = random.Random(0), dataset.metadata.language
    _, words_out = _words()[dataset.id]
    forms = (
        lambda i: documents[i]["target"],
        lambda i: documents[i - 1]["target"],
        lambda i: f"{_text(rng, language, 20)}\n{documents[i - 1]['target']}",
        lambda i: _text(rng, language, words_out),
    )
    return [forms[i % len(forms)](i) for i in range(len(documents))]
