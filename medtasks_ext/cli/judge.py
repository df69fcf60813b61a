"""`medtasks judge`, and how other commands ask a jury."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from medtasks_ext.atomic import folder_for_files
from medtasks_ext.cli.arguments import out_folder, quiet
from medtasks_ext.cli.commands import AllowHost, DryRun, OnlyTasks
from medtasks_ext.cli.end import say_sent
from medtasks_ext.cli.progress import LIMIT_REACHED, Progress
from medtasks_ext.cli.tables import figure, show, show_tables, texts
from medtasks_ext.cli.words import PROMPTS, counted, names_in, say, say_changed, say_next, unsure_words
from medtasks_ext.egress import Egress
from medtasks_ext.errors import MedtasksError, some
from medtasks_ext.judge.cases import (
    NOT_ASKED,
    JudgedTask,
    JudgementStore,
    RunToJudge,
    check_jury,
    check_prices,
    paid,
    tasks_to_judge,
)
from medtasks_ext.judge.jury import HUMAN, Jury, check_keys, load_jury
from medtasks_ext.judge.protocol import N_ASSESSORS
from medtasks_ext.judge.scores import (
    DocumentScore,
    document_scores,
    keep_scores,
    missing_reasons,
    queue_file,
    take_decisions,
)
from medtasks_ext.prompts.official.words import PromptSource, prompt_source_of
from medtasks_ext.registry import registry
from medtasks_ext.run.charge import Budget
from medtasks_ext.run.store import working_in
from medtasks_ext.runs.conditions import other_models
from medtasks_ext.studies import agreement
from medtasks_ext.studies.agreement import Figure, Ratings
from medtasks_ext.studies.said import Said, said_of, study
from medtasks_ext.version import install_words

if TYPE_CHECKING:
    from medtasks_ext.judge.asking import End, Judging
    from medtasks_ext.judge.cases import Ask
    from medtasks_ext.runner.run import Run

LINE_SECONDS = 10.0
DONE, INCOMPLETE, INTERRUPTED = 0, 1, 130


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
    from medtasks_ext.judge.asking import Judging
    from medtasks_ext.runner.run import Run

    if not (folders := folders or ["run"] * Path("run").is_dir()):
        remedy = "medtasks judge runs/MODEL --jury medhelm"
        raise MedtasksError("no run is named", where="medtasks judge", remedy=remedy)
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
                run.manifest.allowed_hosts = sorted({*run.manifest.allowed_hosts, *egress.allowed})
                run.save()
            to_judge[name] = RunToJudge(chosen, store)
        items, people = list(to_judge.values()), Ratings()
        if ratings and ratings.endswith(".jsonl"):
            _take_decisions(Path(ratings), items, asked, keep=not dry_run)
        elif ratings:
            people = agreement.read_ratings(Path(ratings), {name: of.tasks for name, of in to_judge.items()})
        budget = Budget(max_cost, *paid(asked, [item.store for item in items]))
        judging = Judging(asked, items, say, egress)
        _say_wording([task for item in items for task in item.tasks], source)
        if not dry_run:
            return _finish(asked, runs, to_judge, ask_all(judging, budget), people, budget)
        asks = judging.pending()
        possible = judging.possible(asks)
        print_estimates(judging, [*asks, *possible], budget, limit=True)
        if possible:
            typer.echo(f"of them {len(possible):,} at most to {asked.adjudicator_name}, for disputed cases")
        return DONE


def _take_decisions(path: Path, runs: Sequence[RunToJudge], jury: Jury, *, keep: bool) -> None:
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
    mend = "`medtasks data fetch official` gets official ones; ask with --prompts official then"
    if source == "own":
        mend = "--prompts own asks with ours; leave it out for official ones"
    for wording, said in (
        ("official", "official prompts: {}"),
        ("own", f"our prompts: {{}}, not comparable with published scores: {mend}"),
    ):
        known = [task for task in tasks if task.rubric.judging.official]
        if names := [task.name for task in known if task.rubric.wording == wording]:
            say("judges get " + said.format(f"{counted(len(names), 'task')} ({some(names)})"))


def print_estimates(judging: Judging, asks: Sequence[Ask], budget: Budget, *, limit: bool = False) -> None:
    """What a call would ask, of whom, and what it would cost at most; `limit`: it takes --max-cost."""
    try:
        judging.check(asks)
    except MedtasksError as error:
        say(f"warning: {error}")
    estimates = judging.estimates(asks)
    columns = [
        texts("judge"),
        figure("requests", form=","),
        figure("prompt tokens", "~{prompt tokens:,}"),
        figure("reply tokens", form=","),
        figure("USD", lambda item: _usd([item["cost"]] if item["requests"] else [])),
    ]
    asked = [item for item in estimates if item["requests"]]
    n, costs = sum(item["requests"] for item in asked), [item["cost"] for item in asked]
    lines = [tuple(column.cell(item) for column in columns) for item in estimates]
    title = "still to be asked; reply tokens and USD at most"
    show([*lines, ("all", f"{n:,}", "", "", _usd(costs))], columns, title)
    if asked:
        typer.echo("~ estimated: four bytes of a prompt count as one token")
    if words := _spent_words(budget):
        typer.echo(f"spent on these runs so far: {words}")
    typer.echo("nothing was asked (--dry-run)")
    if limit and (most := sum(cost or 0.0 for cost in costs)):
        say_next(f"the same command with --max-cost {math.ceil(most)} in place of --dry-run")
    elif asked:
        say_next("the same command without --dry-run")


def _usd(costs: Sequence[float | None]) -> str:
    known = [cost for cost in costs if cost is not None]
    if costs and not known:
        return "no price"
    return f"{sum(known):,.2f}" + (" and more" if len(known) < len(costs) else "")


def _spent_words(budget: Budget) -> str:
    without = f"{counted(budget.unpriced, 'judgement')} by judges without a price" if budget.unpriced else ""
    if not budget.spent and not budget.unsure:
        return f"not known: {without}" if without else ""
    return f"{budget.spent:,.2f} USD{unsure_words(budget.unsure)}{without and f', without {without}'}"


def ask_all(judging: Judging, budget: Budget) -> End | None:
    """Ask the judges, with a display of how far they are; None where nothing is left to ask."""
    from medtasks_ext.runner.tally import Tally

    needed = judging.needed()
    if not (asked := {name: n for name, n in needed.items() if n}):
        return None
    models = judging.jury.models
    check_keys([judge for judge in models if judge.name in needed])
    tally = Tally(asked, budget=budget if any(judge.price for judge in models) else None)
    with Progress(tally, what="judgements", every=LINE_SECONDS) as progress:
        judging.say, judging.show = progress.say, progress.ended
        try:
            return judging.go(budget, needed)
        finally:
            progress.say(progress.so_far())


def say_spent(end: End | None, budget: Budget, on: str) -> None:
    if words := _spent_words(budget):
        say(f"spent on {on}: {words}")
    for judge, reason in (end.stopped if end else {}).items():
        say(f"✗ judge {judge}: {reason}")
    if end and end.out_of_money:
        say(LIMIT_REACHED)


def end_code(end: End | None, *, missing: bool, again: str) -> int:
    """The exit code of a command that asked a jury; what comes next is said, unless all is there."""
    if end and end.interrupted:
        say("medtasks: interrupted; the same command continues")
        return INTERRUPTED
    if missing:
        say(again)
    return INCOMPLETE if missing else DONE


def ask_jury(
    jury: Jury, tasks: list[JudgedTask], folder: Path, command: str, what: str, *, dry_run: bool
) -> tuple[Said, End | None] | None:
    """For a study outside any run, ask what is not in its folder yet; None after a dry run.

    `what` judges give, in words.
    """
    from medtasks_ext.judge.asking import Judging

    folder, private = out_folder(folder), not all(task.open_access for task in tasks)
    with ExitStack() as stack:
        if not dry_run:
            stack.enter_context(folder_for_files(folder, private=private))
        store = stack.enter_context(closing(JudgementStore(folder, write=not dry_run, command=command)))
        check_jury(jury, tasks)
        judging = Judging(jury, [RunToJudge(tasks, store)], say, Egress.of([]))
        budget = Budget(None, *paid(jury, [store]))
        if dry_run:
            print_estimates(judging, judging.pending(), budget)
            return None
        end = ask_all(judging, budget)
        said = said_of(jury, tasks, store)
        open_asks = Counter((ask.judge, store.why_not(ask.question, NOT_ASKED)) for ask in judging.pending())
    for (judge, reason), n in open_asks.most_common():
        say(f"missing: {judge}: {n:,} ({reason})")
    say_spent(end, budget, what)
    say_sent(folder)
    return said, end


def _finish(
    jury: Jury,
    runs: Mapping[str, Run],
    to_judge: Mapping[str, RunToJudge],
    outcome: End | None,
    people: Ratings,
    budget: Budget,
) -> int:
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
    common = agreement.judge_axis_figures(scored, jury.names)
    common += agreement.clinician_figures(scored, people) if people else []
    for name, run in runs.items():
        own = agreement.judge_figures(scored[name], jury.names)
        agreement.write_figures(run.folder, [*own, *common])
        _print_agreement(own, f" in {name}" if len(runs) > 1 else "")
    _print_agreement(common)
    say_spent(outcome, budget, "these runs")
    for judge in jury.models:
        about = (store.served_about(task.name) for tasks, store in to_judge.values() for task in tasks)
        served = {model for by_judge in about for model in by_judge.get(judge.name, ())}
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
    lacking = {
        judge for of in scored.values() for _, scores in of for item in scores for judge in item.missing
    }
    again = "judgements are missing; the same command asks for them again"
    code = end_code(outcome, missing=bool(lacking - {HUMAN}), again=again)
    return code or (INCOMPLETE if lacking else DONE)


def _print_table(
    run: str,
    jury: Jury,
    scored: Sequence[tuple[JudgedTask, Sequence[DocumentScore]]],
    metrics: Mapping[str, Mapping[str, float]],
) -> None:
    from medtasks_ext.judge.asking import CUT_REPLY

    protocol = scored[0][0].rubric.protocol
    low, high = protocol.scale
    axes = list(dict.fromkeys(axis for task, _ in scored for axis in task.rubric.axes))
    judges, disputes = jury.names, list[str]()
    if protocol.dispute_above is not None:
        judges = [*jury.names[:N_ASSESSORS], jury.adjudicator_name]
        disputes = ["disputed", "assessor_agreement", "assessor_kappa"]
    rows = [
        {
            **metrics[task.name],
            "task": task.name,
            "of": f"{sum(item.complete for item in scores):,}/{len(scores):,}",
        }
        for task, scores in scored
    ]
    columns = [texts("task"), figure("score", form=".4f")]
    columns += [figure(name, f"jury_{name}", ".2f") for name in judges]
    columns += [figure(name.removeprefix("assessor_"), name, ".2f") for name in disputes]
    columns += [figure("pending", form=".0f")] * bool(disputes) + [figure("judged", "of")]
    sample = any(item.case.synthetic for _, scores in scored for item in scores)
    show(rows, columns, run, sample=sample, title_style="bold")
    if axes:
        show(rows, [texts("task"), *(figure(name, f"jury_{name}", ".2f") for name in axes)])
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


def _print_agreement(figures: Sequence[Figure], in_run: str = "") -> None:
    """Of judges the figures over all axes; of axes and clinicians those over all tasks, if there are some."""
    rows = [figure._asdict() for figure in figures]
    of = {name: [row for row in rows if row["table"] == name] for name in ("judges", "clinicians", "quality")}
    whole = (agreement.COMPOSITE, agreement.POOLED)
    of["judges"] = [row for row in of["judges"] if row["item"] in whole and row["value"] is not None]
    axes = [row for row in rows if row["table"] == "judge_axes"]
    of["axes"] = [{**one, "sd": sd["value"]} for one, sd in zip(axes[::2], axes[1::2], strict=True)]
    of["axes"] = [row for row in of["axes"] if row["task"].startswith(agreement.ALL)] or of["axes"]
    of["quality"] = [row for row in of["quality"] if row["task"] == of["quality"][-1]["task"]]
    for row in of["clinicians"]:
        row["source"] = row["between"].removeprefix(f"{agreement.PEOPLE} + ")
    show_tables(study("judge_eval")["agreement"], {**of, "in_run": in_run, "much": agreement.MUCH})
    if people := {row["source"] for row in of["clinicians"]}:
        if agreement.ROUGE not in people:
            typer.echo("ROUGE-L is left out: none of these answers has a reference")
        elif not agreement.has_bertscore():
            how = install_words("bertscore")
            typer.echo(f"BERTScore-F is left out; MEDTASKS_BERTSCORE=1 asks for it ({how})")
