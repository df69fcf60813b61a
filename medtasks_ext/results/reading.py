"""Results of any origin as lines of a leaderboard: runs of `medtasks run`, and output of plain `lm_eval`."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import isfinite
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

from medtasks_ext.errors import MedtasksError, near, some
from medtasks_ext.jsonfile import Json, read_json
from medtasks_ext.metrics.likelihood import risk_coverage
from medtasks_ext.privacy import text_hash
from medtasks_ext.registry.strategies import asked_strategy
from medtasks_ext.results.conditions import difference_words, differences
from medtasks_ext.results.document_scores import (
    DocumentScores,
    aggregations,
    chance_score,
    document_scores,
    load_document_scores,
    load_resampled,
    score_statistic,
)
from medtasks_ext.results.experiments import (
    LOADED,
    Entry,
    Experiment,
    Fault,
    label_entries,
    unlike_tasks,
)
from medtasks_ext.results.rollup import ceiling_of
from medtasks_ext.runs.conditions import (
    Conditions,
    conditions_of,
    run_conditions,
    served_note,
    task_conditions,
)
from medtasks_ext.runs.folder import RESTORE, RunFolder, changed_in, mark_of
from medtasks_ext.runs.manifest import Choice, EngineRecord, Identity, Manifest, TaskState
from medtasks_ext.runs.records import (
    Sample,
    names_in,
    names_of,
    note_of_traces,
    read_samples,
    record_of,
    samples_beside,
)
from medtasks_ext.runs.records import read_results as read_results_file
from medtasks_ext.runs.settings import Effect, dropped_secrets, read_value, with_effect, without_login
from medtasks_ext.stats.bootstrap import intervals_of_record, task_intervals
from medtasks_ext.stats.intervals import Interval
from medtasks_ext.stats.statistic import Statistic, over_repeats

if TYPE_CHECKING:
    from medtasks_ext.registry import Dataset, Registry
    from medtasks_ext.strict import Config

LOG_AGAIN = "run the task again with --log_samples"
RESCORE_RUN = "medtasks rescore RUN"
_ROUNDING = 1e-9  # of a figure that is counted again


class Opened(NamedTuple):
    """A results file, and what is known of the run that wrote it."""

    file: Path
    manifest: Mapping[str, Any]  # `run.json`, or what plain lm-eval says in its keys
    content: Json  # of the file
    names: list[str]  # of its finished tasks that the registry knows
    folder: RunFolder | None  # of a run; None of plain lm_eval


def read_runs(path: Path, tasks: Registry, faults: list[Fault]) -> list[Entry]:
    """Labels are left to `label_entries`; what is found wrong is added to the faults."""
    files = (_opened(file, tasks, faults) for file in results_files(path))
    return [_entry(opened, tasks, faults) for opened in files if opened.folder or opened.names]


def run_folder(path: Path) -> Path | None:
    """The folder of a run of medtasks that a path names, itself or by its results file; None of others."""
    place = path if path.is_dir() else path.parent
    run = RunFolder(place)
    return place if run.manifest.exists() and path in (place, run.results_file) else None


def results_files(path: Path) -> list[Path]:
    """Of a run the one of its folder, which need not be there yet; below another path, all of lm_eval's."""
    if (run := run_folder(path)) is not None:
        return [RunFolder(run).results_file]
    files = sorted(path.rglob("results_*.json")) if path.is_dir() else [path]
    if not files or not files[0].is_file():
        beside = sorted(item.name for item in path.parent.glob("*") if item.is_dir())
        what = "holds no results" if path.exists() else f"no such folder{near(path.name, beside)}"
        remedy = "name a folder of `medtasks run`, or what `lm_eval --output_path` wrote"
        raise MedtasksError(what, where=path, remedy=remedy)
    return files


def _opened(file: Path, tasks: Registry, faults: list[Fault]) -> Opened:
    """Of its tasks those that are known; the others become a fault."""
    run = RunFolder(file.parent)
    if not run.manifest.exists():
        content = read_results_file(file)
        names = _known(names_in(content), file, tasks, faults)
        if names and (bare := [name for name in names if not samples_beside(file, name).is_file()]):
            what = (
                f"{len(bare)} of {len(names)} tasks have no samples file, so their figures are unchecked, "
                f"and there are no intervals, paired comparisons or examples (first: {bare[0]})"
            )
            faults.append(Fault(str(file), what, "run lm_eval with --log_samples", skipped=False))
        return Opened(file, lm_eval_manifest(content, names), content, names, None)
    manifest, content = Manifest.read(run.path), {"results": {}, "configs": {}}
    done = [name for name, entry in manifest.tasks.items() if entry.state is TaskState.DONE]
    known = _known(done, file, tasks, faults)
    try:
        content = read_results_file(file) if file.is_file() else content
        there = {*names_in(content)}
        if lost := [name for name in known if name not in there]:
            faults.append(Fault(str(file), f"holds no result of {some(lost)}", RESCORE_RUN))
    except MedtasksError as error:
        what = f"{error.what}; `medtasks rescore {run.path}` writes it anew from the answers"
        faults.append(Fault(str(file), what, RESCORE_RUN))
        there = set()
    return Opened(file, manifest.record(), content, [name for name in known if name in there], run)


def _known(names: Sequence[str], file: Path, tasks: Registry, faults: list[Fault]) -> list[str]:
    if unknown := [name for name in names if tasks.asked(name) is None]:
        faults.append(unknown_tasks(unknown, str(file)))
    return [name for name in names if tasks.asked(name)]


def _entry(opened: Opened, tasks: Registry, faults: list[Fault]) -> Entry:
    manifest, run, model = opened.manifest, opened.folder, opened.manifest["identity"]["model"]
    named = model["model_args"].get("pretrained") or model["model_args"].get("model")
    # of plain lm_eval, what stands in no other group
    below: Mapping[str, Sequence[str]] = opened.content.get("group_subtasks") or {}
    inside = {name for members in below.values() for name in members}
    entry = Entry(
        model=str(named or opened.content.get("model_name") or model["model"]),
        label="",
        kind="medtasks" if run else "lm_eval",
        conditions=run_conditions(manifest),
        experiments={},
        folders=(run.path if run else opened.file,),
        manifest=dict(manifest),
        asked=tuple(
            manifest["requested"] if run else [name for name in below or opened.names if name not in inside]
        ),
    )
    read = []
    for name in opened.names:
        where = f"{opened.file}, {name}"
        try:
            item = _experiment(opened, entry.conditions, name, tasks, faults)
            read.append(record_of(opened.content, name))
            known = entry.experiments.setdefault(item.task, item)
            if known.metrics != item.metrics:
                what = f"was asked as {item.task} was, and has other results: the first ones stand"
                faults.append(Fault(where, what, "leave one of the two tasks out of the run"))
        except MedtasksError as error:
            faults.append(Fault(where, error.what, error.remedy))
        except (KeyError, TypeError, ValueError) as error:
            faults.append(Fault(where, f"damaged ({error!r})", RESCORE_RUN))
    if run is not None:
        changed, asked = changed_in(run.path), Identity.model_validate(manifest["identity"]).model_name
        if changed:
            faults.append(Fault(str(run.path), mark_of(changed), RESTORE, skipped=False))
        served = [item.conditions.served or () for item in entry.experiments.values()]
        seen = filter(None, [mark_of(changed), served_note(asked, served), note_of_traces(read)])
        sent = manifest.get("sent", {}).items()
        closed = (f"sent to {host}: text that is not open, of {some(to)}" for host, to in sent)
        entry.notes = (*manifest.get("notes", ()), *seen, *closed)
    return entry


def _experiment(
    opened: Opened, shared: Conditions, name: str, tasks: Registry, faults: list[Fault]
) -> Experiment:
    """What the file does not say of a task is counted from its samples.

    KeyError, TypeError or ValueError where it is damaged, MedtasksError where it is at odds with itself.
    """
    record, where = record_of(opened.content, name), f"{opened.file}, {name}"
    record["config"] = without_login(record["config"])
    dataset, strategy = asked_task(tasks, name, record["config"])
    choice, logged = choice_of(opened.manifest, name), samples_beside(opened.file, name)
    metrics = {k: float(v) for k, v in record["metrics"].items() if isinstance(v, (int, float))}
    for metric in [one for one, value in metrics.items() if not isfinite(value)]:
        what = f"metric {metric} is {metrics.pop(metric)}, and is left out"
        faults.append(Fault(where, what, RESCORE_RUN))
    run = opened.folder
    again = partial(read_samples, logged, remedy=LOG_AGAIN)
    read_again: Callable[..., list[Sample]] | None = partial(judged_samples, run, name) if run else again
    resampled = None
    if "conditions" in record:
        conditions = conditions_of(record, choice.words, where)
    else:
        of_task = task_conditions(shared, record["loaded"], record["config"])
        versions = opened.manifest["versions"]
        conditions = replace(
            of_task,
            dataset=dataset.id,
            strategy=strategy,
            version=record["version"],
            source="synthetic" if "SAMPLE_DATA" in record["metrics"] else of_task.source,
            n_of_suite=dataset.n_documents,
            documents=choice.words,
            context=opened.manifest["context"],
            n=record["n"],
            versions=(versions,) if versions else (),
            engines=(_engine(opened.content),),
        )
        samples = _samples_of_plain(logged, faults)
        if samples is None:
            read_again = None
        else:
            found = aggregations(dataset, strategy)
            found = {metric: over_repeats(of, conditions.repeats) for metric, of in found.items()}
            counted, unchecked = _counted(name, metrics, samples, record["n"], found)
            if unchecked:
                faults.append(Fault(where, unchecked, LOG_AGAIN, skipped=False))
            metrics = metrics | counted | metrics  # theirs stand, and stand first
            record["intervals"], resampled = task_intervals(samples, found, dataset.id)
            record["chance"] = chance_score(dataset, strategy, [sample["doc"] for sample in samples])

    def documents() -> DocumentScores:
        statistic = score_statistic(dataset, strategy, conditions.repeats)
        if run is not None:
            return load_document_scores(run.scores_file(name), statistic)
        return document_scores(read_samples(logged, remedy=LOG_AGAIN), statistic)

    intervals = record.get("intervals", {})
    return Experiment(
        task=dataset.task(strategy),
        dataset=dataset,
        conditions=conditions,
        metrics=metrics,
        intervals=intervals_of_record(intervals),
        paper_intervals={
            metric: Interval(official["low"], official["high"])
            for metric, item in intervals.items()
            if (official := item.get("t_interval_of_bootstrap_mean"))
        },
        n=record["n"],
        loaded=record["loaded"],
        estimate=record.get("estimate"),
        chance=record.get("chance"),
        ceiling=ceiling_of(dataset, record.get("highest")),
        tokens=record.get("tokens"),
        config=record["config"],
        read_resampled=(lambda: load_resampled(run.resampled_file(name))) if run else lambda: resampled,
        # of drawn documents the plain score is another than the estimate
        read_documents=None if choice.drawn or read_again is None else documents,
        samples=logged if read_again else None,
        read_samples=read_again,
    )


def judged_samples(files: RunFolder, task: str, first: int | None = None) -> list[Sample]:
    """lm-eval's records of the first documents, or of all; judged ones with `score` as (run, value)."""
    samples = read_samples(files.samples_file(task), first)
    judged = files.judged_file(task)
    if judged.is_file():
        documents = {item["document"]: item for item in read_json(judged)["documents"]}
        for sample in samples:
            add_judgement(sample, documents)
    return samples


def add_judgement(sample: Sample, judged: Mapping[str, Json]) -> None:
    """Give a document the score of its judges, the mean over its repeats that have one; else none.

    `judged`: name of a request -> what became of its answer.
    """
    found = [judged[name] for name in names_of(sample) if name in judged]
    scores = [item["score"] for item in found if item["score"] is not None]
    sample.pop("score", None)
    if scores:
        sample["score"] = (found[0].get("run", ""), fmean(scores))


def unknown_tasks(names: Sequence[str], where: str) -> Fault:
    return Fault(
        where,
        f"no task of this registry is called {some(names)}"
        " (tasks of your own: MEDTASKS_TASKS=FOLDER medtasks …)",
        "left out; `medtasks ls` lists the names",
    )


def lm_eval_manifest(content: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    run = content.get("config") or {}
    # lm-eval records what it was given, keys and tokens included
    arguments = dropped_secrets(_arguments(run.get("model_args")))
    flags = with_effect("flag", run, Effect.MOVES)
    loaded = with_effect("model", {name: run.get(name) for name in LOADED}, Effect.MODEL)
    versions = {name: str(content.get(f"{name}_version") or "") for name in ("lm_eval", "transformers")}
    versions |= dict(re.findall(r"\b(vllm|torch)==(\S+)", str(content.get("pretty_env_info"))))
    # tokens of prompt and answer together: as the user said, else as lm-eval took it from the model
    contexts = (arguments.get("max_model_len"), arguments.get("max_length"), content.get("max_length"))
    date = seconds if isinstance(seconds := content.get("date"), int | float) else None
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
    given = {**arguments, **loaded, **{f"--{name}": value for name, value in flags.items()}}
    return {
        "versions": {name: version for name, version in versions.items() if version[:1].isdigit()},
        "context": next((n for said in contexts if isinstance(n := read_value(said), int)), None),
        "started": (
            time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(date))
            if isinstance(date, int | float)
            else None
        ),
        "identity": {"model": {"model": run.get("model"), "model_args": given}, "settings": settings},
    }


def _samples_of_plain(file: Path, faults: list[Fault]) -> list[Sample] | None:
    if not file.is_file():
        return None
    try:
        return read_samples(file, remedy=LOG_AGAIN)
    except MedtasksError as error:
        what = f"{error.what}: this task's figures are unchecked, without intervals and comparisons"
        faults.append(Fault(str(error.where), what, error.remedy, skipped=False))
        return None


def _counted(
    name: str,
    metrics: Mapping[str, float],
    samples: Sequence[Sample],
    n: int,
    found: Mapping[str, Callable[..., Any]],
) -> tuple[dict[str, float], str]:
    """Figures as samples give them, and in words which these cannot give; MedtasksError of another figure.

    A function that is not ours may need what JSON does not keep.
    """
    items = {
        metric: [item for sample in samples if (item := sample.get(metric)) is not None]
        for metric, aggregation in found.items()
        if isinstance(aggregation, Statistic) or aggregation is risk_coverage
    }
    counted = {metric: float(found[metric](values)) for metric, values in items.items() if values}
    if not n == len(samples) == len({sample["doc_id"] for sample in samples}):
        return (
            counted,
            f"its figures are unchecked: samples of {len(samples):,} documents, and {n:,} were scored",
        )
    for metric in metrics.keys() & counted.keys():
        if not abs(counted[metric] - metrics[metric]) <= _ROUNDING:
            what = f"{name}: {metric} is {metrics[metric]}, and {counted[metric]} by its samples"
            remedy = "name results as lm_eval wrote them, with the samples of the same call"
            raise MedtasksError(what, where=name, remedy=remedy)
    unchecked = [metric for metric in metrics if metric not in counted]
    return counted, f"samples do not give {some(unchecked)}, unchecked" if unchecked else ""


def _engine(content: Mapping[str, Any]) -> EngineRecord:
    run, template = content.get("config") or {}, content.get("chat_template", "")  # empty: nobody says
    name = str(_arguments(run.get("model_args")).get("pretrained") or "")
    dtype = str(run.get("model_dtype") or "").removeprefix("torch.")
    used = text_hash(template) if template else None if template == "" else ""
    # a folder may hold anything; a name on the hub holds what its repository has
    local = used if not name or name.startswith(("/", ".", "~")) else None
    return EngineRecord(dtype or None, used, local)


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


@dataclass
class Results:
    entries: list[Entry] = field(default_factory=list)  # lines of a leaderboard, published ones last
    faults: list[Fault] = field(default_factory=list)  # what was left out, or must be known


def read_results(paths: Iterable[Path], tasks: Registry) -> Results:
    """Read runs, of whatever kind each path holds.

    Runs of one model under the same conditions become one entry; where they disagree about a task, both stay,
    as entries of their own.
    """
    results = Results()
    read: list[Entry] = []
    for path in paths:
        if not (runs := runs_below(path)):
            read += read_runs(path, tasks, results.faults)
        for run in runs:
            try:
                read += read_runs(run, tasks, results.faults)
            except MedtasksError as error:
                results.faults.append(Fault(str(run), error.what, error.remedy))
    results.entries = _joined(read, results.faults)
    label_entries(results.entries)
    return results


def runs_below(path: Path) -> list[Path]:
    """None where the folder is a run itself."""
    if not path.is_dir() or (path / "run.json").is_file():
        return []
    return sorted(file.parent for file in path.glob("*/run.json"))


def _joined(entries: Sequence[Entry], faults: list[Fault]) -> list[Entry]:
    joined: list[Entry] = []
    for entry in entries:
        named, shared = (entry.model, entry.kind), entry.facts
        for known in joined:
            if named != (known.model, known.kind) or differences(known.facts, shared, joined=True):
                continue
            if conflict := _disagreement(known, entry):
                faults.append(conflict)
                continue
            known.experiments = {**entry.experiments, **known.experiments}
            known.folders += tuple(item for item in entry.folders if item not in known.folders)
            known.notes = tuple(dict.fromkeys([*known.notes, *entry.notes]))
            known.asked = tuple(dict.fromkeys([*known.asked, *entry.asked]))
            break
        else:
            joined.append(entry)
    return joined


def _disagreement(one: Entry, other: Entry) -> Fault | None:
    shared = [name for name in one.experiments if name in other.experiments]
    conditions = unlike_tasks(other, one)
    other_figures = (
        name for name in shared if one.experiments[name].metrics != other.experiments[name].metrics
    )
    unlike = list(dict.fromkeys([*conditions, *other_figures]))
    if not unlike:
        return None
    why = "; ".join(map(difference_words, conditions.get(unlike[0], ())))
    return Fault(
        ", ".join(map(str, other.folders)),
        f"disagrees with {', '.join(map(str, one.folders))} about {len(unlike)} of {len(shared)} tasks that "
        f"both hold (first: {unlike[0]}), {why or 'although model and conditions are the same'}; "
        "both are shown",
        "leave one of the two runs out",
        skipped=False,
    )
