"""A run: its folder, what it was made with, and the scores of its tasks.

`medtasks_ext.runs` lists the files.
"""

from __future__ import annotations

import json
import logging
import platform
import socket
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from medtasks_ext.answers.reader.reply import unknown_traces
from medtasks_ext.atomic import remove
from medtasks_ext.data.oracle import highest_possible
from medtasks_ext.engines.described import described
from medtasks_ext.engines.records import CONTENT_FILTER, LOOP, Answer, Request
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import write_json
from medtasks_ext.privacy import what_happened
from medtasks_ext.prompts.dialogue import shown
from medtasks_ext.prompts.documents import document_key, without_places
from medtasks_ext.prompts.fit import INPUT, SHOTS
from medtasks_ext.registry.strategies import asked_strategy, by_likelihood, reasons
from medtasks_ext.registry.suites import function
from medtasks_ext.results.document_scores import document_scores, save_document_scores, score_statistic
from medtasks_ext.results.drawn import drawn_results
from medtasks_ext.results.resampled import save_resampled
from medtasks_ext.results.rollup import Members, Row, roll_up_one
from medtasks_ext.rows.missing import origin_of, where_it_goes
from medtasks_ext.rows.sources import forced_origin
from medtasks_ext.runner.evaluate import (
    Settings,
    TaskResult,
    build_task,
    chosen_documents,
    evaluate_task,
    same_documents,
)
from medtasks_ext.runner.requests import AskedPrompt, read_prompts, readable
from medtasks_ext.runs.conditions import Asked as AskedConditions
from medtasks_ext.runs.conditions import (
    Conditions,
    Observed,
    Rows,
    Shots,
    run_conditions,
    task_conditions,
)
from medtasks_ext.runs.folder import RunFolder
from medtasks_ext.runs.manifest import (
    Identity,
    Manifest,
    Session,
    TaskEntry,
    TaskState,
    identity_of,
)
from medtasks_ext.runs.outcomes import Binding, OutcomeLog, read_outcomes
from medtasks_ext.runs.samples import iter_samples, options_of
from medtasks_ext.runs.secrets import dropped_secrets, model_arguments, without_login
from medtasks_ext.stats.bootstrap import interval_record, intervals_of_record, task_intervals
from medtasks_ext.stats.intervals import WILSON_OF_UNITS, Estimated, Interval
from medtasks_ext.version import __version__

if TYPE_CHECKING:
    from medtasks_ext.engines.records import Likelihood
    from medtasks_ext.harness import LM, Task
    from medtasks_ext.prompts.documents import Document, LoadedRecord
    from medtasks_ext.registry import Registry
    from medtasks_ext.runs.choice import Choice
    from medtasks_ext.runs.records import EstimateRecord, Sample, TaskRecord
    from medtasks_ext.stats.statistic import Array

log = logging.getLogger(__name__)
_Item = TypeVar("_Item")


@dataclass(frozen=True)
class Availability:
    """Which of the requested tasks can run now, and what the others lack."""

    present: list[str]
    missing: dict[str, str]


def check_data(registry: Registry, tasks: Iterable[str], settings: Settings) -> Availability:
    """Look for the data of every task without reading it."""
    forced = forced_origin(settings.data)
    present, missing = [], {}
    for name in tasks:
        dataset, _ = registry.known(name)
        if origin_of(dataset, forced) is None:
            missing[name] = where_it_goes(dataset)
        else:
            present.append(name)
    return Availability(present, missing)


@dataclass(frozen=True)
class Records:
    """What a task is scored from."""

    responses: Mapping[str, str]  # document -> response
    prompts: Mapping[str, Any]  # document -> prompt as lm-eval records it, where it is known
    keys: Mapping[str, str]  # document -> key of its request, where it is known
    cut: Mapping[str, int]  # counts of prompts and answers that did not fit
    tokens: Mapping[str, int] | None  # of all prompts and answers, where they were counted
    served: tuple[str, ...] = ()  # models that answered, as servers call them
    likelihoods: Mapping[str, Sequence[Likelihood]] = field(
        default_factory=dict
    )  # document -> of its options


class Run:
    """One run folder.

    A run is continued when what can change its responses is the same; anything else is refused, since
    responses to other prompts must not be mixed. Which documents are asked may change from call to call;
    a result is always over those of one choice. A folder without outcomes, present or on their way in a
    batch, takes any settings.
    """

    manifest: Manifest

    def __init__(self, folder: Path, registry: Registry) -> None:
        self.folder, self.registry = folder, registry
        self.files = RunFolder(folder)

    @property
    def manifest_file(self) -> Path:
        """The manifest."""
        return self.files.manifest

    def open(
        self,
        model: str,
        arguments: Mapping[str, Any],
        settings: Settings,
        requested: list[str],
        tasks: list[str],
    ) -> None:
        """Create the run, or continue it.

        Raises:
            MedtasksError: the folder holds outcomes of another model, other settings or another schema.
        """
        identity = identity_of(model, arguments, asdict(settings))
        if self.manifest_file.is_file() and (self.files.has_outcomes() or self._expects_outcomes()):
            self.manifest = Manifest.read(self.folder)
            self._check_same(identity)
        else:
            self.manifest = Manifest(identity=identity, versions=versions())
        self.note_session(arguments)
        self.manifest.requested = list(dict.fromkeys([*self.manifest.requested, *requested]))
        for name in tasks:
            self.manifest.tasks.setdefault(name, TaskEntry())
        self.save()

    def note_session(self, arguments: Mapping[str, Any]) -> None:
        """Note that a call writes to the folder."""
        self.manifest.sessions.append(
            Session(
                started=time.strftime("%Y-%m-%dT%H:%M:%S"),
                host=socket.gethostname(),
                model_args=json.loads(
                    json.dumps(model_arguments(arguments, self.manifest.salt), default=str)
                ),
                versions=versions(),
            )
        )

    def note_engine(self, lm: LM, settings: Settings) -> None:
        """Note what the loaded model says of itself. The manifest is not written."""
        self.manifest.sessions[-1].engine = described(
            lm,
            template=settings.apply_chat_template,
            system_text=settings.system_instruction,
            layout=None if settings.apply_chat_template else settings.layout,
        )

    def _expects_outcomes(self) -> bool:
        """Whether requests were written to files, whose results may still come."""
        try:
            return bool(Manifest.read(self.folder).batches)
        except MedtasksError:  # without outcomes, the manifest is written anew
            return False

    def _check_same(self, identity: Identity) -> None:
        if different := self.manifest.identity.differs_from(identity):
            raise MedtasksError(
                f"this folder holds a run with other settings: {'; '.join(different)}",
                where=self.folder,
                remedy="use another --output_path, or the same settings to continue it",
            )

    def load(self) -> None:
        """Open an existing run.

        Raises:
            MedtasksError: there is none.
        """
        self.manifest = Manifest.read(self.folder)

    @property
    def settings(self) -> Settings:
        """The settings that the run was made with."""
        settings = Settings(**self.manifest.identity.settings)
        # the model's chat template may have refused what was asked for
        return (
            settings
            if self.manifest.system_role is None
            else replace(settings, system_role=self.manifest.system_role)
        )

    def settings_of(self, task: str) -> Settings:
        """The settings of a task: as the run's, in the words in which the run began to ask it."""
        settings, begun = self.settings, self.manifest.wording.get(task)
        known = settings.prompts is None and begun in ("own", "official")
        return replace(settings, prompts=begun) if known else settings

    def in_stored_wording(self, tasks: Mapping[str, Task]) -> dict[str, Task]:
        """The tasks in the words in which the run began to ask them; those that are new to it as they are.

        Args:
            tasks: name -> task, built with the run's settings.

        Raises:
            MedtasksError: the words cannot be had any more.
        """
        same = {}
        for name, task in tasks.items():
            begun = self.manifest.wording.setdefault(name, loaded_record(task)["instruction"])
            changed = begun != loaded_record(task)["instruction"]
            same[name] = build_task(self.registry, name, self.settings_of(name)) if changed else task
        return same

    def save(self) -> None:
        """Write the manifest."""
        self.manifest.write(self.folder)

    def state(self, task: str) -> TaskEntry:
        """The manifest's entry of a task."""
        return self.manifest.tasks[task]

    def is_done(self, task: str) -> bool:
        """Whether the task has its results."""
        return self.state(task).state is TaskState.DONE and self.files.task_file(task).is_file()

    def is_current(self, name: str, task: Task, choice: Choice) -> bool:
        """Whether the task's stored results are those of this version, prompt, data, outcomes and choice."""
        if not self.is_done(name) or not self.is_sealed(name):
            return False
        if not same_documents(task, self.state(name).choice, choice):
            return False
        stored = self.files.read_task(name)
        loaded, now = without_places(stored["loaded"]), without_places(loaded_record(task))
        return stored["version"] == str(task.VERSION) and loaded == now

    def is_sealed(self, task: str) -> bool:
        """Whether the files of outcomes still hold what they held when the task was complete."""
        return self.files.is_sealed(self.state(task))

    def choose(self, tasks: Mapping[str, Task], choices: Mapping[str, Choice]) -> None:
        """Note which documents of tasks are asked and scored from now on. The manifest is not written.

        A task that stood over other documents waits again. Its outcomes stay.
        """
        for name, task in tasks.items():
            entry = self.state(name)
            if not same_documents(task, entry.choice, choices[name]):
                remove(self.files.asked_file(name))  # requests of a former choice
                entry = TaskEntry(sealed=entry.sealed)
            asked = len(self.places(task, choices[name]))
            now = {"choice": choices[name], "bound": self.bound(task), "asked": asked}
            self.manifest.tasks[name] = entry.model_copy(update=now)

    def places(self, task: Task, choice: Choice | None = None) -> Sequence[int]:
        """Places of the documents that are asked, in the task's test file.

        Args:
            choice: of documents; the one that is noted by default.
        """
        return chosen_documents(task, choice or self.state(task.task_name).choice)

    def outcomes(self, task: str) -> OutcomeLog:
        """The outcomes of a task as this process reads and writes them."""
        return OutcomeLog(self.files.responses, task, binding=self.state(task).bound)

    def bound(self, task: Task) -> Binding:
        """Whose outcomes are those that are asked for now."""
        return self.manifest.identity.bound(**loaded_with(loaded_record(task)))

    def answered_documents(self, task: str) -> set[str]:
        """Keys of the documents that have an answer; none where a file of outcomes is damaged."""
        try:
            outcomes = read_outcomes(self.files.responses, task)
            return {stored.document for stored in outcomes if isinstance(stored.entry, Answer)}
        except MedtasksError:  # said when the task's turn comes
            return set()

    # ------------------------------------------------------------------ scores

    def finish_task(self, task: Task) -> TaskEntry:
        """What follows when every document of a task has its answer: here, the score.

        Reads records of the run alone, so that another process may do it. The manifest is not written.

        Returns:
            The task's new state.
        """
        return self._scored(task, lambda: self.asked_records(task))

    def _scored(self, task: Task, records: Callable[[], Records]) -> TaskEntry:
        try:
            n = self._score(task, records())
        except MedtasksError as error:
            return failed(error)
        except Exception as error:  # any fault of one task must not cost the others
            return failed(error)
        return TaskEntry(state=TaskState.DONE, n=n)

    def asked_records(self, task: Task) -> Records:
        """What was sent and came back, from the files of the run."""
        name = task.task_name
        asked = list(read_prompts(self.files, name))
        outcomes = read_outcomes(self.files.responses, name)
        answers = {stored.key: stored.entry for stored in outcomes if isinstance(stored.entry, Answer)}
        return records_of(asked, answers, with_shots=bool(task.config.num_fewshot))

    def _score(self, task: Task, records: Records) -> int:
        """Compute the metrics of one task from stored responses, and keep them."""
        from medtasks_ext.runner.stored import StoredLM  # with lm-eval: reading a run does without

        where = self.files.responses / f"{task.task_name}.jsonl"
        stored = StoredLM(records.responses, records.prompts, where, records.likelihoods)
        outcome = evaluate_task(stored, task, self.settings, self.state(task.task_name).choice)
        assert outcome is not None
        self.keep_scores(task, outcome, records)
        return len(outcome.samples)

    def keep_scores(self, task: Task, outcome: TaskResult, records: Records) -> None:
        """Write the results of one task."""
        name = outcome.task
        dataset, strategy = self.registry.known(name)
        chosen = by_likelihood(strategy)  # a score of its own, and no paper's interval
        named = None if chosen else dataset.suite.official_interval
        of_paper = function(dataset.suite, named) if named else None
        metrics, drawn = outcome.metrics, self.state(name).choice.drawn
        estimate: EstimateRecord | None = None
        resampled: Array | None = None  # an estimate is compared by its interval alone
        if drawn is None:
            intervals, resampled = task_intervals(outcome.samples, task.aggregation(), dataset.id, of_paper)
        else:
            metrics, intervals, estimate = drawn_results(outcome.samples, metrics, task.aggregation(), drawn)
        traces = unknown_traces(records.responses.values(), asked=reasons(strategy))
        self.files.write_samples(name, _recorded(outcome.samples, records.keys))
        save_resampled(self.files.resampled_file(name), resampled)
        save_document_scores(
            self.files.scores_file(name), document_scores(outcome.samples, score_statistic(dataset, strategy))
        )
        self.files.write_task(
            name,
            {
                **({"estimate": estimate} if estimate else {}),  # type: ignore[typeddict-item]
                **({"unknown_traces": traces} if traces else {}),  # type: ignore[typeddict-item]
                "task": name,
                "version": outcome.version,
                "metrics": metrics,
                "intervals": intervals,
                "n": len(outcome.samples),
                "loaded": self._as_asked(name, outcome.loaded),
                "cut": dict(records.cut),
                "tokens": dict(records.tokens) if records.tokens else None,
                "highest": None
                if chosen
                else highest_possible(
                    dataset, [cast("Document", sample["doc"]) for sample in outcome.samples]
                ),
                "conditions": self._conditions(task, outcome, records).record(),
                "config": without_login(outcome.config),
            },
        )

    def _as_asked(self, name: str, loaded: LoadedRecord) -> LoadedRecord:
        """What was loaded to score a task; where its words have changed since, with the words asked."""
        bound = self.state(name).bound
        if bound is None or bound.prompt_hash in ("", loaded.get("prompt_hash")):
            return loaded
        here = {key: value for key, value in loaded.items() if not key.startswith("artefact")}
        return cast("LoadedRecord", here | asked_with(bound))

    def _conditions(self, task: Task, outcome: TaskResult, records: Records) -> Conditions:
        name, loaded = outcome.task, self._as_asked(outcome.task, outcome.loaded)
        dataset, strategy = self.registry.known(name)
        sessions, metrics = self.manifest.sessions, outcome.metrics
        k = int(task.config.num_fewshot or 0)
        return task_conditions(
            AskedConditions(
                suite=dataset.metadata.suite,
                dataset=dataset.id,
                strategy=asked_strategy(strategy, k),
                version=outcome.version,
                rows=Rows(
                    source="synthetic" if "SAMPLE_DATA" in metrics else None,
                    n_of_suite=dataset.n_documents,
                    documents=self.state(name).choice.words,
                ),
                shots=Shots(hash=pool_hash(task, k) if k else None),
                context=self.manifest.context,
                seed=self.manifest.identity.model["model_args"].get("seed"),
            ),
            Observed(
                n=len(outcome.samples),
                own_words_instead=self.settings.prompts != "own" and loaded["instruction"] != "official",
                served=records.served,
                versions=_distinct(item.versions for item in sessions) or (self.manifest.versions,),
                engines=_distinct(item.engine for item in sessions if item.engine),
            ).counted(records.cut),
            run_conditions(self.manifest.record()),
            loaded,
            without_login(outcome.config),
        )

    def rescore(self, report: Callable[[str, str], None]) -> None:
        """Compute all metrics again from stored responses."""
        again = (TaskState.DONE, TaskState.FAILED, TaskState.ANSWERED)
        for name, entry in list(self.manifest.tasks.items()):
            if entry.state not in again or self.registry.asked(name) is None:
                continue
            self.note_result(name, self.rescored(name), report)

    def rescored(self, name: str) -> TaskEntry:
        """Compute the metrics of a task again; returns its new state. The manifest is not written."""
        try:
            task = build_task(self.registry, name, self.settings_of(name))
        except MedtasksError as error:
            return failed(error)
        if self.files.asked_file(name).is_file():  # answered, and never scored
            return self.finish_task(task)
        return self._scored(task, lambda: self._stored_records(name, task))

    def _stored_records(self, task: str, built: Task) -> Records:
        """The records of a task that was scored before: prompts from its samples, answers as stored."""
        asked = self._asked_before(task)
        chosen = {document_key(built.eval_docs[place]) for place in self.places(built)}
        answers: dict[str, Answer] = {}
        last: dict[str, str] = {}  # of runs that did not keep the keys
        for stored in read_outcomes(self.files.responses, task):
            if isinstance(stored.entry, Answer):
                answers[stored.key] = stored.entry
                if stored.document in chosen:
                    last[stored.document] = stored.key
        for document, item in asked.items():
            last[document] = item.key or last.get(document, "")
        by_document = {document: answers[key] for document, key in last.items() if key in answers}
        scored = self.files.read_task(task) if self.files.task_file(task).is_file() else None
        return Records(
            responses={document: answer.text for document, answer in by_document.items()},
            prompts={document: item.argument for document, item in asked.items()},
            keys=last,
            cut=(scored and scored.get("cut")) or {},
            tokens=scored and scored.get("tokens"),
            served=tuple(sorted({answer.model for answer in by_document.values() if answer.model})),
            likelihoods=_likelihoods(by_document),
        )

    def sent_requests(self, name: str, task: Task | None) -> dict[str, Request]:
        """The requests of a task that its prompts file, or later its samples, hold, by key and by document.

        Args:
            task: built; None where it is done, or not asked now.
        """
        stored = self.files.read_task(name)["config"] if self.is_done(name) else {}
        settings = stored.get("generation_kwargs") or (task and task.config.generation_kwargs) or {}
        return {
            key: Request(item.key, name, item.document, item.prompt, settings, options=item.options)
            for item in (*self._asked_before(name).values(), *read_prompts(self.files, name))
            if item.options or "max_gen_toks" in settings
            for key in (item.document, item.key)
        }

    def _asked_before(self, task: str) -> dict[str, AskedPrompt]:
        by_document: dict[str, AskedPrompt] = {}
        with suppress(MedtasksError, ValueError, KeyError, TypeError, IndexError):
            for sample in iter_samples(self.files.samples_file(task)):  # a damaged one is written anew
                document, argument = document_key(sample["doc"]), sample["arguments"][0][0]
                prompt = json.loads(argument[0]) if isinstance(argument, list) else argument
                key, options = sample.get("request", ""), options_of(sample)
                by_document[document] = AskedPrompt(key, document, prompt, options=options)
        return by_document

    def note(self, task: str, entry: TaskEntry, *kept: str) -> None:
        """Put the new state of a task into the manifest, over the documents that are chosen.

        Args:
            kept: further fields that stay as they are.
        """
        known = self.state(task)
        stays = {name: getattr(known, name) for name in ("choice", "bound", "asked", *kept)}
        self.manifest.tasks[task] = entry.model_copy(update=stays)

    def note_end(self, task: str, entry: TaskEntry) -> None:
        """Put what became of a task with all its answers into the manifest."""
        self.note(task, entry, "generated", "seconds", "sealed")
        if entry.state is TaskState.DONE:  # the samples hold the prompts now, and nobody scores it once more
            remove(self.files.asked_file(task))

    def note_result(self, task: str, entry: TaskEntry, report: Callable[[str, str], None]) -> None:
        """Put what became of a task into the manifest."""
        self.note_end(task, entry)
        self.save()
        report(task, "done" if entry.state is TaskState.DONE else f"failed: {entry.error}")

    # ------------------------------------------------------------------ results

    def results(self) -> dict[str, TaskRecord]:
        """Task -> its stored results, for finished tasks."""
        return {name: self.files.read_task(name) for name in self.manifest.tasks if self.is_done(name)}

    def write_results(self) -> None:
        """`results.json`: all finished tasks in lm-eval's layout, and the groups asked for."""
        results = self.results()
        rows = self.rows(results, self._names_of_results())
        manifest = {key: value for key, value in self.manifest.record().items() if key not in MOVING}
        write_json(
            self.files.results_file,
            {
                "results": {
                    name: {
                        "alias": name,
                        **{f"{key},answer": value for key, value in item["metrics"].items()},
                    }
                    for name, item in results.items()
                },
                "groups": {
                    row.name: {
                        "alias": row.name,
                        "score,answer": row.score,
                        "n_scored": row.n_scored,
                        "n_tasks": row.n_tasks,
                        **({"estimate": asdict(row.estimate)} if row.estimate else {}),
                        **({"SAMPLE_DATA,answer": 1.0} if row.sample else {}),
                    }
                    for row in rows
                    if row.name not in results
                },
                "configs": {name: item["config"] for name, item in results.items()},
                "versions": {name: item["version"] for name, item in results.items()},
                "n-samples": {name: {"effective": item["n"]} for name, item in results.items()},
                "medtasks": {
                    "manifest": manifest,
                    "chosen": self.chosen(results),
                    "loaded": {name: item["loaded"] for name, item in results.items()},
                    "cut": {name: item["cut"] for name, item in results.items()},
                    "conditions": {name: item.get("conditions") for name, item in results.items()},
                    "intervals": {
                        **{name: item.get("intervals", {}) for name, item in results.items()},
                        **{
                            row.name: {"score": interval_record(_of_group(row.interval))}
                            for row in rows
                            if row.name not in results and row.score is not None
                        },
                    },
                },
            },
        )

    def chosen(self, tasks: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Task -> `limit` or `samples`, of those that do not stand over all documents."""
        choices = {name: self.state(name).choice for name in tasks}
        return {
            name: choice.model_dump(mode="json", exclude_none=True)
            for name, choice in choices.items()
            if not choice.whole
        }

    def known_names(self) -> list[str]:
        """What was asked for, as far as the registry still has it."""
        return [name for name in self.manifest.requested if self.registry.knows(name)]

    def _names_of_results(self) -> list[str]:
        """What was asked for, and the parts of each umbrella group."""
        groups = self.registry.groups
        names = [
            item
            for name in self.known_names()
            for item in (name, *(member for member in groups.get(name, []) if member in groups))
        ]
        return list(dict.fromkeys(names))

    def rows(self, results: Mapping[str, TaskRecord], names: Iterable[str]) -> list[Row]:
        """The roll-up: one row per name.

        Args:
            results: of finished tasks.
            names: of tasks, tags and groups.
        """
        finished = {
            name: _Finished(
                item["metrics"],
                intervals_of_record(item.get("intervals", {})),
                item["n"],
                item.get("estimate"),
            )
            for name, item in results.items()
        }
        leaves, parts = self.registry.leaves, self.registry.parts
        return [
            roll_up_one(Members(name, tuple(leaves(name)), tuple(map(tuple, parts(name)))), finished)
            for name in names
        ]


@dataclass(frozen=True)
class _Finished:
    """What of a task's record counts in groups."""

    metrics: Mapping[str, float]
    intervals: Mapping[str, Interval]
    n: int
    estimate: EstimateRecord | None


def _of_group(interval: Interval | None) -> Estimated | None:
    return Estimated(interval, WILSON_OF_UNITS) if interval else None


#: What was loaded that outcomes are bound to.
BOUND_TO = ("origin", "rows_hash", "prompt_hash", "instruction")
#: What of the manifest changes with every call, and stands in the manifest alone.
MOVING = ("tasks",)


def failed(error: Exception) -> TaskEntry:
    """The state of a task that an error ended."""
    return TaskEntry(
        state=TaskState.FAILED,
        error=what_happened(error),
        traceback="" if isinstance(error, MedtasksError) else traceback.format_exc(),
    )


def records_of(asked: Sequence[AskedPrompt], answers: Mapping[str, Answer], *, with_shots: bool) -> Records:
    """What a task is scored from.

    Args:
        answers: key of a request -> its last answer.
        with_shots: whether prompts carry shots where they fit.
    """
    by_document = {item.document: answers[item.key] for item in asked if item.key in answers}
    return Records(
        responses={document: answer.text for document, answer in by_document.items()},
        prompts={item.document: _readable(item) for item in asked},
        keys={item.document: item.key for item in asked},
        cut=cut_counts(asked, by_document.values(), with_shots=with_shots),
        tokens=token_counts(by_document.values()),
        served=tuple(sorted({answer.model for answer in by_document.values() if answer.model})),
        likelihoods=_likelihoods(by_document),
    )


def _likelihoods(answers: Mapping[str, Answer]) -> dict[str, Sequence[Likelihood]]:
    return {document: answer.likelihoods for document, answer in answers.items() if answer.likelihoods}


def _readable(item: AskedPrompt) -> Any:
    argument = item.argument
    return readable(argument) if isinstance(argument, str) else argument


def cut_counts(
    asked: Iterable[AskedPrompt], answers: Iterable[Answer], *, with_shots: bool
) -> dict[str, int]:
    """What did not fit: shots and inputs into the context, answers into the budget; what its engine ended.

    A prompt that lost the end of its input carries no shots, either. The number of answers is left out where
    no answer says how it ended, those that an engine ended or a server filtered where there are none.
    """
    cuts, given = Counter(item.cut for item in asked), list(answers)
    ends = Counter(answer.finish for answer in given)
    counts = {"shots_dropped": cuts[SHOTS] + with_shots * cuts[INPUT], "inputs_cut": cuts[INPUT]}
    if not set(ends) <= {""}:
        counts["answers_cut"] = ends["length"]
    more = {"answers_looped": ends[LOOP], "answers_filtered": ends[CONTENT_FILTER]}
    return counts | {name: n for name, n in more.items() if n}


def token_counts(answers: Iterable[Answer]) -> dict[str, int] | None:
    """Tokens of all prompts and answers, and those of prompts that came from the engine's cache.

    None unless every answer has them counted; without those of a cache unless every answer says them.
    """
    total, cached = Counter({"input": 0, "output": 0}), list[int | None]()
    for answer in answers:
        if answer.usage is None or not answer.usage.counted:
            return None
        total.update(input=answer.usage.prompt, output=answer.usage.completion)
        cached.append(answer.usage.cached)
    known = [n for n in cached if n is not None]
    return {**total, **({"cached": sum(known)} if known and len(known) == len(cached) else {})}


def _recorded(samples: Sequence[Sample], keys: Mapping[str, str]) -> Iterable[Sample]:
    """lm-eval's records with the key of each request; generation settings may hold a header."""
    for sample in samples:
        recorded: Sample = {**sample}
        recorded["arguments"] = [
            (prompt, dropped_secrets(settings)) for prompt, settings in sample["arguments"]
        ]
        # a key follows from what is recorded, or is not recorded
        plain = all(settings == dropped_secrets(settings) for _, settings in sample["arguments"])
        if (key := keys.get(document_key(sample["doc"]))) and plain:
            recorded["request"] = key
        yield recorded


def pool_hash(task: Task, k: int | None = None) -> str:
    """Identifies the few-shot pool as rendered.

    Args:
        k: shots that prompts carry; all of the pool by default.
    """
    digest = sha256()
    for shot in (task.eval_docs[0].loaded.shots or ())[:k]:
        for text in (shot["system"], shown(shot), shot["target"]):
            digest.update(text.encode(errors="surrogatepass") + b"\x1e")
    return digest.hexdigest()[:12]


def _distinct(some: Iterable[_Item]) -> tuple[_Item, ...]:
    """Each of them once, in their order: sessions mostly have the same versions and engines."""
    known: list[_Item] = []
    for item in some:
        if item not in known:
            known.append(item)
    return tuple(known)


def versions() -> dict[str, str]:
    """Of Python, and of the packages here that answers and scores depend on."""
    by_package = {"python": platform.python_version(), "medtasks": __version__}
    for package in (
        "lm-eval",
        "datasets",
        "transformers",
        "torch",
        "vllm",
        "sacrebleu",
        "nltk",
        "rouge-score",
    ):
        with suppress(PackageNotFoundError):
            by_package[package.replace("-", "_")] = version(package)
    return by_package


def loaded_record(task: Task) -> LoadedRecord:
    """What was loaded for a built task, as results record it."""
    loaded: LoadedRecord = task.config.metadata["medtasks"]["loaded"]
    return loaded


def loaded_with(loaded: LoadedRecord) -> dict[str, str]:
    """What outcomes are bound to of what was loaded."""
    return {name: str(loaded.get(name, "")) for name in BOUND_TO}


def asked_with(bound: Binding) -> dict[str, str]:
    """The rows and words that outcomes are bound to."""
    return {name: getattr(bound, name) for name in BOUND_TO}


def build_tasks(
    registry: Registry, names: Iterable[str], settings: Settings
) -> tuple[dict[str, Task], dict[str, MedtasksError]]:
    """Build tasks; those whose data is not as it should be come back with their error."""
    tasks, faults = {}, {}
    for name in names:
        try:
            tasks[name] = build_task(registry, name, settings)
        except MedtasksError as error:
            faults[name] = error
    return tasks, faults


def nothing_to_run(settings: Settings) -> MedtasksError:
    """The error for a run none of whose tasks has data, after a list that says where the data would go."""
    mode = f" as {settings.data}" if settings.data else ""
    return MedtasksError(
        f"none of the tasks has data here{mode}",
        remedy="`medtasks data where TASK` says how it is got; --data sample takes synthetic rows",
    )
