"""Reading the results of one run: of `medtasks run`, or of plain `lm_eval`."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from medtasks_ext.engines.described import EngineRecord
from medtasks_ext.errors import MedtasksError, near, some
from medtasks_ext.jsonfile import read_json
from medtasks_ext.metrics.likelihood import risk_coverage
from medtasks_ext.privacy import text_hash
from medtasks_ext.registry.strategies import asked_strategy
from medtasks_ext.results.document_scores import (
    aggregations,
    document_scores,
    load_document_scores,
    score_statistic,
)
from medtasks_ext.results.experiments import (
    Entry,
    Experiment,
    Fault,
    without_nan,
)
from medtasks_ext.results.resampled import load_resampled
from medtasks_ext.results.run_files import RunResults
from medtasks_ext.runs.choice import Choice
from medtasks_ext.runs.conditions import Conditions, conditions_of, run_conditions, task_conditions
from medtasks_ext.runs.folder import RunFolder
from medtasks_ext.runs.manifest import Manifest, TaskEntry, TaskState
from medtasks_ext.runs.records import note_of_traces
from medtasks_ext.runs.samples import read_samples
from medtasks_ext.runs.secrets import dropped_secrets, without_login
from medtasks_ext.runs.served import served_note
from medtasks_ext.runs.settings import Effect, read_value, with_effect
from medtasks_ext.runs.sums import RESTORE, state_of
from medtasks_ext.stats.bootstrap import intervals_of_record, missed_by, task_intervals
from medtasks_ext.stats.intervals import Interval
from medtasks_ext.stats.statistic import Statistic

if TYPE_CHECKING:
    from medtasks_ext.prompts.documents import LoadedRecord
    from medtasks_ext.registry import Dataset, Registry
    from medtasks_ext.registry.yamlfile import Config
    from medtasks_ext.runs.records import Sample, TaskRecord

_LOG_AGAIN = "run the task again with --log_samples"
_ROUNDING = 1e-9  # of a figure that is counted again
#: What lm-eval says of the weights that it loaded.
_LOADED = ("model_sha", "peft_sha", "delta_sha", "model_num_parameters")


def read_runs(path: Path, tasks: Registry, faults: list[Fault]) -> list[Entry]:
    """Labels are left to `label_entries`; what is found wrong is added to the faults."""
    if (run := run_folder(path)) is not None:
        return [_medtasks_run(run, tasks, faults)]
    return [
        entry for file in lm_eval_files(path) if (entry := _lm_eval_file(file, tasks, faults)) is not None
    ]


def run_folder(path: Path) -> Path | None:
    """The folder of a run of medtasks that a path names, itself or by its `results.json`; None of others.

    Who names that file alone gets the run all the same, held against its hashes.
    """
    place = path.parent if path.name == RunFolder(path.parent).results_file.name else path
    return place if RunFolder(place).manifest.is_file() else None


def _medtasks_run(folder: Path, tasks: Registry, faults: list[Fault]) -> Entry:
    manifest, files = Manifest.read(folder), RunFolder(folder)
    state = state_of(folder)
    record = manifest.record()
    shared = run_conditions(record)
    experiments: dict[str, Experiment] = {}
    read: list[TaskRecord] = []
    for name, entry in manifest.tasks.items():
        if entry.state is not TaskState.DONE:
            continue
        where = str(files.task_file(name))
        if tasks.asked(name) is None:
            faults.append(unknown_tasks([name], where))
            continue
        try:
            stored = files.read_task(name)
            item = task_of_run(files, name, stored, entry, tasks, faults)
            read.append(stored)
            add_experiment(experiments, item, name, where, faults)
        except (MedtasksError, KeyError, TypeError, ValueError) as error:
            what = str(error) if isinstance(error, MedtasksError) else f"damaged ({error!r})"
            faults.append(Fault(where, what, "medtasks rescore RUN"))
    if state.changed:
        faults.append(Fault(str(folder), state.mark, RESTORE, skipped=False))
    served = [item.conditions.served or () for item in experiments.values()]
    closed = (f"sent to {host}: text that is not open, of {some(to)}" for host, to in manifest.sent.items())
    other = served_note(manifest.identity.asked_name, served)
    return Entry(
        model=manifest.identity.model_name,
        label="",
        kind="medtasks",
        conditions=shared,
        experiments=experiments,
        folders=(folder,),
        notes=(*manifest.notes, *filter(None, [state.mark, other, note_of_traces(read)]), *closed),
        manifest=record,
    )


def task_of_run(
    files: RunFolder,
    name: str,
    stored: TaskRecord,
    entry: TaskEntry,
    tasks: Registry,
    faults: list[Fault],
) -> Experiment:
    """KeyError, TypeError or ValueError where it is damaged, MedtasksError where at odds with itself."""
    choice, noted, where = entry.choice, entry.n, files.task_file(name)
    dataset, strategy = asked_task(tasks, name, stored["config"])
    metrics, nan = without_nan(stored["metrics"], str(where))
    faults += nan
    intervals = intervals_of_record(stored.get("intervals", {}))
    if impossible := list(at_odds(stored, noted)):
        raise MedtasksError("; ".join(impossible), where=where, remedy="medtasks rescore RUN")
    return Experiment(
        task=dataset.task(strategy),
        dataset=dataset,
        conditions=conditions_of(stored, choice.words, where),
        metrics=metrics,
        intervals=intervals,
        paper_intervals={
            metric: Interval(official["low"], official["high"])
            for metric, item in stored.get("intervals", {}).items()
            if (official := item.get("t_interval_of_bootstrap_mean"))
        },
        n=stored["n"],
        loaded=stored["loaded"],
        estimate=stored.get("estimate"),
        tokens=stored.get("tokens"),
        config=stored["config"],
        read_resampled=lambda: load_resampled(files.resampled_file(name)),
        # of drawn documents the plain score is another than the estimate
        read_documents=None
        if choice.drawn
        else lambda: load_document_scores(files.scores_file(name), score_statistic(dataset, strategy)),
        samples=files.samples_file(name),
        read_samples=partial(RunResults(files.path, "", {}).samples, name),
    )


def at_odds(stored: TaskRecord, noted: int | None) -> Iterator[str]:
    if noted is not None and stored["n"] != noted:
        yield f"says {stored['n']:,} documents, and run.json {noted:,}"
    yield from missed_by(stored.get("intervals", {}), stored["metrics"])


def unknown_tasks(names: Sequence[str], where: str) -> Fault:
    return Fault(
        where,
        f"no task of this registry is called {some(names)}"
        " (tasks of your own: medtasks --tasks-dir FOLDER …)",
        "left out; `medtasks ls` lists the names",
    )


def lm_eval_files(path: Path) -> list[Path]:
    files = sorted(path.rglob("results_*.json")) if path.is_dir() else [path]
    if not files or not files[0].is_file():
        beside = sorted(item.name for item in path.parent.glob("*") if item.is_dir())
        what = "holds no results" if path.exists() else f"no such folder{near(path.name, beside)}"
        remedy = "name a folder of `medtasks run`, or what `lm_eval --output_path` wrote"
        raise MedtasksError(what, where=path, remedy=remedy)
    return files


def read_lm_eval(file: Path, tasks: Registry, faults: list[Fault]) -> tuple[Mapping[str, Any], list[str]]:
    """Those of its tasks that are known; the others become a fault."""
    content = read_json(file)
    if not isinstance(content, dict) or "results" not in content or "configs" not in content:
        raise MedtasksError(
            "is not a results file of lm-eval", where=file, remedy="name a `results_….json` of `lm_eval`"
        )
    named = [name for name in content["configs"] if name in content["results"]]
    if unknown := [name for name in named if tasks.asked(name) is None]:
        faults.append(unknown_tasks(unknown, str(file)))
    return content, [name for name in named if tasks.asked(name)]


def _lm_eval_file(file: Path, tasks: Registry, faults: list[Fault]) -> Entry | None:
    content, known = read_lm_eval(file, tasks, faults)
    if not known:
        return None
    if bare := [name for name in known if not samples_file(file, name).is_file()]:
        faults.append(
            Fault(
                str(file),
                f"{len(bare)} of {len(known)} tasks have no samples file, so their figures are unchecked, "
                f"and there are no intervals, paired comparisons or examples (first: {bare[0]})",
                "run lm_eval with --log_samples",
                skipped=False,
            )
        )
    manifest = lm_eval_manifest(content, known)
    shared = run_conditions(manifest)
    experiments: dict[str, Experiment] = {}
    for name in known:
        samples = _lm_eval_samples(samples_file(file, name), faults)
        choice = choice_of(manifest, name)
        try:
            item = task_of_lm_eval(file, name, content, shared, choice, tasks, samples, faults)
        except MedtasksError as error:
            faults.append(Fault(str(file), error.what, error.remedy))
        else:
            add_experiment(experiments, item, name, str(file), faults)
    run = content.get("config") or {}
    arguments = manifest["identity"]["model"]["model_args"]
    return Entry(
        model=str(
            arguments.get("pretrained")
            or arguments.get("model")
            or content.get("model_name")
            or run.get("model")
        ),
        label="",
        kind="lm_eval",
        conditions=shared,
        experiments=experiments,
        folders=(file,),
        manifest=manifest,
    )


def lm_eval_manifest(content: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    run = content.get("config") or {}
    # lm-eval records what it was given, keys and tokens included
    arguments = dropped_secrets(_arguments(run.get("model_args")))
    flags = with_effect("flag", run, Effect.MOVES)
    loaded = with_effect("model", {name: run.get(name) for name in _LOADED}, Effect.MODEL)
    settings = {
        # lm-eval records its text: empty where a server applies its own, null where none is applied
        "apply_chat_template": content["chat_template"] is not None if "chat_template" in content else None,
        "fewshot_as_multiturn": content.get("fewshot_as_multiturn"),
        "system_instruction": content.get("system_instruction"),
        "gen_kwargs": dropped_secrets(_arguments(run.get("gen_kwargs"))),
        "limit": run.get("limit"),
        "system_role": next(
            ((content["configs"][name].get("metadata") or {}).get("system_role", True) for name in names),
            True,
        ),
    }
    return {
        "versions": _versions(content),
        "context": _context(content, arguments),
        "started": _moment(content.get("date")),
        "identity": {
            "model": {
                "model": run.get("model"),
                "model_args": {
                    **arguments,
                    **loaded,
                    **{f"--{name}": value for name, value in flags.items()},
                },
            },
            "settings": settings,
        },
    }


def task_of_lm_eval(
    file: Path,
    name: str,
    content: Mapping[str, Any],
    run: Conditions,
    choice: Choice,
    tasks: Registry,
    samples: list[Sample] | None,
    faults: list[Fault],
) -> Experiment:
    """Figures are counted again from samples, and must agree; without samples there are no intervals."""
    config = without_login(content["configs"][name])
    dataset, strategy = asked_task(tasks, name, config)
    recorded = ((config.get("metadata") or {}).get("medtasks") or {}).get("loaded") or {}
    loaded = cast("LoadedRecord", recorded)
    metrics, nan = without_nan(
        {
            key.partition(",")[0]: value
            for key, value in content["results"][name].items()
            if key.endswith(",answer") and "_stderr" not in key
        },
        f"{file}, {name}",
    )
    faults += nan
    n = int(content.get("n-samples", {}).get(name, {}).get("effective", 0))
    logged = samples_file(file, name)
    intervals = {}
    resampled = None
    if samples is not None:
        found = aggregations(dataset, strategy)
        if unchecked := _unchecked(name, metrics, samples, n, found):
            faults.append(Fault(f"{file}, {name}", unchecked, _LOG_AGAIN, skipped=False))
        # those of the results first, in their order
        metrics = {**metrics, **_counted(samples), **metrics}
        records, resampled = task_intervals(samples, found, dataset.id)
        intervals = intervals_of_record(records)
    versions = _versions(content)
    known = task_conditions(run, loaded, config)
    conditions = replace(
        known,
        dataset=dataset.id,
        strategy=strategy,
        version=str(content.get("versions", {}).get(name, "")),
        source="synthetic" if "SAMPLE_DATA" in metrics else known.source,
        n_of_suite=dataset.n_documents,
        documents=choice.words,
        context=_context(content, run.arguments or {}),
        n=n,
        versions=(versions,) if versions else (),
        engines=(_engine(content),),
    )
    return Experiment(
        task=dataset.task(strategy),
        dataset=dataset,
        conditions=conditions,
        metrics=metrics,
        intervals=intervals,
        n=n,
        loaded=loaded,
        config=config,
        read_resampled=lambda: resampled,
        read_documents=None
        if samples is None
        else lambda: document_scores(
            read_samples(logged, remedy=_LOG_AGAIN), score_statistic(dataset, strategy)
        ),
        samples=None if samples is None else logged,
        read_samples=None if samples is None else partial(read_samples, logged, remedy=_LOG_AGAIN),
    )


def samples_file(results: Path, task: str) -> Path:
    return results.with_name(results.name.replace("results_", f"samples_{task}_", 1)).with_suffix(".jsonl")


def _lm_eval_samples(file: Path, faults: list[Fault]) -> list[Sample] | None:
    if not file.is_file():
        return None
    try:
        return read_samples(file, remedy=_LOG_AGAIN)
    except MedtasksError as error:
        what = f"{error.what}: this task's figures are unchecked, without intervals and comparisons"
        faults.append(Fault(str(error.where), what, error.remedy, skipped=False))
        return None


def _unchecked(
    name: str,
    metrics: Mapping[str, float],
    samples: Sequence[Sample],
    n: int,
    found: Mapping[str, Callable[..., Any]],
) -> str:
    """In words, which figures samples cannot give; MedtasksError where one of them is another."""
    if not n == len(samples) == len({sample["doc_id"] for sample in samples}):
        return f"its figures are unchecked: samples of {len(samples):,} documents, and {n:,} were scored"
    unchecked = []
    for metric, value in metrics.items():
        items = [item for sample in samples if (item := sample.get(metric)) is not None]
        aggregation = found.get(metric)
        # another function than ours may need what JSON does not keep
        if not items or not (isinstance(aggregation, Statistic) or aggregation is risk_coverage):
            unchecked.append(metric)
        elif not abs((counted := aggregation(items)) - value) <= _ROUNDING:
            what = f"{name}: {metric} is {value}, and {counted} by its samples"
            remedy = "name results as lm_eval wrote them, with the samples of the same call"
            raise MedtasksError(what, where=name, remedy=remedy)
    return f"samples do not give {some(unchecked)}, unchecked" if unchecked else ""


def _versions(content: Mapping[str, Any]) -> dict[str, str]:
    said = {name: str(content.get(f"{name}_version") or "") for name in ("lm_eval", "transformers")}
    said |= dict(re.findall(r"\b(vllm|torch)==(\S+)", str(content.get("pretty_env_info"))))
    return {name: version for name, version in said.items() if version[:1].isdigit()}


def _context(content: Mapping[str, Any], arguments: Mapping[str, Any]) -> int | None:
    """Tokens of prompt and answer together: as the user said, else as lm-eval took it from the model."""
    said = (arguments.get("max_model_len"), arguments.get("max_length"), content.get("max_length"))
    return next((tokens for value in said if isinstance(tokens := read_value(value), int)), None)


def _engine(content: Mapping[str, Any]) -> EngineRecord:
    run, template = content.get("config") or {}, content.get("chat_template", "")  # empty: nobody says
    name = str(_arguments(run.get("model_args")).get("pretrained") or "")
    dtype = run.get("model_dtype")
    return EngineRecord(
        dtype=str(dtype).removeprefix("torch.") if dtype else None,
        template=text_hash(template) if template else None if template == "" else "",
        # a folder may hold anything; a name on the hub holds what its repository has
        repository_template=None if not name or name.startswith(("/", ".", "~")) else True,
    )


def _counted(samples: Sequence[Sample]) -> dict[str, float]:
    """Means of what lm-eval's results leave to its samples."""
    unclosed = [item["unclosed_reasoning"] for item in samples if "unclosed_reasoning" in item]
    return {"unclosed_reasoning": sum(unclosed) / len(unclosed)} if unclosed else {}


def _moment(seconds: Any) -> str | None:
    """A time as runs record it, from lm-eval's seconds since 1970."""
    if not isinstance(seconds, (int, float)):
        return None
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(seconds))


def _arguments(given: Any) -> Config:
    """Arguments as lm-eval records them: a mapping, or `key=value,key=value`."""
    if isinstance(given, dict):
        return given
    return dict(part.split("=", 1) for part in re.split(r",(?=\w+=)", given or "") if "=" in part)


def choice_of(manifest: Mapping[str, Any], task: str) -> Choice:
    """Plain `lm_eval` has one choice for all tasks."""
    state = manifest.get("tasks", {}).get(task, {})
    if "choice" in state:
        return Choice.model_validate(state["choice"])
    settings = (manifest.get("identity") or {}).get("settings") or {}
    return Choice.of(task, settings.get("limit"), settings.get("samples"))


def asked_task(tasks: Registry, name: str, config: Mapping[str, Any]) -> tuple[Dataset, str]:
    """The dataset of a task, and the strategy by which it was asked: `--num_fewshot` changes it."""
    known = tasks.asked(name)
    assert known is not None, name
    dataset, strategy = known
    shots = config.get("num_fewshot")
    return dataset, strategy if shots is None else asked_strategy(strategy, int(shots))


def add_experiment(
    experiments: dict[str, Experiment], item: Experiment, name: str, where: str, faults: list[Fault]
) -> None:
    """Add an experiment under the name that its strategy has; two results of one task are a fault."""
    known = experiments.setdefault(item.task, item)
    if known is not item and known.metrics != item.metrics:
        faults.append(
            Fault(
                where,
                f"{name} was asked as {item.task} was, and has other results: the first ones stand",
                "leave one of the two tasks out of the run",
            )
        )
