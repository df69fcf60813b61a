"""The pages of datasets: what each asks, who is best, how far from the ceiling, its terms, how to run it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from statistics import median
from typing import TYPE_CHECKING, Any

from medtasks_ext.errors import MedtasksError
from medtasks_ext.metrics.known_defects import defects_of
from medtasks_ext.prompts.official.choice import prompt_source_of
from medtasks_ext.registry.catalogue import rows_words, scored_by_words, terms_words
from medtasks_ext.registry.citations import entries_of
from medtasks_ext.registry.strategies import strategy_title
from medtasks_ext.report.axes import title
from medtasks_lab.site.boards import Scores, axis_title, whole_of

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Dataset, Registry
    from medtasks_lab.site.gather import BoardLine

#: Models that a page lists.
_LISTED = 30
#: Characters of a sample prompt that a page shows.
_LONGEST = 6000


def dataset_pages(scores: Scores) -> dict[str, Json]:
    """Dataset -> what its page holds."""
    tasks, found = scores.site.tasks, _scored(scores)
    return {name: _page(scores, dataset, found.get(name, {})) for name, dataset in tasks.datasets.items()}


def index(pages: dict[str, Json]) -> Json:
    """The page that lists them: name, suite, language, kind, stage, access, rows, best score, ceiling."""
    return {
        "kind": "datasets",
        "title": "Datasets",
        "datasets": [
            [
                name,
                page["title"],
                page["suite"][1],
                *(page["axes"][axis] for axis in ("language", "task_type", "stage", "specialties")),
                page["access"],
                page["n"],
                page["boards"][0]["best"][0][:3] if page["boards"] else None,
                page["ceiling"],
            ]
            for name, page in pages.items()
        ],
    }


def _scored(scores: Scores) -> dict[str, dict[str, list[tuple[BoardLine, int]]]]:
    """Dataset -> strategy -> lines that may stand beside those of its paper, with scores, the best first."""
    found: dict[str, dict[str, list[tuple[BoardLine, int]]]] = {}
    for line in scores.site.lines:
        for item in line.entry.experiments.values():
            if item.score is None or not line.is_proven(item):
                continue
            if not line.published and (line.unlike(item) or not item.coverage.whole):
                continue
            by_strategy = found.setdefault(item.dataset.id, {})
            by_strategy.setdefault(item.strategy, []).append((line, whole_of(item.score)))
    for by_strategy in found.values():
        for some in by_strategy.values():
            some.sort(key=lambda pair: -pair[1])
    return found


def _page(scores: Scores, dataset: Dataset, found: dict[str, list[tuple[BoardLine, int]]]) -> Json:
    record = dataset.metadata
    highest = record.oracle_max
    own = {
        axis: ", ".join(title(axis, value) for value in dataset.values(dataset.suite, axis))
        for axis in dataset.suite.axes
    }
    return {
        "kind": "dataset",
        "title": record.name,
        "id": dataset.id,
        "summary": record.summary,
        "suite": [dataset.suite.id, dataset.suite.title],
        "axes": {
            axis: ", ".join(title(axis, value) for value in record.axis(axis))
            for axis in ("language", "task_type", "stage", "specialties", "document_types")
        },
        "own_axes": [
            [axis_title(dataset.suite.title_of(axis)), words] for axis, words in own.items() if words
        ],
        "access": record.access,
        "n": record.n_test,
        "ceiling": highest if isinstance(highest, float) else None,
        "facts": [
            ["Score", f"{record.primary_metric}{scored_by_words(dataset)}"],
            ["Version", dataset.version],
            ["Tokens of an answer in the suite", f"{budget:,}" if (budget := record.official_budget) else ""],
            ["Rows", "; ".join(rows_words(dataset)) or f"you bring them: {record.access}"],
            ["Where", record.url],
            ["Terms", terms_words(record)],
            ["Read by native speakers", "; ".join(record.reviews)],
            ["Cite", "; ".join(entry.reference for entry in entries_of([dataset], []).values())],
        ],
        "defects": _defects(dataset),
        "scorer": [*map(list, _of_the_scorer(dataset))],
        "boards": [_board(strategy, some) for strategy in scores.strategies if (some := found.get(strategy))],
        "prompt": sample_prompt(scores.site.tasks, dataset),
        "run": [
            f"medtasks preview {dataset.id} --data sample",
            f"medtasks run --tasks {dataset.id} --model vllm --model_args pretrained=ORG/MODEL",
            f"lm_eval --tasks {dataset.id} --model vllm --model_args pretrained=ORG/MODEL "
            "--batch_size auto --apply_chat_template",
        ],
    }


def _defects(dataset: Dataset) -> list[str]:
    """What is known to be odd, and what nobody could settle."""
    record, found = dataset.metadata, list(dataset.metadata.open_questions)
    if record.oracle_max == "per_document":
        found.insert(0, "What a perfect answer gets depends on the rows.")
    elif record.oracle_max == "unbounded":
        found.insert(0, "The score has no upper end.")
    elif record.oracle_max != 1:
        found.insert(0, f"By the official rule a perfect answer gets {record.oracle_max}.")
    if record.gold_loss:
        found.insert(
            0, f"The official reader loses up to {record.gold_loss:.0%} of the gold answers themselves."
        )
    if record.draft:
        found.insert(0, f"A draft, in no group: {record.draft}")
    return found


def _of_the_scorer(dataset: Dataset) -> Iterator[tuple[str, str, str]]:
    """Rule, example, and what is computed beside it, of each known defect of its official scorer."""
    for defect, group in defects_of(dataset):
        yield _plain(defect.rule), _plain(defect.example), _plain(defect.beside or ", ".join(group.beside))


def _plain(words: str) -> str:
    """Text of a page of the documentation, with quotes in place of its marks."""
    return re.sub(r"`([^`]*)`", "“\\1”", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", words))


def _board(strategy: str, some: list[tuple[BoardLine, int]]) -> Json:
    values = [score for _, score in some]
    return {
        "strategy": strategy_title(strategy),
        "n": len(some),
        "median": int(median(values)),
        "all": values,
        "best": [
            [
                line.title,
                line.page,
                score,
                1 + sum(value > score for value in values),
                line.facts.get("size"),
                line.facts.get("access"),
                int(line.published),
            ]
            for line, score in some[:_LISTED]
        ],
    }


@cache
def sample_prompt(tasks: Registry, dataset: Dataset) -> list[Any] | None:
    """A prompt over a bundled synthetic row in our own words, its gold answer, and how much was cut.

    None where it has no such row. It is rendered once for all sites of a process.
    """
    from medtasks_ext.runner.evaluate import Settings, build_task
    from medtasks_ext.runner.prompts import rendered_prompt

    if not dataset.sample_file.is_file():
        return None
    settings = Settings(data="sample", prompts=prompt_source_of("own"))
    try:
        task = build_task(tasks, dataset.id, settings)
        document = task.eval_docs[0]
        prompt = rendered_prompt(task, document, settings, None)
    except MedtasksError:
        return None
    return [prompt[:_LONGEST], str(document["target"])[:_LONGEST], max(0, len(prompt) - _LONGEST)]
