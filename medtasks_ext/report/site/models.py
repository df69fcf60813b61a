"""The page of a model: where it stands, its strong and weak sides, its scores and their conditions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from medtasks_ext.registry.strategies import strategy_title
from medtasks_ext.report.axes import axis_titles, order, title
from medtasks_ext.report.site.boards import Scores, axis_title, interval_of, whole_of
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
        "profiles": list(_profiles(scores, place)),
        "tasks": [_task(line, item, words) for item in items],
        "words": list(words),
        "settings": [*map(list, settings.items())],
    }


def _places(scores: Scores, place: int) -> Iterator[Json]:
    for suite, group in scores.whole.items():
        for strategy in scores.strategies:
            row = scores.rows.get((place, strategy, group))
            if row is None or row.score is None:
                continue
            proven, otherwise = scores.state(place, strategy, group)
            yield {
                "suite": suite,
                "title": scores.site.tasks.suites[suite].title,
                "strategy": strategy_title(strategy),
                "score": whole_of(row.score),
                "interval": interval_of(row),
                "tasks": row.scored,
                "of": group.n_tasks,
                "rank": scores.ranking(strategy, group).ranks.get(place),
                "otherwise": otherwise,
                "unproven": not proven,
            }


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


def _profiles(scores: Scores, place: int) -> Iterator[Json]:
    """For each suite and strategy in which a line has a rank: that, its sides, its neighbours."""
    for suite, whole in scores.whole.items():
        for strategy in scores.strategies:
            row, ranking = scores.rows.get((place, strategy, whole)), scores.ranking(strategy, whole)
            if row is None or place not in ranking.ranks or len(ranking.order) < _FEWEST_LINES:
                continue
            rank, of = ranking.ranks[place]
            groups = [
                group
                for group in scores.groups
                if group.suite == suite
                and group.axis not in _NO_AXES
                and place in (found := scores.ranking(strategy, group)).ranks
                and len(found.order) >= _FEWEST_LINES
            ]
            yield {
                "suite": suite,
                "title": scores.site.tasks.suites[suite].title,
                "strategy": strategy_title(strategy),
                "score": whole_of(row.score or 0.0),
                "interval": interval_of(row),
                "rank": [rank, of],
                "sides": _sides(scores, place, strategy, groups, (of - rank) / (of - 1)),
                "axes": _by_axis(scores, place, strategy, groups),
                "beside": _neighbours(scores, place, strategy, whole),
            }


def _sides(
    scores: Scores, place: int, strategy: str, groups: Sequence[Group], overall: float
) -> list[list[str]]:
    """Where it ranks higher than on the whole suite, and where lower: the furthest values, in words."""
    below: dict[str, tuple[float, str]] = {}
    for group in groups:
        row, (rank, of) = scores.rows[place, strategy, group], scores.ranking(strategy, group).ranks[place]
        if (row.scored or 0) >= FEWEST_TASKS and (row.documents or 0) >= FEWEST_DOCUMENTS:
            name = title(group.axis, group.value)
            below[name] = (of - rank) / (of - 1), f"{name}: rank {rank} of {of} ({row.scored} tasks)"
    firm = sorted(below.values(), key=lambda pair: -pair[0])
    strong = [words for share, words in firm if share > overall]
    weak = [words for share, words in reversed(firm) if share < overall]
    return [strong[:_NAMED], weak[:_NAMED]]


def _by_axis(scores: Scores, place: int, strategy: str, groups: Sequence[Group]) -> list[Any]:
    titles, found = axis_titles(), dict[str, list[Any]]()
    for group in sorted(groups, key=lambda group: order(group.axis, group.value)):
        row, ranking = scores.rows[place, strategy, group], scores.ranking(strategy, group)
        value = [whole_of(row.score or 0.0), ranking.middle, *ranking.ranks[place]]
        found.setdefault(group.axis, []).append([title(group.axis, group.value), row.scored, *value])
    ordered = dict.fromkeys([*_AXES, *titles])
    return [[axis_title(titles[axis]), found[axis]] for axis in ordered if axis in found]


def _neighbours(scores: Scores, place: int, strategy: str, group: Group) -> list[Any]:
    """Rank, label, page, size, score and interval of the lines around a line, itself among them."""
    ranking, found = scores.ranking(strategy, group), []
    at = ranking.order.index(place)
    first = max(0, min(at - _BESIDE, len(ranking.order) - 2 * _BESIDE - 1))
    for other in ranking.order[first : first + 2 * _BESIDE + 1]:
        line, row = scores.site.lines[other], scores.rows[other, strategy, group]
        about = [line.title, line.page, line.facts.get("size"), whole_of(row.score or 0.0), interval_of(row)]
        found.append([ranking.ranks[other][0], *about, int(other == place)])
    return found
