"""A report on the terminal."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from operator import itemgetter
from statistics import median
from typing import TYPE_CHECKING, get_args

import typer
from rich.markup import escape

from medtasks_ext.cli.tables import ESTIMATE_MEANS, ROUGH, ROUGH_MEANS, Column, console, figure, show, texts
from medtasks_ext.cli.words import counted, unsure_words
from medtasks_ext.judge.store import JudgingCost
from medtasks_ext.registry.strategies import strategy_order, strategy_title
from medtasks_ext.report.axes import axis_titles, order, title
from medtasks_ext.report.figures import calibration_words
from medtasks_ext.report.groups import Group, groups_of
from medtasks_ext.results.conditions import State, confirmed_words
from medtasks_ext.results.labels import is_within
from medtasks_ext.results.rollup import Nearness

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Suite
    from medtasks_ext.report.gather import Report
    from medtasks_ext.results.experiments import Entry

_FEW = 3  # columns of scores side by side; pairs that are listed
_SAID = 12  # lines of differences or faults
_ALPHA = 0.05
_BEST = 5  # published models of a suite and strategy, in a report without a run
_STANDINGS = 6  # that are printed
_PAPER = "p"  # behind an interval that a paper prints
_TABLES = 12  # of labels; more are no help on a terminal


def _unaveraged(report: Report, rows: Iterable[Json]) -> list[str]:
    """A line for each suite whose rows have no score, because its tasks have no mean."""
    suites = report.tasks.suites
    named = dict.fromkeys(row["suite"] for row in rows if row["tasks"] > 1)
    return [
        f"{suites[name].title}: {suites[name].mean_rule or 'its tasks have no mean'}"
        for name in named
        if name and not suites[name].averaged
    ]


def _drafts(report: Report) -> list[str]:
    used = {item.dataset.id: item.dataset for entry in report.own for item in entry.experiments.values()}
    return [
        f"{name} is a draft, in no group: {dataset.metadata.draft}"
        for name, dataset in used.items()
        if dataset.metadata.draft
    ]


def print_report(report: Report, *, files: bool) -> None:
    """Scores by suite and strategy, by the suites' main axes, then what to know in words.

    `files`: whether files are written, too, which say more.
    """
    every = report.groups.to_pylist()
    rows = [row for row in every if row["kind"] != "published"]
    suites = [row for row in rows or _best(report, every) if row["axis"] == "suite"]
    whole = [row for row in rows if row["axis"] == "all" and len(_suites_of(report, row)) > 1]
    sections = _sections([*report.tasks.suites, "all"], [*suites, *whole])
    _print_main(report, sections)
    if not sections:
        console().print(
            "no scores of single tasks are published; `medtasks study reproduce` lists what the papers print"
        )
    console().print(
        "rank: among entries with all of its tasks that were asked alike; cut: answers that fill the budget",
        style="dim",
    )
    for line in [*_unaveraged(report, suites), *_drafts(report)]:
        console().print(line, style="dim", markup=False)
    _print_standings(report)
    _print_axes(report, rows, files)
    _print_labels(report, files)
    for heading, lines in (
        (
            "differences between entries on the tasks that they share; p after Holm's correction",
            _sure(report),
        ),
        (
            "by likelihood: how sure the model is, means over tasks",
            calibration_words(report.calibration, report.tasks),
        ),
        ("without a score", _lacking(report)),
        ("cost", _costs(report)),
        ("to know before comparing", report.differences),
        ("faults", [str(fault) for fault in report.faults]),
    ):
        _print_lines(heading, lines)


def _entry_of(report: Report, row: Json) -> Entry:
    return next(entry for entry in report.entries if entry.label == row["entry"])


def _best(report: Report, every: Iterable[Json]) -> list[Json]:
    """The best published models of each suite and strategy, of those with the most tasks, without a run."""
    papers = {entry.label: entry.paper for entry in report.entries}
    sections: dict[tuple[str, str], list[Json]] = {}
    for row in every:
        if row["axis"] == "suite" and row["value"] == papers[row["entry"]] and row["tasks_scored"]:
            sections.setdefault((row["value"], row["strategy"]), []).append(row)
    best: list[Json] = []
    for rows in sections.values():
        most = max(row["tasks_scored"] for row in rows)
        rows = [row for row in rows if row["tasks_scored"] == most]
        best += sorted(rows, key=lambda row: -(row["score"] or 0))[:_BEST]
    return best


def _suites_of(report: Report, row: Json) -> set[str]:
    """The suites in whose folders the scored tasks of an entry and strategy lie."""
    return {
        item.dataset.suite.id
        for item in _entry_of(report, row).experiments.values()
        if item.strategy == row["strategy"] and item.score is not None and item.dataset.metadata.grouped
    }


def _sections(places: Sequence[str], rows: Sequence[Json]) -> dict[tuple[str, str], list[Json]]:
    """(title of the group, strategy) -> rows, groups in the order of `places`; the best first."""
    sections: dict[tuple[str, str], list[Json]] = {}
    for row in sorted(rows, key=lambda row: (places.index(row["value"]), strategy_order(row["strategy"]))):
        sections.setdefault((row["title"], row["strategy"]), []).append(row)
    for section in sections.values():
        section.sort(key=lambda row: (row["sample"], row["score"] is None, -(row["score"] or 0)))
    return sections


def _print_main(report: Report, sections: dict[tuple[str, str], list[Json]]) -> None:
    alone = len(report.own) == 1
    columns = [
        Column("suite" if alone else "suite, entry", "label", settings={"overflow": "fold", "min_width": 16}),
        Column("score [95 % interval]", lambda row: _score(row, 4), settings={"no_wrap": True}),
        figure("rank", lambda row: "–" if row["rank"] is None else f"{row['rank']}/{row['rank_of']}"),
        figure("valid", form=".1%"),
        figure("cut", form=".1%"),
        Column("tasks", _tasks),
    ]
    lines: list[Json | tuple[str, ...]] = []
    for (name, strategy), rows in sections.items():
        named = f"{name}, {strategy_title(strategy)}"
        if not alone:
            lines.append((f"[bold]{named}[/bold]",))
        for row in rows:
            label = named if alone else f"  {escape(row['entry'])}"
            lines.append({**row, "label": label + " SAMPLE" * row["sample"]})
        for label, score in _published(report, rows) if report.own else ():
            lines.append((f"[dim]  {escape(label)}[/dim]", f"[dim]{score:.4f}[/dim]"))
    show(lines, columns, _heading(report), collapse_padding=True, pad_edge=False, title_style="bold")
    if any(row["interval_rough"] for rows in sections.values() for row in rows):
        console().print(ROUGH_MEANS, markup=False)
    if any(row["estimate_half"] is not None for rows in sections.values() for row in rows):
        console().print(ESTIMATE_MEANS, markup=False)
    if any(_by_paper(row) for rows in sections.values() for row in rows):
        console().print(f"]{_PAPER}: the interval that the suite's paper prints", markup=False)


def _heading(report: Report) -> str:
    own, published = len(report.own), len(report.entries) - len(report.own)
    heading = escape(report.own[0].label) if own == 1 else f"{own} entries"
    if not own:
        return f"the best of {published} published models"
    if published:
        heading += f", beside {published} published models"
        rows = [row for row in report.standings.to_pylist() if row["rivals"]]
        asked, of = (sum(row[name] for row in rows) for name in ("official", "tasks"))
        heading += f"; {asked} of {of} tasks asked in the suites' own words" if of else ""
        states = {state: sum(row[state] for row in rows) for state in get_args(State)}
        heading += f"; {confirmed_words(states, of)}" if of else ""
    if not report.sample:
        return heading
    every = all(entry.sample for entry in report.own)
    return f"{heading}\nSAMPLE DATA: {'synthetic rows' if every else 'some rows are synthetic'}, not a result"


def _nearness(row: Json) -> dict[str, bool]:
    """That some documents were asked alone, and how near an estimate is."""
    if row["estimate_half"] is None:
        return {"limited": row["limited"]}
    return {Nearness(row["estimate_half"], row["documents"], row["documents_of"]).words: True}


def _tasks(row: Json) -> str:
    marks = {
        "partial": row["partial"],
        **_nearness(row),
        "rows in part": row["rows_in_part"] and not row["limited"],
        "judged in part": row["pending"],
    }
    said = ", ".join(mark for mark, holds in marks.items() if holds)
    tasks = "" if row["tasks_scored"] is None else f"{row['tasks_scored']}/{row['tasks']}"
    return f"{tasks} {said}".strip()


def _score(row: Json, digits: int) -> str:
    if row["score"] is None:
        return "–"
    low, high = row["interval_low"], row["interval_high"]
    mark = ROUGH if row["interval_rough"] else ""
    if _by_paper(row):
        low, high, mark = row["paper_interval_low"], row["paper_interval_high"], _PAPER
    between = "–" if low is None else f"{low:.3f}, {high:.3f}"
    return f"{row['score']:.{digits}f} \\[{between}]{mark}"


def _by_paper(row: Json) -> bool:
    """Whether the only interval of a score is the one that the suite's paper prints."""
    return row["interval_low"] is None and row["paper_interval_low"] is not None


def _published(report: Report, rows: Sequence[Json]) -> list[tuple[str, float]]:
    """Best and median of the published models on the tasks of these rows, if all rows have the same."""
    first = rows[0]
    if first["axis"] == "all":
        return []
    [group] = [
        item for item in groups_of(report.tasks) if (item.axis, item.value) == ("suite", first["value"])
    ]
    strategy = first["strategy"]
    scored = [row for row in rows if row["score"] is not None and not row["sample"]]
    asked = {frozenset(_scored(_entry_of(report, row), group, strategy)) for row in scored}
    if len(asked) != 1:
        return []
    [names] = asked
    weights = group.weights(names)
    by_model = {}
    for entry in report.entries:
        if entry.kind != "published":
            continue
        scores = _scored(entry, group, strategy)
        if weights and all(name in scores for name in weights):
            by_model[entry.model] = sum(weight * scores[name] for name, weight in weights.items())
        elif len(weights) == group.n_tasks and strategy == "zero_shot" and group.name in entry.groups:
            by_model[entry.model] = entry.groups[group.name]
    if not by_model:
        return []
    best = max(by_model, key=by_model.__getitem__)
    of = "this task" if len(weights) == 1 else f"these {len(weights)} tasks"
    some = "" if len(weights) == group.n_tasks else f", on {of}"
    some += ", other conditions" * any(row["other_conditions"] for row in rows)
    lines = [(f"best published: {best}{some}", by_model[best])]
    return [*lines, (f"median of {len(by_model)} published{some}", median(by_model.values()))]


def _scored(entry: Entry, group: Group, strategy: str) -> dict[str, float]:
    """Dataset of a group -> the entry's score."""
    members = set(group.datasets)
    return {
        item.dataset.id: item.score
        for item in entry.experiments.values()
        if item.strategy == strategy and item.score is not None and item.dataset.id in members
    }


def _print_standings(report: Report) -> None:
    beside = [row for row in report.standings.to_pylist() if row["rivals"]]
    for row in sorted(beside, key=lambda row: (not row["ranked"], -row["comparable"]))[:_STANDINGS]:
        name = f"{row['entry']}: " if len(report.own) > 1 else ""
        console().print(f"\n{name}{row['sentence']}", style="bold", markup=False)
        for line in row["remarks"]:
            console().print(f"  {line}", markup=False)
    if len(beside) > _STANDINGS:
        console().print(f"and {len(beside) - _STANDINGS} more; --json has all", style="dim")


def _print_labels(report: Report, files: bool) -> None:
    """A table for each axis, suite, strategy and entry, if they are few; no values within others."""
    places: dict[tuple[str, ...], list[Json]] = {}
    for row in report.labels.to_pylist():
        place = (row["axis"], row["suite"], row["strategy"], row["entry"])
        places.setdefault(place, []).append(row)
    where = f"labels.csv{'' if files else ' of -o OUT'}"
    if len(places) > _TABLES:
        axes = " and ".join(dict.fromkeys(axis for axis, *_ in places))
        console().print(f"by {axes}: {where}", style="dim")
        return
    for (axis, suite, strategy, label), some in places.items():
        heading = f"by {axis}: {label}, {report.tasks.suites[suite].title}, {strategy_title(strategy)}"
        heading += " (SAMPLE DATA)" if some[0]["sample"] else ""
        columns = [
            texts(axis, "value"),
            figure("documents", lambda row: f"{row['documents']:,} of {row['documents_of_all']:,}"),
            figure("tasks"),
            figure("score", lambda row: _of_label(row, "score", "interval")),
            figure("all of these tasks", lambda row: _of_label(row, "score_of_all", "of_all")),
        ]
        shown = [row for row in some if not is_within(row)]
        show(shown, columns, heading, pad_edge=False)
        if left := len(some) - len(shown):
            typer.echo(f"and {left} values within these: {where}")


def _of_label(row: Json, score: str, ends: str) -> str:
    low, high = row[f"{ends}_low"], row[f"{ends}_high"]
    return f"{row[score]:.4f}" + ("" if low is None else f" \\[{low:.3f}, {high:.3f}]")


def _print_axes(report: Report, rows: Sequence[Json], files: bool) -> None:
    """A table per suite: values of its main axes down, entries and strategies across, if they are few."""
    left_out = False
    for suite in report.tasks.suites.values():
        of_suite = [row for row in rows if row["suite"] == suite.id and row["axis"] in suite.main_axes]
        scored = [row for row in of_suite if row["score"] is not None]
        ways = list(dict.fromkeys((row["entry"], row["strategy"]) for row in scored))
        if len(ways) > _FEW:
            left_out = True
        elif ways:
            _print_suite(suite, of_suite, ways)
    if left_out:
        where = "groups.csv and report.html" if files else "groups.csv and report.html of -o OUT"
        console().print(f"by language, specialty, stage and the suites' own axes: {where}", style="dim")


def _print_suite(suite: Suite, rows: Sequence[Json], ways: Sequence[tuple[str, str]]) -> None:
    sample = any(row["sample"] for row in rows if (row["entry"], row["strategy"]) in ways)
    columns = [Column("", settings={"overflow": "fold", "min_width": 12})]
    labels = len({entry for entry, _ in ways}) > 1
    for entry, strategy in ways:
        heading = (f"{escape(entry)}, " if labels else "") + strategy_title(strategy)
        columns.append(Column(heading, settings={"overflow": "fold", "min_width": 20}))
    columns.append(Column("tasks", settings={"justify": "right"}))
    lines: list[tuple[str, ...]] = []
    by_place = {(row["axis"], row["value"], row["entry"], row["strategy"]): row for row in rows}
    for axis in suite.main_axes:
        values = sorted({row["value"] for row in rows if row["axis"] == axis}, key=lambda v: order(axis, v))
        lines.append((f"[bold]{axis_titles()[axis].partition(' (')[0]}[/bold]",))
        for value in values:
            cells = [by_place.get((axis, value, *way)) for way in ways]
            tasks = dict.fromkeys(f"{row['tasks_scored']}/{row['tasks']}" for row in cells if row)
            scores = ["–" if row is None else _score(row, 3) for row in cells]
            lines.append((f"  {title(axis, value)}", *scores, " ".join(tasks)))
    heading = suite.title + (" (SAMPLE DATA)" if sample else "")
    show(lines, columns, heading, pad_edge=False, title_style="bold")


def _sure(report: Report) -> list[str]:
    """What the comparisons found: each pair where they are few, else how many differ."""
    lines, place = [], itemgetter("suite", "strategy", "sample")
    for (suite, strategy, sample), rows in groupby(report.pairs.to_pylist(), key=place):
        pairs = list(rows)
        of = f"{report.tasks.suites[suite].title}, {strategy_title(strategy)}"
        of += f", {counted(pairs[0]['tasks'], 'task')}{', SAMPLE' * sample}"
        if len(pairs) <= _FEW:
            lines += [f"{of}: {row['entry']} − {row['minus']} = {_difference(row)}" for row in pairs]
        else:
            n_sure = sum(pair["p_holm"] < _ALPHA for pair in pairs)
            lines.append(f"{of}: {n_sure} of {len(pairs)} pairs differ (p < {_ALPHA})")
    return lines


def _difference(row: Json) -> str:
    p = f"p = {row['p_holm']:.3f}" if row["p_holm"] >= 0.001 else "p < 0.001"
    return f"{row['difference']:+.3f} [{row['low']:+.3f}, {row['high']:+.3f}], {p}"


def _lacking(report: Report) -> list[str]:
    """How many tasks have no score, and why; strategies of a suite not asked at all are left out."""
    asked = {
        (entry.label, item.dataset.metadata.suite, item.strategy)
        for entry in report.own
        for item in entry.experiments.values()
    }
    counts = Counter(
        ((row["entry"], row["suite"], row["strategy"]), row["state"]) for row in report.gaps.to_pylist()
    )
    groups: dict[tuple[str, str, str], list[str]] = {}
    for (place, state), n in counts.items():
        if place in asked:
            groups.setdefault(place, []).append(f"{n} {state}")
    suites = report.tasks.suites
    return [
        f"{entry}, {suites[suite].title}, {strategy_title(strategy)}: {', '.join(parts)}"
        for (entry, suite, strategy), parts in groups.items()
    ]


def _costs(report: Report) -> list[str]:
    lines = []
    for row in report.costs.to_pylist():
        if row["counted"]:
            lines.append(f"{row['entry']}: {_answers_words(row)}{row['price']}")
        if row["jury"]:
            lines.append(f"{row['entry']}, jury: {_jury_words(row['jury'])}")
    return lines


def _answers_words(row: Json) -> str:
    """What answers cost, and as a batch, by a row of `costs`; nothing where no price is known."""
    if row["usd"] is None:
        return ""
    batch = row["usd_batch"]
    return f"{row['usd']:,.2f} USD{'' if batch is None else f' ({batch:,.2f} as a batch)'}: "


def _jury_words(jury: Json) -> str:
    """What judging cost: `jury` of the frame `costs`."""
    spent = JudgingCost(**jury)
    if not spent.replies:
        words = "cost not recorded"
    elif spent.usd is None:
        words = f"cost not known, {counted(spent.replies, 'judgement')} by judges without a price"
    else:
        words = f"{spent.usd:,.2f} USD for {counted(spent.replies - spent.unpriced, 'judgement')}"
        words += f", without {spent.unpriced:,} by judges without a price" if spent.unpriced else ""
        words += f", tokens of {spent.estimated:,} not counted" if spent.estimated else ""
    return words + unsure_words(spent.unsure)


def _print_lines(heading: str, lines: Sequence[str]) -> None:
    if not lines:
        return
    console().print(f"\n{heading}:", style="bold", markup=False)
    for line in lines[:_SAID]:
        console().print(f"- {line}", markup=False)
    if len(lines) > _SAID:
        console().print(f"- and {len(lines) - _SAID} more; --json has all", markup=False)
