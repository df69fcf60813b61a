"""Records of submissions with invented scores, for tests of pages."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from medtasks_ext.registry import registry
from medtasks_ext.report.submissions import About, Submission, TaskResult
from medtasks_ext.results.conditions import of_the_paper
from medtasks_ext.runs.conditions import Conditions


def write_submission(
    root: Path, model: str, score: float, *, suite: str = "bridge", first: int | None = None, **asked: Any
) -> Submission:
    """A submission of the first zero-shot tasks of a suite, or all, asked as in its paper but for `asked`."""
    datasets = [
        item for item in registry().datasets.values() if item.metadata.suite == suite and item.of_paper
    ]
    record = Submission(
        model=model,
        date="2026-05-01",
        about=About(access="open", domain="medical", reasoning="no"),
        run=Conditions(engine="vllm", template=True),
        tasks={item.task("zero_shot"): _task(item, score, asked) for item in datasets[:first]},
    )
    folder = root / model / record.date
    folder.mkdir(parents=True)
    record.write(folder, {})
    return record


def _task(dataset: Any, score: float, asked: dict[str, Any]) -> TaskResult:
    n, paper = dataset.n_documents, of_the_paper(dataset, "zero_shot")
    said = {"wording": "official", "prompt": None, **asked}
    conditions = replace(
        paper, version=dataset.version, origin="local", n_of_suite=n, n=n, n_here=n, **said
    )  # fmt: skip
    return TaskResult(n=n, score=score, interval=(score, score), valid=1.0, conditions=conditions)
