"""One call of `medtasks run`: its options, the folder, the model, its first answer, and asking."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial

from rich.console import Console

from medtasks_ext.cli.arguments import (
    check_address,
    context_of,
    create_model,
    is_server,
    model_name,
    requested_tasks,
    say_faults,
    settings_of,
    without_data,
)
from medtasks_ext.cli.end import waits_for_judges
from medtasks_ext.cli.progress import LIMIT_REACHED, Progress, money_words
from medtasks_ext.cli.words import counted, say
from medtasks_ext.egress import Egress
from medtasks_ext.engines import Answer, Request
from medtasks_ext.errors import MedtasksError, some
from medtasks_ext.harness import EvaluatorConfig, Task
from medtasks_ext.models import Baseline
from medtasks_ext.prompts.fit import tokenizer_of
from medtasks_ext.prompts.official.words import own_words_notes
from medtasks_ext.registry.metadata import FEW, restrictions
from medtasks_ext.registry.strategies import LIKELIHOOD
from medtasks_ext.results.prices import price_of
from medtasks_ext.run.charge import (
    OF_MODELS,
    Charge,
    budget_of,
    check_limit,
    check_refused,
    check_under_limit,
)
from medtasks_ext.runner.asking import RunAsker
from medtasks_ext.runner.batch import BatchFiles, check_out
from medtasks_ext.runner.drawing import Design
from medtasks_ext.runner.evaluate import Settings, chooses, reader_of, takes_system_turn, text_of
from medtasks_ext.runner.preflight import check_budget, look_at_answer, look_at_prompts
from medtasks_ext.runner.run import Run, build_tasks, loaded_record
from medtasks_ext.runner.tally import Alarms, Tally
from medtasks_ext.runs.conditions import accounted_rows
from medtasks_ext.runs.manifest import Choice, TaskEntry, TaskState, described

_NO_SYSTEM_TURN = "the chat template refuses or drops a system turn: instructions go into the first user turn"
#: Option -> those that do not go with it.
_APART = {
    "--to-batch": ("--from-batch", "--max-cost", "--ask likelihood"),
    "--from-batch": ("--max-cost", "--ask likelihood"),
    "--error": ("--limit", "--samples", "--ask likelihood"),
}


class RunCall:
    """One call of `medtasks run`.

    `own`: its options that are ours. `config`: those of lm-eval.

    Attributes:
        names: as the user gave them.
        settings: what besides the model decides prompts and responses.
        missing: task -> why it cannot be asked.
        tasks: those whose rows are here, and once the folder is open those of them that are not done.
        choices: task -> which of its documents are asked.
        design: of a run with a stated error; None of others.
        files: of batches, in which requests are written or answers come; None where somebody is asked.
    """

    def __init__(self, own: argparse.Namespace, config: EvaluatorConfig) -> None:
        self.own, self.config, self.egress = own, config, Egress.of(own.allow_host)
        self.files = self._checked()
        self.price = price_of(config.metadata, "--config")
        check_limit(own.max_cost, self.price)
        self._check_fields({})
        self.registry, resolved = requested_tasks(config, likelihood=own.ask == LIKELIHOOD)
        self.names, self.settings = list(resolved), settings_of(config, own)
        self._leaves = list(dict.fromkeys(leaf for names in resolved.values() for leaf in names))
        samples = config.samples if isinstance(config.samples, dict) else None
        try:
            self.choices = {task: Choice.of(task, config.limit, samples) for task in self._leaves}
        except (TypeError, ValueError):
            what = "holds something else than lists of places"
            remedy = 'write {"TASK": [0, 1, 2]}, or draw a list with `medtasks study sample`'
            raise MedtasksError(what, where="--samples", remedy=remedy) from None
        self.missing = without_data(self.registry, self._leaves, self.settings)
        here = [name for name in self._leaves if name not in self.missing]
        self.tasks, faults = build_tasks(self.registry, here, self.settings)
        say_faults(faults, stop=own.strict or not self.tasks)
        if own.strict and self.missing:
            raise MedtasksError("data is missing and --strict was given", remedy="see the list above")
        self.missing |= {name: str(fault) for name, fault in faults.items()}
        self.design = self._drawn() if own.error is not None else None
        self._check_fields(self.tasks)

    def _checked(self) -> BatchFiles | None:
        """Refuse options that do not go together; the files of a batch, where these are asked for."""
        own, config = self.own, self.config
        given = {
            "--to-batch": bool(own.to_batch),
            "--from-batch": bool(own.from_batch),
            "--error": own.error is not None,
            "--max-cost": own.max_cost is not None,
            "--limit": config.limit is not None,
            "--samples": config.samples is not None,
            "--ask likelihood": own.ask == LIKELIHOOD,
        }
        for option, others in _APART.items():
            if both := [other for other in others if given[option] and given[other]]:
                raise MedtasksError(f"is not for {both[0]}", where=option, remedy=f"leave out {both[0]}")
        if given["--error"] and not 0.05 <= own.error <= 20:
            what, remedy = f"{own.error:g} is no error of a score in points", "give 0.05 to 20, such as 1.0"
            raise MedtasksError(what, where="--error", remedy=remedy)
        if not (own.to_batch or own.from_batch):
            return None
        files = BatchFiles(config.model, own.to_batch, own.from_batch)
        if model_name(config) == config.model:
            what = "no model is named, and every request names it"
            raise MedtasksError(what, where="--model_args", remedy="add model=NAME")
        return files

    def _check_fields(self, tasks: Mapping[str, Task]) -> None:
        """Refuse settings that change what a request to a server is, wherever they come from."""
        if not is_server(self.config.model):
            return
        given = {"--model_args": [name for name in self.config.model_args if name not in OF_MODELS]}
        given["--gen_kwargs"] = list(self.config.gen_kwargs or {})
        given |= {name: list(task.config.generation_kwargs or {}) for name, task in tasks.items()}
        for where, names in given.items():
            check_refused(names, where)
            if self.own.max_cost is not None and where != "--model_args":
                check_under_limit(names, where)

    def _drawn(self) -> Design:
        """What is drawn first; tasks that are not drawn of leave."""
        design = Design(self.registry, self.names, self.tasks, self.own.error)
        scores, first = some([score.words for score in design.scores]), sum(design.asked.values())
        say(
            f"an estimate: documents are drawn until {scores} is known to ±{design.error:g} points "
            f"(95 %), first {first:,} of {design.n_documents:,}"
        )
        for why in dict.fromkeys(design.left_out.values()):
            names = [name for name, reason in design.left_out.items() if reason == why]
            say(f"not asked, {len(names)} tasks ({some(names, 3)}): {why}")
        self.tasks = {name: task for name, task in self.tasks.items() if name in design.asked}
        self._leaves = [name for name in self._leaves if name not in design.left_out]
        return design

    # ------------------------------------------------------------------ the folder

    def open(self, run: Run) -> None:
        """Keep the tasks that are not done; what stands in the folder already is said."""
        self.run, config = run, self.config
        run.open(config.model, config.model_args, self.settings, self.names, self._leaves)
        if run.settings.system_role != self.settings.system_role:  # found out when the run began
            self._rebuild(run.settings)
        built = {name: run.in_stored_wording(name, task) for name, task in self.tasks.items()}
        for name, reason in self.missing.items():
            run.note(name, TaskEntry(state=TaskState.MISSING, error=reason))
        run.manifest.allowed_hosts = sorted({*run.manifest.allowed_hosts, *self.egress.allowed})
        choices = self.choices | (self._drawn_before(self.design) if self.design else {})
        waiting = {name: task for name, task in built.items() if not run.is_current(task, choices[name])}
        if self.design and waiting:
            waiting = dict(built)  # of all of them together it follows what is drawn; nothing is asked twice
        run.choose({name: task for name, task in built.items() if name not in waiting}, choices)
        run.save()
        if done := len(built) - len(waiting):
            say(f"{done} of {len(built)} tasks are done already in {run.folder}")
        self.tasks, self.choices = waiting, choices
        self._say_there()
        if waiting and not self.own.from_batch:
            check_out(run.answers.out)

    def _rebuild(self, settings: Settings) -> None:
        self.settings = settings
        self.tasks, _ = build_tasks(self.registry, self.tasks, settings)

    def _say_there(self) -> None:
        run, wanted, there = self.run, 0, 0
        for name, task in self.tasks.items():
            if run.is_done(name) and (n := run.n_lost(task)):
                line = f"answers.jsonl holds no more {counted(n, 'answer')} with which {name} was finished"
                say(f"note: {line}; what is missing is asked again")
                run.manifest.note([line])
            places = run.places(task, self.choices[name])
            asked = {each for place in places for each in task.names_of(place)}
            wanted += len(asked)
            there += len(asked & run.answers.answered(name).keys())
        if there:
            say(f"{there:,} of {wanted:,} requests have an answer already")

    def _drawn_before(self, design: Design) -> dict[str, Choice]:
        """What earlier calls drew for the same scores; nothing where these stood over more tasks."""
        entries, scores = self.run.manifest.tasks, tuple(score.name for score in design.scores)
        drawn = {name: entry.choice for name, entry in entries.items() if entry.choice.drawn}
        same = {
            name: choice
            for name, choice in drawn.items()
            if choice.drawn and (choice.drawn.error, choice.drawn.scores) == (design.error, scores)
        }
        return same if drawn.keys() <= design.asked.keys() else {}

    # ------------------------------------------------------------------ asking

    def execute(self) -> MedtasksError | None:
        """Load the model and ask it; returns what ended the run before its time."""
        run, own, config = self.run, self.own, self.config
        self._check_interface()
        if not is_server(config.model):  # before a model is loaded, which takes minutes
            check_budget(context_of(config), self.tasks)
        check_address(config, self.egress, map(text_of, self.tasks.values()))
        egress = self.egress.recording(run.answers.sent)
        with Console(stderr=True).status("loading the model"):
            in_place = self.files.of if self.files else None
            self.lm, self.engine = create_model(config, egress, in_place)
        self._fit()
        places = {name: run.places(task) for name, task in self.tasks.items()}
        charged = own.max_cost is not None or not self.engine.local
        self.charge = Charge(self.price) if self.price and charged else None
        self.budget = budget_of(own.max_cost, self.charge, run.answers)
        if unpriced := self.budget.unpriced:
            say(
                f"note: {counted(unpriced, 'answer')} of earlier calls have no recorded cost, and too little "
                "is kept to say what they may have cost: they are not in what --max-cost limits"
            )
        self.built_in = isinstance(self.lm, Baseline)
        looked = own.no_preflight or run.manifest.preflight or self.files or self.built_in
        self.looks, self.warnings = not looked and any(places.values()), list[str]()
        if self.looks:
            self._warn(say, look_at_prompts(self.lm, self.tasks, places, self.settings))
        if self.design is None:
            return self._ask(self.tasks)
        try:
            return self._rounds(self.design)
        finally:
            self.engine.close()

    def _check_interface(self) -> None:
        model = self.config.model
        if "chat" not in model:
            return
        if not self.settings.apply_chat_template:
            what = f"{model} takes conversations, and none is made"
            raise MedtasksError(what, where="--model", remedy="add --apply_chat_template")
        if is_server(model) and any(map(chooses, self.tasks.values())):
            raise MedtasksError(
                f"{model} gives log-probabilities of at most 20 likeliest tokens, and an answer may be none "
                "of them",
                where="--model",
                remedy="ask a completions server (--model local-completions, an address that ends in "
                "/v1/completions), or the model itself (--model vllm or hf)",
            )

    def _fit(self) -> None:
        """Tasks and settings as the model can be asked; what that changes is noted in the run.

        Which documents are asked is noted here, too, and not before: up to here a call may end at the model,
        and tasks that stand over other documents keep their results then.
        """
        run, lm = self.run, self.lm
        context = getattr(lm, "max_length", None)
        run.manifest.context = context if isinstance(context, int) else None
        # of an API model lm-eval guesses it
        check_budget(None if tokenizer_of(lm) is None else run.manifest.context, self.tasks)
        if self.settings.apply_chat_template and not takes_system_turn(lm.apply_chat_template):
            say(f"note: {_NO_SYSTEM_TURN}")
            run.manifest.note([_NO_SYSTEM_TURN])
            run.manifest.system_role = False
            self._rebuild(replace(self.settings, system_role=False))
        template = self.settings.apply_chat_template
        layout = None if template else self.settings.layout
        run.manifest.sessions[-1].engine = described(lm, template=template, layout=layout)
        run.choose(self.tasks, self.choices)
        run.save()

    def _warn(self, tell: Callable[[str], None], warnings: Iterable[str]) -> None:
        for warning in warnings:
            tell(f"preflight: ! {warning}")
            self.warnings.append(warning)
        self.run.manifest.note(self.warnings)

    def _look(self, tell: Callable[[str], None], request: Request, answer: Answer) -> None:
        self.looks = False
        summary, warnings = look_at_answer(self.tasks[request.task], request, answer)
        tell(f"preflight: {summary}")
        self._warn(tell, warnings)
        self.run.manifest.preflight = {"warnings": self.warnings}

    def _rounds(self, design: Design) -> MedtasksError | None:
        run, number, again = self.run, 0, True
        while again:
            choices = design.choices()
            tasks = self.tasks.items()
            waiting = {name: task for name, task in tasks if not run.is_current(task, choices[name])}
            run.choose(self.tasks, choices)
            run.save()
            if error := self._ask(waiting):
                return error
            if not all(run.is_done(name) for name in choices):
                return None
            number, asked = number + 1, sum(design.asked.values())
            again = design.settle(run.results())
            stands = "".join(f", {score.name} ±{100 * (score.half or 0):.1f}" for score in design.scores)
            say(f"round {number}: {asked:,} of {design.n_documents:,} documents asked{stands}")
        return None

    def _ask(self, tasks: dict[str, Task]) -> MedtasksError | None:
        """Ask the tasks, and show it. Between rounds the engine stays open."""
        run, last = self.run, self.design is None
        asked = {name: len(run.places(task)) * task.repeats for name, task in tasks.items()}
        readers = {name: reader_of(task) for name, task in tasks.items() if not chooses(task)}
        tally = Tally(asked, readers, self.budget if self.charge else None)
        alarms = None if self.built_in else Alarms(chat_template=self.settings.templated)
        progress = Progress(tally, alarms=alarms, score=self._score_of, scores=last)
        asker = RunAsker(
            run, self.lm, self.engine, tasks, self.settings, progress,
            say=progress.say, closes=last, charge=self.charge, budget=self.budget,
        )  # fmt: skip
        if self.looks:
            asker.first = partial(self._look, progress.say)
        asker.met = lambda: next(filter(None, (rule.met(tally) for rule in self.own.stop_if)), None)
        with progress:
            try:
                asker.go()
            finally:
                if notes := alarms.notes() if alarms else []:
                    run.manifest.note(notes)
                    run.save()
                if money := money_words(tally):
                    progress.say(f"cost: {money}")
                if self.budget.exhausted:
                    progress.say(LIMIT_REACHED)
        cause, error = asker.trouble.cause, asker.trouble.error
        if error and cause and cause.kind.ends_all and not run.answers.asked:
            raise error  # there is nothing to show
        return error

    def _score_of(self, task: str) -> str:
        record = self.run.results().get(task)
        if record is None:
            return ""
        metrics = record["metrics"]
        if "score" not in metrics:
            return "to be judged" if waits_for_judges({task: record}) else ""
        return f"{'SAMPLE ' if 'SAMPLE_DATA' in metrics else ''}score {metrics['score']:.4f}"

    # ------------------------------------------------------------------ what is said of the rows

    def rows_words(self) -> Iterator[str]:
        """What the rows that are asked lack: gold, other rows, official prompts, leave to use them."""
        records = {name: loaded_record(task) for name, task in self.tasks.items()}
        of = {name: self.registry.known(name) for name in records}
        real = [name for name, record in records.items() if record["origin"] != "sample"]
        if blind := [name for name, item in records.items() if item["n_without_gold"] == item["n_test"]]:
            suites = [of[name][0].suite for name in blind]
            yield (
                f"no gold answers for {len(blind)} of {len(records)} tasks ({some(blind)}): predicted, not "
                "scored"
            ) + "".join(
                f"; `medtasks card --layout {name}` writes the leaderboard's files"
                for name in sorted({suite.id for suite in suites if suite.leaderboard})
            )
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
        yield from own_words_notes(own, len(real), self.settings.prompts)
        asked = dict.fromkeys(of[name][0] for name in real)  # synthetic rows are nobody's
        if line := restrictions(((item.id, item.metadata.licence) for item in asked), named=FEW):
            yield line
