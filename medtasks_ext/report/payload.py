"""The data of the HTML page, as one JSON object; docs/report.md describes what is shown."""

from __future__ import annotations

import json
import math
import time
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from medtasks_ext.errors import some
from medtasks_ext.registry.groups import is_apart
from medtasks_ext.registry.strategies import strategy_title
from medtasks_ext.report.axes import axis_titles, order, suite_axes, title
from medtasks_ext.report.examples import examples
from medtasks_ext.report.packed import packed
from medtasks_ext.report.pages import task_page
from medtasks_ext.report.tidy import standing_record
from medtasks_ext.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Dataset, Registry
    from medtasks_ext.report.compared import Compared
    from medtasks_ext.report.gather import Report
    from medtasks_ext.report.groups import GroupScore
    from medtasks_ext.results.experiments import Entry, Experiment, Fault
    from medtasks_ext.stats.bootstrap import Interval

SCHEMA = 1
Text = Literal["none", "open", "all"]
#: Bytes of the object; with the page around it, and the library that draws, it must stay below 5 MB.
LIMIT = 4_000_000
#: Bytes of the examples of one task at most.
_MOST_PER_TASK = 40_000
_DIGITS = 5
_HALF = 100  # parts of the last digit that is shown
#: faults of one place with one remedy that are told one by one
_MOST_FAULTS = 20


def payload(report: Report, text: Text = "open") -> Json:
    """The object; faults that come up on the way are added to the report's.

    Args:
        report: what it says.
        text: whose texts may be shown as examples: nobody's, of open and synthetic rows, or all.
    """
    datasets = list(report.tasks.datasets.values())
    place = {dataset.id: number for number, dataset in enumerate(datasets)}
    axes, titles = _axes(report), axis_titles()
    found = {
        "schema": SCHEMA,
        "title": _title(report),
        "made": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "version": __version__,
        "sample": report.sample,
        "text": text,
        "entries": [_entry(report, number) for number in range(len(report.entries))],
        "datasets": [_dataset(report.tasks, dataset) for dataset in datasets],
        "axes": [
            {"key": key, "title": titles[key], "values": [[value, title(key, value)] for value in values]}
            for key, values in axes.items()
        ],
        "mean_rules": [
            f"{suite.title}: {suite.mean_rule}" for suite in report.tasks.suites.values() if suite.mean_rule
        ],
        "strategies": [[strategy, strategy_title(strategy)] for strategy in report.strategies],
        **_results(report, place),
        "groups": _groups(report, axes),
        "standings": _standings(report),
        "comparisons": [_comparison(item, place) for item in report.comparisons],
        "labels": _labels(report),
        "judges": _judges(report, place),
        "coverage": _coverage(report, place),
        "differences": [{"text": line} for line in report.differences],
    }
    room = LIMIT - size(found) - size([*_faults(report.faults)])
    found["tasks"] = _tasks(report, datasets, text, room)
    found["faults"] = [*_faults(report.faults)]
    return found


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


def as_json(content: Any) -> str:
    """Compact JSON."""
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def size(content: Any) -> int:
    """Bytes of its JSON."""
    return len(as_json(content).encode(errors="surrogatepass"))


def number(value: float | None) -> float | None:
    """Rounded for display; None for what is missing or not a number.

    Pages show three digits. A number that would be half-way between two of these, since it is rounded, stays
    as it is: rounded twice, it might end up beside the one that is nearest.
    """
    if value is None or math.isnan(value):
        return None
    found = round(float(value), _DIGITS)
    return float(value) if round(found * 10**_DIGITS) % _HALF == _HALF // 2 else found


def _matrix(values: np.ndarray | None) -> list[list[float | None]]:
    return [] if values is None else [[number(value) for value in row] for row in values.tolist()]


def _places(items: Iterable[Any]) -> dict[int, int]:
    return {id(item): index for index, item in enumerate(items)}


def _columns(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Json:
    """Rows as packed columns; what is missing at the end of a column is left out."""
    columns = {name: [row.get(name) for row in rows] for name in names}
    for values in columns.values():
        while values and values[-1] is None:
            values.pop()
    return {name: packed(values) for name, values in columns.items()}


# ---------------------------------------------------------------------- what is shown


def _title(report: Report) -> str:
    models = list(dict.fromkeys(entry.model for entry in report.own))
    if not models:
        suites = dict.fromkeys(entry.paper for entry in report.entries)
        return f"Published results: {', '.join(title('suite', suite) for suite in suites)}"
    return f"Medical evaluation of {some(models, 3)}"


def _entry(report: Report, place: int) -> Json:
    entry, cost = report.entries[place], report.costs[place]
    return {
        "label": entry.label,
        "model": entry.model,
        "kind": entry.kind,
        "sample": entry.sample,
        "limited": entry.limited,
        "suite": entry.paper or None,
        "settings": entry.words,
        "notes": list(entry.notes),
        "details": entry.details,
        "tokens": cost.tokens,
        "usd": None if cost.usd is None else round(cost.usd, 4),
        "usd_tasks": [cost.counted, len(entry.experiments)],
        "price": cost.rule,
    }


def _dataset(tasks: Registry, dataset: Dataset) -> Json:
    record, suites = dataset.metadata, tasks.suites_of(dataset)
    assigned = [name for name in ("specialties", "stage", "access") if record.assigned_by(name) == "medtasks"]
    return {
        **{axis: _one_or_more(tasks.values(dataset, axis)) for axis in suite_axes()},
        "id": dataset.id,
        "name": f"{record.name} (draft)" if record.draft else record.name,
        "draft": record.draft,
        "suite": _one_or_more([suite.id for suite in suites]),
        "summary": record.summary,
        "language": record.language,
        "task_type": record.task_type,
        "stage": record.stage,
        "specialties": list(record.specialties),
        "documents": list(record.documents),
        "access": record.access,
        "scoreable": record.scoreable,
        "licence": record.licence,
        "url": record.url,
        "citation": record.citation,
        "n_test": record.n_test,
        "metric": record.primary_metric,
        "version": dataset.version,
        "oracle_max": record.oracle_max,
        "assigned": assigned,
        "twin_of": record.twin_of,
        "left_out": {
            suite.id: axes
            for suite in suites
            if (axes := [axis for axis in suite.left_out if suite.leaves_out(axis, dataset.key)])
        },
        "added": [dataset.suite.id] if dataset.joined_later else [],
        "apart": is_apart(tasks, dataset),
        "averaged": all(suite.averaged for suite in suites),
    }


def _one_or_more(values: list[str]) -> str | list[str] | None:
    """Almost all datasets have one suite, and one value on its axes."""
    return values if len(values) > 1 else next(iter(values), None)


def _axes(report: Report) -> dict[str, list[str]]:
    """Axis -> the values that occur."""
    pairs = {(row.group.axis, row.group.value) for row in _shown_rows(report)}
    found: dict[str, list[str]] = {}
    for axis, value in sorted(pairs, key=lambda pair: order(*pair)):
        found.setdefault(axis, []).append(value)
    return {axis: found[axis] for axis in axis_titles() if axis in found}


_RESULTS = (
    *("entry", "dataset", "strategy", "score", "low", "high", "sd", "n", "valid", "cut", "unclosed"),
    *("sd_of_gain", "inputs_cut", "usd", "judged", "otherwise", "settings"),
)


def _results(report: Report, place: Mapping[str, int]) -> Json:
    settings: dict[tuple[tuple[str, str], ...], int] = {}
    reasons: dict[str, int] = {}
    rows = []
    for index, entry in enumerate(report.entries):
        for item in entry.experiments.values():
            key = settings.setdefault(tuple(item.words.items()), len(settings))
            unlike = "" if entry.kind == "published" else item.otherwise
            rows.append(
                {
                    "entry": index,
                    "dataset": place[item.dataset.id],
                    "strategy": report.strategies.index(item.strategy),
                    "score": number(item.score),
                    "n": item.n,
                    **_more(report, index, entry, item),
                    "otherwise": reasons.setdefault(unlike, len(reasons)) if unlike else None,
                    "settings": key,
                }
            )
    return {
        "results": _columns(rows, _RESULTS),
        "reasons": [*reasons],
        "task_settings": [dict(key) for key in settings],
    }


def _more(report: Report, index: int, entry: Entry, item: Experiment) -> Json:
    """What published scores do not have."""
    if entry.kind == "published":
        return {}
    interval, draws = item.intervals.get("score"), report.draws[index].get(item.task)
    return {
        "low": number(interval.low) if interval else None,
        "high": number(interval.high) if interval else None,
        "sd": None if draws is None else number(float(draws.std())),
        "sd_of_gain": _sd_of_gain(report, index, entry, item),
        "valid": number(item.metrics.get("valid")),
        "cut": number(item.share_cut("answers_cut")),
        "unclosed": number(item.metrics.get("unclosed_reasoning")),
        "inputs_cut": number(item.share_cut("inputs_cut")),
        "usd": number(report.costs[index].of(item)),
        "judged": None if item.covered == 1 else number(item.covered),
    }


def _sd_of_gain(report: Report, index: int, entry: Entry, item: Experiment) -> float | None:
    """Standard deviation, over resamples, of a score minus the zero-shot score on the same documents."""
    zero = entry.experiments.get(item.dataset.id)
    if zero is None or zero is item:
        return None
    draws = [report.draws[index].get(name) for name in (zero.task, item.task)]
    if zero.rows_hash != item.rows_hash or draws[0] is None or draws[1] is None:
        return None
    return number(float((draws[1] - draws[0]).std()))


_LABELS = (
    *("entry", "strategy", "suite", "axis", "value", "score", "low", "high", "tasks", "documents"),
    *("of_all", "of_all_low", "of_all_high", "documents_of_all", "sources"),
)


def _labels(report: Report) -> Json | None:
    """Scores by label, axes with their labels in the order of display; None where no document has one.

    Of departments the primary ones: a table by secondary ones is no help on a page.
    """
    shown = [row for row in report.labels if not row.secondary]
    axes: dict[str, list[str]] = {}
    for row in shown:
        values = axes.setdefault(row.axis, [])
        values += [row.value] if row.value not in values else []
    entries, sources = _places(report.entries), list(dict.fromkeys(row.sources for row in shown))
    rows = [
        {
            "entry": entries[id(row.entry)],
            "strategy": report.strategies.index(row.strategy),
            "suite": row.suite,
            "axis": row.axis,
            "value": axes[row.axis].index(row.value),
            "score": number(row.score),
            **_ends(row.interval, "low", "high"),
            "tasks": row.tasks,
            "documents": row.documents,
            "of_all": number(row.of_all),
            **_ends(row.interval_of_all, "of_all_low", "of_all_high"),
            "documents_of_all": row.documents_of_all,
            "sources": sources.index(row.sources),
        }
        for row in shown
    ]
    return {"axes": axes, "sources": sources, "rows": _columns(rows, _LABELS)} if rows else None


def _ends(interval: Interval | None, low: str, high: str) -> dict[str, float | None]:
    return (
        {low: None, high: None}
        if interval is None
        else {low: number(interval.low), high: number(interval.high)}
    )


_GROUPS = (
    *("entry", "strategy", "axis", "value", "suite", "score", "low", "high", "scored", "tasks"),
    *("documents", "valid", "cut"),
)


def _groups(report: Report, axes: Mapping[str, Sequence[str]]) -> Json:
    entries = _places(report.entries)
    axis = {key: number for number, key in enumerate(axes)}
    value = {(key, one): number for key, values in axes.items() for number, one in enumerate(values)}
    rows = [
        {
            "entry": entries[id(row.entry)],
            "strategy": report.strategies.index(row.strategy),
            "axis": axis[row.group.axis],
            "value": value[row.group.axis, row.group.value],
            "suite": row.group.suite,
            "score": number(row.score),
            "low": number(row.low),
            "high": number(row.high),
            "scored": row.scored,
            "tasks": None if row.scored is None else row.group.n_tasks,
            "documents": row.documents,
            "valid": number(row.valid),
            "cut": number(row.cut),
        }
        for row in _shown_rows(report)
    ]
    return _columns(rows, _GROUPS)


def _standings(report: Report) -> list[Json]:
    """Where own entries stand, with the published models by their places."""
    places = _places(report.entries)
    return [
        {
            **_rounded(standing_record(item)),
            "entry": places[id(item.entry)],
            "strategy": report.strategies.index(item.strategy),
            "rivals": [[places[id(rival.entry)], number(rival.score)] for rival in item.rivals],
            "peers": [places[id(rival.entry)] for rival in item.peers],
        }
        for item in report.standings
        if item.rivals
    ]


def _rounded(content: Any) -> Any:
    if isinstance(content, dict):
        return {name: _rounded(value) for name, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [_rounded(value) for value in content]
    return number(content) if isinstance(content, float) else content


def _shown_rows(report: Report) -> list[GroupScore]:
    """The groups that the page cannot work out of the tasks: own intervals, and what papers print."""
    return [
        row
        for row in report.groups
        if not row.group.derived
        and (row.entry.kind != "published" or row.group.axis == "suite" or row.scored is None)
    ]


def _comparison(item: Compared, place: Mapping[str, int]) -> Json:
    pairs, ranking = item.pairs, item.ranking
    return {
        "suite": item.suite,
        "strategy": item.strategy,
        "sample": item.sample,
        "entries": item.entries,
        "tasks": len(item.datasets),
        "datasets": [place[name] for name in item.datasets],
        "left_out": item.left_out,
        "difference": [] if pairs is None else _matrix(pairs.difference),
        "low": [] if pairs is None else _matrix(pairs.low),
        "high": [] if pairs is None else _matrix(pairs.high),
        "p": [] if pairs is None else _matrix(pairs.p_value),
        "p_holm": _matrix(item.p_holm),
        "p_bh": _matrix(item.p_bh),
        "wins": _matrix(item.wins),
        "rank": [] if ranking is None else ranking.rank.tolist(),
        "rank_low": [] if ranking is None else ranking.low.tolist(),
        "rank_high": [] if ranking is None else ranking.high.tolist(),
    }


def _judges(report: Report, place: Mapping[str, int]) -> list[Json]:
    entries = _places(report.entries)
    return [
        {
            "entry": entries[id(item.entry)],
            "dataset": place[item.experiment.dataset.id],
            "strategy": report.strategies.index(item.experiment.strategy),
            "judges": list(item.judges),
            "measure": item.measure,
            "value": number(item.value),
            "missing": item.missing,
        }
        for item in report.agreements
    ]


def _coverage(report: Report, place: Mapping[str, int]) -> Json:
    entries, reasons = _places(report.entries), dict[str, int]()
    rows = [
        {
            "entry": entries[id(gap.entry)],
            "dataset": place[gap.dataset.id],
            "strategy": report.strategies.index(gap.strategy),
            "reason": reasons.setdefault(gap.reason, len(reasons)),
            "state": gap.state,
        }
        for gap in report.gaps
    ]
    return {
        "reasons": list(reasons),
        **_columns(rows, ("entry", "dataset", "strategy", "reason", "state")),
    }


# ---------------------------------------------------------------------- pages of tasks


def _tasks(report: Report, datasets: Sequence[Dataset], text: Text, room: int) -> Json:
    """Pages of the datasets, with examples as far as there is room for them."""
    answered: dict[str, list[tuple[int, Experiment]]] = {}
    for index, entry in enumerate(report.entries):
        if entry.kind != "published":
            for item in entry.experiments.values():
                answered.setdefault(item.dataset.id, []).append((index, item))
    pages = {
        dataset.id: task_page(dataset, report.strategies, [item for _, item in answered.get(dataset.id, [])])
        for dataset in datasets
    }
    if text == "none" or not answered:
        return pages
    budget = min(_MOST_PER_TASK, (room - size(pages)) // len(answered))
    by_id = {dataset.id: dataset for dataset in datasets}
    for name, items in answered.items():
        items.sort(key=lambda pair: report.strategies.index(pair[1].strategy))
        pages[name]["examples"] = examples(
            by_id[name], items, budget, report.faults, include_text=text == "all"
        )
    return pages
