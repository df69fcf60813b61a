"""`medtasks judge eval`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medtasks_ext.cli.app import AllowHost, AllowKey, out_option
from medtasks_ext.cli.arguments import quiet
from medtasks_ext.cli.tables import Column, figure, show, texts
from medtasks_ext.cli.words import say, say_next
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import write_json
from medtasks_ext.registry import registry

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.judge.jury import Jury
    from medtasks_ext.stats.intervals import Interval
    from medtasks_lab.studies.judge_evaluation import Evaluation, PublishedRow
    from medtasks_lab.studies.judge_sft import GoldCase, PointKey

AFTER_INTERRUPT = "goes on"

COMPLETE, INCOMPLETE, INTERRUPTED = 0, 1, 130
_TITLES = {"cohen_kappa": "kappa", "f1": "F1"}


def judge_eval(
    files: Annotated[
        list[str] | None, typer.Argument(metavar="CASES...", help="JSONL files of cases.")
    ] = None,
    expert: Annotated[list[str] | None, typer.Option(help="Decisions of experts, if not in CASES.")] = None,
    decided: Annotated[
        list[str] | None, typer.Option("--judge", help="Decisions of a judge; once for each judge.")
    ] = None,
    jury: Annotated[
        str | None, typer.Option(help="Jury file: ask these judges about each point; resumable.")
    ] = None,
    out: Annotated[str, out_option("Folder for results.")] = "judge_eval",
    allow_host: AllowHost = None,
    allow_key: AllowKey = None,
    published: Annotated[
        bool,
        typer.Option(
            "--published", help="The paper's own table: alone, with what follows from it, or below CASES."
        ),
    ] = False,
) -> int:
    """Compare judges' decisions with experts'.

    On scoring points, as MLB does.

    Example: medtasks judge eval judge_data/test_cases.jsonl --jury judge.yaml -o judge_eval

    Exit code 1: decisions are missing.
    """
    quiet()
    if published and not files:
        _print_published()
        say_next("medtasks judge eval CASES --jury JURY")
        return COMPLETE
    if not files or bool(decided) == bool(jury):
        raise MedtasksError(
            "needs the cases, and either decisions (--judge FILE) or judges to ask (--jury FILE)",
            where="medtasks judge eval",
            remedy="`medtasks judge eval --help` has an example; --published needs nothing",
        )
    from medtasks_ext.judge.jury import load_jury
    from medtasks_lab.studies.judge_evaluation import METRICS, evaluate
    from medtasks_lab.studies.judge_sft import decisions_about, expert_decisions, read_cases

    cases = read_cases([Path(file) for file in files])
    truth = expert_decisions(cases, [Path(file) for file in expert or []])
    interrupted = False
    if jury:
        by_judge, interrupted = _ask(cases, truth, load_jury(jury, allow_key), Path(out), allow_host or [])
    else:
        by_judge = {name: decisions_about(cases, Path(name)) for name in decided or []}
    found = {name: evaluate(cases, truth, decisions) for name, decisions in by_judge.items()}
    write_json(
        Path(out) / "judge_eval.json",
        {
            name: {
                "points": item.points, "met": item.met, "questions": item.questions, "missing": item.missing,
                **{metric: _record(item, metric) for metric in METRICS},
            }
            for name, item in found.items()
        },
    )  # fmt: skip
    _print(found, published=published)
    typer.echo(f"{Path(out) / 'judge_eval.json'}")
    if interrupted:
        say("medtasks: interrupted; the same command continues")
        return INTERRUPTED
    if any(item.missing for item in found.values()):
        return INCOMPLETE
    say_next("name the judge as adjudicator in a jury file", "medtasks judge run RUN --jury JURY --dry-run")
    return COMPLETE


def _record(item: Evaluation, metric: str) -> Json:
    value, interval = item.figures[metric]
    return {
        "value": value,
        "interval_low": interval and interval.low,
        "interval_high": interval and interval.high,
    }


def _print(found: Mapping[str, Evaluation], *, published: bool) -> None:
    from medtasks_lab.studies.judge_evaluation import METRICS, published_table

    judges = found.values()
    lines = [(_TITLES.get(name, name), *(_cell(*item.figures[name]) for item in judges)) for name in METRICS]
    lines.append(("points", *(f"{item.points:,}/{item.points + item.missing:,}" for item in judges)))
    show(lines, [texts(""), *map(figure, found)], pad_edge=False)
    if published:
        show(published_table(), _printed("published (MLB, Table 5)"), pad_edge=False)
        typer.echo("published: other answers and other experts, so no judge is ranked across the two tables")
    one = next(iter(found.values()))
    share = f" ({one.met / one.points:.1%} met)" if one.points else ""
    typer.echo(
        f"positive: met by the expert's decision{share}; [95 % interval]: questions resampled 1,000 times"
    )
    for judge, item in found.items():
        if item.missing:
            typer.echo(f"missing: {judge} did not decide {item.missing:,} points; they count nowhere")


def _cell(value: float | None, interval: Interval | None) -> str:
    limits = f" [{interval.low:.3f}, {interval.high:.3f}]" if interval else ""
    return "–" if value is None else f"{value:.4f}{limits}"


def _printed(heading: str) -> list[Column]:
    """The judge, and what the paper prints of it."""
    from medtasks_lab.studies.judge_evaluation import METRICS

    columns = [texts(heading, "model"), figure("SFT points", "n_sft", ",")]
    for name in METRICS:
        columns.append(figure(_TITLES.get(name, name), partial(_of_printed, name), ".4f"))
    return columns


def _of_printed(name: str, row: PublishedRow) -> float:
    return row.printed[name]


def _print_published() -> None:
    from medtasks_lab.studies.judge_evaluation import published_sizes, published_table

    rows = published_table()
    columns = [
        *_printed("judge"),
        figure("F1 of P and R", "f1", ".4f"),
        figure("kappa of A, P, R", "cohen_kappa", ".4f"),
        figure("met", "share_met", ".1%"),
    ]
    show(rows, columns, "MLB, Table 5", pad_edge=False)
    size, met, n_recalls = published_sizes(rows)
    typer.echo(
        f"{size:,} is the only number of decisions up to 1,500 that gives all {len(rows)} accuracies; "
        f"with {met} of them met, {n_recalls} of {len(rows)} recalls fit, too.\n"
        "596 disputed questions are too few for that: the unit is the scoring point, about two per question."
    )


# ---------------------------------------------------------------------- asking


def _ask(
    cases: Mapping[str, GoldCase],
    truth: Mapping[PointKey, bool],
    jury: Jury,
    out: Path,
    allow_hosts: Sequence[str],
) -> tuple[dict[str, dict[PointKey, bool]], bool]:
    """The decisions of the judges of a jury, and whether the call was interrupted."""
    from medtasks_lab.cli.ask_folder import ask_in_folder
    from medtasks_lab.studies.judge_evaluation import judge_decisions, points_to_judge

    task, keys = points_to_judge(cases, truth, registry())
    with ask_in_folder(out, jury, [task], command="medtasks judge eval", allow_host=allow_hosts) as asked:
        assert asked is not None  # no dry run
        for judge, reason in (asked.end.stopped if asked.end else {}).items():
            say(f"✗ judge {judge}: {reason}")
        for (judge, reason), count in asked.missing.most_common():
            say(f"missing: {judge}: {count:,} ({reason})")
        return judge_decisions(task, keys, jury, asked.store), asked.interrupted
