"""Records of submissions with invented scores, marked as such, for tests of pages."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from medtasks_ext.registry import registry
from medtasks_ext.results.conditions import of_the_paper
from medtasks_ext.results.document_scores import score_statistic
from medtasks_ext.runs.conditions import Layout, RunConditions, Wording
from medtasks_lab.submissions.record import About, Spread, Submission, TaskResult


def write_submission(
    root: Path, model: str, score: float, *, suite: str = "bridge", first: int | None = None, **asked: Any
) -> Submission:
    """A submission of zero-shot tasks of a suite, asked as its paper asked them.

    Args:
        root: folder of submissions.
        model: ORG/MODEL.
        score: of every task.
        suite: whose tasks.
        first: how many of them; by default all.
        asked: `wording`, `prompt` (its hash), `context`, `inputs_cut` where they differ from the paper's.
    """
    datasets = [
        item for item in registry().datasets.values() if item.metadata.suite == suite and item.of_paper
    ]
    record = Submission(
        model=model,
        date="2026-05-01",
        about=About(access="open", domain="medical", reasoning="no"),
        invented="for a test",
        run=RunConditions(engine="vllm", layout=Layout(chat_template=True)),
        tasks={item.task("zero_shot"): _task(item, score, asked) for item in datasets[:first]},
        heads={},
    )
    folder = root / model / record.date
    folder.mkdir(parents=True)
    record.write(folder)
    return record


def _task(dataset: Any, score: float, asked: dict[str, Any]) -> TaskResult:
    n, paper = dataset.n_documents, of_the_paper(dataset, "zero_shot")
    return TaskResult(
        n=n,
        statistic=score_statistic(dataset).name,
        score=score,
        valid=1.0,
        spread=Spread(low=score, high=score, sd=0.01),
        conditions=replace(
            paper,
            asked=replace(
                paper.asked,
                version=dataset.version,
                rows=replace(paper.asked.rows, origin="local"),
                wording=Wording(asked.get("wording", "official"), hash=asked.get("prompt")),
                context=asked.get("context"),
            ),
            observed=replace(paper.observed, n_here=n, inputs_cut=asked.get("inputs_cut")),
        ),
    )
