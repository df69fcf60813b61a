"""Reports on invented runs over all tasks of the registry, made as `medtasks report` makes them."""

from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from medtasks_ext.registry import STRATEGIES, Registry, registry
from medtasks_ext.report import gather, payload
from medtasks_ext.results.experiments import Entry, Experiment, Fault
from medtasks_ext.results.published import published_entries
from medtasks_ext.results.reading import Results
from medtasks_ext.runs.conditions import Conditions
from medtasks_ext.stats.bootstrap import RESAMPLES, percentile_interval

MODELS = ("meta-llama/Llama-3.3-70B-Instruct", "华佗 HuatuoGPT-o1-72B", "google/gemini-2.5-flash")
#: of the invented runs
SUITES = ("bridge", "medhelm", "clinicbench", "mlb")
#: Scores by level of two runs of a suite and strategy, and one by a department.
_OF_LABEL = "entry axis value score interval_low interval_high tasks documents score_of_all documents_of_all"
LABELS = [
    {"strategy": 0, "suite": "mlb", "sources": ["a file of labels"] * (row[1] == "department")}
    | dict(zip(_OF_LABEL.split(), row, strict=True))
    for row in (
        (0, "difficulty", "hard", 0.31, 0.25, 0.35, 3, 30, 0.6, 80),
        (1, "difficulty", "hard", 0.42, 0.4, 0.5, 3, 30, 0.5, 80),
        (0, "difficulty", "easy", 0.77, 0.7, 0.8, 3, 50, 0.6, 80),
        (1, "difficulty", "easy", 0.58, None, None, 2, 40, 0.5, 70),
        (0, "department", "<b>Ward</b>", 0.5, None, None, 1, 4, 0.4, 9),
    )
]
FAULT = Fault("runs/b/samples_bridge_mie.jsonl:17", "the line is cut off", "the same command goes on")


def made_report() -> dict[str, Any]:
    """The payload of a report on three invented runs, beside five published models of each suite.

    The first two runs have everything. The third is of plain lm_eval, lacks ClinicBench and every ninth
    dataset of BRIDGE.
    """
    entries = [made_entry(index) for index in range(len(MODELS))]
    with mock.patch.multiple(
        gather,
        read_results=lambda *_: Results(entries, [FAULT]),
        published_entries=_some_published,
    ):
        report = gather.gather([Path("runs")], registry(), "all")
    made = payload.payload(report)
    made["labels"] = LABELS
    return made


def _some_published(tasks: Registry) -> list[Entry]:
    by_suite: dict[str, list[Entry]] = {}
    for entry in published_entries(tasks):
        by_suite.setdefault(entry.paper, []).append(entry)
    return [entry for found in by_suite.values() for entry in found[:5]]


def made_entry(index: int = 0) -> Entry:
    """An invented run over all tasks of `SUITES`; the third lacks some of them."""
    levels = np.random.default_rng(7).uniform(0.25, 0.85, len(registry().datasets))
    rng = np.random.default_rng(index)
    partial = index == 2
    skill = rng.normal(0, 0.07)
    experiments = {}
    for place, dataset in enumerate(registry().datasets.values()):
        suite = dataset.metadata.suite
        if suite not in SUITES:
            continue
        if partial and (suite == "clinicbench" or (suite == "bridge" and place % 9 == 0)):
            continue
        for strategy in STRATEGIES:
            score = float(np.clip(levels[place] + skill + rng.normal(0, 0.06), 0.01, 0.99))
            draws = np.clip(rng.normal(score, rng.uniform(0.004, 0.03), RESAMPLES), 0, 1)
            n = dataset.metadata.n_test or 100
            cut = int(n * max(0, rng.normal(-0.05, 0.08)))
            experiments[dataset.task(strategy)] = Experiment(
                task=dataset.task(strategy),
                dataset=dataset,
                metrics={
                    "score": score, "valid": 1 - abs(rng.normal(0, 0.02)) - cut / n,
                    "unclosed_reasoning": cut / n / 2,
                },
                intervals={"score": percentile_interval(draws)},
                n=n,
                conditions=Conditions(
                    strategy=strategy, version="1-A", source="suite",
                    origin="hub", revision="4bc0", rows="77ab", wording="own", prompt="1f3a", n=n, n_here=n,
                    answers_cut=cut, inputs_cut=0,
                ),
                loaded={"n_test": n},
                tokens=None if partial else {"input": n * 900, "output": n * 150},
                read_resampled=lambda draws=draws: draws,  # type: ignore[misc]
            )  # fmt: skip
    return Entry(
        model=MODELS[index], label=MODELS[index], kind="lm_eval" if partial else "medtasks",
        conditions=Conditions(decoding={"temperature": 0}),
        experiments=experiments, notes=("the chat template refused a system turn",) if index == 1 else (),
        manifest={"tasks": {"clinicbench_ddi": {"state": "failed", "error": "out of memory"}}},
    )  # fmt: skip
