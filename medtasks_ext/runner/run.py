"""A run: its folder, what it was made with, and the scores of its tasks.

`medtasks_ext.runs` lists the files.
"""

from __future__ import annotations

import json
import platform
import socket
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from medtasks_ext.answers.reasoning import unknown_traces
from medtasks_ext.data.content import highest_possible
from medtasks_ext.engines import CONTENT_FILTER, LOOP, Answer, Prompt, Request
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import write_json
from medtasks_ext.metrics.repeats import PASS_AT_1, PASS_AT_N, add_pass_at
from medtasks_ext.privacy import what_happened
from medtasks_ext.prompts.documents import document_key, shown, without_places
from medtasks_ext.prompts.fit import INPUT, SHOTS
from medtasks_ext.registry.strategies import asked_strategy, by_likelihood, reasons
from medtasks_ext.registry.suites import function
from medtasks_ext.results.document_scores import (
    chance_score,
    document_scores,
    save_document_scores,
    save_resampled,
    score_statistic,
)
from medtasks_ext.results.rollup import asked_rows, drawn_results, finished_tasks
from medtasks_ext.run.asker import Chat
from medtasks_ext.run.store import closed_text_in
from medtasks_ext.runner.evaluate import (
    Settings,
    TaskResult,
    build_task,
    chosen_documents,
    evaluate_task,
    same_documents,
)
from medtasks_ext.runs.conditions import Conditions, run_conditions, task_conditions
from medtasks_ext.runs.folder import RunFolder
from medtasks_ext.runs.manifest import (
    Manifest,
    Session,
    TaskEntry,
    TaskState,
    described,
    identity_of,
)
from medtasks_ext.runs.records import (
    groups_of,
    iter_samples,
    options_of,
    quiet_log,
    request_of,
    results_content,
    write_samples,
)
from medtasks_ext.runs.settings import dropped_secrets, without_login
from medtasks_ext.stats.bootstrap import interval_record, task_intervals
from medtasks_ext.version import __version__

if TYPE_CHECKING:
    from medtasks_ext.harness import LM, Task
    from medtasks_ext.prompts.documents import Document, LoadedRecord
    from medtasks_ext.registry import Registry
    from medtasks_ext.run.store import Answers
    from medtasks_ext.runs.manifest import Choice
    from medtasks_ext.runs.records import EstimateRecord, Sample, TaskRecord
    from medtasks_ext.stats.statistic import Array

#: On which answers and scores depend.
_PACKAGES = ("lm-eval", "datasets", "transformers", "torch", "vllm", "sacrebleu", "nltk", "rouge-score")
_Item = TypeVar("_Item")


class Run:
    """One run folder.

    A run is continued when what can change its responses is the same; anything else is refused, since
    responses to other prompts must not be mixed. Which documents are asked may change from call to call;
    a result is always over those of one choice. A folder without outcomes, present or on their way in a
    batch, takes any settings.

    Attributes:
        answers: its outcomes, where `working_in` the folder has opened them.
    """

    manifest: Manifest
    answers: Answers

    def __init__(self, folder: Path, registry: Registry) -> None:
        self.folder, self.registry = folder, registry
        self.files = RunFolder(folder)
        self._records: dict[str, TaskRecord] | None = None  # of finished tasks, since they were first needed
        self._asked: dict[str, dict[str, Any]] = {}  # task -> conditions, of those that have no result yet

    def open(
        self,
        model: str,
        arguments: Mapping[str, Any],
        settings: Settings,
        requested: list[str],
        tasks: list[str],
    ) -> None:
        identity = identity_of(model, arguments, asdict(settings))
        if self.files.manifest.is_file() and (self.answers.asked or self.answers.faults):
            self.manifest = Manifest.read(self.folder)
            if different := self.manifest.identity.differs_from(identity):
                raise MedtasksError(
                    f"this folder holds a run with other settings: {'; '.join(different)}",
                    where=self.folder,
                    remedy="use another --output_path, or the same settings to continue it",
                )
        else:
            self.manifest = Manifest(identity=identity, versions=versions())
            self._records, self.files = None, RunFolder(self.folder)
        self.manifest.sessions.append(
            Session(
                started=time.strftime("%Y-%m-%dT%H:%M:%S"),
                host=socket.gethostname(),
                model_args=json.loads(json.dumps(dropped_secrets(dict(arguments)), default=str)),
                versions=versions(),
            )
        )
        self.manifest.requested = list(dict.fromkeys([*self.manifest.requested, *requested]))
        for name in tasks:
            self.manifest.tasks.setdefault(name, TaskEntry())
        self.save()

    def note_engine(self, lm: LM, settings: Settings) -> None:
        """Note what the loaded model says of itself. The manifest is not written."""
        self.manifest.sessions[-1].engine = described(
            lm,
            template=settings.apply_chat_template,
            layout=None if settings.apply_chat_template else settings.layout,
        )

    def load(self) -> None:
        self.manifest = Manifest.read(self.folder)

    @property
    def settings(self) -> Settings:
        settings, system_role = Settings(**self.manifest.identity.settings), self.manifest.system_role
        # the model's chat template may have refused what was asked for
        return settings if system_role is None else replace(settings, system_role=system_role)

    def settings_of(self, task: str) -> Settings:
        """The settings of a task: as the run's, in the words in which the run began to ask it."""
        settings, begun = self.settings, self.manifest.wording.get(task)
        known = settings.prompts is None and begun in ("own", "official")
        return replace(settings, prompts=begun) if known else settings

    def in_stored_wording(self, tasks: Mapping[str, Task]) -> dict[str, Task]:
        """The tasks in the words in which the run began to ask them; those that are new to it as they are.

        `tasks`: name -> task, built with the run's settings.
        """
        same = {}
        for name, task in tasks.items():
            begun = self.manifest.wording.setdefault(name, loaded_record(task)["instruction"])
            changed = begun != loaded_record(task)["instruction"]
            same[name] = build_task(self.registry, name, self.settings_of(name)) if changed else task
        return same

    def save(self) -> None:
        self.manifest.write(self.folder)

    def state(self, task: str) -> TaskEntry:
        return self.manifest.tasks[task]

    def is_done(self, task: str) -> bool:
        return self.state(task).state is TaskState.DONE and task in self._known()

    def is_current(self, name: str, task: Task, choice: Choice) -> bool:
        """Whether the task's stored results are those of this version, prompt, data, answers and choice."""
        if not self.is_done(name) or not same_documents(task, self.state(name).choice, choice):
            return False
        stored = self._known()[name]
        loaded, now = without_places(stored["loaded"]), without_places(loaded_record(task))
        same = stored["version"] == str(task.VERSION) and loaded == now
        same = same and (stored["config"].get("repeats") or 1) == task.config.repeats
        return same and not self.n_lost(task)

    def n_lost(self, task: Task) -> int:
        """Requests of a finished task whose answer is not in the folder any more."""
        answered = self.answers.answered(task.task_name)
        return sum(name not in answered for place in self.places(task) for name in task.names_of(place))

    def choose(self, tasks: Mapping[str, Task], choices: Mapping[str, Choice]) -> None:
        """Note which documents of tasks are asked and scored from now on. The manifest is not written.

        A task that stood over other documents waits again. Its outcomes stay. Under which conditions tasks
        are asked is on the disk before the first request.
        """
        for name, task in tasks.items():
            entry = self.state(name)
            if not same_documents(task, entry.choice, choices[name]):
                entry = TaskEntry()
            asked = len(self.places(task, choices[name])) * task.repeats
            bound = {key: str(loaded_record(task).get(key, "")) for key in BOUND_TO}
            now = {"choice": choices[name], "bound": bound, "asked": asked}
            self.manifest.tasks[name] = entry.model_copy(update=now)
            if not self.is_done(name):
                config = without_login(vars(task.config))
                self._asked[name] = self._conditions(task, loaded_record(task), config).record()
        if tasks.keys() & self._asked.keys():
            self.save()  # whose the results file is
            self.keep_results()

    def places(self, task: Task, choice: Choice | None = None) -> Sequence[int]:
        """Places of the documents that are asked, in the task's test file.

        `choice`: of documents; the one that is noted by default.
        """
        return chosen_documents(task, choice or self.state(task.task_name).choice)

    # ------------------------------------------------------------------ scores

    def keep_scores(
        self,
        task: Task,
        outcome: TaskResult,
        asked: Mapping[str, Request],
        answers: Mapping[str, Answer],
    ) -> None:
        """Write the results of one task.

        `asked`: document -> its request. `answers`: document -> its answer.
        """
        name = task.task_name
        dataset, strategy = self.registry.known(name)
        chosen = by_likelihood(strategy)  # a score of its own, and no paper's interval
        named = None if chosen else dataset.suite.official_interval
        of_paper = function(dataset.suite, named) if named else None
        metrics, drawn = outcome.metrics, self.state(name).choice.drawn
        how, samples = task.aggregation(), cast("list[dict[str, Any]]", outcome.samples)
        if task.repeats > 1 and add_pass_at(samples):
            for pass_at in (PASS_AT_1, PASS_AT_N):
                how[pass_at] = how["score"]
                metrics[pass_at] = how["score"]([one[pass_at] for one in samples if pass_at in one])
        estimate: EstimateRecord | None = None
        resampled: Array | None = None  # an estimate is compared by its interval alone
        if drawn is None:
            intervals, resampled = task_intervals(samples, how, dataset.id, of_paper)
        else:
            metrics, intervals, estimate = drawn_results(samples, metrics, how, drawn)
        texts = (answer.text for answer in answers.values())
        traces = unknown_traces(texts, asked=reasons(strategy))
        cut = cut_counts(asked.values(), answers.values(), with_shots=bool(task.config.num_fewshot))
        served = tuple(sorted({answer.model for answer in answers.values() if answer.model}))
        write_samples(self.files.samples_file(name), _recorded(outcome.samples, asked))
        save_resampled(self.files.resampled_file(name), resampled)
        statistic = score_statistic(dataset, strategy, task.repeats)
        save_document_scores(self.files.scores_file(name), document_scores(samples, statistic))
        config = without_login(outcome.config)
        loaded = self._as_asked(name, outcome.config["metadata"]["medtasks"]["loaded"])
        config["metadata"] = {**config["metadata"], "medtasks": {"loaded": loaded}}
        seen = {"n": len(outcome.samples), "served": served, **cut}
        conditions = replace(self._conditions(task, loaded, config), **cast("dict[str, Any]", seen))
        documents = [cast("Document", sample["doc"]) for sample in outcome.samples]
        record: TaskRecord = {
            "task": name,
            "version": outcome.version,
            "metrics": metrics,
            "intervals": intervals,
            "n": len(documents),
            "loaded": loaded,
            "cut": cut,
            "tokens": token_counts(answers.values()),
            "highest": None if chosen else highest_possible(dataset, documents),
            "chance": chance_score(dataset, strategy, documents),
            "conditions": conditions.record(),
            "config": config,
        }
        if estimate:
            record["estimate"] = estimate
        if traces:
            record["unknown_traces"] = traces
        self.keep(name, record)

    def keep(self, task: str, record: TaskRecord) -> None:
        """Keep the results of a task, which the next writing of the results file brings to the disk."""
        self._known()[task] = record
        self._asked.pop(task, None)

    def _as_asked(self, name: str, loaded: LoadedRecord) -> LoadedRecord:
        """What was loaded to score a task; where its words have changed since, with the words asked."""
        bound = self.state(name).bound
        if bound.get("prompt_hash", "") in ("", loaded.get("prompt_hash")):
            return loaded
        here = {key: value for key, value in loaded.items() if not key.startswith("artefact")}
        return cast("LoadedRecord", here | bound)

    def _conditions(self, task: Task, loaded: LoadedRecord, config: Mapping[str, Any]) -> Conditions:
        """Of a task as it is asked; what is seen of its answers is added when it is scored."""
        name = task.task_name
        dataset, strategy = self.registry.known(name)
        sessions, k = self.manifest.sessions, int(task.config.num_fewshot or 0)
        of_run = self.manifest.model_dump(include={"identity", "system_role"}, exclude_none=True)
        known = task_conditions(run_conditions(of_run), loaded, config)
        return replace(
            known,
            dataset=dataset.id,
            strategy=asked_strategy(strategy, k),
            version=str(task.VERSION),
            source="synthetic" if loaded["origin"] == "sample" else known.source,
            n_of_suite=dataset.n_documents,
            documents=self.state(name).choice.words,
            examples=pool_hash(task, k) if k else None,
            context=self.manifest.context,
            seed=self.manifest.identity.model["model_args"].get("seed"),
            versions=_distinct(item.versions for item in sessions) or (self.manifest.versions,),
            engines=_distinct(item.engine for item in sessions if item.engine),
        )

    def rescore(self, report: Callable[[str, str], None]) -> None:
        """Compute all metrics again from stored responses."""
        with suppress(MedtasksError):  # a damaged file is written anew
            self._known()
        self._records = self._records or {}
        again = (TaskState.DONE, TaskState.FAILED, TaskState.ANSWERED)
        for name, entry in list(self.manifest.tasks.items()):
            if entry.state not in again or self.registry.asked(name) is None:
                continue
            after = self._rescored(name)
            self.note_end(name, after)
            self.save()
            report(name, "done" if after.state is TaskState.DONE else f"failed: {after.error}")

    def _rescored(self, name: str) -> TaskEntry:
        """Compute the metrics of a task from what is stored; its new state. The manifest is not written."""
        from medtasks_ext.engines.lm import StoredLM  # with lm-eval: reading a run does without

        try:
            task = build_task(self.registry, name, self.settings_of(name))
            asked = self._asked_of(task)
            known = self.answers.known(item.key for item in asked.values())
            answers = {document: known[item.key] for document, item in asked.items() if item.key in known}
            prompts = {document: item.prompt for document, item in asked.items() if item.prompt}
            model = StoredLM(answers, prompts, self.files.answers)
            outcome = evaluate_task(model, task, self.settings, self.state(name).choice)
            self.keep_scores(task, outcome, asked, answers)
        except Exception as error:  # any fault of one task must not cost the others
            return failed(error)
        return TaskEntry(state=TaskState.DONE, n=len(outcome.samples))

    def _asked_of(self, task: Task) -> dict[str, Request]:
        """What the chosen documents were asked last; the prompt is empty where nobody knows it any more."""
        name, asked = task.task_name, dict[str, Request]()
        before = dict[str, tuple[str, Prompt, tuple[str, ...]]]()  # document -> key, prompt, options
        with suppress(MedtasksError, ValueError, KeyError, TypeError, IndexError):
            for sample in iter_samples(self.files.samples_file(name)):  # a damaged one is written anew
                argument, key = request_of(sample)[0], sample.get("request", "")
                prompt = json.loads(argument[0]) if isinstance(argument, list) else argument
                before[document_key(sample["doc"])] = key, prompt, options_of(sample)
        for document in (each for place in self.places(task) for each in task.names_of(place)):
            if (last := self.answers.asked.get(name, {}).get(document)) is not None:
                key, prompt, options = before.get(document, ("", "", ()))
                if key not in ("", last.key):
                    prompt, options = "", ()
                asked[document] = Request(last.key, name, document, prompt, {}, options=options, cut=last.cut)
        return asked

    def note(self, task: str, entry: TaskEntry, *kept: str) -> None:
        """Put the new state of a task into the manifest, over the documents that are chosen.

        `kept`: further fields that stay as they are.
        """
        known = self.state(task)
        stays = {name: getattr(known, name) for name in ("choice", "bound", "asked", *kept)}
        self.manifest.tasks[task] = entry.model_copy(update=stays)

    def note_end(self, task: str, entry: TaskEntry) -> None:
        """Put what became of a task with all its answers into the manifest."""
        self.note(task, entry, "generated", "seconds")

    # ------------------------------------------------------------------ results

    def _known(self) -> dict[str, TaskRecord]:
        if self._records is None:
            self._records = self.files.read_tasks()
        return self._records

    def results(self) -> dict[str, TaskRecord]:
        """Task -> its stored results, for finished tasks."""
        return {name: self._known()[name] for name in list(self.manifest.tasks) if self.is_done(name)}

    def keep_results(self, groups: bool = False) -> None:
        """Write the results file: all finished tasks, and in the end the groups asked for.

        A task that is asked or scored anew keeps its former result until the new one is there.
        """
        results = {name: self._known()[name] for name in self.manifest.tasks if name in self._known()}
        asked: list[str] = []
        for name in self.known_names() if groups else ():
            members = self.registry.groups.get(name, [])
            asked += [name, *(member for member in members if member in self.registry.groups)]
        names = dict.fromkeys(asked)  # the parts of each umbrella group, too
        rolled_up = asked_rows(self.registry, names, finished_tasks(self.registry, self.results()))
        rows = [row for row in rolled_up if self.registry.asked(row.name) is None]
        # of tasks that have no score, the end of a run says it in its own words
        with quiet_log("lm_eval.api.group"):
            content = results_content(
                results,
                dict(self._asked),  # other tasks begin meanwhile
                self.manifest,
                groups_of(self.registry, [row.name for row in rows]),
                {
                    row.name: {
                        "score": row.score,
                        "n_scored": row.n_scored,
                        "n_tasks": row.n_tasks,
                        **interval_record(row.interval),
                        **({"estimate": asdict(row.estimate)} if row.estimate else {}),
                    }
                    for row in rows
                    if row.score is not None
                },
            )
        write_json(self.files.results_file, content)

    def write_results(self) -> None:
        """Write the results file with its groups, and which hosts got text that is not open."""
        self.manifest.sent = {host: names for (host, _), names in closed_text_in(self.folder).items()}
        self.save()
        self.keep_results(groups=True)

    def known_names(self) -> list[str]:
        """What was asked for, as far as the registry still has it."""
        return [name for name in self.manifest.requested if self.registry.knows(name)]


#: What was loaded that outcomes are bound to.
BOUND_TO = ("origin", "rows_hash", "prompt_hash", "instruction")


def failed(error: Exception) -> TaskEntry:
    """The state of a task that an error ended."""
    return TaskEntry(
        state=TaskState.FAILED,
        error=what_happened(error),
        traceback="" if isinstance(error, MedtasksError) else traceback.format_exc(),
    )


def cut_counts(asked: Iterable[Request], answers: Iterable[Answer], *, with_shots: bool) -> dict[str, int]:
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


def _recorded(samples: Sequence[Sample], asked: Mapping[str, Request]) -> Iterable[Sample]:
    """lm-eval's records with the key of each request; generation settings may hold a header."""
    for sample in samples:
        recorded: Sample = {**sample}
        asks = [
            ([prompt.prompt] if isinstance(prompt, Chat) else prompt, settings)  # as lm-eval writes turns
            for prompt, settings in sample["arguments"]
        ]
        recorded["arguments"] = kept = [(prompt, dropped_secrets(settings)) for prompt, settings in asks]
        # a key follows from what is recorded, or is not recorded
        plain = kept == asks
        if plain and (item := asked.get(document_key(sample["doc"]))):
            recorded["request"] = item.key
        yield recorded


def pool_hash(task: Task, k: int) -> str:
    """Identifies the first `k` examples of the few-shot pool, as rendered."""
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
    """Of Python, and of the packages here."""
    by_package = {"python": platform.python_version(), "medtasks": __version__}
    for package in _PACKAGES:
        with suppress(PackageNotFoundError):
            by_package[package.replace("-", "_")] = version(package)
    return by_package


def loaded_record(task: Task) -> LoadedRecord:
    """What was loaded for a built task, as results record it."""
    loaded: LoadedRecord = task.config.metadata["medtasks"]["loaded"]
    return loaded


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
