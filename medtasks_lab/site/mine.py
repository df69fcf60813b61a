"""The page on which people place results of their own: what it compares them with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from medtasks_ext.registry.strategies import STRATEGIES, strategy_title
from medtasks_ext.report.standing import FEWEST_DOCUMENTS, FEWEST_TASKS
from medtasks_ext.results.conditions import facts, of_the_paper
from medtasks_ext.results.rule_table import budget_record, facts_record, rule_table
from medtasks_lab.site.boards import Scores, is_whole, whole_of
from medtasks_lab.submissions.record import SCHEMA as SUBMISSION

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Dataset


def mine_page(scores: Scores) -> Json:
    """Rules, how papers asked, and what they print, task by task."""
    tasks = scores.site.tasks
    suites = [suite for suite in scores.whole if suite is not None]
    datasets = {
        name: dataset
        for name, dataset in tasks.datasets.items()
        if dataset.suite.id in suites and dataset.of_paper and dataset.suite.published is not None
    }
    ways = _Ways()
    return {
        "kind": "mine",
        "title": "Where do your results stand?",
        "table": rule_table(),
        "submission_schema": SUBMISSION,
        "fewest": [FEWEST_TASKS, FEWEST_DOCUMENTS],
        "strategies": [[name, strategy_title(name)] for name in scores.strategies],
        "tasks": {
            dataset.task(strategy): [name, strategy]
            for name, dataset in datasets.items()
            for strategy in STRATEGIES
        },
        "datasets": {
            name: [
                dataset.suite.id,
                dataset.metadata.name,
                dataset.version.partition("-")[0],
                {strategy: ways.place(_asked(dataset, strategy)) for strategy in scores.strategies},
                budget_record(dataset),
            ]
            for name, dataset in datasets.items()
        },
        "ways": ways.found,
        "suites": {
            suite: {
                "title": tasks.suites[suite].title,
                "datasets": scores.whole[suite].datasets,
                "parts": scores.whole[suite].parts,
                "counted": sorted(scores.whole[suite].counted),
                "published": [
                    [
                        line.title,
                        line.page,
                        line.facts.get("size"),
                        {strategy: _of(scores, place, suite, strategy) for strategy in scores.strategies},
                    ]
                    for place, line in enumerate(scores.site.lines)
                    if line.published and line.entry.paper == suite
                ],
            }
            for suite in suites
        },
    }


@dataclass
class _Ways:
    """Ways in which papers asked, each once."""

    found: list[Json] = field(default_factory=list)

    def place(self, asked: Json) -> int:
        if asked not in self.found:
            self.found.append(asked)
        return self.found.index(asked)


def _asked(dataset: Dataset, strategy: str) -> Json:
    """How the paper asked for scores of a strategy: what it calls zero-shot may ask to reason first."""
    asked = dataset.metadata.published_strategy if strategy == "zero_shot" else strategy
    return facts_record(facts(of_the_paper(dataset, asked)))


def _of(scores: Scores, place: int, suite: str, strategy: str) -> list[object]:
    """The whole suite's score, if it is ranked there, and the scores of its tasks, in their order."""
    row = scores.rows.get((place, strategy, scores.whole[suite]))
    whole = None if row is None or row.score is None or not is_whole(row) else whole_of(row.score)
    found = {
        item.dataset.id: item.score
        for item in scores.site.lines[place].entry.experiments.values()
        if item.strategy == strategy and item.score is not None
    }
    return [whole, [found.get(name) for name in scores.whole[suite].datasets]]
