"""A run: its folder, what it was made with, and the scores of its tasks."""

from __future__ import annotations

import json
import logging
import platform
import socket
import time
import traceback
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import cached_property
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from medtasks_ext.answers.reasoning import unknown_traces
from medtasks_ext.data.content import highest_possible
from medtasks_ext.engines import CONTENT_FILTER, LOOP, Answer, Prompt
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import write_json
from medtasks_ext.metrics.repeats import PASS_AT_1, PASS_AT_N, add_pass_at
from medtasks_ext.privacy import what_happened
from medtasks_ext.prompts.documents import Document, LoadedRecord, document_key, shown, without_places
from medtasks_ext.prompts.fit import INPUT, SHOTS
from medtasks_ext.registry import Registry
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
from medtasks_ext.run.store import Answers, Asked, closed_text_in
from medtasks_ext.runner.evaluate import Settings, TaskResult, build_task, evaluate_task
from medtasks_ext.runs.conditions import Conditions, run_conditions, task_conditions
from medtasks_ext.runs.folder import RunFolder
from medtasks_ext.runs.manifest import Choice, Manifest, Session, TaskEntry, TaskState, identity_of
from medtasks_ext.runs.records import (
    EstimateRecord,
    Sample,
    TaskRecord,
    groups_of,
    iter_samples,
    request_of,
    results_content,
    write_samples,
)
from medtasks_ext.runs.settings import dropped_secrets, without_login
from medtasks_ext.stats.bootstrap import interval_record, task_intervals
from medtasks_ext.stats.statistic import Array
from medtasks_ext.version import __version__

if TYPE_CHECKING:
    from medtasks_ext.harness import Task

#: On which answers and scores depend.
_PACKAGES = ("lm-eval", "datasets", "transformers", "torch", "vllm", "sacrebleu", "nltk", "rouge-score")


class Run:
    """One run folder.

    A run is continued when what can change its responses is the same; anything else is refused. Which
    documents are asked may change from call to call; a result is always over those of one choice.

    Attributes:
        answers: its outcomes, where `working_in` the folder has opened them.
    """

    manifest: Manifest
    answers: Answers

    def __init__(self, folder: Path, registry: Registry) -> None:
        self.folder, self.registry = folder, registry
        self.files = RunFolder(folder)
        self._asked: dict[str, dict[str, Any]] = {}  # task -> conditions, of those that have no result yet

    def open(
        self,
        model: str,
        arguments: Mapping[str, Any],
        settings: Settings,
        requested: list[str],
        tasks: list[str],
    ) -> None:
        """Begin a call. A folder without outcomes, present or on their way in a batch, takes any settings."""
        identity, now = identity_of(model, arguments, asdict(settings)), versions()
        if self.files.manifest.is_file() and self.answers.asked:
            self.load()
            if different := self.manifest.identity.differs_from(identity):
                raise MedtasksError(
                    f"this folder holds a run with other settings: {'; '.join(different)}",
                    where=self.folder,
                    remedy="use another --output_path, or the same settings to continue it",
                )
        else:
            former = RunFolder(self.folder)
            with suppress(MedtasksError, OSError):
                if not former.read_tasks():  # of a call that got no answer
                    former.results_file.unlink()
            self.manifest = Manifest(identity=identity, versions=now)
        self.manifest.sessions.append(
            Session(
                started=time.strftime("%Y-%m-%dT%H:%M:%S"),
                host=socket.gethostname(),
                model_args=json.loads(json.dumps(dropped_secrets(dict(arguments)), default=str)),
                versions=now,
            )
        )
        self.manifest.requested = list(dict.fromkeys([*self.manifest.requested, *requested]))
        for name in tasks:
            self.manifest.tasks.setdefault(name, TaskEntry())
        self.save()

    def load(self) -> None:
        self.manifest = Manifest.read(self.folder)

    @property
    def settings(self) -> Settings:
        settings, system_role = Settings(**self.manifest.identity.settings), self.manifest.system_role
        # the model's chat template may have refused what was asked for
        return settings if system_role is None else replace(settings, system_role=system_role)

    def in_stored_wording(self, name: str, task: Task | None = None) -> Task:
        """A task in the words in which the run asked it before; one that is new to it as it is.

        `task`: as it was built with the run's settings, where it was.
        """
        begun, settings = self.state(name).bound.get("instruction"), self.settings
        if task is not None and begun in (None, loaded_record(task)["instruction"]):
            return task
        if settings.prompts is None and begun in ("own", "official"):
            settings = replace(settings, prompts=begun)
        return build_task(self.registry, name, settings)

    def save(self) -> None:
        self.manifest.write(self.folder)

    def state(self, task: str) -> TaskEntry:
        return self.manifest.tasks[task]

    def is_done(self, task: str) -> bool:
        return self.state(task).state is TaskState.DONE and task in self._records

    def is_current(self, task: Task, choice: Choice) -> bool:
        """Whether the task's stored results are those of this version, prompt, data, answers and choice."""
        name = task.task_name
        if not self.is_done(name) or not self._has_choice(task, choice):
            return False
        stored = self._records[name]
        now = without_places(loaded_record(task)), str(task.VERSION), task.config.repeats
        then = without_places(stored["loaded"]), stored["version"], stored["config"].get("repeats") or 1
        return now == then and not self.n_lost(task)

    def n_lost(self, task: Task) -> int:
        """Requests of a finished task whose answer is not in the folder any more."""
        answered = self.answers.answered(task.task_name)
        return sum(name not in answered for place in self.places(task) for name in task.names_of(place))

    def choose(self, tasks: Mapping[str, Task], choices: Mapping[str, Choice]) -> None:
        """Note which documents of tasks are asked and scored from now on; what stood over others waits again.

        Under which conditions tasks are asked is on the disk before the first request.
        """
        for name, task in tasks.items():
            entry = self.state(name)
            if not self._has_choice(task, choices[name]):
                entry = TaskEntry()
            asked = len(self.places(task, choices[name])) * task.repeats
            loaded = loaded_record(task)
            bound_to = ("origin", "rows_hash", "prompt_hash", "instruction")
            bound = {key: str(loaded.get(key, "")) for key in bound_to}
            now = {"choice": choices[name], "bound": bound, "asked": asked}
            self.manifest.tasks[name] = entry.model_copy(update=now)
            if not self.is_done(name):
                config = without_login(vars(task.config))
                self._asked[name] = self._conditions(task, loaded, config).record()
        if tasks.keys() & self._asked.keys():
            self.save()  # whose the results file is
            self.keep_results()

    def places(self, task: Task, choice: Choice | None = None) -> Sequence[int]:
        """Places in the test file of the documents that are asked, by default those that are noted."""
        n, name = len(task.eval_docs), task.task_name
        places = (choice or self.state(name).choice).places(n)
        if beyond := [place for place in places if not 0 <= place < n]:
            what = f"{name} has documents 0 to {n - 1}, not {beyond[0]}"
            raise MedtasksError(what, where="--samples", remedy="draw the list from the rows that are here")
        return places

    def _has_choice(self, task: Task, choice: Choice) -> bool:
        """Whether a choice is of the documents that are noted."""
        n, noted = len(task.eval_docs), self.state(task.task_name).choice
        return list(noted.places(n)) == list(choice.places(n))

    # ------------------------------------------------------------------ scores

    def keep_scores(
        self,
        task: Task,
        outcome: TaskResult,
        asked: Mapping[str, Asked],
        answers: Mapping[str, Answer],
    ) -> None:
        """Write the results of one task.

        `asked`: document -> what it was asked. `answers`: document -> its answer.
        """
        name = task.task_name
        dataset, strategy = self.registry.known(name)
        chosen = by_likelihood(strategy)  # a score of its own, and no paper's interval
        named = None if chosen else dataset.suite.official_interval
        metrics, drawn = outcome.metrics, self.state(name).choice.drawn
        how, samples = task.aggregation(), cast("list[dict[str, Any]]", outcome.samples)
        if task.repeats > 1 and add_pass_at(samples):
            for pass_at in (PASS_AT_1, PASS_AT_N):
                how[pass_at] = how["score"]
                metrics[pass_at] = how["score"]([one[pass_at] for one in samples if pass_at in one])
        estimate: EstimateRecord | None = None
        resampled: Array | None = None  # an estimate is compared by its interval alone
        if drawn is None:
            of_paper = function(dataset.suite, named) if named else None
            intervals, resampled = task_intervals(samples, how, dataset.id, of_paper)
        else:
            metrics, intervals, estimate = drawn_results(samples, metrics, how, drawn)
        write_samples(self.files.samples_file(name), _recorded(outcome.samples, asked))
        save_resampled(self.files.resampled_file(name), resampled)
        statistic = score_statistic(dataset, strategy, task.repeats)
        save_document_scores(self.files.scores_file(name), document_scores(samples, statistic))
        config = without_login(outcome.config)
        loaded = self._as_asked(name, outcome.config["metadata"]["medtasks"]["loaded"])
        config["metadata"] = {**config["metadata"], "medtasks": {"loaded": loaded}}
        documents = [cast("Document", sample["doc"]) for sample in outcome.samples]
        cut = cut_counts(asked.values(), answers.values(), bool(task.config.num_fewshot))
        served = tuple(sorted({answer.model for answer in answers.values() if answer.model}))
        seen: dict[str, Any] = {"n": len(documents), "served": served, **cut}
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
            "conditions": replace(self._conditions(task, loaded, config), **seen).record(),
            "config": config,
        }
        if estimate:
            record["estimate"] = estimate
        if traces := unknown_traces((answer.text for answer in answers.values()), asked=reasons(strategy)):
            record["unknown_traces"] = traces
        self.keep(name, record)

    def keep(self, task: str, record: TaskRecord) -> None:
        """Keep the results of a task, which the next writing of the results file brings to the disk."""
        self._records[task] = record
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
            versions=_distinct([item.versions for item in sessions]) or (self.manifest.versions,),
            engines=_distinct([item.engine for item in sessions if item.engine]),
        )

    def rescore(self, report: Callable[[str, str], None]) -> None:
        """Compute all metrics again from stored responses."""
        try:
            _ = self._records
        except MedtasksError:  # a damaged file is written anew
            self._records = {}
        for name, entry in list(self.manifest.tasks.items()):
            if entry.state not in (TaskState.DONE, TaskState.FAILED) or self.registry.asked(name) is None:
                continue
            try:
                after = TaskEntry(state=TaskState.DONE, n=self._rescored(name))
            except Exception as error:  # any fault of one task must not cost the others
                after = failed(error)
            self.note(name, after, "generated")
            self.save()
            report(name, "done" if after.state is TaskState.DONE else f"failed: {after.error}")

    def _rescored(self, name: str) -> int:
        """Compute the metrics of a task from what is stored; of how many documents."""
        from medtasks_ext.engines.lm import StoredLM  # with lm-eval: reading a run does without

        task = self.in_stored_wording(name)
        asked, prompts = self._asked_of(task)
        known = self.answers.known(item.key for item in asked.values())
        answers = {document: known[item.key] for document, item in asked.items() if item.key in known}
        model = StoredLM(answers, prompts, self.files.answers)
        outcome = evaluate_task(model, task, self.settings, self.state(name).choice)
        self.keep_scores(task, outcome, asked, answers)
        return len(outcome.samples)

    def _asked_of(self, task: Task) -> tuple[dict[str, Asked], dict[str, Prompt]]:
        """What the chosen documents were asked last, and the prompts of those that are known still."""
        name, before = task.task_name, dict[str, tuple[str, Prompt]]()
        with suppress(MedtasksError, ValueError, KeyError, TypeError, IndexError):
            for sample in iter_samples(self.files.samples_file(name)):  # a damaged one is written anew
                argument = request_of(sample)[0]
                prompt = json.loads(argument[0]) if isinstance(argument, list) else argument
                before[document_key(sample["doc"])] = sample.get("request", ""), prompt
        last, documents = self.answers.asked.get(name, {}), map(task.names_of, self.places(task))
        asked = {each: last[each] for some in documents for each in some if each in last}
        known = {each: before[each] for each in asked.keys() & before.keys()}
        return asked, {each: prompt for each, (key, prompt) in known.items() if key in ("", asked[each].key)}

    def note(self, task: str, entry: TaskEntry, *kept: str) -> None:
        """Put the new state of a task into the manifest; its choice and `kept` fields stay."""
        known = self.state(task)
        stays = {name: getattr(known, name) for name in ("choice", "bound", "asked", *kept)}
        self.manifest.tasks[task] = entry.model_copy(update=stays)

    # ------------------------------------------------------------------ results

    @cached_property
    def _records(self) -> dict[str, TaskRecord]:
        """Of finished tasks."""
        return self.files.read_tasks()

    def results(self) -> dict[str, TaskRecord]:
        """Task -> its stored results, for finished tasks."""
        return {name: self._records[name] for name in list(self.manifest.tasks) if self.is_done(name)}

    def keep_results(self, groups: bool = False) -> None:
        """Write the results file: all finished tasks, and in the end the groups asked for.

        A task that is asked or scored anew keeps its former result until the new one is there.
        """
        results = {name: self._records[name] for name in self.manifest.tasks if name in self._records}
        names = dict[str, None]()  # the parts of each umbrella group, too
        for name in self.known_names() if groups else ():
            members = self.registry.groups.get(name, [])
            names |= dict.fromkeys([name, *(item for item in members if item in self.registry.groups)])
        rolled_up = asked_rows(self.registry, names, finished_tasks(self.registry, self.results()))
        rows = [row for row in rolled_up if self.registry.asked(row.name) is None]
        scores: dict[str, Any] = {
            row.name: {
                "score": row.score,
                "n_scored": row.n_scored,
                "n_tasks": row.n_tasks,
                **interval_record(row.interval),
                **({"estimate": asdict(row.estimate)} if row.estimate else {}),
            }
            for row in rows
            if row.score is not None
        }
        known = groups_of(self.registry, [row.name for row in rows])
        # of tasks that have no score, the end of a run says it in its own words
        logging.getLogger("lm_eval.api.group").setLevel(logging.ERROR)
        content = results_content(results, dict(self._asked), self.manifest, known, scores)
        write_json(self.files.results_file, content)

    def write_results(self) -> None:
        """Write the results file with its groups, and which hosts got text that is not open."""
        self.manifest.sent = {host: names for (host, _), names in closed_text_in(self.folder).items()}
        self.save()
        self.keep_results(groups=True)

    def known_names(self) -> list[str]:
        """What was asked for, as far as the registry still has it."""
        return [name for name in self.manifest.requested if self.registry.knows(name)]


def failed(error: Exception) -> TaskEntry:
    """The state of a task that an error ended."""
    return TaskEntry(
        state=TaskState.FAILED,
        error=what_happened(error),
        traceback="" if isinstance(error, MedtasksError) else traceback.format_exc(),
    )


def cut_counts(asked: Iterable[Asked], answers: Iterable[Answer], with_shots: bool) -> dict[str, int]:
    """What did not fit: shots and inputs into the context, answers into the budget; what its engine ended.

    A prompt that lost the end of its input carries no shots, either.
    """
    cuts, ends = Counter(item.cut for item in asked), Counter(answer.finish for answer in answers)
    counts = {"shots_dropped": cuts[SHOTS] + with_shots * cuts[INPUT], "inputs_cut": cuts[INPUT]}
    if not set(ends) <= {""}:
        counts["answers_cut"] = ends["length"]
    more = {"answers_looped": ends[LOOP], "answers_filtered": ends[CONTENT_FILTER]}
    return counts | {name: n for name, n in more.items() if n}


def token_counts(answers: Collection[Answer]) -> dict[str, int] | None:
    """Tokens of all prompts and answers, and those of prompts that came from the engine's cache.

    None unless every answer has them counted; without those of a cache unless every answer says them.
    """
    used = [answer.usage for answer in answers if answer.usage and answer.usage.counted]
    if len(used) < len(answers):
        return None
    counts = {"input": sum(usage.prompt for usage in used), "output": sum(usage.completion for usage in used)}
    cached = [usage.cached for usage in used if usage.cached is not None]
    return {**counts, "cached": sum(cached)} if cached and len(cached) == len(used) else counts


def _recorded(samples: Sequence[Sample], asked: Mapping[str, Asked]) -> Iterable[Sample]:
    """lm-eval's records with the key of each request; generation settings may hold a header."""
    given = kept = None  # settings, which all requests of a task share
    for sample in samples:
        arguments = []
        for prompt, settings in sample["arguments"]:
            if settings != given:
                given, kept = settings, dropped_secrets(settings)
            # as lm-eval writes turns
            arguments.append(([prompt.prompt] if isinstance(prompt, Chat) else prompt, kept))
        recorded: Sample = {**sample, "arguments": arguments}
        # a key follows from what is recorded, or is not recorded
        if kept == given and (item := asked.get(document_key(sample["doc"]))):
            recorded["request"] = item.key
        yield recorded


def pool_hash(task: Task, k: int) -> str:
    """Identifies the first `k` examples of the few-shot pool, as rendered."""
    digest = sha256()
    for shot in task.eval_docs[0].loaded.shots[:k]:
        for text in (shot["system"], shown(shot), shot["target"]):
            digest.update(text.encode(errors="surrogatepass") + b"\x1e")
    return digest.hexdigest()[:12]


def _distinct(items: list[Any]) -> tuple[Any, ...]:
    """Each of them once, in their order; they have no hash."""
    return tuple(item for place, item in enumerate(items) if item not in items[:place])


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
