"""`medtasks report`: how good models are, where, and how sure that is."""

from __future__ import annotations

import json
import logging
import shlex
from collections import Counter
from collections.abc import Sequence
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from typer import Argument, Option

from medtasks_ext.atomic import private_files
from medtasks_ext.cli.commands import AsJson, ByLabels, out_option
from medtasks_ext.cli.tables import (
    SAMPLE_DATA,
    Column,
    console,
    figure,
    show,
    spread,
    texts,
)
from medtasks_ext.cli.words import counted, p_words, say, say_next, unsure_words
from medtasks_ext.jsonfile import Json
from medtasks_ext.metrics.repeats import AGREEMENT, PASS_AT_1, PASS_AT_N
from medtasks_ext.process import collector_paused
from medtasks_ext.registry import registry
from medtasks_ext.registry.strategies import strategy_order, strategy_title, suffix_of
from medtasks_ext.report.gather import Report, gather, parted
from medtasks_ext.report.groups import best_and_worst, group_scores, groups_of
from medtasks_ext.results.frames import records
from medtasks_ext.results.reading import read_results
from medtasks_ext.results.result_frame import asked_frame
from medtasks_ext.results.rollup import Nearness

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from medtasks_ext.registry import Registry
    from medtasks_ext.results.experiments import Entry


def report(
    folders: Annotated[
        list[str] | None,
        Argument(
            metavar="[RUN...]",
            help="Folders of runs, or of lm_eval --output_path; none with --published.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        str | None, out_option("Folder for the page (HTML) and the tables (CSV, Parquet).")
    ] = None,
    published: Annotated[
        str | None,
        Option(help="Published models beside yours: a suite, all or none; by default of the suites you ran."),
    ] = None,
    by: ByLabels = None,
    answers: Annotated[
        bool, Option("--answers", help="Answers to gated and private data, too: patients' text.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Report scores, strengths and weaknesses, with intervals.

    Any number of runs side by side, with intervals, ranks, paired comparisons and published models. The page
    shows the answers, too: those to open data, unless more is asked for.

    Example: medtasks report runs/A runs/B -o report

    Exit code 1: something in the runs could not be used, and is named.
    """
    logging.getLogger("medtasks_ext.metrics").setLevel(logging.ERROR)  # the run named what lacks data
    runs, labels = [Path(name) for name in folders or []], [Path(name) for name in by or []]
    with collector_paused():  # thousands of results are read, and all of them stay
        report = gather(runs, registry(), published, labels)
        written = list[Path]()
        if out is not None:
            from medtasks_ext.report.write import check_folder, write_report, write_views

            check_folder(folder := Path(out))
            if answers:
                say("--answers: the files hold text of gated and private data, as confidential as they are")
            with private_files(answers):
                written = write_report(folder, report, closed=answers)
                written += write_views(folder, report, written)
        if as_json:
            typer.echo(json.dumps(_summary(report), ensure_ascii=False, indent=1))
        else:
            print_report(report, files=out is not None, labelled=bool(by))
    for path in written:
        say(str(path))
    if folders and not as_json:
        named = shlex.join(folders)
        say_next(f"medtasks view {named}" if written else f"medtasks report {named} -o report")
    return 1 if any(fault.skipped for fault in report.faults) else 0


def _summary(report: Report) -> Json:
    frames = ("groups", "standings", "pairs", "gaps", "labels", "costs")
    entries = [
        {
            "entry": entry.label,
            **{name: getattr(entry, name) for name in ("model", "kind", "sample")},
            "settings": entry.words,
            "notes": list(entry.notes),
        }
        for entry in report.entries
    ]
    found = {"schema": 1, "sample": report.sample, "entries": entries, "differences": report.differences}
    found["faults"] = [item.record() for item in report.faults]
    return {**found, **{name: records(getattr(report, name)) for name in frames}}


_ASKED = 8  # names that are rows; of more, the first
_APART = 2  # groups above their suite that are named, and below it
_FEW = 3  # entries side by side; pairs that are listed
_INTERVAL, _BESIDE = 20, 40  # characters of a score with its interval, and of what stands beside scores
_TABLES = 12  # of labels; more are no help on a terminal
_SAID = 12  # lines of differences or faults
_ALPHA = 0.05
_BEST = 5  # published models of a suite and strategy, in a report without a run
_ROUGH = "~"  # behind an interval that is rough
_PAPER = "p"  # behind an interval that a paper prints
_IN_PART = "rows in part"
#: What keeps scores from standing beside published ones -> what mends it.
_REMEDIES = {
    "wording": "`medtasks data fetch official` gets official prompts; run again",
    "rows": "`medtasks data status TASK` names the suite's rows",
    _IN_PART: "`medtasks data check` counts rows; without --limit and --samples all are asked",
}


def print_run(folder: Path) -> None:
    """The first screen of one run."""
    tasks = registry()
    entries = parted(read_results([folder], tasks).entries)
    ways = {item.strategy for entry in entries for item in entry.experiments.values()}
    rows = [
        row
        for entry in entries
        for way in sorted(ways, key=strategy_order)
        for row in group_scores(entry, way, groups_of(tasks))
    ]
    _print_screen(tasks, entries, rows)


def _print_screen(
    tasks: Registry,
    entries: Sequence[Entry],
    groups: Sequence[Json],
    standings: Sequence[Json] = (),
    title: str = "",
) -> None:
    """Names that were asked, then suites, then groups that are better or worse than their suite."""
    names, several = list[str](), len(entries) > 1
    for name in dict.fromkeys(chain.from_iterable(entry.asked for entry in entries)):
        if tasks.knows(name):  # of tasks that have no mean each is a row
            names += [name] if tasks.asked(name) or tasks.parts(name) else tasks.leaves(name)
    asked = asked_frame(entries, tasks, names).to_pylist()
    known = {_same(row): row for row in asked}
    suites = [row for row in groups if row["axis"] == "suite"]
    ways = {row["strategy"] for row in suites}
    rows = [row for row in asked if row["name"] in names[:_ASKED]]
    for row in rows:
        row["label"], way = escape(row["name"]), row["strategy"]
        if way and not row["name"].endswith(suffix_of(way)):  # `--num_fewshot` was given
            row["label"] += f", {strategy_title(way)}"
    for row in sorted(suites, key=lambda row: _place(tasks, row)):
        if same := known.get(_same(row)):  # a name that was asked says it already
            same |= {**row, **same}
            continue
        way = f", {strategy_title(row['strategy'])}" if ways != {"zero_shot"} else ""
        rows.append({**row, "label": f"{row['title']}{way}"})
        place = itemgetter("entry", "suite", "strategy")
        rows += [line for of in standings if place(of) == place(row) for line in _published(of, several)]
    said = [f"and {counted(len(names) - _ASKED, 'more name')}: asked.csv of `medtasks report -o`"]
    said = said if len(names) > _ASKED else []
    if not several:
        for side, some in zip(("best", "worst"), best_and_worst(groups, _APART), strict=True):
            rows += [
                {**row, "label": f"{side}: {tasks.suites[row['suite']].title}, {row['title']}"}
                for row in some
            ]
    if sample := [entry.sample for entry in entries if entry.sample]:
        every = len(sample) == len(entries)
        mark = SAMPLE_DATA if every else "SAMPLE DATA: some rows are synthetic, not a result"
        title = "\n".join(filter(None, (mark, title)))
    # beside each other as long as there is room for names of groups, and for what chance gives
    wide = sum(max(len(entry.label), _INTERVAL) + 2 for entry in entries)
    if several and len(entries) <= _FEW and console().width >= wide + _BESIDE:
        _print_beside(entries, rows, title)
    elif rows:
        said += _print_below(rows, title, several=several)
    said += _marks_mean(rows)
    for words_of in (_answers, _repeats, _comparable):
        of: dict[str, list[str]] = {}
        for entry in entries[:_FEW]:
            of.setdefault(words_of(entry), []).append(entry.label)
        said += [
            words if len(of) == 1 else f"{', '.join(labels)}: {words}"
            for words, labels in of.items()
            if words
        ]
    for line in said:
        console().print(line, markup=False)


def _same(row: Json) -> tuple[Any, ...]:
    return row["entry"], None if row["score"] is None else round(row["score"], 9), row["documents"]


def _place(tasks: Registry, row: Json) -> tuple[Any, ...]:
    order = list(tasks.suites).index(row["value"]), strategy_order(row["strategy"])
    return (*order, row["sample"], row["score"] is None, -(row["score"] or 0))


def _published(standing: Json, several: bool) -> Iterator[Json]:
    if several or not standing["rivals"]:
        return
    scores = [rival["score"] for rival in standing["rivals"]]  # the best first
    n = standing["comparable"] or standing["tasks"]
    marks = {f"on {counted(n, 'task')}": n < standing["of_suite"]}
    said = ", ".join([*(mark for mark, holds in marks.items() if holds)])
    some = f" ({said})" if said else ""
    for label, score in (
        (f"best published: {escape(standing['rivals'][0]['entry'])}", scores[0]),
        (f"median of {len(scores)} published", median(scores)),
    ):
        yield {"entry": standing["entry"], "label": f"[dim]  {label}{some}[/dim]", "score": score}


def _print_below(rows: Sequence[Json], title: str, *, several: bool) -> Iterator[str]:
    """A row below each other; yields what is the same in all of them."""
    lines: list[Json | tuple[str, ...]] = []
    for label, some in groupby(rows, key=itemgetter("label")) if several else [("", rows)]:
        lines += [(f"[bold]{label}[/bold]",)] if several else []
        lines += [{**row, "label": f"  {escape(row['entry'])}"} if several else row for row in some]
    columns = [
        Column("", "label", settings={"overflow": "fold", "min_width": 16}),
        Column("score [95 % interval]", lambda row: _score(row, 4), settings={"no_wrap": True}),
    ]
    for heading, name, form in (("chance", "chance", ".3f"), ("highest", "ceiling", ".3f")):
        values = {row.get(name) for row in rows if row.get("documents") is not None}
        if len(rows) > 1 and len(values) == 1:
            if (value := values.pop()) is not None:
                yield f"{heading}: {value:.3f} in all rows"
        elif any(value is not None for value in values):
            columns.append(figure(heading, f"{{{name}:{form}}}"))
    if any((row.get("rank_of") or 0) > 1 for row in rows):
        columns.append(figure("rank", ["{rank}/{rank_of}"]))
        yield "rank: among entries with all of its tasks under the same conditions"
    columns += [figure("documents", "{documents:,}"), Column("tasks", _tasks)]
    show(lines, columns, title, collapse_padding=True, pad_edge=False, title_style="bold")


def _print_beside(entries: Sequence[Entry], rows: Sequence[Json], title: str) -> None:
    levels: dict[str, Json] = {}
    for row in rows:
        known = levels.setdefault(row["label"], {"chance": None, "ceiling": None})
        known |= {name: row.get(name) for name, value in known.items() if value is None}
    down = [
        texts("", "label"),
        figure("chance", lambda row: levels[row["label"]]["chance"], ".3f"),
        figure("highest", lambda row: levels[row["label"]]["ceiling"], ".3f"),
    ]
    mixed = len({entry.sample for entry in entries}) > 1
    labels = {entry.label: escape(entry.label) + " SAMPLE" * (mixed and entry.sample) for entry in entries}
    lines, columns = spread(rows, down, "entry", lambda row: _score(row, 3), labels)
    lines = [(line[0], *line[3:], *line[1:3]) for line in lines]  # scores stand before chance and the highest
    columns = [columns[0], *columns[3:], *columns[1:3]]
    show(lines, columns, title, collapse_padding=True, pad_edge=False, title_style="bold")


def _marks_mean(rows: Sequence[Json]) -> Iterator[str]:
    if any(row.get("interval_rough") for row in rows):
        yield (
            "]~: a rough interval, of clusters of documents with a score near 0 or 1: it may hold the "
            "truth in less than 90 %"
        )
    if any(row.get("estimate_half") is not None for row in rows):
        yield (
            "±: how far the score over all documents of the test set may be, at 95 %; in brackets, "
            "as of scores over all documents: other documents of the kind"
        )
    if any(map(_by_paper, rows)):
        yield f"]{_PAPER}: the interval that the suite's paper prints"
    own = [row for row in rows if row["score"] is not None and not _by_paper(row)]
    if any(row.get("interval_low", 0.0) is None for row in own):
        yield "[–]: no interval, since a task has fewer than two documents or clusters of them"


def _answers(entry: Entry) -> str:
    items, said = entry.experiments, []
    valid = {name: of.metrics["valid"] for name, of in items.items() if "valid" in of.metrics}
    for what, shares in (
        ("unreadable", {name: 1 - share for name, share in valid.items()}),
        ("truncated at the token limit", {name: of.share_cut("answers_cut") for name, of in items.items()}),
    ):
        known = {name: share for name, share in shares.items() if share is not None}
        if n := sum(items[name].n_answers for name in known):
            share = sum(items[name].n_answers * share for name, share in known.items()) / n
            worst = max(known, key=known.__getitem__)
            most = f" (most: {worst}, {known[worst]:.1%})" if known[worst] > share else ""
            said.append(f"{what} {share:.1%} of {counted(n, 'answer')}{most}")
    return "; ".join(said)


def _repeats(entry: Entry) -> str:
    """How far the answers to one document agree, and how often one of them is right: means over tasks."""
    items = [item for item in entry.experiments.values() if item.conditions.repeats > 1]
    if not items:
        return ""

    def mean(metric: str) -> tuple[float, int]:
        values = [item.metrics[metric] for item in items if metric in item.metrics]
        return (fmean(values) if values else 0.0), len(values)

    (same, _), (first, n), (one, _) = map(mean, (AGREEMENT, PASS_AT_1, PASS_AT_N))
    times = " or ".join(map(str, sorted({item.conditions.repeats for item in items})))
    passed = f"; pass@1 {first:.3f}, pass@{times} {one:.3f}, in {counted(n, 'task')}" if n else ""
    words = f"{times} answers to each document in {counted(len(items), 'task')}"
    return f"{words}: {same:.1%} of pairs agree{passed}"


def _comparable(entry: Entry) -> str:
    """Whether its scores may stand beside published ones, and what mends it; nothing of synthetic rows."""
    items = [
        item
        for item in entry.experiments.values()
        if item.score is not None and item.beside_the_paper is not None and not item.sample
    ]
    if not items or entry.kind == "published":
        return ""
    fit = sum(item.may_stand_beside for item in items)
    words = f"comparable with published scores: {fit} of {counted(len(items), 'task')}"
    why = Counter[str]()
    for item in items:
        named = [one.condition for one in item.unlike_the_paper]
        why.update(list(dict.fromkeys([*named, *[_IN_PART] * bool(item.in_part)])))
    if not why:
        return words
    remedies = [text for name, text in _REMEDIES.items() if name in why]
    remedy = remedies[0] if remedies else "docs/compare.md says what counts"
    return f"{words}; others: {', '.join(f'{name} in {n}' for name, n in why.most_common())} → {remedy}"


def _tasks(row: Json) -> str:
    if row.get("tasks") is None:
        return ""
    marks = {"limited": row.get("limited")}
    if row.get("estimate_half") is not None:  # some documents were asked alone: how near the estimate is
        marks = {Nearness(row["estimate_half"], row["documents"], row["documents_of"]).words: True}
    marks |= {_IN_PART: row.get("rows_in_part") and not row["limited"], "judged in part": row.get("pending")}
    said = ", ".join(mark for mark, holds in marks.items() if holds)
    tasks = "" if row["tasks_scored"] is None else f"{row['tasks_scored']}/{row['tasks']}"
    return f"{tasks} {said}".strip()


def _score(row: Json, digits: int) -> str:
    if row["score"] is None:
        return "–"
    if "interval_low" not in row:  # of published models
        return f"[dim]{row['score']:.{digits}f}[/dim]"
    low, high = row["interval_low"], row["interval_high"]
    mark = _ROUGH if row["interval_rough"] else ""
    if _by_paper(row):
        low, high, mark = row["paper_interval_low"], row["paper_interval_high"], _PAPER
    between = "–" if low is None else f"{low:.3f}, {high:.3f}"
    return f"{row['score']:.{digits}f} \\[{between}]{mark}"


def _by_paper(row: Json) -> bool:
    """Whether the only interval of a score is the one that the suite's paper prints."""
    return row.get("interval_low") is None and row.get("paper_interval_low") is not None


def print_report(report: Report, *, files: bool, labelled: bool) -> None:
    """The first screen, then what to know, each with a heading.

    `files`: these are written, and say more; `labelled`: labels of documents were asked for.
    """
    every = report.group_rows
    entries, n_published = report.own, len(report.entries) - len(report.own)
    groups = [row for row in every if row["kind"] != "published"]
    standings = [row for row in report.standings.to_pylist() if row["rivals"]]
    title = escape(entries[0].label) if len(entries) == 1 else f"{len(entries)} entries"
    title += f", beside {n_published} published models" if n_published else ""
    if not entries:
        groups, title = _best(report, every), f"the best of {n_published} published models"
        entries = [entry for entry in report.entries if entry.label in {row["entry"] for row in groups}]
    if not groups:
        typer.echo(
            "no scores of single tasks are published; `medtasks study reproduce` lists what the papers print"
        )
    _print_screen(report.tasks, entries, groups, standings, title)
    names = {row["suite"] for row in groups if row["axis"] == "suite" and row["tasks"] > 1}
    for suite in (report.tasks.suites[name] for name in report.tasks.suites if name in names):
        if not suite.averaged:
            _dim(f"{suite.title}: {suite.mean_rule or 'its tasks have no mean'}")
    if report.own:
        where = f"groups.csv{', labels.csv' * bool(report.labels.num_rows)}{'' if files else ' of -o OUT'}"
        _dim(f"by language, specialty, stage and label: {where}")
    if labelled:
        _print_labels(report, files)
    sections_in_words: dict[str, Iterable[str]] = {
        "beside published models": _standings(report, standings),
        "differences between entries on the tasks that they share; p after Holm's correction": _sure(report),
        "without a score": _lacking(report),
        "cost": _costs(report),
        "caveats": report.differences,
        "faults": map(str, report.faults),
    }
    screen = console()
    for heading, said in sections_in_words.items():
        if lines := list(said):
            screen.print(f"\n{heading}:", style="bold", markup=False)
        for line in lines[:_SAID]:
            screen.print(f"- {line}", markup=False)
        if len(lines) > _SAID:
            screen.print(f"- and {len(lines) - _SAID} more; --json has all", markup=False)


def _dim(line: str) -> None:
    console().print(line, style="dim", markup=False)


def _standings(report: Report, standings: Sequence[Json]) -> Iterator[str]:
    for row in sorted(standings, key=lambda row: (not row["ranked"], -row["comparable"])):
        name = f"{row['entry']}: " if len(report.own) > 1 else ""
        yield "; ".join([f"{name}{row['sentence']}", *row["remarks"]])


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
        shown = [row for row in some if ", " not in row["value"]]
        show(shown, columns, heading, pad_edge=False)
        if left := len(some) - len(shown):
            typer.echo(f"and {left} values within these: {where}")


def _sure(report: Report) -> Iterator[str]:
    """What the comparisons found: each pair where they are few, else how many differ."""
    place, every = itemgetter("suite", "strategy", "sample"), all(entry.sample for entry in report.own)
    for (suite, strategy, sample), rows in groupby(report.pairs.to_pylist(), key=place):
        pairs = list(rows)
        of = f"{report.tasks.suites[suite].title}, {strategy_title(strategy)}"
        of += f", {counted(pairs[0]['tasks'], 'task')}{', SAMPLE' * (sample and not every)}"
        if len(pairs) > _FEW:
            n_sure = sum(pair["p_holm"] < _ALPHA for pair in pairs)
            yield f"{of}: {n_sure} of {len(pairs)} pairs differ (p < {_ALPHA})"
            continue
        for row in pairs:
            interval, p = f"{row['difference']:+.3f} [{row['low']:+.3f}, {row['high']:+.3f}]", row["p_holm"]
            yield f"{of}: {row['entry']} − {row['minus']} = {interval}, p {'= ' * (p >= 0.001)}{p_words(p)}"


def _lacking(report: Report) -> Iterator[str]:
    counts: dict[tuple[str, str, str], Counter[str]] = {}
    for row in report.gaps.to_pylist():
        counts.setdefault((row["entry"], row["suite"], row["strategy"]), Counter())[row["state"]] += 1
    for (entry, suite, strategy), states in counts.items():
        parts = ", ".join(f"{n} {state}" for state, n in states.items())
        yield f"{entry}, {report.tasks.suites[suite].title}, {strategy_title(strategy)}: {parts}"


def _costs(report: Report) -> Iterator[str]:
    for row in report.costs.to_pylist():
        if row["counted"]:
            paid = "" if row["usd"] is None else f"{row['usd']:,.2f} USD: "
            yield f"{row['entry']}: {paid}{row['price']}"
        if row["jury_replies"]:
            judged = counted(row["jury_replies"] - row["jury_unpriced"], "judgement")
            words = (
                "cost not known" if row["jury_usd"] is None else f"{row['jury_usd']:,.2f} USD for {judged}"
            )
            if n := row["jury_unpriced"]:
                words += f", without {n:,} by judges without a price"
            if n := row["jury_estimated"]:
                words += f", tokens of {n:,} not counted"
            yield f"{row['entry']}, jury: {words}{unsure_words(row['jury_unsure'])}"
