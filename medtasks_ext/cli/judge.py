"""`medtasks judge`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from medtasks_ext.cli.arguments import quiet
from medtasks_ext.cli.commands import AllowHost, DryRun, OnlyTasks
from medtasks_ext.cli.end import say_sent
from medtasks_ext.cli.judging import DONE, INCOMPLETE, ask_all, end_code, print_estimates, say_spent
from medtasks_ext.cli.tables import SAMPLE_DATA, figure, show, spread, texts
from medtasks_ext.cli.words import PROMPTS, counted, names_in, say, say_changed
from medtasks_ext.egress import Egress
from medtasks_ext.errors import MedtasksError, some
from medtasks_ext.judge.report import ALL, COMPOSITE, POOLED
from medtasks_ext.registry import registry
from medtasks_ext.runs.conditions import other_models
from medtasks_ext.studies.clinicians import MUCH, PEOPLE, ROUGE, has_bertscore
from medtasks_ext.version import install_words

if TYPE_CHECKING:
    import pyarrow as pa

    from medtasks_ext.judge.asking import End
    from medtasks_ext.judge.cases import JudgedTask, RunToJudge
    from medtasks_ext.judge.jury import Jury
    from medtasks_ext.judge.report import Figure
    from medtasks_ext.judge.scores import DocumentScore
    from medtasks_ext.prompts.official.words import PromptSource
    from medtasks_ext.run.charge import Budget
    from medtasks_ext.runner.run import Run
    from medtasks_ext.studies.clinicians import Ratings


def judge(
    folders: Annotated[
        list[str] | None,
        Argument(metavar="RUN...", help="Folders of runs; by default the folder `run`, if there is one."),
    ] = None,
    *,
    tasks: OnlyTasks = None,
    ratings: Annotated[
        str | None,
        Option(
            help="What people said: clinicians' ratings, a CSV of task, document, rater, axis, score; or a "
            "physician's decisions on disputed cases, decisions.jsonl."
        ),
    ] = None,
    prompts: Annotated[
        str | None, Option(metavar="WORDS", help=f"{PROMPTS} auto goes on in those in which judging began.")
    ] = None,
    jury: Annotated[
        str,
        Option(metavar="JURY", help="Jury file, or a bundled one: medhelm, mlb, local.", show_default=False),
    ],
    dry_run: DryRun = False,
    max_cost: Annotated[
        float | None, Option(min=0.0, help="Stop before it has cost more USD in all.")
    ] = None,
    allow_host: AllowHost = None,
) -> int:
    """Let a jury of models rate open-ended answers.

    Resumable.

    Example: medtasks judge runs/MODEL --jury medhelm --dry-run

    Exit code 1: judgements are missing.
    """
    quiet()
    if not (folders := folders or [folder.name for folder in [Path("run")] if folder.is_dir()]):
        remedy = "medtasks judge runs/MODEL --jury medhelm"
        raise MedtasksError("no run is named", where="medtasks judge", remedy=remedy)
    from medtasks_ext.judge.asking import Judging
    from medtasks_ext.judge.cases import (
        JudgementStore,
        RunToJudge,
        check_jury,
        check_prices,
        paid,
        tasks_to_judge,
    )
    from medtasks_ext.judge.jury import load_jury
    from medtasks_ext.prompts.official.words import prompt_source_of
    from medtasks_ext.run.charge import budget_of
    from medtasks_ext.run.store import working_in
    from medtasks_ext.runner.run import Run
    from medtasks_ext.studies.clinicians import read_ratings

    asked = load_jury(jury)
    check_prices(asked, max_cost)
    source, egress = prompt_source_of(prompts), Egress.of(allow_host or [])
    wanted = None if tasks is None else set(registry().leaves_of(names_in(tasks)))
    runs: dict[str, Run] = {}
    to_judge: dict[str, RunToJudge] = {}
    with ExitStack() as stack:
        for name in dict.fromkeys(folder.rstrip("/") for folder in folders):
            runs[name] = run = Run(Path(name), registry())
            say_changed([run.folder])
            if not dry_run and run.files.manifest.is_file():  # a folder that is none stays untouched
                stack.enter_context(working_in(run.folder, "medtasks judge"))
            run.load()
            store = stack.enter_context(closing(JudgementStore(run.folder, write=not dry_run)))
            chosen = tasks_to_judge(run, wanted, store, source)
            check_jury(asked, chosen)
            for line in store.damaged:
                say(f"note: {run.files.judgements}: {line} is damaged; what is missing is asked again")
            if egress.allowed and not dry_run:
                run.manifest.allow(sorted(egress.allowed))
                run.save()
            to_judge[name] = RunToJudge(chosen, store)
        people: Ratings = {}
        if ratings and ratings.endswith(".jsonl"):
            _take_decisions(Path(ratings), list(to_judge.values()), asked, keep=not dry_run)
        elif ratings:
            people = read_ratings(Path(ratings), {name: item.tasks for name, item in to_judge.items()})
        budget = budget_of(max_cost, *paid(asked, [item.store for item in to_judge.values()]))
        judging = Judging(asked, list(to_judge.values()), say, egress)
        _say_wording([task for item in to_judge.values() for task in item.tasks], source)
        if not dry_run:
            return _finish(asked, runs, to_judge, ask_all(judging, budget), people, budget)
        asks = judging.pending()
        possible = judging.possible(asks)
        print_estimates(judging, [*asks, *possible], budget, limit=True)
        if possible:
            typer.echo(f"of them {len(possible):,} at most to {asked.adjudicator_name}, for disputed cases")
        return DONE


def _take_decisions(path: Path, runs: Sequence[RunToJudge], jury: Jury, *, keep: bool) -> None:
    from medtasks_ext.judge.scores import take_decisions

    if jury.adjudicator:
        what = f"disputed cases are decided by the judge {jury.adjudicator_name}, not by a physician"
        remedy = "write `adjudicator: human` in the jury file, or leave --ratings out"
        raise MedtasksError(what, where=f"--ratings {path}", remedy=remedy)
    decided = take_decisions(path, runs, jury, keep=keep)
    say(f"{path}: {decided['taken']:,} new decisions, {decided['replaced']:,} replaced")
    for count, what in (
        (decided["open"], "are not decided on every point and stay in the queue"),
        (decided["changed"], "are about answers that are others now and do not count"),
        (decided["agreed"], "are not disputed; the assessors' mean stays"),
    ):
        if count:
            say(f"{path}: {count:,} cases {what}")


def _say_wording(tasks: Sequence[JudgedTask], source: PromptSource) -> None:
    known = [task for task in tasks if task.rubric.judging.official]
    mend = "`medtasks data fetch official` gets official ones; ask with --prompts official then"
    if source == "own":
        mend = "--prompts own asks with ours; leave it out for official ones"
    for wording, said in (("official", ""), ("own", f", not comparable with published scores: {mend}")):
        if names := [task.name for task in known if task.rubric.wording == wording]:
            whose = "official" if wording == "official" else "our"
            say(f"judges get {whose} prompts: {counted(len(names), 'task')} ({some(names)}){said}")


# ---------------------------------------------------------------------- results


def _finish(
    jury: Jury,
    runs: Mapping[str, Run],
    to_judge: Mapping[str, RunToJudge],
    outcome: End | None,
    people: Ratings,
    budget: Budget,
) -> int:
    from medtasks_ext.judge.jury import HUMAN
    from medtasks_ext.judge.report import agreement_frame, judge_axis_figures, judge_figures, write_figures
    from medtasks_ext.judge.scores import document_scores, keep_scores, queue_file
    from medtasks_ext.studies.clinicians import clinician_figures

    stopped = outcome.stopped if outcome else {}
    scored: dict[str, list[tuple[JudgedTask, list[DocumentScore]]]] = {}
    for name, run in runs.items():
        tasks, store = to_judge[name]
        scored[name] = [(task, document_scores(task, jury, store, stopped)) for task in tasks]
        metrics = {task.name: keep_scores(run, task, jury, scores, store) for task, scores in scored[name]}
        run.write_results()
        for protocol in dict.fromkeys(task.rubric.judging.protocol for task in tasks):
            same = [item for item in scored[name] if item[0].rubric.judging.protocol == protocol]
            _print_table(name if len(runs) > 1 else "", jury, same, metrics)
    common = judge_axis_figures(scored, jury.names)
    common += clinician_figures(scored, people) if people else []
    for name, run in runs.items():
        own = judge_figures(scored[name], jury.names)
        write_figures(run.folder, [*own, *common])
        _print_agreement(name if len(runs) > 1 else "", agreement_frame(own))
    _print_axes(agreement_frame(common))
    _print_clinicians(common)
    every = [item for items in scored.values() for _, scores in items for item in scores]
    say_spent(outcome, budget, "these runs")
    names = [
        (store.served_about(task.name), task.name) for tasks, store in to_judge.values() for task in tasks
    ]
    for judge in jury.models:
        served = {name for by_judge, _ in names for name in by_judge.get(judge.name, ())}
        if others := other_models(judge.model, served):
            say(f"! judge {judge.name}: asked for {judge.model}, its server answered as {', '.join(others)}")
    for run in runs.values():
        say_sent(run.folder)
        say(f"results: {run.files.results_file}, {run.folder / 'judgements'}")
    waiting = [
        str(queue_file(run.folder, task.name))
        for name, run in runs.items()
        for task, scores in scored[name]
        if any(item.pending for item in scores) and not jury.adjudicator
    ]
    if waiting and not (outcome and outcome.interrupted):
        say(
            f"disputed cases wait for a physician: {', '.join(waiting)}\n"
            "  → medtasks study forms --kind points FILE -o DIR, then medtasks study forms; "
            "medtasks judge RUN … --ratings decisions.jsonl"
        )
    missing = any(name != HUMAN for item in every for name in item.missing)
    code = end_code(
        outcome, missing=missing, again="judgements are missing; the same command asks for them again"
    )
    return code if all(item.complete for item in every) else code or INCOMPLETE


def _print_table(
    run: str,
    jury: Jury,
    scored: Sequence[tuple[JudgedTask, Sequence[DocumentScore]]],
    metrics: Mapping[str, Mapping[str, float]],
) -> None:
    """Scores, judges and axes of the tasks of one protocol."""
    from medtasks_ext.judge.asking import CUT_REPLY
    from medtasks_ext.judge.protocol import N_ASSESSORS
    from medtasks_ext.judge.scores import missing_reasons

    sample = any(case.case.synthetic for _, scores in scored for case in scores)
    titles = [run] * bool(run) + [SAMPLE_DATA] * sample
    protocol = scored[0][0].rubric.protocol
    low, high = protocol.scale
    axes = list(dict.fromkeys(axis for task, _ in scored for axis in task.rubric.axes))
    judges, disputes = jury.names, {}
    if protocol.dispute_above is not None:
        judges = [*jury.names[:N_ASSESSORS], jury.adjudicator_name]
        disputes = {"disputed": 2, "assessor_agreement": 2, "assessor_kappa": 2, "pending": 0}
    figures = [name.removeprefix("assessor_") for name in ("score", *judges, *disputes, "judged")]
    rows, apart = [], []
    for task, scores in scored:
        own = metrics[task.name]
        cells = [_number(own.get("score"), 4)]
        cells += [_number(own.get(f"jury_{name}"), 2) for name in judges]
        cells += [_number(own.get(name), digits) for name, digits in disputes.items()]
        rows.append((task.name, *cells, f"{sum(item.complete for item in scores):,}/{len(scores):,}"))
        apart.append((task.name, *(_number(own.get(f"jury_{name}"), 2) for name in axes)))
    show(rows, [texts("task"), *map(figure, figures)], "\n".join(titles), title_style="bold")
    if axes:
        show(apart, [texts("task"), *map(figure, axes)])
    typer.echo(
        f"score is on 0–1; judges{' and axes' if axes else ''} are means on the scale {low:g}–{high:g}"
    )
    if disputes:
        typer.echo(
            f"disputed: the assessors differ by more than {protocol.dispute_above:g}; agreement: they do "
            "not; kappa: of their decisions on points; pending: disputed cases without score"
        )
    for task, scores in scored:
        for (judge, reason), count in missing_reasons(scores).most_common():
            remedy = "; raise its max_tokens in the jury file" * (reason == CUT_REPLY)
            typer.echo(f"missing: {task.name}, {judge}: {count:,} ({reason}){remedy}")
        if blank := sum(item.case.blank for item in scores):
            typer.echo(f"{task.name}: {blank:,} empty answers have the lowest rating; no judge was asked")


# ---------------------------------------------------------------------- the frame `agreement`


def _print_agreement(run: str, frame: pa.Table) -> None:
    title = "agreement between judges" + (f" in {run}" if run else "")
    rows = [row for row in frame.to_pylist() if row["table"] == "judges"]
    rows = [row for row in rows if row["item"] in (COMPOSITE, POOLED)]
    defined = {(row["task"], row["between"]) for row in rows if row["value"] is not None}
    rows = [row for row in rows if (row["task"], row["between"]) in defined]
    if rows:
        measures = ("Spearman", "ICC(3,k)", "Cohen's kappa", "quadratic kappa")
        down = [texts("task"), texts("judges", "between")]
        show(*spread(rows, down, "measure", "{value:.3f}", measures, blank=""), title, title_style="bold")


def _print_axes(frame: pa.Table) -> None:
    """Judge x axis of all runs together, over all tasks where there are several."""
    rows = [row for row in frame.to_pylist() if row["table"] == "judge_axes"]
    tasks = list(dict.fromkeys(row["task"] for row in rows))
    means, sds = ([row for row in rows if row["measure"] == name] for name in ("mean", "s.d."))
    pairs = [{**one, "sd": _number(other["value"], 3)} for one, other in zip(means, sds, strict=True)]
    for task in [task for task in tasks if task.startswith(ALL)] or tasks:
        here = [row for row in pairs if row["task"] == task]
        table = spread(here, [texts("judge", "between")], "item", "{value:.3f} ({sd})", blank="– (–)")
        show(*table, f"ratings of judges, mean (s.d.): {task}", title_style="bold")


def _print_clinicians(figures: Sequence[Figure]) -> None:
    """MedHELM's Extended Data Table 4, and who is nearer to the clinicians by answer quality."""
    people = [row for row in figures if row.table == "clinicians"]
    if not people:
        return
    forms = ["{value:.3f}\n({low:.3f}, {high:.3f})", "{value:.3f}"]
    title = "ICC(3,k) with clinicians, and among them; below 0 counts as 0"
    names = {row.between: row.between.removeprefix(f"{PEOPLE} + ") for row in people}
    show(*spread(people, [texts("task")], "between", forms, names), title, title_style="bold")
    if ROUGE not in names.values():
        typer.echo("ROUGE-L is left out: none of these answers has a reference")
    elif not has_bertscore():
        typer.echo(
            f"BERTScore-F is left out; MEDTASKS_BERTSCORE=1 asks for it ({install_words('bertscore')})"
        )
    quality = [row for row in figures if row.table == "quality"]
    for task in dict.fromkeys(row.task for row in quality[-1:]):
        here = [row for row in quality if row.task == task]
        table = spread(
            here, [texts("rating", "item"), texts("of", "between")], "measure", "{value:.3f} ({n})"
        )
        show(*table, f"by the clinicians' rating: {task}", title_style="bold")
        typer.echo(
            f"shares of answers; all z-scored; much: by more than {MUCH:g} s.d.; moderate: 3 to 4 of 1 to 5"
        )


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"
