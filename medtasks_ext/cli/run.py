"""`medtasks run`, `medtasks rescore`, and `medtasks lm_eval`."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from medtasks_ext.cli.arguments import (
    check_model_type,
    check_one_process,
    context_of,
    known_to_think,
    lm_eval_config,
    output_folder,
    quiet,
    requested_tasks,
    say_faults,
    without_data,
)
from medtasks_ext.cli.end import print_scores, say_end
from medtasks_ext.cli.execute import RunRequest, check_fields, execute, open_run
from medtasks_ext.cli.words import say, say_next
from medtasks_ext.egress import Egress
from medtasks_ext.errors import MedtasksError, some
from medtasks_ext.process import collector_paused, collector_sparing
from medtasks_ext.registry import registry
from medtasks_ext.registry.metadata import FEW, restrictions
from medtasks_ext.registry.strategies import LIKELIHOOD
from medtasks_ext.results.prices import price_of
from medtasks_ext.run.charge import check_limit
from medtasks_ext.runs.conditions import accounted_rows
from medtasks_ext.runs.manifest import Choice

if TYPE_CHECKING:
    from medtasks_ext.harness import EvaluatorConfig
    from medtasks_ext.runner.batch import BatchFiles
    from medtasks_ext.runner.drawing import Design
    from medtasks_ext.runner.evaluate import Settings
    from medtasks_ext.runner.run import Run

_RUN = """Run tasks or groups, any mix of names, with lm-eval's own flags and --config files.
The model is loaded once, and every response is stored as soon as it is there. The same command
continues an interrupted run; finished requests are never sent again. First, one question is
asked and the answer is checked. A missing chat template, reasoning or an answer that never ends,
an empty answer, and prompts longer than the context are reported then, and again at the end.
`medtasks plan MODEL` counts what a run asks. Besides lm-eval's flags:

  --no-preflight      leave out this first question, and the check that prompts fit the context
  --strict            stop if the data of any task is missing
  --drop-faulty       leave out local rows in which `medtasks data check` finds faults; the results
                      count them, and are of a part of the rows
  --data ORIGIN       where rows come from: local, hub, release (published inputs without gold)
                      or sample (invented rows, marked everywhere)
  --ask WAY           answers: the model writes them; likelihood: it says how likely each of the possible
                      answers is, for tasks with closed answers, which are then called TASK_ll
  --allow-host HOST   send text that is gated or private to this host, too; repeatable. Without it
                      such text goes only to this machine and to MEDTASKS_TRUSTED_HOSTS
  --max-cost USD      stop before all calls on the folder have cost more; needs the model's price
  --stop-if RULE      pause a run whose answers are of no use: cut>30%, empty>10% or unreadable>50% of all
                      answers, once 50 were checked; repeatable
  --error POINTS      ask only as many documents as are needed to know the score of each name in --tasks
                      within plus or minus so many points (95 %); the same command without it asks the rest
  --to-batch FILE     ask nobody: write the requests that have no answer to this file in OpenAI's batch
                      format, which `vllm run-batch`, Ray Data and most providers take
  --from-batch FILE … the same command takes the answers from files of results and errors, in any order
  --prompts WORDS     prompt wording: official (the suite's own), own (ours), or auto: official where
                      they are available; tasks asked in ours are named

Built-in models: oracle (answers with the gold), random-label, nearest-shot.
Without --output_path the run goes to runs/MODEL.
"""
#: The usual way to ask: the model writes its answer.
ANSWERS = "answers"
#: lm-eval flags that have no meaning where every response is stored and tasks run one by one.
REFUSED = {
    "use_cache": "responses are always stored and reused",
    "cache_requests": "prompts are built once per run",
    "check_integrity": "use `medtasks dev validate`",
    "write_out": "use the samples files of the run",
    "predict_only": "tasks without gold are predicted and not scored; others can be rescored",
    "wandb_args": "log the results file afterwards",
    "wandb_config_args": "log the results file afterwards",
    "trackio_args": "log the results file afterwards",
    "hf_hub_log_args": "upload what `medtasks card` writes",
}


def run(context: typer.Context) -> int:
    """Run tasks with lm-eval's own flags; resumable.

    Example: medtasks run --tasks bridge_zh,medhelm_admin --model vllm --model_args pretrained=ORG/MODEL
    --apply_chat_template

    Exit code 1: a task failed, or its data is missing.
    """
    return run_command(context.args)


def run_command(arguments: list[str]) -> int:
    quiet()
    logging.getLogger("medtasks_ext.prompts.load").setLevel(logging.ERROR)  # `_rows_words` counts
    logging.getLogger("medtasks_ext.metrics").setLevel(logging.ERROR)  # `say_end` names what lacks data
    own, config = _parse(arguments)
    check_model_type(config.model)
    check_one_process()
    files = _batch_files(own, config)
    price = price_of(config.metadata, "--config")
    check_limit(own.max_cost, price)
    check_fields(own, config)

    from medtasks_ext.run.store import working_in
    from medtasks_ext.runner.batch import check_out
    from medtasks_ext.runner.evaluate import text_of
    from medtasks_ext.runner.run import Run

    error = _stated_error(own, config)
    with ExitStack() as held:
        with collector_paused():  # what is read stays
            wanted = build_request(own, config)
            if error is not None:
                wanted.design = _design(wanted, error)
            held.enter_context(collector_sparing())
        check_fields(own, config, wanted.built.values())
        for line in _rows_words(wanted):
            say(line)
        run = Run(output_folder(config), wanted.registry)
        private = not all(text_of(task).is_open for task in wanted.built.values())
        run.answers = held.enter_context(working_in(run.folder, "medtasks run", private=private))
        _say_damaged(run)
        waiting = open_run(run, wanted, config)
        if waiting and not own.from_batch:
            check_out(run.answers.out)
        cause = execute(run, waiting, wanted, config, own, price, files) if waiting else None
        for line in files.summary(run.answers) if files else ():
            say(line)
        faults = any(entry.faults for entry in run.manifest.tasks.values())
        if files and files.written and not faults:
            say_next("have them answered; --from-batch RESULTS in place of --to-batch takes the answers")
            return int(bool(wanted.missing))
        _print_scores(run)
        if files:
            how = "--to-batch FILE in place of --from-batch writes it again; remove the former first"
            return say_end(run, len(wanted.missing), again=None, cause=cause, how=how)
        pairs = zip(["", *arguments], arguments, strict=False)
        without_rules = [word for last, word in pairs if "--stop-if" not in (last, word.partition("=")[0])]
        return say_end(run, len(wanted.missing), again=without_rules if cause else arguments, cause=cause)


def _parse(arguments: list[str]) -> tuple[argparse.Namespace, EvaluatorConfig]:
    from medtasks_ext.runner.tally import StopRule  # brings lm-eval: after `quiet`

    own_parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    own_parser.add_argument("--data")
    own_parser.add_argument("--allow-host", action="append", default=[])
    own_parser.add_argument("--strict", action="store_true")
    own_parser.add_argument("--max-cost", type=float)
    own_parser.add_argument("--prompts")
    own_parser.add_argument("--ask", default=ANSWERS)
    own_parser.add_argument("--no-preflight", action="store_true")
    own_parser.add_argument("--drop-faulty", action="store_true")
    own_parser.add_argument("--error", type=float)
    own_parser.add_argument("--to-batch", type=Path)
    own_parser.add_argument("--from-batch", nargs="+", type=Path, default=[])
    own_parser.add_argument("--stop-if", action="append", default=[], type=StopRule.parse)
    own, rest = own_parser.parse_known_args(arguments)
    if own.ask not in (ANSWERS, LIKELIHOOD):
        remedy = f"write {ANSWERS} or {LIKELIHOOD}"
        raise MedtasksError(f"{own.ask!r} is no way to ask", where="--ask", remedy=remedy)
    example = "--tasks bridge_zh --model vllm --model_args pretrained=ORG/MODEL"
    return own, lm_eval_config(rest, "run", _RUN, example, REFUSED, in_files=True)


def _batch_files(own: argparse.Namespace, config: EvaluatorConfig) -> BatchFiles | None:
    if not (own.to_batch or own.from_batch):
        return None
    from medtasks_ext.runner.batch import BatchFiles

    others = {"--from-batch": own.from_batch and own.to_batch, "--max-cost": own.max_cost is not None}
    others["--ask likelihood"] = own.ask == LIKELIHOOD
    if apart := [name for name, given in others.items() if given]:
        where = "--to-batch" if own.to_batch else "--from-batch"
        raise MedtasksError(f"is not for {apart[0]}", where=where, remedy="leave one of them out")
    files = BatchFiles(config.model, own.to_batch, own.from_batch)
    if not (config.model_args.get("model") or config.model_args.get("pretrained")):
        what = "no model is named, and every request names it"
        raise MedtasksError(what, where="--model_args", remedy="add model=NAME")
    return files


def _stated_error(own: argparse.Namespace, config: EvaluatorConfig) -> float | None:
    """The error that scores may have, in points; None without `--error`."""
    if own.error is None:
        return None
    given = {"limit": config.limit, "samples": config.samples}
    what = ""
    if not 0.05 <= own.error <= 20:
        what, remedy = f"{own.error:g} is no error of a score in points", "give 0.05 to 20, such as 1.0"
    elif both := [f"--{name}" for name, value in given.items() if value is not None]:
        what, remedy = "chooses documents itself", f"leave out {' and '.join(both)}"
    elif own.ask == LIKELIHOOD:
        what, remedy = "is of answers that the model writes", "leave out --ask likelihood"
    if what:
        raise MedtasksError(what, where="--error", remedy=remedy)
    return float(own.error)


def build_request(own: argparse.Namespace, config: EvaluatorConfig) -> RunRequest:
    from medtasks_ext.runner.run import build_tasks

    egress = Egress.of(own.allow_host)
    tasks, resolved = requested_tasks(config, likelihood=own.ask == LIKELIHOOD)
    leaves = list(dict.fromkeys(leaf for names in resolved.values() for leaf in names))
    settings, choices = _settings(own, config), _choices(config, leaves)
    missing = without_data(tasks, leaves, settings, strict=own.strict)
    built, faults = build_tasks(tasks, [name for name in leaves if name not in missing], settings)
    say_faults(faults, stop=own.strict or not built)
    missing |= {name: str(fault) for name, fault in faults.items()}
    return RunRequest(tasks, list(resolved), leaves, settings, choices, built, missing, egress)


def _design(wanted: RunRequest, error: float) -> Design:
    from medtasks_ext.runner.drawing import Design

    design = Design(wanted.registry, wanted.names, wanted.built, error)
    scores, first = some([score.words for score in design.scores]), sum(design.asked.values())
    say(
        f"an estimate: documents are drawn until {scores} is known to ±{design.error:g} points "
        f"(95 %), first {first:,} of {design.n_documents:,}"
    )
    for why in dict.fromkeys(design.left_out.values()):
        names = [name for name, reason in design.left_out.items() if reason == why]
        say(f"not asked, {len(names)} tasks ({some(names, 3)}): {why}")
    wanted.built = {name: task for name, task in wanted.built.items() if name in design.asked}
    wanted.leaves = [name for name in wanted.leaves if name not in design.left_out]
    return design


def _rows_words(wanted: RunRequest) -> Iterator[str]:
    """What the rows that are asked lack: gold answers, other rows, the suite's prompts, leave to use them."""
    from medtasks_ext.prompts.official.words import own_words_notes
    from medtasks_ext.runner.run import loaded_record

    records = {name: loaded_record(task) for name, task in wanted.built.items()}
    of = {name: wanted.registry.known(name) for name in records}
    real = [name for name, record in records.items() if record["origin"] != "sample"]
    if blind := [name for name, record in records.items() if record["n_without_gold"] == record["n_test"]]:
        suites = (of[name][0].suite for name in blind)
        exported = sorted({suite.id for suite in suites if suite.leaderboard})
        yield (
            f"no gold answers for {len(blind)} of {len(records)} tasks ({some(blind)}): predicted, not scored"
        ) + "".join(f"; `medtasks card --layout {name}` writes the leaderboard's files" for name in exported)
    parts = []
    for name in real:
        record, stated = records[name], of[name][0].n_documents
        if accounted_rows(record["n_test"], record["n_held_out"], record["n_dropped"], stated) < stated:
            parts.append(name)
    if parts:
        yield (
            f"{len(parts)} of {len(records)} tasks have a part of their suite's rows: {some(parts, 3)}; "
            "their scores get no rank, and `medtasks data check TASK` counts the rows"
        )
    own = {name: of[name] for name in real if records[name]["instruction"] == "own"}
    yield from own_words_notes(own, len(real), wanted.settings.prompts)
    asked = dict.fromkeys(of[name][0] for name in real)  # synthetic rows are nobody's
    if line := restrictions(((item.id, item.metadata.licence) for item in asked), named=FEW):
        yield line


def _settings(own: argparse.Namespace, config: EvaluatorConfig) -> Settings:
    from medtasks_ext.prompts.load import flag
    from medtasks_ext.prompts.official.words import prompt_source_of
    from medtasks_ext.prompts.template import layout_template
    from medtasks_ext.rows.sources import forced_origin
    from medtasks_ext.runner.evaluate import Settings

    # lm-eval merges model arguments into metadata: only what no model argument says is ours
    ours = {key: value for key, value in config.metadata.items() if key not in config.model_args}
    gen_kwargs = config.gen_kwargs or {}
    official = (
        "max_gen_toks" not in gen_kwargs and known_to_think(config.model_args, config.metadata) is False
    )
    source = prompt_source_of(own.prompts or ours.get("prompts"))
    layout = None if config.apply_chat_template else ours.get("layout")
    if layout is not None:
        layout_template(layout)
    return Settings(
        num_fewshot=config.num_fewshot,
        apply_chat_template=config.apply_chat_template,
        fewshot_as_multiturn=config.fewshot_as_multiturn,
        system_instruction=config.system_instruction,
        system_role=flag(ours.get("system_role", True), "system_role"),
        data=forced_origin(own.data or ours.get("data")),
        prompts=None if source == "auto" else source,
        gen_kwargs=gen_kwargs,
        seed=config.seed[3] if isinstance(config.seed, list) else None,
        layout=layout,
        drop_faulty=own.drop_faulty or flag(ours.get("drop_faulty", False), "drop_faulty") or None,
        official_budget=official,
        context=context_of(config) if official else None,
    )


def _choices(config: EvaluatorConfig, tasks: Iterable[str]) -> dict[str, Choice]:
    samples = config.samples if isinstance(config.samples, dict) else None
    try:
        return {task: Choice.of(task, config.limit, samples) for task in tasks}
    except (TypeError, ValueError):
        what = "holds something else than lists of places"
        remedy = 'write {"TASK": [0, 1, 2]}, or draw a list with `medtasks study sample`'
        raise MedtasksError(what, where="--samples", remedy=remedy) from None


# ---------------------------------------------------------------------- the end of a run


def _say_damaged(run: Run) -> None:
    for line in run.answers.damaged:
        say(f"note: {run.folder}: {line} is damaged; `medtasks run` asks again what it held")


def _print_scores(run: Run) -> None:
    """Write and print results; scores of judges are put back beside metrics that were computed anew."""
    if run.files.judgements.is_dir():
        from medtasks_ext.judge.scores import reattach

        for task, (n, of) in reattach(run).items():
            say(
                f"{task}: what was judged of {n:,} of {of:,} answers has changed since (the answer, its "
                "question or a criterion): its former judgements are kept, and do not count\n"
                f"  → medtasks judge {run.folder} asks only about these; or bring the former rows back and "
                "rescore"
            )
    run.write_results()
    print_scores(run, run.results())


def rescore(
    folders: Annotated[
        list[str],
        Argument(metavar="RUN", help="Folder of a run; with --check submissions: …/ORG/MODEL/DATE."),
    ],
    check: Annotated[
        bool, Option("--check", help="Compute every score of submissions again; write nothing.")
    ] = False,
    again: Annotated[
        int, Option("--spot-check", min=0, metavar="N", help="Ask N random documents of submissions again.")
    ] = 0,
    config: Annotated[
        str | None,
        Option(metavar="MODEL", help="With --spot-check: how to run the model; by default vLLM."),
    ] = None,
) -> int:
    """Compute every metric again, without a model.

    From the stored responses, by the tasks' version of now. The words that they were asked in stay in the
    record: where these did not change, results of two versions compare once both are rescored.

    With --check the answers of submissions are read and scored again, on rows and prompts that are made anew
    here: what does not fit is refused. With --spot-check the model is asked random documents again, and the
    agreement of its answers with those that were submitted is printed: an honest one is near 100 % where
    answers are greedy.

    Example: medtasks rescore runs/MODEL

    Exit code 1: a task failed or is missing; with --check, something does not fit, and is named.
    """
    quiet()
    if check or again:
        code = _check(folders)
        for folder in folders if again else ():
            _ask_again(Path(folder), again, config)
        return code
    if len(folders) > 1:
        raise MedtasksError("one run at a time", where="medtasks rescore", remedy="name one folder")
    (folder,) = folders
    from medtasks_ext.results.reading import unknown_tasks
    from medtasks_ext.run.store import working_in
    from medtasks_ext.runner.run import Run

    run = Run(Path(folder), registry())
    run.load()
    if not run.known_names():
        fault = unknown_tasks(list(run.manifest.tasks), folder)
        raise MedtasksError(fault.what, where=fault.where, remedy="call it with the folder of these tasks")
    with working_in(run.folder, "medtasks rescore") as run.answers:
        _say_damaged(run)
        run.rescore(lambda task, what: say(f"{task}: {what}"))
        _print_scores(run)
        return say_end(run, 0, again=None)


def _check(folders: list[str]) -> int:
    from medtasks_ext.report.submissions import check_submission, levels_words

    code = 0
    for folder in folders:
        checked = check_submission(Path(folder), registry())
        for fault in checked.faults:
            code = 1
            typer.echo(f"✗ {folder}: {fault}")
        if not checked.faults:
            typer.echo(f"✓ {folder}: {levels_words(checked.verdicts.values())}")
            for reason in sorted({words for words in checked.verdicts.values() if ":" in words}):
                typer.echo(f"  {reason}")
    return code


def _ask_again(folder: Path, n: int, config: str | None) -> None:
    from medtasks_ext.report.submissions import read_record, spot_check

    record = read_record(folder)
    model = ["--model", "vllm", "--model_args", f"pretrained={record.about.hub_id or record.model}"]
    if config:
        model = ["--config", config]
    found = spot_check(
        folder, registry(), n, lambda said, out: run_command([*said, *model, "--output_path", str(out)])
    )
    total = [sum(column) for column in zip(*found.values(), strict=True)]
    for name, (asked, same, scored) in {**found, "in all": total}.items():
        typer.echo(f"{name}: {asked} asked again, {same} answers equal, {scored} scores equal")


# ---------------------------------------------------------------------- plain lm-eval


_LM_EVAL = """usage: medtasks lm_eval --model medtasks-NAME --model_args run=FOLDER,… [options]

Call lm-eval itself, with models that remember every answer. A killed call goes on: each answer is kept
in the folder that run= names, as soon as it comes, and the same command asks only what has no answer
yet. NAME is any model of lm-eval's; medtasks-api takes the interface of a server from its address. A
folder holds the answers of one model. Tasks may be anybody's. Text that is not known to be open goes to
this machine and to MEDTASKS_TRUSTED_HOSTS only.
"""


def lm_eval(context: typer.Context) -> int:
    """Call lm-eval itself, with models that remember every answer.

    Example: medtasks lm_eval --model medtasks-vllm --model_args run=answers/MODEL,pretrained=ORG/MODEL
    --tasks arc_easy --batch_size auto
    """
    if context.args[:1] in ([], ["--help"], ["-h"]):
        typer.echo(_LM_EVAL, nl=False)
        return 0
    from medtasks_ext.harness import cli_evaluate
    from medtasks_ext.run.lm import register

    register()
    sys.argv = ["lm_eval", *context.args]
    cli_evaluate()
    return 0
