"""What filled forms say, as tables of the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from medtasks_ext.cli.judging import number
from medtasks_ext.cli.tables import Column, figure, show, spread, texts
from medtasks_ext.cli.words import counted, say, say_next

if TYPE_CHECKING:
    from medtasks_ext.stats.agreement import Kappa
    from medtasks_ext.stats.votes import Rate
    from medtasks_lab.human.ingest import Ingested
    from medtasks_lab.human.ratings import Ratings
    from medtasks_lab.human.results import Criterion


def say_read(read: Ingested, key: Mapping[str, Any]) -> None:
    """Name files that were left aside, and rows that are missing."""
    for path in read.empty:
        say(f"{path}: no answers in it; left aside")
    for form, rows in key["forms"].items():
        absent, part = len(read.absent.get(form, ())), len(read.incomplete.get(form, ()))
        if absent or part:
            say(
                f"{form}: {len(rows) - absent - part} of {len(rows)} rows; {absent} without answers "
                f"and {part} filled in part are missing from all figures"
            )


def _pairwise(folder: Path, read: Ingested, key: Mapping[str, Any]) -> None:
    from medtasks_lab.human.results import criteria, write_pairwise

    rated = criteria(read.rows, key)
    write_pairwise(folder, rated, read, key)
    print_rates("human evaluation", rated, key)
    print_agreement([(f"{item.task} {item.criterion}", item.agreement) for item in rated])
    say_next(f"medtasks reproduce NAME {folder}")


def _points(folder: Path, read: Ingested, key: Mapping[str, Any]) -> None:
    from medtasks_lab.human.results import decisions, point_agreement, write_points

    decided = decisions(read.rows, key)
    write_points(folder, decided, read, key)
    counts = {value: sum(item.met is value for item in decided) for value in (True, False, None)}
    typer.echo(
        f"{len(decided)} points: {counts[True]} met, {counts[False]} not met, {counts[None]} undecided"
    )
    print_agreement([("points", point_agreement(decided))])
    say_next(f"medtasks judge run RUN --jury NAME --decisions {folder / 'decisions.jsonl'}")


def _likert(folder: Path, read: Ingested, key: Mapping[str, Any]) -> None:
    from medtasks_lab.human.ratings import ratings_of, write_ratings

    ratings = ratings_of(read.rows, key)
    write_ratings(folder, ratings, read, key)
    _print_ratings(ratings, key)
    runs = " ".join(run["folder"] for run in key["runs"])
    say_next(f"medtasks judge run {runs} --jury NAME --ratings {folder / 'ratings.csv'}")


def _review(folder: Path, read: Ingested, key: Mapping[str, Any]) -> None:
    from medtasks_lab.human.review import native_reviews, review_of, write_review, write_reviewed

    figures, items = review_of(read.rows, key)
    signed = native_reviews(read.rows, key, date.today())
    write_review(folder, figures, items, read, key)
    written = write_reviewed(folder, signed)
    headings = ("items", "met, of all verdicts", "met by all", "equal verdicts", "Fleiss' kappa")
    rows = []
    for one in figures:
        around = "" if one.low is None else f" [{100 * one.low:.1f}, {100 * (one.high or 0):.1f}]"
        agreed = one.agreement[0] if one.agreement else None
        equal = "–" if agreed is None or agreed.observed is None else f"{100 * agreed.observed:.1f} %"
        kappa = number(agreed.value if agreed else None, 3)
        met, by_all = f"{100 * one.met:.1f} %{around}", f"{100 * one.met_by_all:.1f} %"
        rows.append((one.task, one.criterion, str(one.items), met, by_all, equal, kappa))
    columns = [texts("task"), texts("criterion"), *map(figure, headings)]
    show(rows, columns, "review of items", sample=bool(key.get("SAMPLE_DATA")), title_style="bold")
    counts = Counter(item.outcome for item in items)
    typer.echo(
        f"{counted(len(items), 'item')}: {counts['accepted']} accepted, {counts['failed']} failed, "
        f"{counts['disputed']} disputed; items.csv says why"
    )
    for item in signed:
        typer.echo(f"reviewed: {item.dataset}: {item.entry.in_words}")
    say_next(
        f"read {folder / 'items.csv'} and mend the items",
        *([f"put what {written} says into card.yaml"] if written else []),
        "medtasks dev validate TASK",
    )


def _survey(folder: Path, read: Ingested, key: Mapping[str, Any]) -> None:
    from medtasks_lab.human.survey import published_survey, survey_of, write_survey

    survey, paper = survey_of(read.rows, key), published_survey(key["suite"])
    write_survey(folder, survey, read, key)
    around = survey.interval
    rate = "–" if survey.rate is None else f"{100 * survey.rate:.1f} %"
    rate += f" [{100 * around.low:.1f}, {100 * around.high:.1f}]" if around else ""
    lines = [
        ("assignments as in the taxonomy", rate, f"{100 * paper.get('agreement_rate', 0):.1f} %"),
        ("assignments", str(survey.n_assignments), ""),
        (
            "comprehensiveness, 1 to 5",
            f"{number(survey.mean, 2)} ± {number(survey.sd, 3)}",
            f"{paper.get('comprehensiveness_mean', 0):.2f} ± {paper.get('comprehensiveness_sd', 0):.3f}",
        ),
        ("clinicians", str(survey.n_ratings), f"{paper.get('clinicians', 0):.0f}"),
        ("comments", str(len(survey.comments)), f"{paper.get('comments', 0):.0f}"),
    ]
    columns = [texts(""), figure("yours"), *([figure("published")] if paper else [])]
    show([line[: len(columns)] for line in lines], columns, "survey on the taxonomy")
    unlike = sorted((item for item in survey.assigned if item.agreement < 1), key=lambda item: item.agreement)
    for item in unlike:
        others = {name: n for name, n in item.counts.items() if n and name != item.category}
        elsewhere = ", ".join(f"{name} {n}" for name, n in sorted(others.items(), key=lambda pair: -pair[1]))
        typer.echo(f"{item.value}: {100 * item.agreement:.1f} % in {item.category}; {elsewhere}")
    say_next(f"read {folder / 'comments.csv'}")


#: A figure with its interval below.
_WITH_INTERVAL = ("{value:.3f}\n({low:.2f}, {high:.2f})", "{value:.3f}")
#: kind of form -> what is written and printed of filled ones
TAKEN: Mapping[str, Callable[[Path, Ingested, Mapping[str, Any]], None]] = {
    "pairwise": _pairwise,
    "points": _points,
    "likert": _likert,
    "review": _review,
    "survey": _survey,
}


def _print_ratings(ratings: Ratings, key: Mapping[str, Any]) -> None:
    from medtasks_lab.human.ratings import ALPHA, ICC, KAPPA, PAIRWISE_ICC

    columns = [
        *map(texts, ("task", "run", "axis")),
        figure("mean", form=".2f"),
        figure("s.d.", "sd", ".2f"),
        figure("answers", "n"),
    ]
    title = "ratings: mean over answers of the clinicians' means"
    show(ratings.scores, columns, title, sample=bool(key.get("SAMPLE_DATA")), title_style="bold")
    measures = {
        ICC: "ICC(3,k)",
        PAIRWISE_ICC: "pairwise ICC",
        KAPPA["quadratic"]: "kappa",
        ALPHA["ordinal"]: "alpha",
    }
    for task in dict.fromkeys(item.task for item in ratings.figures):
        here = [item for item in ratings.figures if item.task == task]
        table = spread(here, [texts("axis")], "measure", _WITH_INTERVAL, measures)
        show(*table, f"agreement of clinicians: {task}", title_style="bold")
    if ratings.figures:
        typer.echo(
            "ICC after z-scoring each clinician; pairwise: the mean over pairs, below 0 counts as 0\n"
            "kappa: quadratic weights, the mean over pairs; alpha: Krippendorff's, ordinal"
        )
    if ratings.incomplete:
        say(f"{ratings.incomplete} answers were rated on some axes only and do not count")


def print_rates(what: str, figures: Sequence[Criterion], record: Mapping[str, Any]) -> None:
    """Win and tie rates of the first run, by task and criterion."""
    from rich.text import Text

    first, second = (run["folder"] for run in record["runs"])
    title = f"{what}, percent: {first} against {second}"
    several = any(len(item.rates) > 1 for item in figures)
    shares = ["win + tie, mean", "win + tie, majority", "win + tie, each"] if several else ["win + tie"]
    columns = [texts("task"), texts("criterion"), *map(figure, ("documents", "win", "tie", "loss"))]
    columns += [Column(heading, settings={"no_wrap": True}) for heading in shares]
    rows = []
    for item in figures:
        *experts, mean, most = item.rates if len(item.rates) > 1 else [*item.rates] * 2
        cells = [item.task, item.criterion, str(mean.n)]
        cells += [f"{100 * mean.shares[name]:.1f}" for name in ("win", "tie", "loss")]
        cells += [_win_tie(mean)]
        if several:
            cells += [_win_tie(most), "  ".join(f"{100 * one.shares['win_tie']:.1f}" for one in experts)]
        rows.append(tuple(map(Text, cells)))
    show(rows, columns, title, sample=bool(record.get("SAMPLE_DATA")), title_style="bold")
    split = sum(rate.undecided for item in figures for rate in item.rates)
    if several:
        typer.echo(
            "win, tie, loss, mean: share of all votes; majority: what more of them chose than anything else"
            + (f" ({split} comparisons without one count as ties)" if split else "")
        )


def print_agreement(result: Sequence[tuple[str, Sequence[Kappa]]]) -> None:
    """Kappa of all experts and of their pairs, by what it is about."""
    result = [(name, agreements) for name, agreements in result if agreements]
    if not result:
        return
    figures = ["Fleiss' kappa", "Cohen's kappa: mean of pairs (range)", "equal votes", "n"]
    rows = []
    for name, (all_of_them, *pairs) in result:
        values = [pair.value for pair in pairs if pair.value is not None]
        cohen = f"{sum(values) / len(values):.3f} ({min(values):.3f} to {max(values):.3f})" if values else "–"
        fleiss = "–" if all_of_them.value is None else f"{all_of_them.value:.3f}"
        equal = "–" if all_of_them.observed is None else f"{100 * all_of_them.observed:.1f} %"
        rows.append((name, fleiss, cohen, equal, str(all_of_them.n)))
    show(rows, [texts("of"), *map(figure, figures)], "agreement", title_style="bold")


def _win_tie(rate: Rate) -> str:
    interval = rate.intervals["win_tie"]
    around = f"{100 * interval.low:.1f}, {100 * interval.high:.1f}" if interval else "–"
    return f"{100 * rate.shares['win_tie']:.1f} [{around}]"
