"""The HTML page: its data are one JSON object; docs/read_results.md describes what is shown."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from medtasks_ext.errors import some
from medtasks_ext.jsonfile import json_bytes
from medtasks_ext.metrics import meanings, rule
from medtasks_ext.offline_page import offline_page
from medtasks_ext.registry.columns import axis_values, dataset_facts
from medtasks_ext.registry.strategies import strategy_title, suffix_of
from medtasks_ext.report.groups import axis_titles, beyond, order, title
from medtasks_ext.report.pictures import FONT, kinds, licences, themes, vendored
from medtasks_ext.report.standing import place_words, quarters_of
from medtasks_ext.results.frames import records
from medtasks_ext.results.models import facts_of, facts_shown
from medtasks_ext.results.rollup import Nearness
from medtasks_ext.stats.intervals import sample_sizes
from medtasks_ext.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry.tasks import Dataset
    from medtasks_ext.report.gather import Report
    from medtasks_ext.results.experiments import Entry, Experiment


#: Style and script of the page.
PAGE = Path(__file__).parent / "page"
#: Of the page's script what other pages build on, too: address, controls, tables, pictures, filters, frame.
SHARED = ("address", "dom", "colours", "table", "picture", "frontier", "filters", "frame")
#: The page's script, in the order in which its parts build on each other. `data` stands before the library:
#: its first line makes the whole script strict.
_SCRIPTS = (
    *SHARED, "scores", "state", "columns", "scatter", "heat_map", "live", "overview", "leaderboard",
    "profile", "pairs", "strategies", "labels", "answers", "list", "answer", "errors", "tasks", "model",
    "parts", "main",
)  # fmt: skip


def render(data: Mapping[str, Any]) -> str:
    pictures = {"kinds": kinds(), "themes": themes(), "font": FONT, "licences": licences()}
    return offline_page(
        PAGE / "report.html",
        style=[PAGE / "report.css", PAGE / "answers.css"],
        scripts=[PAGE / "data.js", *vendored(), *(PAGE / f"{name}.js" for name in _SCRIPTS)],
        data={"answers": {"held": [], "withheld": []}, **data, "pictures": pictures},
        language="en",
        title=str(data["title"]),
    )


def packed(values: Sequence[Any]) -> Sequence[Any] | dict[str, list[Any]]:
    """A column in its shortest form for the page's data; `unpacked` of `page/data.js` is the way back.

    Returns:
        The values; or `runs`, each value followed by how often it stands in a row; or `words`, each value
        once, and for each row the place `at` which its value stands there.
    """
    forms: list[Sequence[Any] | dict[str, list[Any]]] = [values, {"runs": _runs(values)}]
    known = dict[Any, tuple[int, Any]]()
    keys = (str(value) if isinstance(value, list) else value for value in values)
    at = [known.setdefault(key, (len(known), value))[0] for key, value in zip(keys, values, strict=True)]
    forms.append({"words": [value for _, value in known.values()], "at": at})
    return min(forms, key=lambda form: len(json_bytes(form)))


def _runs(values: Iterable[Any]) -> list[Any]:
    return [item for value, same in groupby(values) for item in (value, sum(1 for _ in same))]


def _packed(columns: Mapping[str, Iterable[Any]]) -> Json:
    """The columns without what is missing at their ends, and with numbers as pages have them."""
    found = {name: _rounded([*values]) for name, values in columns.items()}
    for values in found.values():
        while values and values[-1] is None:
            values.pop()
    return {name: packed(values) for name, values in found.items()}


_DIGITS = 5  # of a number
_HALF = 100  # parts of the last digit that is shown


def payload(report: Report) -> Json:
    place = {name: number for number, name in enumerate(report.tasks.datasets)}
    axes = _axes(report)
    answered: dict[str, list[Experiment]] = {}
    for item in (item for entry in report.own for item in entry.experiments.values()):
        answered.setdefault(item.dataset.id, []).append(item)
    gaps = report.gaps.to_pylist()
    missing = {**_whose(report, gaps), "dataset": [place[row["dataset"]] for row in gaps]}
    missing |= {name: [row[name] for row in gaps] for name in ("state", "reason")}
    return {
        "title": _title(report),
        "made": time.strftime("%-d %B %Y, %H:%M"),
        "version": __version__,
        "sample": report.sample,
        "entries": [
            _entry(report, *pair) for pair in zip(report.entries, report.costs.to_pylist(), strict=True)
        ],
        "datasets": [*dataset_facts(report.tasks)],
        "axes": axes,
        "mean_rules": [
            f"{suite.title}: {suite.mean_rule}" for suite in report.tasks.suites.values() if suite.mean_rule
        ],
        "strategies": [[strategy, strategy_title(strategy)] for strategy in report.strategies],
        **_results(report, place),
        "groups": _groups(report, axes),
        "first": [*_first(report)],
        "comparisons": [
            {
                name: _rounded(value.tolist() if isinstance(value, np.ndarray) else value)
                for name, value in of.items()
            }
            for of in report.comparisons
        ],
        "labels": _labels(report),
        "missing": [dict(zip(missing, row, strict=True)) for row in zip(*missing.values(), strict=True)],
        "differences": report.differences,
        "tasks": {
            name: _task_page(dataset, answered.get(name, ()))
            for name, dataset in report.tasks.datasets.items()
        },
        "faults": [fault.record() for fault in report.faults],
    }


def _task_page(dataset: Dataset, items: Sequence[Experiment]) -> Json:
    """Rule, metrics and notes of a dataset."""
    own, words = [metric["metric"] for metric in dataset.metric_list], meanings()
    names = dict.fromkeys([*own, *(name for item in items for name in item.metrics)])
    return {
        "rule": rule(dataset),
        "metrics": [[name, words[name]] for name in names if words.get(name)],
        "open_questions": list(dataset.metadata.open_questions),
    }


def _title(report: Report) -> str:
    if models := list(dict.fromkeys(entry.model for entry in report.own)):
        return f"Medical evaluation of {some(models, 3)}"
    papers = dict.fromkeys(title("suite", entry.paper) for entry in report.entries)
    return f"Published results: {', '.join(papers)}" if papers else "A run under way"


def _entry(report: Report, entry: Entry, cost: Json) -> Json:
    counted = cost["counted"]
    estimates = [
        f"{row['title']}: {Nearness(row['estimate_half'], row['documents'], row['documents_of']).words}"
        for row in report.group_rows
        if row["source"] is entry and row["axis"] == "suite" and row["estimate_half"] is not None
    ]
    return {
        **{"label": entry.label, "model": entry.model, "kind": entry.kind},
        **{"sample": entry.sample, "limited": entry.limited},
        "estimates": estimates if entry.limited else [],
        "suite": entry.paper or None,
        "settings": entry.words,
        "notes": list(entry.notes),
        "details": entry.details,
        "facts": facts_shown(entry, facts_of(entry, report.entries)),
        "tokens": {side: cost[f"{side}_tokens"] for side in ("input", "output")} if counted else None,
        "usd": None if cost["usd"] is None else round(cost["usd"], 4),
        "usd_tasks": [counted, cost["tasks"]],
        "price": cost["price"],
    }


def _axes(report: Report) -> list[Json]:
    """The axes with their values, and those that only datasets without a result have."""
    pairs = {(row["axis"], row["value"]) for row in report.group_rows if not row["group"].derived}
    found: dict[str, list[str]] = {}
    for axis, value in sorted(pairs, key=lambda pair: order(*pair)):
        found.setdefault(axis, []).append(value)
    known = axis_values(report.tasks, tuple(axis for axis in found if axis not in ("all", "suite")))
    every = {axis: dict.fromkeys(one for some in of.values() for one in some) for axis, of in known.items()}
    return [
        {
            "key": axis,
            "title": words,
            "values": [[value, title(axis, value)] for value in found[axis]],
            "others": [[one, title(axis, one)] for one in every.get(axis, ()) if one not in found[axis]],
        }
        for axis, words in axis_titles().items()
        if axis in found
    ]


def _results(report: Report, place: Mapping[str, int]) -> Json:
    shown = ("n", "valid", "cut", "unclosed", "inputs_cut", "usd", "otherwise")
    of_all = report.results.experiments.select(["strategy", "judged", *shown]).to_pydict()
    scores = report.results.scores()
    pairs = [(entry, item) for entry in report.entries for item in entry.experiments.values()]
    settings: dict[tuple[tuple[str, str], ...], int] = {}
    low, high, rough = (scores[f"interval_{name}"] for name in ("low", "high", "rough"))
    ends = [np.array(column, dtype=float) for column in (scores["value"], low, high, of_all["n"])]
    columns: dict[str, Iterable[Any]] = {
        "entry": [index for index, entry in enumerate(report.entries) for _ in entry.experiments],
        "dataset": [place[item.dataset.id] for _, item in pairs],
        "strategy": map(report.strategies.index, of_all["strategy"]),
        **{"score": scores["value"], "low": low, "high": high},
        "rough": (1 if one else None for one in rough),
        # documents that the interval is worth: intervals of means follow from it, by the rule of `of_tasks`
        "size": np.where(np.isnan(ends[1]), np.nan, sample_sizes(*ends)).tolist(),
        "sd_of_gain": (_sd_of_gain(report, *pair) for pair in pairs),
        **{name: of_all[name] for name in shown},
        "judged": (None if value == 1 else value for value in of_all["judged"]),
        "settings": [settings.setdefault(tuple(item.words.items()), len(settings)) for _, item in pairs],
    }
    return {"results": _packed(columns), "task_settings": [dict(key) for key in settings]}


def _sd_of_gain(report: Report, entry: Entry, item: Experiment) -> float | None:
    """Standard deviation, over resamples, of a score minus the zero-shot score on the same documents."""
    zero = entry.experiments.get(item.dataset.id)
    if zero is None or zero is item:
        return None
    first, second = (report.draws.get(id(one)) for one in (zero, item))
    if zero.conditions.rows != item.conditions.rows or first is None or second is None:
        return None
    return float((second - first).std())


def _labels(report: Report) -> list[Json]:
    """Without values that lie within others: a table of 64 departments is no help on a page."""
    rows = [row for row in report.labels.to_pylist() if ", " not in row["value"]]
    whose = _whose(report, rows)
    places = zip(rows, whose["entry"], whose["strategy"], strict=True)
    rows = [row | {"entry": entry, "strategy": strategy} for row, entry, strategy in places]
    return [{name: _rounded(value) for name, value in row.items()} for row in rows]


def _whose(report: Report, rows: Sequence[Json]) -> dict[str, list[int]]:
    entries = {entry.label: index for index, entry in enumerate(report.entries)}
    return {
        "entry": [entries[row["entry"]] for row in rows],
        "strategy": [report.strategies.index(row["strategy"]) for row in rows],
    }


def _groups(report: Report, axes: Sequence[Json]) -> Json:
    """The groups that the page cannot work out of the tasks: own ones, with intervals, and printed ones."""
    rows = [
        row
        for row in report.group_rows
        if not row["group"].derived
        and (row["kind"] != "published" or row["axis"] == "suite" or row["tasks_scored"] is None)
    ]
    place = {
        (axis["key"], value): (number, at)
        for number, axis in enumerate(axes)
        for at, (value, _) in enumerate(axis["values"])
    }
    figures = {"score": "score", "low": "interval_low", "high": "interval_high", "scored": "tasks_scored"}
    figures |= {"paper_low": "paper_interval_low", "paper_high": "paper_interval_high"}
    return _packed(
        {
            **_whose(report, rows),
            **{name: [row[column] for row in rows] for name, column in figures.items()},
            **{name: [row[name] for row in rows] for name in ("suite", "valid", "cut")},
            "axis": [place[row["axis"], row["value"]][0] for row in rows],
            "value": [place[row["axis"], row["value"]][1] for row in rows],
            "rough": [1 if row["interval_rough"] else None for row in rows],
            "beyond": [by or None for by in beyond(rows)],
            "tasks": [None if row["tasks_scored"] is None else row["tasks"] for row in rows],
        }
    )


def _first(report: Report) -> Iterator[Json]:
    """What the overview shows of own entries: the names that they were asked, then the other suites."""
    own = {entry.label: number for number, entry in enumerate(report.entries) if entry.kind != "published"}
    asked = report.asked.to_pylist()
    suites = [row for row in report.group_rows if row["axis"] == "suite"]
    suites.sort(key=lambda row: order("suite", row["suite"]))
    named = [row | {"name": row["suite"] + suffix_of(row["strategy"])} for row in suites]
    rows = {(row["entry"], row["name"]): row for row in [*asked, *named]}
    places = {(row["entry"], row["suite"], row["strategy"]): row for row in records(report.standings)}
    ends = {suffix_of(strategy): number for number, strategy in enumerate(report.strategies)}
    for (label, name), row in rows.items():
        if label not in own:
            continue
        place = places.get((label, row.get("suite"), row.get("strategy")))
        beside = [one["score"] for one in asked if one["name"] == name and one["kind"] == "published"]
        scores = [score for _, score in place["rivals"]] if place else beside
        scores = [_rounded(score) for score in scores if score is not None]
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
    """With numbers as pages show them, to three digits; None for what is no number.

    One that would be half-way between two of these, since it is rounded, stays as it is.
    """
    if isinstance(content, (list, tuple)):
        return [_rounded(value) for value in content]
    if not isinstance(content, float):
        return content
    if math.isnan(content):
        return None
    found = round(content, _DIGITS)
    return content if round(found * 10**_DIGITS) % _HALF == _HALF // 2 else found
