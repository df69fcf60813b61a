"""The data of the HTML page, as one JSON object; docs/read_results.md describes what is shown."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from medtasks_ext.errors import some
from medtasks_ext.registry.columns import axis_values, dataset_facts
from medtasks_ext.registry.strategies import reasons, strategy_title, suffix_of
from medtasks_ext.report.groups import ALL, axis_titles, beyond, is_derived, order, title, titles_of
from medtasks_ext.report.page import task_page
from medtasks_ext.report.standing import place_words, quarters_of
from medtasks_ext.results.frames import records
from medtasks_ext.results.labels import is_within
from medtasks_ext.results.models import WEIGHTS, facts_of, size_of
from medtasks_ext.results.rollup import Nearness
from medtasks_ext.stats.intervals import sample_sizes
from medtasks_ext.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Registry
    from medtasks_ext.report.compared import Compared
    from medtasks_ext.report.gather import Report
    from medtasks_ext.results.experiments import Entry, Experiment, Fault


#: A column is packed where that takes a third of its values at most.
_WORTH = 3


def packed(values: Sequence[Any]) -> Sequence[Any] | dict[str, list[Any]]:
    """A column as the page's data holds it; `unpacked` of `page/data.js` is the way back.

    Returns:
        The values; or `runs`, each value followed by how often it stands in a row; or `steps`, the same of
        the differences from one whole number to the next, from 0 on.
    """
    if values and _WORTH * len(runs := _runs(values)) <= len(values):
        return {"runs": runs}
    if values and all(type(value) is int for value in values):
        steps = _runs(other - one for one, other in pairwise([0, *values]))
        return {"steps": steps} if _WORTH * len(steps) <= len(values) else values
    return values


def _runs(values: Iterable[Any]) -> list[Any]:
    return [item for value, same in groupby(values) for item in (value, sum(1 for _ in same))]


_DIGITS = 5
_HALF = 100  # parts of the last digit that is shown
#: faults of one place with one remedy that are told one by one
_MOST_FAULTS = 20


def payload(report: Report) -> Json:
    datasets = list(report.tasks.datasets.values())
    place = {dataset.id: number for number, dataset in enumerate(datasets)}
    groups = _shown_groups(report)
    costs = report.costs.to_pylist()
    axes, titles = _axes(report), axis_titles()
    others = _other_values(report.tasks, axes)
    named = titles_of(
        (key, value) for part in (axes, others) for key, values in part.items() for value in values
    )
    return {
        "title": _title(report),
        "made": time.strftime("%-d %B %Y, %H:%M"),
        "version": __version__,
        "sample": report.sample,
        "entries": [
            _entry(entry, cost, _estimates(report, entry), facts_of(entry, report.entries))
            for entry, cost in zip(report.entries, costs, strict=True)
        ],
        "datasets": [*dataset_facts(report.tasks)],
        "axes": [
            {
                "key": key,
                "title": titles[key],
                "values": [[value, named[key, value]] for value in values],
                "others": [[value, named[key, value]] for value in others[key]],
            }
            for key, values in axes.items()
        ],
        "mean_rules": [
            f"{suite.title}: {suite.mean_rule}" for suite in report.tasks.suites.values() if suite.mean_rule
        ],
        "strategies": [[strategy, strategy_title(strategy)] for strategy in report.strategies],
        **_results(report, place),
        "groups": _groups(report, groups, axes),
        "first": [*_first(report)],
        "comparisons": [_comparison(item) for item in report.comparisons],
        "labels": _labels(report),
        "missing": _missing(report, place),
        "differences": report.differences,
        "tasks": _tasks(report),
        "faults": [*_faults(report.faults)],
    }


def _faults(faults: Sequence[Fault]) -> Iterator[dict[str, str]]:
    """The faults; of many with one remedy in one place the first, and how many more there are."""
    groups: dict[tuple[str, str], list[Fault]] = {}
    for fault in faults:
        groups.setdefault((str(fault.where), fault.remedy), []).append(fault)
    for (where, remedy), alike in groups.items():
        for fault in alike[:_MOST_FAULTS]:
            yield {"where": where, "what": fault.what, "remedy": remedy}
        if (more := len(alike) - _MOST_FAULTS) > 0:
            yield {"where": where, "what": f"{more} more like these", "remedy": remedy}


def number(value: float | None) -> float | None:
    """Rounded for display; None for what is missing or not a number.

    Pages show three digits. A number that would be half-way between two of these, since it is rounded, stays
    as it is.
    """
    if value is None or math.isnan(value):
        return None
    found = round(float(value), _DIGITS)
    return float(value) if round(found * 10**_DIGITS) % _HALF == _HALF // 2 else found


def _matrix(values: np.ndarray | None) -> list[list[float | None]]:
    return [] if values is None else [[number(value) for value in row] for row in values.tolist()]


def _packed(columns: Mapping[str, Sequence[Any]]) -> Json:
    found = {name: [*values] for name, values in columns.items()}
    for values in found.values():
        while values and values[-1] is None:
            values.pop()
    return {name: packed(values) for name, values in found.items()}


def _title(report: Report) -> str:
    models = list(dict.fromkeys(entry.model for entry in report.own))
    if not report.entries:
        return "A run under way"
    if not models:
        suites = dict.fromkeys(entry.paper for entry in report.entries)
        return f"Published results: {', '.join(title('suite', suite) for suite in suites)}"
    return f"Medical evaluation of {some(models, 3)}"


def _estimates(report: Report, entry: Entry) -> list[str]:
    if not entry.limited:
        return []
    return [
        f"{row['title']}: {Nearness(row['estimate_half'], row['documents'], row['documents_of']).words}"
        for row in report.groups.to_pylist()
        if row["entry"] == entry.label and row["axis"] == "suite" and row["estimate_half"] is not None
    ]


def _entry(entry: Entry, cost: Json, estimates: list[str], facts: Mapping[str, str]) -> Json:
    counted, usd = cost["counted"], cost["usd"]
    return {
        "label": entry.label,
        "model": entry.model,
        "kind": entry.kind,
        "sample": entry.sample,
        "limited": entry.limited,
        "estimates": estimates,
        "suite": entry.paper or None,
        "settings": entry.words,
        "notes": list(entry.notes),
        "details": entry.details,
        "facts": {
            "size": size_of(entry, facts),
            "date": facts.get("released"),
            "access": WEIGHTS.get(facts.get("access", ""), facts.get("access")),
            "domain": facts.get("domain", "").partition(" ")[0].lower() or None,
            "reasoning": facts.get("reasoning"),
            "maker": facts.get("maker"),
        },
        "tokens": {side: cost[f"{side}_tokens"] for side in ("input", "output")} if counted else None,
        "usd": None if usd is None else round(usd, 4),
        "usd_tasks": [counted, cost["tasks"]],
        "price": cost["price"],
    }


def _shown_groups(report: Report) -> list[Json]:
    """The groups that the page cannot work out of the tasks: own ones, with intervals, and printed ones."""
    return [
        row
        for row in report.groups.to_pylist()
        if not is_derived(report.tasks, row)
        and (row["kind"] != "published" or row["axis"] == "suite" or row["tasks_scored"] is None)
    ]


def _axes(report: Report) -> dict[str, list[str]]:
    groups = report.groups.select(["axis", "value", "suite"]).to_pylist()
    pairs = {(row["axis"], row["value"]) for row in groups if not is_derived(report.tasks, row)}
    found: dict[str, list[str]] = {}
    for axis, value in sorted(pairs, key=lambda pair: order(*pair)):
        found.setdefault(axis, []).append(value)
    return {axis: found[axis] for axis in axis_titles() if axis in found}


def _other_values(tasks: Registry, axes: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    known = axis_values(tasks, tuple(axis for axis in axes if axis not in (ALL, "suite")))
    found = {
        axis: dict.fromkeys(value for values in by_dataset.values() for value in values)
        for axis, by_dataset in known.items()
    }
    return {
        axis: [value for value in found.get(axis, ()) if value not in values] for axis, values in axes.items()
    }


def _results(report: Report, place: Mapping[str, int]) -> Json:
    of_all, scores = report.results.experiments.to_pydict(), report.results.scores()
    pairs = [
        (index, entry, item)
        for index, entry in enumerate(report.entries)
        for item in entry.experiments.values()
    ]
    settings: dict[tuple[tuple[str, str], ...], int] = {}
    reasons: dict[str, int] = {}
    own = [entry.kind != "published" for _, entry, _ in pairs]
    low, high, rough = (scores[f"interval_{name}"] for name in ("low", "high", "rough"))

    def of_own(values: Iterable[Any]) -> list[Any]:
        return [_rounded(value) if mine else None for mine, value in zip(own, values, strict=True)]

    columns: dict[str, list[Any]] = {
        "entry": [index for index, *_ in pairs],
        "dataset": [place[item.dataset.id] for *_, item in pairs],
        "strategy": [*map(report.strategies.index, of_all["strategy"])],
        "score": [*map(number, scores["value"])],
        "low": of_own(low),
        "high": of_own(high),
        "rough": of_own(1 if one else None for one in rough),
        "size": of_own(_sizes(scores["value"], low, high, of_all["n"])),
        "n": of_all["n"],
        **{name: of_own(of_all[name]) for name in ("valid", "cut", "unclosed")},
        "sd_of_gain": of_own(_sd_of_gain(report, entry, item) for _, entry, item in pairs),
        **{name: of_own(of_all[name]) for name in ("inputs_cut", "usd")},
        "judged": of_own(None if value == 1 else value for value in of_all["judged"]),
        "otherwise": [
            reasons.setdefault(reason, len(reasons)) if reason else None
            for reason in of_own(of_all["otherwise"])
        ],
        "settings": [settings.setdefault(tuple(item.words.items()), len(settings)) for *_, item in pairs],
    }
    return {
        "results": _packed(columns),
        "reasons": [*reasons],
        "task_settings": [dict(key) for key in settings],
    }


def _sizes(*columns: Sequence[float | None]) -> list[float]:
    """Documents that the interval of each score is worth; NaN where it has none.

    Means over the tasks that a reader chooses get their intervals from it, by the rule of `of_tasks`.
    """
    score, low, high, n = (np.array(column, dtype=float) for column in columns)
    found: list[float] = np.where(np.isnan(low), np.nan, sample_sizes(score, low, high, n)).tolist()
    return found


def _sd_of_gain(report: Report, entry: Entry, item: Experiment) -> float | None:
    """Standard deviation, over resamples, of a score minus the zero-shot score on the same documents."""
    zero = entry.experiments.get(item.dataset.id)
    if zero is None or zero is item:
        return None
    first, second = (report.draws.get(id(one)) for one in (zero, item))
    if zero.rows_hash != item.rows_hash or first is None or second is None:
        return None
    return float((second - first).std())


def _labels(report: Report) -> Json | None:
    """Without values that lie within others: a table of 64 departments is no help on a page."""
    shown = [row for row in report.labels.to_pylist() if not is_within(row)]
    axes: dict[str, dict[str, int]] = {}
    for row in shown:
        values = axes.setdefault(row["axis"], {})
        values.setdefault(row["value"], len(values))
    sources = list(dict.fromkeys(tuple(row["sources"]) for row in shown))
    figures = {
        **{"score": "score", "low": "interval_low", "high": "interval_high", "tasks": "tasks"},
        **{"documents": "documents", "of_all": "score_of_all", "of_all_low": "of_all_low"},
        **{"of_all_high": "of_all_high", "documents_of_all": "documents_of_all"},
    }
    columns = {
        **_whose(report, shown),
        "suite": [row["suite"] for row in shown],
        "axis": [row["axis"] for row in shown],
        "value": [axes[row["axis"]][row["value"]] for row in shown],
        **{name: [_rounded(row[column]) for row in shown] for name, column in figures.items()},
        "sources": [sources.index(tuple(row["sources"])) for row in shown],
    }
    listed = {axis: [*values] for axis, values in axes.items()}
    return {"axes": listed, "sources": sources, "rows": _packed(columns)} if shown else None


def _whose(report: Report, rows: Sequence[Json]) -> dict[str, list[int]]:
    entries = {entry.label: index for index, entry in enumerate(report.entries)}
    return {
        "entry": [entries[row["entry"]] for row in rows],
        "strategy": [report.strategies.index(row["strategy"]) for row in rows],
    }


def _groups(report: Report, rows: Sequence[Json], axes: Mapping[str, Sequence[str]]) -> Json:
    axis = {key: number for number, key in enumerate(axes)}
    value = {(key, one): number for key, values in axes.items() for number, one in enumerate(values)}
    figures = {"score": "score", "low": "interval_low", "high": "interval_high", "scored": "tasks_scored"}
    return _packed(
        {
            **_whose(report, rows),
            "axis": [axis[row["axis"]] for row in rows],
            "value": [value[row["axis"], row["value"]] for row in rows],
            "suite": [row["suite"] for row in rows],
            **{name: [_rounded(row[column]) for row in rows] for name, column in figures.items()},
            "rough": [1 if row["interval_rough"] else None for row in rows],
            "beyond": [_rounded(by) or None for by in beyond(report.tasks, rows)],
            **{
                f"paper_{end}": [_rounded(row[f"paper_interval_{end}"]) for row in rows]
                for end in ("low", "high")
            },
            "tasks": [None if row["tasks_scored"] is None else row["tasks"] for row in rows],
            **{name: [_rounded(row[name]) for row in rows] for name in ("valid", "cut")},
        }
    )


def _first(report: Report) -> Iterator[Json]:
    """What the overview shows of own entries: the names that they were asked, then the other suites."""
    own = {entry.label: number for number, entry in enumerate(report.entries) if entry.kind != "published"}
    asked = report.asked.to_pylist()
    suites = [row for row in report.groups.to_pylist() if row["axis"] == "suite"]
    for row in suites:
        row["name"] = row["suite"] + suffix_of(row["strategy"])
    suites.sort(key=lambda row: order("suite", row["suite"]))
    rows = {(row["entry"], row["name"]): row for row in [*asked, *suites]}
    places = {(row["entry"], row["suite"], row["strategy"]): row for row in records(report.standings)}
    ends = {suffix_of(strategy): number for number, strategy in enumerate(report.strategies)}
    for (label, name), row in rows.items():
        if label not in own:
            continue
        place = places.get((label, row.get("suite"), row.get("strategy")))
        scores = [score for _, score in place["rivals"]] if place else []
        if place is None:
            scores = [one["score"] for one in asked if one["name"] == name and one["kind"] == "published"]
        scores = [number(score) or 0.0 for score in scores if score is not None]
        suffix = max((end for end in ends if name.endswith(end)), key=len, default="")
        suffix = suffix_of(row["strategy"]) if row["strategy"] else suffix
        figures = ("score", "chance", "ceiling", "documents", "valid", "cut")
        yield {
            **{"entry": own[label], "strategy": ends.get(suffix, 0), "title": row.get("title", name)},
            **{name: _rounded(row.get(name)) for name in figures},
            **{end: _rounded(row[f"interval_{end}"]) for end in ("low", "high", "rough")},
            **{"scored": row["tasks_scored"], "total": row["tasks"]},
            "place": place_words(place) if place and scores else None,
            "quarters": quarters_of(scores) if scores else None,
        }


def _rounded(content: Any) -> Any:
    if isinstance(content, (list, tuple)):
        return [_rounded(value) for value in content]
    return number(content) if isinstance(content, float) else content


def _comparison(item: Compared) -> Json:
    ranks = {"rank": "rank", "rank_low": "low", "rank_high": "high"}
    pairs = {"difference": "difference", "low": "low", "high": "high", "p": "p_value"}
    return {
        "suite": item.suite,
        "strategy": item.strategy,
        "sample": item.sample,
        "entries": item.entries,
        "tasks": len(item.datasets),
        "left_out": item.left_out,
        **{name: _matrix(getattr(item.pairs, column, None)) for name, column in pairs.items()},
        "p_holm": _matrix(item.p_holm),
        "p_bh": _matrix(item.p_bh),
        "wins": _matrix(item.wins),
        **{name: np.asarray(getattr(item.ranking, end, ())).tolist() for name, end in ranks.items()},
    }


def _missing(report: Report, place: Mapping[str, int]) -> list[Json]:
    rows = [row for row in report.gaps.to_pylist() if row["state"] != "not asked"]
    of = _whose(report, rows)
    return [
        {"entry": entry, "dataset": place[row["dataset"]], "strategy": strategy}
        | {name: row[name] for name in ("state", "reason")}
        for row, entry, strategy in zip(rows, of["entry"], of["strategy"], strict=True)
    ]


def _tasks(report: Report) -> Json:
    answered: dict[str, list[Experiment]] = {}
    for entry in report.own:
        for item in entry.experiments.values():
            answered.setdefault(item.dataset.id, []).append(item)
    strategies = {strategy: reasons(strategy) for strategy in report.strategies}
    return {
        name: task_page(dataset, strategies, answered.get(name, ()))
        for name, dataset in report.tasks.datasets.items()
    }
