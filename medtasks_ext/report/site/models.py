"""The page of a model: where it stands, its strong and weak sides, its scores and their conditions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from medtasks_ext.registry.strategies import strategy_title
from medtasks_ext.report.axes import axis_titles, order, title
from medtasks_ext.report.site.boards import Scores, axis_title, whole_of
from medtasks_ext.report.standing import FEWEST_DOCUMENTS, FEWEST_TASKS
from medtasks_ext.report.submissions.check import levels_words
from medtasks_ext.results.condition_words import run_words

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
#: Ranks among fewer lines say nothing of strong and weak sides.
_FEWEST_LINES = 5
#: Axes that people look for, in this order; those of a suite follow, others say nothing of models.
_AXES = ("language", "task_type", "specialties", "stage")
_NO_AXES = ("suite", "access")
#: Strong and weak values that are named.
_NAMED = 3
#: Lines above and below that are named as neighbours.
_BESIDE = 3


def model_page(scores: Scores, lines: Sequence[BoardLine]) -> Json:
    facts: dict[str, str | float] = {}
    for line in lines:
        facts = {**line.facts, **facts}
    first = next((line for line in lines if not line.published), lines[0])
    hubs = [line.entry.details["hub_id"] for line in lines if line.entry.details.get("hub_id")]
    return {
        "kind": "model",
        "title": first.entry.model,
        "facts": [[words, facts[name]] for name, words in _FACT_TITLES.items() if name in facts],
        "hub_id": hubs[0] if hubs else None,
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
    settings = {} if record is None else run_words(record.run) | dict(sorted(record.versions.items()))
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
    """Where it stands in each suite and strategy; its sides and its neighbours where it has a rank."""
    for suite, whole in scores.whole.items():
        for strategy in scores.strategies:
            if cell := scores.cells.get((place, strategy, whole)):
                ranks = scores.ranks.get((strategy, whole))
                rank = ranks.of.get(place) if ranks else None
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
                yield row | (
                    _profile(scores, place, strategy, whole) if rank and rank[1] >= _FEWEST_LINES else {}
                )


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


def _profile(scores: Scores, place: int, strategy: str, whole: Group) -> Json:
    """Values in which a line ranks higher than on the whole suite, and lower; its axes; its neighbours."""
    titles, found, below = axis_titles(), dict[str, list[Any]](), dict[str, tuple[float, str]]()
    rank, of = scores.ranks[strategy, whole].of[place]
    overall = (of - rank) / (of - 1)
    for group in scores.groups:
        ranks = scores.ranks.get((strategy, group))
        if group.suite != whole.suite or group.axis in _NO_AXES or not ranks or place not in ranks.of:
            continue
        cell, (rank, of) = scores.cells[place, strategy, group], ranks.of[place]
        if of >= _FEWEST_LINES:
            name, enough = title(group.axis, group.value), (cell.tasks or 0) >= FEWEST_TASKS
            row = [name, cell.tasks, cell.value, ranks.middle, rank, of]
            found.setdefault(group.axis, []).append((order(group.axis, group.value), row))
            if enough and cell.row and (cell.row.documents or 0) >= FEWEST_DOCUMENTS:
                words = f"{name}: rank {rank} of {of} ({cell.tasks} tasks)"
                below[name] = (of - rank) / (of - 1), words
    firm = sorted(below.values(), key=lambda pair: -pair[0])
    strong = [words for share, words in firm if share > overall]
    weak = [words for share, words in reversed(firm) if share < overall]
    axes = [
        [axis_title(titles[axis]), [row for _, row in sorted(found[axis], key=lambda item: item[0])]]
        for axis in dict.fromkeys([*_AXES, *titles])
        if axis in found
    ]
    beside, places = [], [*scores.ranks[strategy, whole].of]
    first = max(0, min(places.index(place) - _BESIDE, len(places) - 2 * _BESIDE - 1))
    for other in places[first : first + 2 * _BESIDE + 1]:
        line, cell = scores.site.lines[other], scores.cells[other, strategy, whole]
        rank, _ = scores.ranks[strategy, whole].of[other]
        about = [line.title, line.page, line.facts.get("size"), cell.value, cell.interval]
        beside.append([rank, *about, int(other == place)])
    return {"sides": [strong[:_NAMED], weak[:_NAMED]], "axes": axes, "beside": beside}
