"""A report on the terminal."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from statistics import median
from typing import TYPE_CHECKING

from rich.markup import escape

from medtasks_ext.cli.cost_words import answers_words, jury_words
from medtasks_ext.cli.label_tables import print_labels
from medtasks_ext.cli.standing import print_standings
from medtasks_ext.cli.tables import ROUGH, ROUGH_MEANS, Column, console, figure, show
from medtasks_ext.cli.words import counted, readable_line
from medtasks_ext.registry.strategies import strategy_order, strategy_title
from medtasks_ext.report.axes import axis_titles, order, title
from medtasks_ext.report.judged import calibrated_scores

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from medtasks_ext.registry import Suite
    from medtasks_ext.report.frames import Frames
    from medtasks_ext.report.gather import Report
    from medtasks_ext.report.groups import GroupScore
    from medtasks_ext.report.within import Within
    from medtasks_ext.stats.comparison import Comparison

_FEW = 3  # columns of scores side by side; pairs that are listed
_SAID = 12  # lines of differences or faults
_ALPHA = 0.05
_BEST = 5  # published models of a suite and strategy, in a report without a run


def unaveraged(report: Report, rows: Iterable[GroupScore]) -> list[str]:
    """A line for each suite whose rows have no score, because its tasks have no mean."""
    found = dict.fromkeys(row.group.suite for row in rows if not row.group.parts and row.group.suite)
    suites = [report.tasks.suites[name] for name in found]
    return [f"{suite.title}: {suite.mean_rule or 'its tasks have no mean'}" for suite in suites]


def _drafts(report: Report) -> list[str]:
    """A line for each draft that was run: it is in no row above."""
    used = {item.dataset.id: item.dataset for entry in report.own for item in entry.experiments.values()}
    return [
        f"{name} is a draft, in no group: {dataset.metadata.draft}"
        for name, dataset in used.items()
        if dataset.metadata.draft
    ]


def print_report(frames: Frames, *, files: bool) -> None:
    """Scores by suite and strategy, by the suites' main axes, then what to know in words.

    Args:
        frames: of the report.
        files: whether files are written, too, which say more.
    """
    report = frames.report
    rows = [row for row in report.groups if row.entry.kind != "published"]
    suites = [row for row in rows or _best(report) if row.group.axis == "suite"]
    whole = [row for row in rows if row.group.axis == "all" and len(_suites_of(row)) > 1]
    sections = _sections([*report.tasks.suites, "all"], [*suites, *whole])
    _print_main(report, sections)
    if not sections:
        console().print(
            "no scores of single tasks are published; `medtasks reproduce` lists what the papers print"
        )
    console().print(
        "rank: among entries with all of its tasks that were asked alike; cut: answers that fill the budget",
        style="dim",
    )
    for line in [*unaveraged(report, suites), *_drafts(report)]:
        console().print(line, style="dim", markup=False)
    print_standings(report.standings, labelled=len(report.own) > 1)
    _print_axes(report, rows, files)
    print_labels(report.labels, report.tasks, files=files)
    for heading, lines in (
        ("how much of a score is format", _formats(suites)),
        (
            "differences between entries on the tasks that they share; p after Holm's correction",
            _sure(frames),
        ),
        ("one model, asked in two ways: paired by document; p after Holm's correction", _within(report)),
        ("judged scores on the scale of other raters; in no rank", _calibrated(report)),
        ("without a score", _lacking(report)),
        ("cost", _costs(report)),
        ("to know before comparing", report.differences),
        ("faults", [str(fault) for fault in report.faults]),
    ):
        _print_lines(heading, lines)


def _best(report: Report) -> list[GroupScore]:
    """The best published models of each suite and strategy, of those with the most tasks, without a run."""
    sections: dict[tuple[str, str], list[GroupScore]] = {}
    for row in report.groups:
        if row.group.axis == "suite" and row.group.value == row.entry.paper and row.scored:
            sections.setdefault((row.group.value, row.strategy), []).append(row)
    found: list[GroupScore] = []
    for rows in sections.values():
        most = max(row.scored or 0 for row in rows)
        found += sorted((row for row in rows if row.scored == most), key=lambda row: -(row.score or 0))[
            :_BEST
        ]
    return found


def _suites_of(row: GroupScore) -> set[str]:
    """The suites in whose folders the scored tasks of an entry and strategy lie."""
    return {
        item.dataset.suite.id
        for item in row.entry.experiments.values()
        if item.strategy == row.strategy and item.score is not None and item.dataset.metadata.grouped
    }


def _sections(places: Sequence[str], rows: Sequence[GroupScore]) -> dict[tuple[str, str], list[GroupScore]]:
    """(title of the group, strategy) -> rows, groups in the order of `places`; the best first."""
    found: dict[tuple[str, str], list[GroupScore]] = {}
    for row in sorted(rows, key=lambda row: (places.index(row.group.value), strategy_order(row.strategy))):
        found.setdefault((title(row.group.axis, row.group.value), row.strategy), []).append(row)
    for section in found.values():
        section.sort(key=lambda row: (row.sample, row.score is None, -(row.score or 0)))
    return found


def _print_main(report: Report, sections: dict[tuple[str, str], list[GroupScore]]) -> None:
    alone = len(report.own) == 1
    columns = [
        Column("suite" if alone else "suite, entry", settings={"overflow": "fold", "min_width": 16}),
        Column("score [95 % interval]", settings={"no_wrap": True}),
        *map(figure, ("rank", "valid", "cut")),
        Column("tasks"),
    ]
    lines: list[tuple[str, ...]] = []
    for (name, strategy), rows in sections.items():
        if not alone:
            lines.append((f"[bold]{name}, {strategy_title(strategy)}[/bold]",))
        for row in rows:
            label = f"{name}, {strategy_title(strategy)}" if alone else f"  {escape(row.entry.label)}"
            lines.append((label + (" SAMPLE" if row.sample else ""), *_cells(row)))
        for label, score in _published(report, rows) if report.own else ():
            lines.append((f"[dim]  {escape(label)}[/dim]", f"[dim]{score:.4f}[/dim]"))
    show(lines, columns, _heading(report), collapse_padding=True, pad_edge=False, title_style="bold")
    if any(row.rough for rows in sections.values() for row in rows):
        console().print(ROUGH_MEANS, markup=False)


def _heading(report: Report) -> str:
    own, published = len(report.own), len(report.entries) - len(report.own)
    heading = escape(report.own[0].label) if own == 1 else f"{own} entries"
    if not own:
        return f"the best of {published} published models"
    if published:
        heading += f", beside {published} published models"
        counted = [item for item in report.standings if item.rivals]
        asked, of = sum(item.official for item in counted), sum(item.tasks for item in counted)
        heading += f"; {asked} of {of} tasks asked in the suites' own words" if of else ""
    if not report.sample:
        return heading
    every = all(entry.sample for entry in report.own)
    return f"{heading}\nSAMPLE DATA: {'synthetic rows' if every else 'some rows are synthetic'}, not a result"


def _cells(row: GroupScore) -> list[str]:
    tasks = "" if row.scored is None else f"{row.scored}/{row.group.n_tasks}"
    marks = {
        "partial": row.partial,
        "limited": row.entry.limited,
        "rows in part": bool(row.short) and not row.entry.limited,
        "judged in part": bool(row.pending),
    }
    said = ", ".join(mark for mark, holds in marks.items() if holds)
    return [
        _score(row, 4),
        "–" if row.rank is None else f"{row.rank}/{row.of}",
        _share(row.valid),
        _share(row.cut),
        f"{tasks} {said}".strip(),
    ]


def _formats(rows: Sequence[GroupScore]) -> list[str]:
    """What an entry's score would be if every readable answer counted."""
    return [
        f"{row.entry.label}, {title(row.group.axis, row.group.value)}, {strategy_title(row.strategy)}: "
        + readable_line(row.valid, row.readable, row.score, row.if_readable, sample=row.sample)
        for row in rows
        if None not in (row.readable, row.score)
    ]


def _score(row: GroupScore, digits: int) -> str:
    if row.score is None:
        return "–"
    interval = "–" if row.low is None else f"{row.low:.3f}, {row.high:.3f}"
    return f"{row.score:.{digits}f} \\[{interval}]{ROUGH if row.rough else ''}"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"


def _published(report: Report, rows: Sequence[GroupScore]) -> list[tuple[str, float]]:
    """Best and median of the published models on the tasks of these rows, if all rows have the same."""
    asked = {frozenset(_scored(row)) for row in rows if row.score is not None and not row.sample}
    unlike = any(row.unlike for row in rows)
    if len(asked) != 1 or rows[0].group.axis == "all":
        return []
    [names], group, strategy = asked, rows[0].group, rows[0].strategy
    weights = group.weights(names)
    found = {}
    for entry in report.entries:
        if entry.kind != "published":
            continue
        scores = {
            item.dataset.id: item.score for item in entry.experiments.values() if item.strategy == strategy
        }
        if weights and all(scores.get(name) is not None for name in weights):
            found[entry.model] = sum(weight * (scores[name] or 0) for name, weight in weights.items())
        elif len(weights) == group.n_tasks and strategy == "zero_shot" and group.name in entry.groups:
            found[entry.model] = entry.groups[group.name]
    if not found:
        return []
    best = max(found, key=found.__getitem__)
    of = "this task" if len(weights) == 1 else f"these {len(weights)} tasks"
    some = "" if len(weights) == group.n_tasks else f", on {of}"
    some += ", asked otherwise" * unlike
    lines = [(f"best published: {best}{some}", found[best])]
    return [*lines, (f"median of {len(found)} published{some}", median(found.values()))]


def _scored(row: GroupScore) -> list[str]:
    members = set(row.group.datasets)
    return [
        item.dataset.id
        for item in row.entry.experiments.values()
        if item.strategy == row.strategy and item.score is not None and item.dataset.id in members
    ]


def _print_axes(report: Report, rows: Sequence[GroupScore], files: bool) -> None:
    """A table per suite: values of its main axes down, entries and strategies across, if they are few."""
    left_out = False
    for suite in report.tasks.suites.values():
        of_suite = [row for row in rows if row.group.suite == suite.id and row.group.axis in suite.main_axes]
        columns = list(
            dict.fromkeys((id(row.entry), row.strategy) for row in of_suite if row.score is not None)
        )
        if len(columns) > _FEW:
            left_out = True
        elif columns:
            _print_suite(report, suite, of_suite, columns)
    if left_out:
        where = "groups.csv and report.html" if files else "groups.csv and report.html of -o OUT"
        console().print(f"by language, specialty, stage and the suites' own axes: {where}", style="dim")


def _print_suite(
    report: Report, suite: Suite, rows: Sequence[GroupScore], ways: Sequence[tuple[int, str]]
) -> None:
    entries = {id(entry): entry for entry in report.own}
    sample = any(entries[key].sample for key, _ in ways)
    heading = suite.title + (" (SAMPLE DATA)" if sample else "")
    columns = [Column("", settings={"overflow": "fold", "min_width": 12})]
    labels = len({key for key, _ in ways}) > 1
    for key, strategy in ways:
        name = f"{escape(entries[key].label)}, " if labels else ""
        columns.append(
            Column(name + strategy_title(strategy), settings={"overflow": "fold", "min_width": 20})
        )
    columns.append(Column("tasks", settings={"justify": "right"}))
    lines: list[tuple[str, ...]] = []
    found = {(row.group.axis, row.group.value, id(row.entry), row.strategy): row for row in rows}
    for axis in suite.main_axes:
        values = sorted(
            {row.group.value for row in rows if row.group.axis == axis}, key=lambda v: order(axis, v)
        )
        lines.append((f"[bold]{axis_titles()[axis].partition(' (')[0]}[/bold]",))
        for value in values:
            cells = [found.get((axis, value, *way)) for way in ways]
            tasks = dict.fromkeys(f"{row.scored}/{row.group.n_tasks}" for row in cells if row)
            scores = ["–" if row is None else _score(row, 3) for row in cells]
            lines.append((f"  {title(axis, value)}", *scores, " ".join(tasks)))
    show(lines, columns, heading, pad_edge=False, title_style="bold")


def _sure(frames: Frames) -> list[str]:
    """What the comparisons found: each pair where they are few, else how many differ."""
    report, lines, every = frames.report, [], iter(frames.pairs.to_pylist())
    for item in report.comparisons:
        tested = 0 if item.pairs is None else item.tested
        pairs = list(islice(every, tested * (tested - 1) // 2))
        of = f"{report.tasks.suites[item.suite].title}, {strategy_title(item.strategy)}"
        of += f", {counted(len(item.datasets), 'task')}"
        of += ", SAMPLE" if item.sample else ""
        if len(pairs) <= _FEW:
            lines += [
                f"{of}: {pair['entry']} − {pair['minus']} = {pair['difference']:+.3f} "
                f"[{pair['low']:+.3f}, {pair['high']:+.3f}], {_p(pair['p_holm'])}"
                for pair in pairs
            ]
        else:
            found = sum(pair["p_holm"] < _ALPHA for pair in pairs)
            lines.append(f"{of}: {found} of {len(pairs)} pairs differ (p < {_ALPHA})")
    return lines


def _within(report: Report) -> list[str]:
    """The pairs of each model; of many models in how many one way is better."""
    sections: dict[tuple[str, str], list[Within]] = {}
    for item in report.within:
        strategies = item.question == "strategies"
        sections.setdefault((item.suite, item.pair if strategies else item.question), []).append(item)
    lines = []
    for (suite, pair), items in sections.items():
        of = report.tasks.suites[suite].title
        if len(items) <= _FEW:
            lines += [
                f"{item.after} − {item.before}, {of}, {counted(item.tasks, 'task')}"
                f"{', SAMPLE' * item.sample}: {_difference(item.comparison)}, {_p(item.p_holm)}"
                for item in items
            ]
            continue
        better, sure = (
            [item for item in items if item.comparison.difference > 0 and item.p_holm < level]
            for level in (2, _ALPHA)
        )
        worse = [item for item in items if item.comparison.difference < 0 and item.p_holm < _ALPHA]
        lines.append(
            f"{pair}, {of}: better in {len(better)} of {len(items)} (p < {_ALPHA}: {len(sure)}; worse with "
            f"p < {_ALPHA}: {len(worse)})"
        )
    return lines


def _difference(found: Comparison) -> str:
    return f"{found.difference:+.3f} [{found.interval.low:+.3f}, {found.interval.high:+.3f}]"


def _p(value: float) -> str:
    return f"p = {value:.3f}" if value >= 0.001 else "p < 0.001"


def _calibrated(report: Report) -> list[str]:
    return [
        f"{entry.label}, {item.task}: {item.score or 0:.4f} by the jury, "
        f"{item.metrics['score_calibrated']:.4f} on the scale of {how['rater']} "
        f"({how['anchors']} anchors, out of sample {how['error']:.3f} off)"
        for entry in report.own
        for item, how in calibrated_scores(entry)
    ]


def _lacking(report: Report) -> list[str]:
    """How many tasks have no score, and why; strategies of a suite not asked at all are left out."""
    asked = {
        (id(entry), item.dataset.metadata.suite, item.strategy)
        for entry in report.own
        for item in entry.experiments.values()
    }
    lines = []
    for entry in report.own:
        counts = Counter(
            (gap.dataset.suite.title, gap.strategy, gap.state)
            for gap in report.gaps
            if gap.entry is entry and (id(entry), gap.dataset.metadata.suite, gap.strategy) in asked
        )
        groups: dict[tuple[str, str], list[str]] = {}
        for (suite, strategy, state), n in counts.items():
            groups.setdefault((suite, strategy), []).append(f"{n} {state}")
        lines += [
            f"{entry.label}, {suite}, {strategy_title(strategy)}: {', '.join(parts)}"
            for (suite, strategy), parts in groups.items()
        ]
    return lines


def _costs(report: Report) -> list[str]:
    lines = []
    for entry, cost in zip(report.entries, report.costs, strict=True):
        if entry.kind == "published":
            continue
        if cost.tokens:
            lines.append(f"{entry.label}: {answers_words(cost)}{cost.rule}")
        if cost.jury:
            lines.append(f"{entry.label}, jury: {jury_words(cost.jury)}")
    return lines


def _print_lines(heading: str, lines: Sequence[str]) -> None:
    if not lines:
        return
    console().print(f"\n{heading}:", style="bold", markup=False)
    for line in lines[:_SAID]:
        console().print(f"- {line}", markup=False)
    if len(lines) > _SAID:
        console().print(f"- and {len(lines) - _SAID} more; --json has all", markup=False)
