"""The page of a model: where it stands, by axis too, its scores and their conditions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from medtasks_ext.registry.strategies import strategy_title
from medtasks_ext.report.axes import axis_titles, title
from medtasks_ext.report.site.boards import Scores, axis_title, facts_of_lines, whole_of
from medtasks_ext.report.submissions.check import levels_words

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.report.groups import Group
    from medtasks_ext.report.site.gather import BoardLine
    from medtasks_ext.results.experiments import Experiment

_FACT_TITLES = {
    "organisation": "Organisation",
    "size": "Parameters, billions",
    "access": "Weights",
    "domain": "Domain",
    "reasoning": "Reasons before it answers",
    "date": "Released",
    "license": "Licence",
    "price_in": "Input, USD per million tokens",
    "price": "Output, USD per million tokens",
}
#: Conditions that the table of tasks has in columns of their own.
_IN_COLUMNS = ("strategy", "n", "n_of_suite", "differs", "documents", "judged")
#: Ranks among fewer lines say nothing of single values.
_FEWEST_LINES = 5
#: Axes that people look for, in this order; those of a suite follow, others say nothing of models.
_AXES = ("language", "task_type", "specialties", "stage")
_NO_AXES = ("suite", "access")


def model_page(scores: Scores, lines: Sequence[BoardLine]) -> Json:
    facts = facts_of_lines(lines)
    first = next((line for line in lines if not line.published), lines[0])
    return {
        "kind": "model",
        "title": first.entry.model,
        "facts": [[words, facts[name]] for name, words in _FACT_TITLES.items() if name in facts],
        "hub_id": next((hub for line in lines if (hub := line.entry.details.get("hub_id"))), None),
        "lines": [_line(scores, line) for line in lines],
    }


def _line(scores: Scores, line: BoardLine) -> Json:
    words: dict[str, int] = {"": 0}
    items = [item for item in line.entry.experiments.values() if item.score is not None]
    items.sort(key=lambda item: (item.dataset.suite.title, item.dataset.metadata.name, item.strategy))
    place, record = scores.site.lines.index(line), line.record
    if record is None:
        paper = scores.site.tasks.suites[line.entry.paper].title
        source = [["Source", f"published scores of {paper}"], *(["Note", note] for note in line.entry.notes)]
    else:
        trust = levels_words(line.checked.verdicts.values())
        source = [["Source", "submission"], ["Trust", trust], ["Submitted", record.date]]
    settings = {} if record is None else line.entry.words | dict(sorted(record.versions.items()))
    return {
        "label": line.title,
        "published": line.published,
        "source": source,
        "places": list(_places(scores, place)),
        "tasks": [_task(line, item, words) for item in items],
        "words": list(words),
        "settings": [*map(list, settings.items())],
    }


def _places(scores: Scores, place: int) -> Iterator[Json]:
    """Where it stands in each suite and strategy; by axis where it has a rank."""
    for suite, whole in scores.whole.items():
        for strategy in scores.strategies:
            if cell := scores.cells.get((place, strategy, whole)):
                rank = scores.rank(strategy, whole, place)
                row = {
                    "suite": suite,
                    "title": scores.site.tasks.suites[suite].title,
                    "strategy": strategy_title(strategy),
                    "score": cell.value,
                    "interval": cell.interval,
                    "tasks": cell.tasks,
                    "of": whole.n_tasks,
                    "rank": rank,
                    "otherwise": cell.apart,
                    "unproven": not cell.proven,
                }
                enough = rank and rank[1] >= _FEWEST_LINES
                yield row | ({"axes": _axes(scores, place, whole, strategy)} if enough else {})


def _task(line: BoardLine, item: Experiment, words: dict[str, int]) -> list[Any]:
    """Its row; last come places in `words` of what differs from the paper, of trust and of conditions."""
    assert item.score is not None  # the caller looked
    interval, valid = item.intervals.get("score"), item.metrics.get("valid")
    conditions = "; ".join(
        f"{name.replace('_', ' ')}: {value}"
        for name, value in item.shown.items()
        if value not in (None, "", False) and name not in _IN_COLUMNS
    )
    said = line.apart(item), "" if line.published else line.checked.verdicts[item.task], conditions
    return [
        item.dataset.suite.title,
        item.dataset.metadata.name,
        strategy_title(item.strategy),
        whole_of(item.score),
        None if interval is None else [whole_of(interval.low), whole_of(interval.high)],
        item.n,
        item.dataset.n_documents,
        None if valid is None else whole_of(valid),
        item.dataset.id,
        *(words.setdefault(one, len(words)) for one in said),
    ]


def _axes(scores: Scores, place: int, whole: Group, strategy: str) -> list[Any]:
    """A line's ranks by axis of a suite."""
    titles, found = axis_titles(), dict[str, list[Any]]()
    for group in scores.groups:
        rank = scores.rank(strategy, group, place)
        if group.suite == whole.suite and group.axis not in _NO_AXES and rank and rank[1] >= _FEWEST_LINES:
            cell, middle = scores.cells[place, strategy, group], scores.ranks[strategy, group].middle
            row = [title(group.axis, group.value), cell.tasks, cell.value, middle, *rank]
            found.setdefault(group.axis, []).append(row)
    shown = [axis for axis in dict.fromkeys([*_AXES, *titles]) if axis in found]
    return [[axis_title(titles[axis]), found[axis]] for axis in shown]
