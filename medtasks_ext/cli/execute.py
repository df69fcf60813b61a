"""A run from its request on: the folder, the model, the first question, and asking."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rich.console import Console

from medtasks_ext.cli.arguments import check_address, context_of, create_model, is_server
from medtasks_ext.cli.words import counted, say
from medtasks_ext.errors import MedtasksError
from medtasks_ext.run.charge import OF_MODELS, Charge, budget_of, check_refused, check_under_limit, paid
from medtasks_ext.runs.manifest import TaskEntry, TaskState

if TYPE_CHECKING:
    from medtasks_ext.egress import Egress
    from medtasks_ext.engines.engine import Engine
    from medtasks_ext.harness import LM, EvaluatorConfig, Task
    from medtasks_ext.registry import Registry
    from medtasks_ext.results.prices import Price
    from medtasks_ext.run.charge import Budget
    from medtasks_ext.runner.batch import BatchFiles
    from medtasks_ext.runner.drawing import Design
    from medtasks_ext.runner.evaluate import Settings
    from medtasks_ext.runner.run import Run
    from medtasks_ext.runner.tally import StopRule
    from medtasks_ext.runs.manifest import Choice

_NO_SYSTEM_TURN = "the chat template refuses or drops a system turn: instructions go into the first user turn"


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


@dataclass(frozen=True)
class _Ready:
    run: Run
    model: LM
    engine: Engine
    tasks: dict[str, Task]  # that are not done, as the model can be asked them
    settings: Settings
    charge: Charge | None  # what requests cost; None where they cost nothing, or nobody knows
    budget: Budget
    rules: Sequence[StopRule]

    @property
    def built_in(self) -> bool:
        from medtasks_ext.models import Baseline

        return isinstance(self.model, Baseline)


# ---------------------------------------------------------------------- the folder


def open_run(run: Run, request: RunRequest, config: EvaluatorConfig) -> dict[str, Task]:
    """The tasks that are not done; what stands in the folder already is said."""
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
    _say_there(run, waiting, choices)
    return waiting


def _say_there(run: Run, waiting: dict[str, Task], choices: dict[str, Choice]) -> None:
    from medtasks_ext.runner.evaluate import same_documents

    wanted = there = other = 0
    repeated = False
    for name, task in waiting.items():
        if run.is_done(name) and (n := run.n_lost(task)):
            line = f"answers.jsonl holds no more {counted(n, 'answer')} with which {name} was finished"
            say(f"note: {line}; what is missing is asked again")
            run.manifest.note([line])
        places = run.places(task, choices[name])
        asked = {each for place in places for each in task.names_of(place)}
        wanted += len(asked)
        there += len(asked & run.answers.answered(name).keys())
        repeated |= len(asked) > len(places)
        other += run.is_done(name) and not same_documents(task, run.state(name).choice, choices[name])
    if other:
        say(
            f"{other} of {len(waiting)} tasks stand over other documents: scored anew over those of "
            "this call, and no answer is asked for again"
        )
    if there:
        say(f"{there:,} of {wanted:,} {'requests' if repeated else 'documents'} have an answer already")


def _drawn_before(run: Run, design: Design, choices: dict[str, Choice]) -> dict[str, Choice]:
    scores = tuple(score.name for score in design.scores)
    entries = run.manifest.tasks
    if not {name for name, entry in entries.items() if entry.choice.drawn} <= design.asked.keys():
        return {}  # a score over more tasks had a part of these documents
    found = {name: run.state(name).choice for name in choices if name in entries}
    return {
        name: choice
        for name, choice in found.items()
        if (drawn := choice.drawn) and (drawn.error, drawn.scores) == (design.error, scores)
    }


# ---------------------------------------------------------------------- what a model can be asked


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


def _check_interface(config: EvaluatorConfig, settings: Settings, tasks: Mapping[str, Task]) -> None:
    from medtasks_ext.runner.evaluate import chooses

    if "chat" not in config.model:
        return
    if not settings.apply_chat_template:
        what = f"{config.model} takes conversations, and none is made"
        raise MedtasksError(what, where="--model", remedy="add --apply_chat_template")
    if is_server(config.model) and any(map(chooses, tasks.values())):
        raise MedtasksError(
            f"{config.model} gives log-probabilities of at most 20 likeliest tokens, and an answer may be "
            "none of them",
            where="--model",
            remedy="ask a completions server (--model local-completions, an address that ends in "
            "/v1/completions), or the model itself (--model vllm or hf)",
        )


def _fitted(
    run: Run, model: LM, waiting: dict[str, Task], request: RunRequest
) -> tuple[dict[str, Task], Settings]:
    """The tasks and settings as the model can be asked; what that changes is noted in the run.

    Which documents are asked is noted here, too, and not before: up to here a call may end at the model, and
    tasks that stand over other documents keep their results then. Raises MedtasksError: the model cannot be
    asked these tasks with these settings.
    """
    from medtasks_ext.runner.evaluate import takes_system_turn
    from medtasks_ext.runner.preflight import check_budget, check_chat_template, context_of_model
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


# ---------------------------------------------------------------------- asking


def execute(
    run: Run,
    waiting: dict[str, Task],
    wanted: RunRequest,
    config: EvaluatorConfig,
    own: argparse.Namespace,
    price: Price | None,
    files: BatchFiles | None,
) -> MedtasksError | None:
    """Load the model and ask it; returns what ended the run before its time."""
    from medtasks_ext.cli.progress import say_unpriced
    from medtasks_ext.runner.evaluate import text_of
    from medtasks_ext.runner.preflight import check_budget

    _check_interface(config, wanted.settings, waiting)
    if not is_server(config.model):  # before a model is loaded, which takes minutes
        check_budget(context_of(config), waiting)
    check_address(config, wanted.egress, (text_of(task) for task in waiting.values()))
    with Console(stderr=True).status("loading the model"):
        loaded = create_model(config, asked=not files)
    waiting, settings = _fitted(run, loaded.lm, waiting, wanted)
    places = {name: run.places(task) for name, task in waiting.items()}
    egress = wanted.egress.recording(run.answers.sent)
    engine = files.of(loaded.lm) if files else loaded.engine(say=say, egress=egress)
    engine.check(text_of(task) for name, task in waiting.items() if places[name])
    charge = Charge(price) if price and (own.max_cost is not None or not engine.local) else None
    budget = budget_of(own.max_cost, *paid(own.max_cost, charge, run.answers))
    say_unpriced(budget)
    ready = _Ready(run, loaded.lm, engine, waiting, settings, charge, budget, own.stop_if)
    if not (own.no_preflight or files or ready.built_in) and any(places.values()):
        _preflight(ready, places)
    if wanted.design is None:
        return _ask(ready)
    try:
        return _rounds(ready, wanted.design)
    finally:
        engine.close()


def _preflight(ready: _Ready, places: dict[str, Sequence[int]]) -> None:
    from medtasks_ext.runner.preflight import preflight

    run, end = ready.run, ""
    if done := run.manifest.preflight:
        warnings = done["warnings"]
    else:
        say("preflight: asking one question …")
        how = (ready.settings, ready.charge, ready.budget)
        found = preflight(run, ready.model, ready.engine, ready.tasks, places, *how)
        warnings, end = found.warnings, found.end
        if found.summary:
            say(f"preflight: {found.summary}")
            run.manifest.preflight = {"warnings": warnings}
            run.manifest.note(warnings)
            run.save()
    for warning in warnings:
        say(f"preflight: ! {warning}")
    if warnings and end:
        say(f"  the response ends: {end}")


def _rounds(ready: _Ready, design: Design) -> MedtasksError | None:
    run, number, again = ready.run, 0, True
    while again:
        choices = design.choices()
        tasks = {
            name: task for name, task in ready.tasks.items() if not run.is_current(name, task, choices[name])
        }
        run.choose(ready.tasks, choices)
        run.save()
        if error := _ask(replace(ready, tasks=tasks), one_round=True):
            return error
        if not all(run.is_done(name) for name in choices):
            return None
        number, asked = number + 1, sum(design.asked.values())
        again = design.settle(run.results())
        stands = "".join(f", {score.name} ±{100 * (score.half or 0):.1f}" for score in design.scores)
        say(f"round {number}: {asked:,} of {design.n_documents:,} documents asked{stands}")
    return None


def _ask(ready: _Ready, *, one_round: bool = False) -> MedtasksError | None:
    """Ask the tasks, and show it. After `one_round` more is asked: the engine stays open."""
    from medtasks_ext.cli.progress import Progress
    from medtasks_ext.runner.asking import RunAsker
    from medtasks_ext.runner.evaluate import Reader, chooses
    from medtasks_ext.runner.tally import Alarms, Tally

    run, tasks = ready.run, ready.tasks
    asked = {name: len(run.places(task)) * task.repeats for name, task in tasks.items()}
    readers = {name: Reader(task) for name, task in tasks.items() if not chooses(task)}
    tally = Tally(asked, readers, ready.budget if ready.charge else None)
    alarms = None if ready.built_in else Alarms(chat_template=ready.settings.templated)
    progress = Progress(tally, alarms=alarms, score=lambda task: _score_of(run, task), scores=not one_round)
    asker = RunAsker(
        run, ready.model, ready.engine, tasks, ready.settings, progress,
        say=progress.say, closes=not one_round, charge=ready.charge, budget=ready.budget,
    )  # fmt: skip
    asker.met = lambda: next(filter(None, (rule.met(tally) for rule in ready.rules)), None)
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
    from medtasks_ext.cli.end import waits_for_judges

    record = run.results().get(task)
    if record is None:
        return ""
    metrics = record["metrics"]
    if "score" not in metrics:
        return "to be judged" if waits_for_judges({task: record}) else ""
    return f"{'SAMPLE ' if 'SAMPLE_DATA' in metrics else ''}score {metrics['score']:.4f}"
