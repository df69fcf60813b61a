"""A run: its folder, its manifest, and the loop over tasks.

RUN/run.json               settings and the state of every task
RUN/responses/TASK.jsonl   every response, appended as it comes
RUN/tasks/TASK.json        metrics, their intervals, configuration and what was loaded, per finished task
RUN/tasks/TASK.npy         its score on each bootstrap resample, for the intervals of groups
RUN/tasks/TASK.parquet     what each document contributed to the score; no text
RUN/samples_TASK.jsonl     lm-eval's record per document
RUN/results.json           all finished tasks together, in lm-eval's layout
"""

from __future__ import annotations

import json
import logging
import platform
import time
import traceback
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from medtasks_ext import __version__
from medtasks_ext.data.missing import missing_data, origin_of, where_it_goes
from medtasks_ext.data.sources import forced_origin
from medtasks_ext.errors import MedtasksError
from medtasks_ext.privacy import public_rows, what_happened
from medtasks_ext.results.bootstrap import interval_record, task_intervals
from medtasks_ext.results.document_scores import document_scores, save_document_scores, score_statistic
from medtasks_ext.results.resampled import load_resampled, save_resampled
from medtasks_ext.results.rollup import Row, roll_up
from medtasks_ext.runner.evaluate import Settings, TaskResult, build_task, chosen_documents, evaluate_task
from medtasks_ext.runner.files import RUN_SCHEMA, read_json, write_json
from medtasks_ext.runner.fit import PromptFitter
from medtasks_ext.runner.store import ResponseStore, StoredLM, StoringLM

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from lm_eval.api.task import Task

    from medtasks_ext.registry import Registry

log = logging.getLogger(__name__)


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
        dataset, _ = registry.tasks[name]
        if origin_of(dataset, forced) is None:
            missing[name] = where_it_goes(dataset)
        else:
            present.append(name)
    return Availability(present, missing)


class Run:
    """One run folder.

    A run is continued when the same model and settings are given again; anything else is refused,
    since responses to other prompts must not be mixed.
    """

    def __init__(self, folder: Path, registry: Registry) -> None:
        self.folder, self.registry = folder, registry
        self.manifest: dict[str, Any] = {}

    @property
    def manifest_file(self) -> Path:
        """The manifest."""
        return self.folder / "run.json"

    def open(self, model: dict[str, Any], settings: Settings, requested: list[str], tasks: list[str]) -> None:
        """Create the run, or continue it.

        Raises:
            MedtasksError: the folder holds a run of another model or with other settings.
        """
        identity = self._identity(model, settings)
        if self.manifest_file.is_file():
            self.manifest = read_json(self.manifest_file)
            if self.manifest.get("schema") != RUN_SCHEMA:
                raise MedtasksError(
                    f"was written by another version (schema {self.manifest.get('schema')})",
                    where=self.manifest_file,
                    remedy="use another --output_path",
                )
            if different := differences(self.manifest["identity"], identity):
                raise MedtasksError(
                    f"this folder holds a run with other settings: {'; '.join(different)}",
                    where=self.folder,
                    remedy="use another --output_path, or the same settings to continue it",
                )
        else:
            self.manifest = new_manifest(identity)
        self.manifest["requested"] = list(dict.fromkeys([*self.manifest["requested"], *requested]))
        for name in tasks:
            self.manifest["tasks"].setdefault(name, {"state": "waiting"})
        self.save()

    def _identity(self, model: dict[str, Any], settings: Settings) -> dict[str, Any]:
        """What a folder holds responses of, as its manifest records it."""
        return json.loads(json.dumps({"model": model, "settings": asdict(settings)}, default=str))

    def load(self) -> None:
        """Open an existing run.

        Raises:
            MedtasksError: there is none, or it is a shard, whose figures would be those of a part.
        """
        self.manifest = read_json(self.manifest_file)
        if shard := self.manifest["identity"].get("shard"):
            raise MedtasksError(
                f"is shard {shard} of a run, and metrics of a part are not the task's",
                where=self.folder,
                remedy="join the shards first: medtasks merge SHARD... -o RUN",
            )

    @property
    def settings(self) -> Settings:
        """The settings that the run was made with."""
        settings = Settings(**self.manifest["identity"]["settings"])
        # the model's chat template may have refused what was asked for
        return replace(settings, system_role=self.manifest.get("system_role", settings.system_role))

    def save(self) -> None:
        """Write the manifest."""
        write_json(self.manifest_file, self.manifest)

    def state(self, task: str) -> dict[str, Any]:
        """The manifest's entry of a task."""
        return self.manifest["tasks"][task]

    def is_done(self, task: str) -> bool:
        """Whether the task has its results."""
        return self.state(task)["state"] == "done" and self._task_file(task).is_file()

    def is_current(self, name: str, task: Task) -> bool:
        """Whether the task's stored results are those of this version, prompt and data."""
        if not self.is_done(name):
            return False
        stored = read_json(self._task_file(name))
        return stored["version"] == str(task.VERSION) and stored["loaded"] == loaded_record(task)

    def _task_file(self, task: str) -> Path:
        return self.folder / "tasks" / f"{task}.json"

    def _resampled_file(self, task: str) -> Path:
        return self.folder / "tasks" / f"{task}.npy"

    def places(self, task: Task, settings: Settings) -> Sequence[int]:
        """Places of the documents that are asked, in the task's test file."""
        return chosen_documents(task, settings)

    # ------------------------------------------------------------------ the loop

    def execute(
        self, lm: StoringLM, tasks: dict[str, Task], settings: Settings, report: Callable[[str, str], None]
    ) -> None:
        """Run the tasks that are not done. A failing one is recorded and the others go on.

        Args:
            lm: the wrapped model.
            tasks: name -> built task.
            settings: of the run.
            report: called with (task, what happened).
        """
        for name, task in tasks.items():
            started, before = time.monotonic(), lm.generated
            lm.store = ResponseStore(self.folder / "responses", name, lm.rank, lm.world_size)
            lm.fitter = PromptFitter(lm.inner, task, settings)
            try:
                kept = self._ask(lm, task, settings)
            except KeyboardInterrupt:
                raise
            except Exception as error:  # any fault of one task must not cost the others
                with public_rows(loaded_record(task)["origin"] != "local"):
                    self._fail(name, error, report)
                continue
            finally:
                lm.store.close()
            if not kept:
                continue
            self.state(name).update(
                seconds=round(time.monotonic() - started, 1), generated=lm.generated - before
            )
            self.save()
            report(name, "done")

    def _ask(self, lm: StoringLM, task: Task, settings: Settings) -> bool:
        """Get the responses of one task and keep what follows from them. False on ranks other than 0."""
        outcome = evaluate_task(lm, task, settings)
        if outcome is None:
            return False
        self.keep(task, outcome, cut_counts(lm, task), lm.tokens)
        return True

    def _fail(self, task: str, error: Exception, report: Callable[[str, str], None]) -> None:
        message = what_happened(error)
        self.manifest["tasks"][task] = {
            "state": "failed",
            "error": message,
            "traceback": "" if isinstance(error, MedtasksError) else traceback.format_exc(),
        }
        self.save()
        report(task, f"failed: {message}")

    def keep(
        self, task: Task, outcome: TaskResult, cut: dict[str, int], tokens: dict[str, int] | None
    ) -> None:
        """Write the results of one task and mark it done.

        Args:
            task: as evaluated.
            outcome: its metrics and samples.
            cut: counts of what did not fit.
            tokens: input and output tokens of all its documents, where they could be counted.
        """
        name = outcome.task
        dataset, _ = self.registry.tasks[name]
        intervals, resampled = task_intervals(
            outcome.samples,
            task.aggregation(),
            dataset.id,
            official=dataset.metadata.benchmark == "bridge",
        )
        samples = "".join(
            json.dumps(item, ensure_ascii=False, default=str) + "\n" for item in outcome.samples
        )
        part = self.folder / f"samples_{name}.jsonl.part"
        part.write_text(samples, encoding="utf-8")
        part.replace(self.folder / f"samples_{name}.jsonl")
        save_resampled(self._resampled_file(name), resampled)
        scores = document_scores(outcome.samples, score_statistic(dataset))
        save_document_scores(self._task_file(name).with_suffix(".parquet"), scores)
        write_json(
            self._task_file(name),
            {
                "task": name,
                "version": outcome.version,
                "metrics": outcome.metrics,
                "intervals": intervals,
                "n": len(outcome.samples),
                "loaded": outcome.loaded,
                "cut": cut,
                "tokens": tokens,
                "config": outcome.config,
            },
        )
        self.manifest["tasks"][name] = {"state": "done", "n": len(outcome.samples)}
        self.save()

    def rescore(self, report: Callable[[str, str], None]) -> None:
        """Compute all metrics again from stored responses."""
        for name, state in list(self.manifest["tasks"].items()):
            if state["state"] not in ("done", "failed") or name not in self.registry.tasks:
                continue
            try:
                task = build_task(self.registry, name, self.settings)
            except MedtasksError as error:
                self._fail(name, error, report)
                continue
            stored = self._stored(name)
            self.score(task, stored.get("cut", {}), stored.get("tokens"), report)

    def score(
        self,
        task: Task,
        cut: dict[str, int],
        tokens: dict[str, int] | None,
        report: Callable[[str, str], None],
    ) -> None:
        """Compute the metrics of one task from stored responses, and keep them.

        Args:
            task: as built with the run's settings.
            cut: counts of what did not fit.
            tokens: input and output tokens of all its documents, where they could be counted.
            report: called with (task, what happened).
        """
        name = task.task_name
        lm = StoredLM()
        try:
            lm.store = ResponseStore(self.folder / "responses", name)
            try:
                outcome = evaluate_task(lm, task, self.settings)
            finally:
                lm.store.close()
        except MedtasksError as error:
            self._fail(name, error, report)
            return
        assert outcome is not None
        self.keep(task, outcome, cut, tokens)
        report(name, "done")

    def _stored(self, task: str) -> dict[str, Any]:
        return read_json(self._task_file(task)) if self._task_file(task).is_file() else {}

    # ------------------------------------------------------------------ results

    def results(self) -> dict[str, dict[str, Any]]:
        """Task -> its stored results, for finished tasks."""
        return {
            name: read_json(self._task_file(name)) for name in self.manifest["tasks"] if self.is_done(name)
        }

    def write_results(self) -> None:
        """`results.json`: all finished tasks in lm-eval's layout, and the groups asked for."""
        results = self.results()
        rows = self.rows(results)
        write_json(
            self.folder / "results.json",
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
                        **({"SAMPLE_DATA,answer": 1.0} if row.sample else {}),
                    }
                    for row in rows
                    if row.name not in results
                },
                "configs": {name: item["config"] for name, item in results.items()},
                "versions": {name: item["version"] for name, item in results.items()},
                "n-samples": {name: {"effective": item["n"]} for name, item in results.items()},
                "medtasks": {
                    "manifest": {key: value for key, value in self.manifest.items() if key != "tasks"},
                    "loaded": {name: item["loaded"] for name, item in results.items()},
                    "cut": {name: item["cut"] for name, item in results.items()},
                    "intervals": {
                        **{name: item.get("intervals", {}) for name, item in results.items()},
                        **{
                            row.name: {"score": interval_record(row.interval)}
                            for row in rows
                            if row.name not in results and row.score is not None
                        },
                    },
                },
            },
        )

    def rows(self, results: dict[str, dict[str, Any]]) -> list[Row]:
        """The roll-up: one row per requested name, and the parts of each umbrella group."""
        metrics = {name: item["metrics"] for name, item in results.items()}
        sizes = {name: item["n"] for name, item in results.items()}
        stored = {name: load_resampled(self._resampled_file(name)) for name in results}
        resampled = {name: values for name, values in stored.items() if values is not None}
        names: list[str] = []
        for name in self.manifest["requested"]:
            names.append(name)
            names.extend(
                member for member in self.registry.groups.get(name, []) if member in self.registry.groups
            )
        return [
            roll_up(name, self.registry.leaves(name), metrics, sizes, resampled, self.registry.parts(name))
            for name in dict.fromkeys(names)
            if name in self.registry.tasks or name in self.registry.tags or name in self.registry.groups
        ]


def versions() -> dict[str, str]:
    """Of Python, and of the packages here that answers and scores depend on."""
    found = {"python": platform.python_version(), "medtasks": __version__}
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
            found[package.replace("-", "_")] = version(package)
    return found


def new_manifest(identity: dict[str, Any]) -> dict[str, Any]:
    """The manifest of a run that has not begun."""
    return {
        "schema": RUN_SCHEMA,
        "identity": identity,
        "versions": versions(),
        "started": time.strftime("%Y-%m-%dT%H:%M:%S"),
        "requested": [],
        "tasks": {},
    }


def cut_counts(lm: StoringLM, task: Task) -> dict[str, int]:
    """What did not fit when a task was asked: shots and inputs into the context, answers into the budget."""
    assert lm.fitter is not None
    answers = lm.count_cut_answers(int(task.config.generation_kwargs["max_gen_toks"]))
    return {**lm.fitter.record(), **({} if answers is None else {"answers_cut": answers})}


def loaded_record(task: Task) -> dict[str, Any]:
    """What was loaded for a built task, as results record it."""
    return task.config.metadata["medtasks"]["loaded"]


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


def nothing_to_run(registry: Registry, task: str, settings: Settings) -> MedtasksError:
    """The error for a run none of whose tasks has data."""
    return missing_data(registry.tasks[task][0], forced_origin(settings.data))


def differences(old: Any, new: Any, path: str = "") -> list[str]:
    """In words, where two records differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        keys = dict.fromkeys([*old, *new])
        return [
            line
            for key in keys
            for line in differences(old.get(key), new.get(key), f"{path}.{key}".strip("."))
        ]
    return [] if old == new else [f"{path} was {old!r}, is {new!r}"]
