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
from medtasks_ext.registry.strategies import strategy_order, strategy_title
from medtasks_ext.report.axes import axis_titles, order, title
from medtasks_ext.report.figures import calibration_words
from medtasks_ext.report.groups import Group, groups_of
from medtasks_ext.results.conditions import State, confirmed_words
from medtasks_ext.results.labels import is_within
from medtasks_ext.results.rollup import Nearness

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

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
    screen = console()
    if not sections:
        screen.print(
            "no scores of single tasks are published; `medtasks study reproduce` lists what the papers print"
        )
    _dim("rank: among entries with all of its tasks under the same conditions; cut: truncated answers")
    for name in dict.fromkeys(row["suite"] for row in suites if row["tasks"] > 1):
        if name and not (suite := report.tasks.suites[name]).averaged:
            _dim(f"{suite.title}: {suite.mean_rule or 'its tasks have no mean'}")
    used = {item.dataset.id: item.dataset for entry in report.own for item in entry.experiments.values()}
    for name, dataset in used.items():
        if dataset.metadata.draft:
            _dim(f"{name} is a draft, in no group: {dataset.metadata.draft}")
    beside = [row for row in report.standings.to_pylist() if row["rivals"]]
    for row in sorted(beside, key=lambda row: (not row["ranked"], -row["comparable"]))[:_STANDINGS]:
        name = f"{row['entry']}: " if len(report.own) > 1 else ""
        screen.print(f"\n{name}{row['sentence']}", style="bold", markup=False)
        for line in row["remarks"]:
            screen.print(f"  {line}", markup=False)
    if len(beside) > _STANDINGS:
        _dim(f"and {len(beside) - _STANDINGS} more; --json has all")
    _print_axes(report, rows, files)
    _print_labels(report, files)
    sure = "differences between entries on the tasks that they share; p after Holm's correction"
    sections_in_words: dict[str, Iterable[str]] = {
        sure: _sure(report),
        "by likelihood: how sure the model is, means over tasks": calibration_words(
            report.calibration, report.tasks
        ),
        "without a score": _lacking(report),
        "cost": _costs(report),
        "caveats": report.differences,
        "faults": map(str, report.faults),
    }
    for heading, said in sections_in_words.items():
        if lines := list(said):
            screen.print(f"\n{heading}:", style="bold", markup=False)
        for line in lines[:_SAID]:
            screen.print(f"- {line}", markup=False)
        if len(lines) > _SAID:
            screen.print(f"- and {len(lines) - _SAID} more; --json has all", markup=False)


def _dim(line: str) -> None:
    console().print(line, style="dim", markup=False)


def _entry_of(report: Report, row: Json) -> Entry:
    return next(entry for entry in report.entries if entry.label == row["entry"])


# ---------------------------------------------------------------------- suites


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
        figure("rank", ["{rank}/{rank_of}"]),
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
    every = [row for rows in sections.values() for row in rows]
    for holds, meaning in (
        (any(row["interval_rough"] for row in every), ROUGH_MEANS),
        (any(row["estimate_half"] is not None for row in every), ESTIMATE_MEANS),
        (any(map(_by_paper, every)), f"]{_PAPER}: the interval that the suite's paper prints"),
    ):
        if holds:
            console().print(meaning, markup=False)


def _heading(report: Report) -> str:
    own, published = len(report.own), len(report.entries) - len(report.own)
    heading = escape(report.own[0].label) if own == 1 else f"{own} entries"
    if not own:
        return f"the best of {published} published models"
    if published:
        heading += f", beside {published} published models"
        rows = [row for row in report.standings.to_pylist() if row["rivals"]]
        asked, of = (sum(row[name] for row in rows) for name in ("official", "tasks"))
        states = {state: sum(row[state] for row in rows) for state in get_args(State)}
        if of:
            heading += f"; official prompts in {asked} of {of} tasks; {confirmed_words(states, of)}"
    if not report.sample:
        return heading
    every = all(entry.sample for entry in report.own)
    return f"{heading}\nSAMPLE DATA: {'synthetic rows' if every else 'some rows are synthetic'}, not a result"


def _tasks(row: Json) -> str:
    marks = {"partial": row["partial"], "limited": row["limited"]}
    if row["estimate_half"] is not None:  # some documents were asked alone: how near the estimate is
        del marks["limited"]
        marks[Nearness(row["estimate_half"], row["documents"], row["documents_of"]).words] = True
    marks |= {"rows in part": row["rows_in_part"] and not row["limited"], "judged in part": row["pending"]}
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


# ---------------------------------------------------------------------- axes and labels


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
        where = f"groups.csv and report.html{'' if files else ' of -o OUT'}"
        _dim(f"by language, specialty, stage and the suites' own axes: {where}")


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


def _print_labels(report: Report, files: bool) -> None:
    """A table for each axis, suite, strategy and entry, if they are few; no values within others."""
    places: dict[tuple[str, ...], list[Json]] = {}
    for row in report.labels.to_pylist():
        place = (row["axis"], row["suite"], row["strategy"], row["entry"])
        places.setdefault(place, []).append(row)
    where = f"labels.csv{'' if files else ' of -o OUT'}"
    if len(places) > _TABLES:
        _dim(f"by {' and '.join(dict.fromkeys(axis for axis, *_ in places))}: {where}")
        return
    ends = ("{{{0}:.4f}} \\[{{{1}_low:.3f}}, {{{1}_high:.3f}}]", "{{{0}:.4f}}")
    for (axis, suite, strategy, label), some in places.items():
        heading = f"by {axis}: {label}, {report.tasks.suites[suite].title}, {strategy_title(strategy)}"
        heading += " (SAMPLE DATA)" if some[0]["sample"] else ""
        columns = [
            texts(axis, "value"),
            figure("documents", "{documents:,} of {documents_of_all:,}"),
            figure("tasks"),
            figure("score", [end.format("score", "interval") for end in ends]),
            figure("all of these tasks", [end.format("score_of_all", "of_all") for end in ends]),
        ]
        shown = [row for row in some if not is_within(row)]
        show(shown, columns, heading, pad_edge=False)
        if left := len(some) - len(shown):
            typer.echo(f"and {left} values within these: {where}")


# ---------------------------------------------------------------------- in words


def _sure(report: Report) -> Iterator[str]:
    """What the comparisons found: each pair where they are few, else how many differ."""
    place = itemgetter("suite", "strategy", "sample")
    for (suite, strategy, sample), rows in groupby(report.pairs.to_pylist(), key=place):
        pairs = list(rows)
        of = f"{report.tasks.suites[suite].title}, {strategy_title(strategy)}"
        of += f", {counted(pairs[0]['tasks'], 'task')}{', SAMPLE' * sample}"
        if len(pairs) > _FEW:
            n_sure = sum(pair["p_holm"] < _ALPHA for pair in pairs)
            yield f"{of}: {n_sure} of {len(pairs)} pairs differ (p < {_ALPHA})"
            continue
        for row in pairs:
            p = f"p = {row['p_holm']:.3f}" if row["p_holm"] >= 0.001 else "p < 0.001"
            interval = f"{row['difference']:+.3f} [{row['low']:+.3f}, {row['high']:+.3f}]"
            yield f"{of}: {row['entry']} − {row['minus']} = {interval}, {p}"


def _lacking(report: Report) -> Iterator[str]:
    """How many tasks have no score, and why; strategies of a suite not asked at all are left out."""
    asked = {
        (entry.label, item.dataset.metadata.suite, item.strategy)
        for entry in report.own
        for item in entry.experiments.values()
    }
    counts: dict[tuple[str, str, str], Counter[str]] = {}
    for row in report.gaps.to_pylist():
        if (place := (row["entry"], row["suite"], row["strategy"])) in asked:
            counts.setdefault(place, Counter())[row["state"]] += 1
    for (entry, suite, strategy), states in counts.items():
        parts = ", ".join(f"{n} {state}" for state, n in states.items())
        yield f"{entry}, {report.tasks.suites[suite].title}, {strategy_title(strategy)}: {parts}"


def _costs(report: Report) -> Iterator[str]:
    for row in report.costs.to_pylist():
        if row["counted"]:
            batch = "" if row["usd_batch"] is None else f" ({row['usd_batch']:,.2f} as a batch)"
            paid = "" if row["usd"] is None else f"{row['usd']:,.2f} USD{batch}: "
            yield f"{row['entry']}: {paid}{row['price']}"
        if row["jury"]:
            yield f"{row['entry']}, jury: {_jury_words(row['jury'])}{unsure_words(row['jury']['unsure'])}"


def _jury_words(jury: Json) -> str:
    if not jury["replies"]:
        return "cost not recorded"
    if jury["usd"] is None:
        return f"cost not known, {counted(jury['replies'], 'judgement')} by judges without a price"
    words = f"{jury['usd']:,.2f} USD for {counted(jury['replies'] - jury['unpriced'], 'judgement')}"
    words += f", without {jury['unpriced']:,} by judges without a price" if jury["unpriced"] else ""
    return words + (f", tokens of {jury['estimated']:,} not counted" if jury["estimated"] else "")
