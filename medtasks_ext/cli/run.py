"""`medtasks run`, `medtasks rescore`, and `medtasks lm_eval`."""

from __future__ import annotations

import argparse
import logging
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from medtasks_ext.cli.arguments import check_one_process, lm_eval_config, output_folder, quiet
from medtasks_ext.cli.end import print_scores, say_end
from medtasks_ext.cli.words import say, say_next
from medtasks_ext.errors import MedtasksError
from medtasks_ext.process import collector_paused, collector_sparing
from medtasks_ext.registry import registry
from medtasks_ext.registry.strategies import LIKELIHOOD

if TYPE_CHECKING:
    from medtasks_ext.harness import EvaluatorConfig
    from medtasks_ext.runner.run import Run

_RUN = """Run tasks or groups, any mix of names, with lm-eval's own flags and --config files.
The model is loaded once, and every response is stored as soon as it is there. The same command
continues an interrupted run; finished requests are never sent again. Prompts longer than the
context are reported before, and what the first answer shows as soon as it is there: a missing
chat template, reasoning or an answer that never ends, an empty answer. All is said again at the end.
`medtasks plan MODEL` counts what a run asks. Besides lm-eval's flags:

  --no-preflight      leave out this look at an answer, and the check that prompts fit the context
  --strict            stop if the data of any task is missing or has faults
  --drop-faulty       leave out local rows with faults; the results count them
  --data ORIGIN       rows: local, hub, release (inputs without gold) or sample (invented, marked everywhere)
  --ask WAY           answers, or likelihood: of each possible answer, in tasks that are then called TASK_ll
  --allow-host HOST   send text that is gated or private to this host, too; repeatable. Without it
                      such text goes only to this machine and to MEDTASKS_TRUSTED_HOSTS
  --max-cost USD      stop before all calls on the folder have cost more; needs the model's price
  --stop-if RULE      pause once cut>30%, empty>10% or unreadable>50% of at least 50 answers; repeatable
  --error POINTS      ask as many documents as give the score of each name within plus or minus so many
                      points (95 %); the same command without it asks the rest
  --to-batch FILE     ask nobody: write the requests that have no answer in OpenAI's batch format, which
                      `vllm run-batch`, Ray Data and most providers take
  --from-batch FILE … take their answers from files of results and errors, in any order
  --prompts WORDS     official (the suite's own), own (ours), or auto: official where they are available

Built-in models: oracle (answers with the gold), random-label.
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
    logging.getLogger("medtasks_ext.prompts.load").setLevel(logging.ERROR)  # `rows_words` counts
    logging.getLogger("medtasks_ext.metrics").setLevel(logging.ERROR)  # `say_end` names what lacks data
    own, config = _parse(arguments)
    check_one_process()

    from medtasks_ext.cli.execute import RunCall
    from medtasks_ext.run.store import working_in
    from medtasks_ext.runner.evaluate import text_of
    from medtasks_ext.runner.run import Run

    with ExitStack() as held:
        with collector_paused():  # what is read stays
            call = RunCall(own, config)
            held.enter_context(collector_sparing())
        for line in call.rows_words():
            say(line)
        run, files = Run(output_folder(config), call.registry), call.files
        private = not all(text_of(task).is_open for task in call.tasks.values())
        run.answers = held.enter_context(working_in(run.folder, "medtasks run", private=private))
        _say_damaged(run)
        call.open(run)
        cause = call.execute() if call.tasks else None
        for line in files.summary(run.answers) if files else ():
            say(line)
        faults = any(entry.faults for entry in run.manifest.tasks.values())
        if files and files.written and not faults:
            say_next("have them answered; --from-batch RESULTS in place of --to-batch takes the answers")
            return int(bool(call.missing))
        _print_scores(run)
        if files:
            how = "--to-batch FILE in place of --from-batch writes it again; remove the former first"
            return say_end(run, len(call.missing), again=None, cause=cause, how=how)
        pairs = zip(["", *arguments], arguments, strict=False)
        without_rules = [word for last, word in pairs if "--stop-if" not in (last, word.partition("=")[0])]
        return say_end(run, len(call.missing), again=without_rules if cause else arguments, cause=cause)


def _parse(arguments: list[str]) -> tuple[argparse.Namespace, EvaluatorConfig]:
    from medtasks_ext.runner.tally import StopRule  # brings lm-eval: after `quiet`

    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for option in ("--data", "--prompts"):
        parser.add_argument(option)
    for option in ("--no-preflight", "--strict", "--drop-faulty"):
        parser.add_argument(option, action="store_true")
    for option in ("--max-cost", "--error"):
        parser.add_argument(option, type=float)
    parser.add_argument("--allow-host", action="append", default=[])
    parser.add_argument("--ask", default=ANSWERS)
    parser.add_argument("--to-batch", type=Path)
    parser.add_argument("--from-batch", nargs="+", type=Path, default=[])
    parser.add_argument("--stop-if", action="append", default=[], type=StopRule.parse)
    own, rest = parser.parse_known_args(arguments)
    if own.ask not in (ANSWERS, LIKELIHOOD):
        remedy = f"write {ANSWERS} or {LIKELIHOOD}"
        raise MedtasksError(f"{own.ask!r} is no way to ask", where="--ask", remedy=remedy)
    example = "--tasks bridge_zh --model vllm --model_args pretrained=ORG/MODEL"
    return own, lm_eval_config(rest, "run", _RUN, example, REFUSED, in_files=True)


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

    With --check the answers of submissions are scored again, on rows and prompts that are made anew here.
    With --spot-check the model is asked random documents again, and the agreement of its answers is printed:
    near 100 % where answers are greedy.

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
