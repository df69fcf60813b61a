"""The pages of datasets: what each asks, who is best, how far from the ceiling, its terms, how to run it."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from medtasks_ext.registry.columns import entries_of
from medtasks_ext.registry.metadata import terms_words
from medtasks_ext.registry.strategies import strategy_title
from medtasks_ext.registry.tasks import rows_words, scored_by_words
from medtasks_ext.report.axes import title
from medtasks_ext.report.site.boards import Scores, axis_title, whole_of

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Dataset
    from medtasks_ext.registry.metadata import Metadata
    from medtasks_ext.report.site.gather import BoardLine

_LISTED = 30  # models on a page
_AXES = ("language", "task_type", "stage", "specialties", "document_types")


def dataset_pages(scores: Scores) -> dict[str, Json]:
    found: dict[tuple[str, str], list[tuple[BoardLine, int]]] = {}
    for line in scores.site.lines:
        for item in line.entry.experiments.values():
            firm = item.score is not None and line.is_proven(item) and not line.apart(item)
            if item.score is not None and firm and (line.published or not item.in_part):
                place = (item.dataset.id, item.strategy)
                found.setdefault(place, []).append((line, whole_of(item.score)))
    return {name: _page(scores, dataset, found) for name, dataset in scores.site.tasks.datasets.items()}


def index(pages: dict[str, Json]) -> Json:
    rows = []
    for name, page in pages.items():
        best = page["boards"][0]["best"][0][:3] if page["boards"] else None
        axes = [page["axes"][axis] for axis in _AXES[:4]]
        rows.append(
            [name, page["title"], page["suite"][1], *axes, page["access"], page["n"], best, page["ceiling"]]
        )
    return {"kind": "datasets", "title": "Datasets", "datasets": rows}


def _page(
    scores: Scores, dataset: Dataset, found: dict[tuple[str, str], list[tuple[BoardLine, int]]]
) -> Json:
    record, suite = dataset.metadata, dataset.suite
    return {
        "kind": "dataset",
        "title": record.name,
        "summary": record.summary,
        "suite": [suite.id, suite.title],
        "axes": {axis: ", ".join(title(axis, value) for value in record.axis(axis)) for axis in _AXES},
        "own_axes": [
            [axis_title(suite.title_of(axis)), ", ".join(title(axis, value) for value in values)]
            for axis in suite.axes
            if (values := dataset.values(suite, axis))
        ],
        "access": record.access,
        "n": record.n_test,
        "ceiling": record.oracle_max if isinstance(record.oracle_max, float) else None,
        "facts": [
            ["Score", f"{record.primary_metric}{scored_by_words(dataset)}"],
            ["Version", dataset.version],
            ["Tokens of an answer in the suite", f"{budget:,}" if (budget := record.official_budget) else ""],
            ["Rows", "; ".join(rows_words(dataset)) or f"you bring them: {record.access}"],
            ["Where", record.url],
            ["Terms", terms_words(record)],
            ["Cite", "; ".join(entry.reference for entry in entries_of([dataset], []).values())],
        ],
        "unsettled": _unsettled(record),
        "boards": [
            _board(strategy, some)
            for strategy in scores.strategies
            if (some := found.get((dataset.id, strategy)))
        ],
        "run": [
            f"medtasks preview {dataset.id} --data sample",
            f"medtasks run --tasks {dataset.id} --model vllm --model_args pretrained=ORG/MODEL",
            f"lm_eval --tasks {dataset.id} --model vllm --model_args pretrained=ORG/MODEL "
            "--batch_size auto --apply_chat_template",
        ],
    }


def _unsettled(record: Metadata) -> list[str]:
    loss = record.gold_loss
    found = [
        f"A draft, in no group: {record.draft}" if record.draft else "",
        f"The official reader loses up to {loss:.0%} of the gold answers themselves." if loss else "",
    ]
    return [*filter(None, found), *record.open_questions]


def _board(strategy: str, some: list[tuple[BoardLine, int]]) -> Json:
    some = sorted(some, key=lambda pair: -pair[1])
    values = [score for _, score in some]
    best = []
    for line, score in some[:_LISTED]:
        rank = 1 + sum(value > score for value in values)
        facts = line.facts.get("size"), line.facts.get("access"), int(line.published)
        best.append([line.title, line.page, score, rank, *facts])
    return {"strategy": strategy_title(strategy), "n": len(some), "median": int(median(values)), "best": best}
