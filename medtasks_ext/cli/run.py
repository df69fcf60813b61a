"""`medtasks run`."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from medtasks_ext.cli.arguments import (
    available,
    lm_eval_config,
    own_flags,
    quiet,
    requested_tasks,
    say_faults,
)
from medtasks_ext.cli.end import SAME_COMMAND, print_scores, say_end
from medtasks_ext.cli.model import (
    check_address,
    check_model_type,
    check_one_process,
    create_model,
    is_server,
    output_folder,
)
from medtasks_ext.cli.official import say_wording
from medtasks_ext.cli.reasons import context_of, reasons, say_budget
from medtasks_ext.cli.stated_error import add_error_flags, stated_error
from medtasks_ext.cli.tables import waits_for_judges
from medtasks_ext.cli.words import counted, say, say_next
from medtasks_ext.collector import collector_paused, collector_sparing
from medtasks_ext.egress import Egress
from medtasks_ext.errors import MedtasksError, some
from medtasks_ext.privacy import shows_text
from medtasks_ext.registry.rights import FEW, restrictions
from medtasks_ext.registry.strategies import LIKELIHOOD
from medtasks_ext.results.prices import price_of
from medtasks_ext.run.charge import (
    OF_MODELS,
    Charge,
    budget_of,
    check_limit,
    check_refused,
    check_under_limit,
    paid,
)
from medtasks_ext.runs.choice import Choice
from medtasks_ext.runs.conditions import accounted_rows
from medtasks_ext.runs.manifest import TaskEntry, TaskState

if TYPE_CHECKING:
    from medtasks_ext.engines.engine import Engine
    from medtasks_ext.harness import LM, EvaluatorConfig, Task
    from medtasks_ext.registry import Registry
    from medtasks_ext.results.prices import Price
    from medtasks_ext.run.charge import Budget
    from medtasks_ext.runner.alarms import StopRule
    from medtasks_ext.runner.batch import BatchFiles
    from medtasks_ext.runner.drawing import Design
    from medtasks_ext.runner.evaluate import Settings
    from medtasks_ext.runner.run import Run

_DESCRIPTION = """Run tasks or groups, any mix of names, with lm-eval's own flags and --config files.
The model is loaded once, and every response is stored as soon as it is there. The same command
continues an interrupted run; nothing is paid twice. First, one question is asked and the answer
is checked. A missing chat template, reasoning or an answer that never ends, an empty answer, and
prompts longer than the context are reported then, and again at the end. `medtasks plan MODEL`
counts what a run asks. Besides lm-eval's flags:

  --no-preflight      leave out this first question, and the check that prompts fit the context
  --strict            stop if the data of any task is missing
  --drop-faulty       leave out local rows in which `medtasks data check` finds faults; the results
                      count them, and are of a part of the rows
  --data ORIGIN       where rows come from: local, hub, release (published inputs without gold)
                      or sample (invented rows, marked everywhere)
  --ask WAY           answers: the model writes them; likelihood: it says how likely each of the possible
                      answers is, for tasks with closed answers, which are then called TASK_ll
  --allow-host HOST   send text that is gated or private to this host, too; repeatable. Without it
                      such text goes to this machine and to MEDTASKS_TRUSTED_HOSTS alone
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
_NO_SYSTEM_TURN = "the chat template refuses or drops a system turn: instructions go into the first user turn"
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


@dataclass
class RunRequest:
    registry: Registry
    names: list[str]  # as the user gave them
    leaves: list[str]  # the tasks that they stand for
    settings: Settings
    choices: dict[str, Choice]  # task -> which of its documents
    built: dict[str, Task]  # the tasks whose rows are here
    missing: dict[str, str]  # task -> why it cannot be asked
    egress: Egress  # which servers may receive which text
    design: Design | None = None  # of a run with a stated error

    @property
    def private(self) -> bool:
        from medtasks_ext.runner.requests import text_of

        return not all(text_of(task).is_open for task in self.built.values())


def run(context: typer.Context) -> int:
    """Run tasks with lm-eval's own flags; resumable.

    Example: medtasks run --tasks bridge_zh,medhelm_admin --model vllm --model_args pretrained=ORG/MODEL
    --apply_chat_template

    Exit code 1: a task failed, or its data is missing.
    """
    return run_command(context.args)


def run_command(arguments: list[str]) -> int:
    quiet()
    logging.getLogger("medtasks_ext.prompts.load").setLevel(logging.ERROR)  # `_say_parts` counts
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
    from medtasks_ext.runner.run import Run

    error = stated_error(own, config)
    with ExitStack() as held:
        with collector_paused():  # what is read stays
            wanted = build_request(own, config)
            if error is not None:
                wanted.design = _design(wanted, error)
            held.enter_context(collector_sparing())
        check_fields(own, config, wanted.built.values())
        _say_without_gold(wanted)
        _say_parts(wanted)
        say_wording(wanted.built)
        _say_terms(wanted)
        run = Run(output_folder(config), wanted.registry)
        run.answers = held.enter_context(working_in(run.folder, "medtasks run", private=wanted.private))
        say_damaged(run)
        waiting = open_run(run, wanted, config)
        if waiting and not own.from_batch:
            check_out(run.answers.out)
        cause = None
        if waiting:
            cause = _execute(run, waiting, wanted, config, own, price, files)
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
        again = _without_rules(arguments) if cause else arguments
        return say_end(run, len(wanted.missing), again=again, cause=cause)


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


def _without_rules(arguments: list[str]) -> list[str]:
    """A command without the rules that would end it at once."""
    pairs = zip(["", *arguments], arguments, strict=False)
    return [word for last, word in pairs if last != "--stop-if" and word.partition("=")[0] != "--stop-if"]


def build_request(own: argparse.Namespace, config: EvaluatorConfig) -> RunRequest:
    from medtasks_ext.runner.run import build_tasks

    egress = Egress.of(own.allow_host)
    tasks, resolved = requested_tasks(config, likelihood=own.ask == LIKELIHOOD)
    leaves = list(dict.fromkeys(leaf for names in resolved.values() for leaf in names))
    settings, choices = _settings(own, config), _choices(config, leaves)
    availability = available(tasks, leaves, settings, strict=own.strict)
    built, faults = build_tasks(tasks, availability.present, settings)
    say_faults(faults, stop=own.strict or not built)
    say_budget(config, tasks, built)
    missing = {**availability.missing, **{name: str(fault) for name, fault in faults.items()}}
    return RunRequest(tasks, list(resolved), leaves, settings, choices, built, missing, egress)


def open_run(run: Run, request: RunRequest, config: EvaluatorConfig) -> dict[str, Task]:
    from medtasks_ext.runner.run import build_tasks

    run.open(config.model, config.model_args, request.settings, request.names, request.leaves)
    if run.settings.system_role != request.settings.system_role:  # found out when the run began
        request.settings = run.settings
        request.built, _ = build_tasks(request.registry, request.built, request.settings)
    request.built = run.in_stored_wording(request.built)
    for name, reason in request.missing.items():
        run.note(name, TaskEntry(state=TaskState.MISSING, error=reason))
    run.manifest.allow(sorted(request.egress.allowed))
    built, choices = request.built, request.choices
    if request.design is not None:
        choices = {**choices, **_drawn_before(run, request.design, choices)}
    waiting = {name: task for name, task in built.items() if not run.is_current(name, task, choices[name])}
    if request.design is not None and waiting:
        waiting = dict(built)  # of all of them together it follows what is drawn; nothing is asked twice
    run.choose({name: task for name, task in built.items() if name not in waiting}, choices)
    run.save()
    if len(waiting) < len(built):
        done = len(built) - len(waiting)
        say(f"{done} of {len(built)} tasks are done already in {run.folder}")
    _say_changed(run, waiting)
    _say_there(run, waiting, choices)
    return waiting


def _say_there(run: Run, waiting: dict[str, Task], choices: dict[str, Choice]) -> None:
    from medtasks_ext.prompts.documents import document_key
    from medtasks_ext.runner.evaluate import same_documents

    wanted = there = 0
    for name, task in waiting.items():
        documents = {document_key(task.eval_docs[place]) for place in run.places(task, choices[name])}
        wanted += len(documents)
        there += len(documents & run.answers.answered(name).keys())
    other = [
        name
        for name, task in waiting.items()
        if run.is_done(name) and not same_documents(task, run.state(name).choice, choices[name])
    ]
    if other:
        say(
            f"{len(other)} of {len(waiting)} tasks stand over other documents: scored anew over those of "
            "this call, and no answer is asked for again"
        )
    if there:
        say(f"{there:,} of {wanted:,} documents have an answer already")


def _say_changed(run: Run, waiting: dict[str, Task]) -> None:
    for name, task in waiting.items():
        if run.is_done(name) and (n := run.n_lost(task)):
            line = f"answers.jsonl holds no more {counted(n, 'answer')} with which {name} was finished"
            say(f"note: {line}; what is missing is asked again")
            run.manifest.note([line])


def _design(wanted: RunRequest, error: float) -> Design:
    from medtasks_ext.cli.stated_error import say_design
    from medtasks_ext.runner.drawing import Design

    design = Design(wanted.registry, wanted.names, wanted.built, error)
    say_design(design)
    wanted.built = {name: task for name, task in wanted.built.items() if name in design.asked}
    wanted.leaves = [name for name in wanted.leaves if name not in design.left_out]
    return design


def _drawn_before(run: Run, design: Design, choices: dict[str, Choice]) -> dict[str, Choice]:
    scores = tuple(score.name for score in design.scores)
    states = {name: entry for name, entry in run.manifest.tasks.items() if entry.choice.drawn}
    if not states.keys() <= set(design.asked):
        return {}  # a score over more tasks had a part of these documents
    found = {name: run.state(name).choice for name in choices if name in run.manifest.tasks}
    return {
        name: choice
        for name, choice in found.items()
        if (drawn := choice.drawn) and (drawn.error, drawn.scores) == (design.error, scores)
    }


def _say_without_gold(wanted: RunRequest) -> None:
    from medtasks_ext.runner.run import loaded_record

    records = {name: loaded_record(task) for name, task in wanted.built.items()}
    blind = [name for name, record in records.items() if record["n_without_gold"] == record["n_test"]]
    if blind:
        said = (
            f"no gold answers for {len(blind)} of {len(records)} tasks ({some(blind)}): predicted, not scored"
        )
        suites = (wanted.registry.known(name)[0].suite for name in blind)
        exported = sorted({suite.id for suite in suites if suite.leaderboard})
        said += "".join(
            f"; `medtasks card --layout {name}` writes the leaderboard's files" for name in exported
        )
        say(said)


def _say_parts(wanted: RunRequest) -> None:
    from medtasks_ext.runner.run import loaded_record

    parts = []
    for name, task in wanted.built.items():
        record, stated = loaded_record(task), wanted.registry.known(name)[0].n_documents
        rows = accounted_rows(record["n_test"], record["n_held_out"], record["n_dropped"], stated)
        if record["origin"] != "sample" and rows < stated:
            parts.append(name)
    if parts:
        say(
            f"{len(parts)} of {len(wanted.built)} tasks have a part of their suite's rows: {some(parts, 3)}; "
            "their scores get no rank, and `medtasks data check TASK` counts the rows"
        )


def _say_terms(wanted: RunRequest) -> None:
    """Say what the terms of the datasets restrict; synthetic rows are nobody's."""
    from medtasks_ext.runner.run import loaded_record

    real = [name for name, task in wanted.built.items() if loaded_record(task)["origin"] != "sample"]
    asked = dict.fromkeys(wanted.registry.known(name)[0] for name in real)
    if line := restrictions(((item.id, item.metadata.licence) for item in asked), named=FEW):
        say(line)


def say_damaged(run: Run) -> None:
    """Name the lines of its outcomes that are not used."""
    for line in run.answers.damaged:
        say(f"note: {run.folder}: {line} is damaged; `medtasks run` asks again what it held")


def keep_judgements(run: Run) -> None:
    """Put scores of judges back beside metrics that were computed anew."""
    if not run.files.judgements.is_dir():
        return
    from medtasks_ext.judge.scores import reattach

    for task, (n, of) in reattach(run).items():
        say(
            f"{task}: what was judged of {n:,} of {of:,} answers has changed since (the answer, its question "
            "or a criterion): its former judgements are kept, and do not count\n"
            f"  → medtasks judge {run.folder} asks about these alone; or bring the former rows back and "
            "rescore"
        )


def finish(run: Run, n_missing: int, how: str = SAME_COMMAND) -> int:
    """Write and print the results of a run that no model was asked for; returns the exit code."""
    _print_scores(run)
    return say_end(run, n_missing, again=None, how=how)


def _print_scores(run: Run) -> None:
    keep_judgements(run)
    run.write_results()
    print_scores(run, run.results())


def check_fields(own: argparse.Namespace, config: EvaluatorConfig, tasks: Iterable[Task] = ()) -> None:
    """Refuse settings that change what a request to a server is, wherever they come from."""
    if not is_server(config.model):
        return
    given = [("--model_args", [name for name in config.model_args if name not in OF_MODELS])]
    given += [("--gen_kwargs", list(config.gen_kwargs or {}))]
    given += [(task.task_name, list(task.config.generation_kwargs or {})) for task in tasks]
    for where, names in given:
        check_refused(names, where)
        if own.max_cost is not None and where != "--model_args":
            check_under_limit(names, where)


def _execute(
    run: Run,
    waiting: dict[str, Task],
    wanted: RunRequest,
    config: EvaluatorConfig,
    own: argparse.Namespace,
    price: Price | None,
    files: BatchFiles | None,
) -> MedtasksError | None:
    from medtasks_ext.cli.progress import say_unpriced
    from medtasks_ext.runner.preflight import check_budget
    from medtasks_ext.runner.requests import text_of
    from medtasks_ext.runner.run import loaded_record

    check_conversations(config, wanted.settings)
    check_likelihood(config, waiting)
    if not is_server(config.model):  # before a model is loaded, which takes minutes
        check_budget(context_of(config), waiting)
    check_address(config, wanted.egress, (text_of(task) for task in waiting.values()))
    loaded = create_model(config, asked=not files)
    model = loaded.lm
    waiting, settings = fitted(run, model, waiting, wanted)
    places = {name: run.places(task) for name, task in waiting.items()}
    public = {name: loaded_record(task)["origin"] != "local" for name, task in waiting.items()}
    engine = (
        files.of(model)
        if files
        else loaded.engine(
            quotes=lambda request: public[request.task] or shows_text(),
            say=say,
            egress=wanted.egress.recording(run.answers.sent),
        )
    )
    engine.check(text_of(task) for name, task in waiting.items() if places[name])
    limit = own.max_cost
    charge = Charge(price) if price and (limit is not None or not engine.local) else None
    budget = budget_of(limit, *paid(limit, charge, run.answers))
    say_unpriced(budget)
    ready = _Ready(run, model, engine, waiting, settings, charge, budget)
    if not (own.no_preflight or files or _is_built_in(model)) and any(places.values()):
        _preflight(ready, places)
    if wanted.design is None:
        return _ask(ready, own.stop_if)
    try:
        return _rounds(ready, own.stop_if, wanted.design)
    finally:
        engine.close()


@dataclass(frozen=True)
class _Ready:
    run: Run
    model: LM
    engine: Engine
    tasks: dict[str, Task]  # that are not done, as the model can be asked them
    settings: Settings
    charge: Charge | None  # what requests cost; None where they cost nothing, or nobody knows
    budget: Budget


def _rounds(ready: _Ready, rules: Sequence[StopRule], design: Design) -> MedtasksError | None:
    run, number, again = ready.run, 0, True
    while again:
        choices = design.choices()
        tasks = {
            name: task for name, task in ready.tasks.items() if not run.is_current(name, task, choices[name])
        }
        run.choose(ready.tasks, choices)
        run.save()
        if error := _ask(replace(ready, tasks=tasks), rules, one_round=True):
            return error
        if not all(run.is_done(name) for name in choices):
            return None
        number, asked = number + 1, sum(design.asked.values())
        again = design.settle(run.results())
        stands = "".join(f", {score.name} ±{100 * (score.half or 0):.1f}" for score in design.scores)
        say(f"round {number}: {asked:,} of {design.n_documents:,} documents asked{stands}")
    return None


def _ask(ready: _Ready, rules: Sequence[StopRule], *, one_round: bool = False) -> MedtasksError | None:
    """Ask the tasks, and show it; returns what ended the run before its time.

    `one_round`: more is asked afterwards: the engine stays open.
    """
    from medtasks_ext.cli.progress import Progress
    from medtasks_ext.runner.alarms import Alarms
    from medtasks_ext.runner.asking import RunAsker
    from medtasks_ext.runner.evaluate import Reader
    from medtasks_ext.runner.requests import chooses
    from medtasks_ext.runner.tally import Tally

    run, tasks = ready.run, ready.tasks
    built_in = _is_built_in(ready.model)
    asked = {name: len(run.places(task)) for name, task in tasks.items()}
    readers = {name: Reader(task) for name, task in tasks.items() if not chooses(task)}
    tally = Tally(asked, readers, ready.budget if ready.charge else None)
    alarms = None if built_in else Alarms(chat_template=ready.settings.templated)
    progress = Progress(tally, alarms=alarms, score=lambda task: _score_of(run, task), scores=not one_round)
    what = (run, ready.model, ready.engine, tasks, ready.settings, progress)
    how: dict[str, Any] = {"say": progress.say, "closes": not one_round}
    how |= {"charge": ready.charge, "budget": ready.budget}
    asker = RunAsker(*what, **how)
    asker.met = lambda: next(filter(None, (rule.met(tally) for rule in rules)), None)
    with progress:
        try:
            asker.go()
        finally:
            if notes := alarms.notes() if alarms else []:
                run.manifest.note(notes)
                run.save()
            progress.say_money(ready.budget)
    return asker.trouble.error


def _score_of(run: Run, task: str) -> str:
    record = run.results().get(task)
    if record is None:
        return ""
    metrics = record["metrics"]
    if "score" not in metrics:
        return "to be judged" if waits_for_judges({task: record}) else ""
    return f"{'SAMPLE ' if 'SAMPLE_DATA' in metrics else ''}score {metrics['score']:.4f}"


def check_conversations(config: EvaluatorConfig, settings: Settings) -> None:
    if "chat" in config.model and not settings.apply_chat_template:
        raise MedtasksError(
            f"{config.model} takes conversations, and none is made",
            where="--model",
            remedy="add --apply_chat_template",
        )


def check_likelihood(config: EvaluatorConfig, tasks: Mapping[str, Task]) -> None:
    """A chat interface gives the log-probabilities of its likeliest tokens alone."""
    from medtasks_ext.runner.requests import chooses

    if is_server(config.model) and "chat" in config.model and any(map(chooses, tasks.values())):
        raise MedtasksError(
            f"{config.model} gives log-probabilities of at most 20 likeliest tokens, and an answer may be "
            "none of them",
            where="--model",
            remedy="ask a completions server (--model local-completions, an address that ends in "
            "/v1/completions), or the model itself (--model vllm or hf)",
        )


def fitted(
    run: Run, model: LM, waiting: dict[str, Task], request: RunRequest
) -> tuple[dict[str, Task], Settings]:
    """The tasks and settings as the model can be asked; what that changes is noted in the run.

    Which documents are asked is noted here, too, and not before: up to here a call may end at the model, and
    tasks that stand over other documents keep their results then. Raises MedtasksError: the model cannot be
    asked these tasks with these settings.
    """
    from medtasks_ext.runner.preflight import check_budget, check_chat_template, context_of_model
    from medtasks_ext.runner.requests import takes_system_turn
    from medtasks_ext.runner.run import build_tasks

    settings = request.settings
    check_budget(context_of_model(model), waiting)
    check_chat_template(model, settings)
    if settings.apply_chat_template and not takes_system_turn(model.apply_chat_template):
        say(f"note: {_NO_SYSTEM_TURN}")
        run.manifest.note([_NO_SYSTEM_TURN])
        run.manifest.system_role = False
        settings = replace(settings, system_role=False)
        waiting, _ = build_tasks(run.registry, waiting, settings)
    context = getattr(model, "max_length", None)
    run.manifest.context = context if isinstance(context, int) else None
    run.note_engine(model, settings)
    run.choose(waiting, request.choices)
    run.save()
    return waiting, settings


def _is_built_in(model: LM) -> bool:
    from medtasks_ext.models.baselines import Baseline

    return isinstance(model, Baseline)


def _preflight(ready: _Ready, places: dict[str, Sequence[int]]) -> None:
    from medtasks_ext.runner.preflight import preflight

    run, how = ready.run, (ready.settings, ready.charge, ready.budget)
    if done := run.manifest.preflight:
        _warn(done["warnings"])
        return
    say("preflight: asking one question …")
    found = preflight(run, ready.model, ready.engine, ready.tasks, places, *how)
    if not found.failed:  # else the next call asks again
        say(f"preflight: {found.summary()}")
        run.manifest.preflight = found.record()
        run.manifest.note(found.warnings)
        run.save()
    _warn(found.warnings)
    if found.warnings and (end := found.shown_end()):
        say(f"  the response ends: {end}")


def _warn(warnings: list[str]) -> None:
    for warning in warnings:
        say(f"preflight: ! {warning}")


def _parse(arguments: list[str]) -> tuple[argparse.Namespace, EvaluatorConfig]:
    from medtasks_ext.runner.alarms import StopRule  # brings lm-eval: after `quiet`

    own_parser = own_flags(asks=True)
    own_parser.add_argument("--prompts")
    own_parser.add_argument("--ask", type=_way, default=ANSWERS)
    own_parser.add_argument("--no-preflight", action="store_true")
    own_parser.add_argument("--drop-faulty", action="store_true")
    add_error_flags(own_parser)
    own_parser.add_argument("--to-batch", type=Path)
    own_parser.add_argument("--from-batch", nargs="+", type=Path, default=[])
    own_parser.add_argument("--stop-if", action="append", default=[], type=StopRule.parse)
    own, rest = own_parser.parse_known_args(arguments)
    example = "--tasks bridge_zh --model vllm --model_args pretrained=ORG/MODEL"
    return own, lm_eval_config(rest, "run", _DESCRIPTION, example, REFUSED, in_files=True)


def _way(text: str) -> str:
    if text not in (ANSWERS, LIKELIHOOD):
        raise MedtasksError(
            f"{text!r} is no way to ask", where="--ask", remedy=f"write {ANSWERS} or {LIKELIHOOD}"
        )
    return text


def _settings(own: argparse.Namespace, config: EvaluatorConfig) -> Settings:
    from medtasks_ext.prompts.load import flag
    from medtasks_ext.prompts.official.choice import prompt_source_of
    from medtasks_ext.rows.sources import forced_origin
    from medtasks_ext.runner.evaluate import Settings

    # lm-eval merges model arguments into metadata: only what no model argument says is ours
    ours = {key: value for key, value in config.metadata.items() if key not in config.model_args}
    gen_kwargs = config.gen_kwargs or {}
    official = "max_gen_toks" not in gen_kwargs and reasons(config) is False
    return Settings(
        num_fewshot=config.num_fewshot,
        apply_chat_template=config.apply_chat_template,
        fewshot_as_multiturn=config.fewshot_as_multiturn,
        system_instruction=config.system_instruction,
        system_role=flag(ours.get("system_role", True), "system_role"),
        data=forced_origin(own.data or ours.get("data")),
        prompts=None
        if (source := prompt_source_of(own.prompts or ours.get("prompts"))) == "auto"
        else source,
        gen_kwargs=gen_kwargs,
        seed=config.seed[3] if isinstance(config.seed, list) else None,
        layout=_layout(ours.get("layout"), config),
        drop_faulty=own.drop_faulty or flag(ours.get("drop_faulty", False), "drop_faulty") or None,
        official_budget=official,
        context=context_of(config) if official else None,
    )


def _layout(given: object, config: EvaluatorConfig) -> str | None:
    from medtasks_ext.prompts.template import layout_template

    if given is None or config.apply_chat_template:
        return None
    layout_template(given)
    return str(given)


def _choices(config: EvaluatorConfig, tasks: Iterable[str]) -> dict[str, Choice]:
    samples = config.samples if isinstance(config.samples, dict) else None
    try:
        return {task: Choice.of(task, config.limit, samples) for task in tasks}
    except (TypeError, ValueError):
        raise MedtasksError(
            "holds something else than lists of places",
            where="--samples",
            remedy='write {"TASK": [0, 1, 2]}, or draw a list with `medtasks study sample`',
        ) from None
