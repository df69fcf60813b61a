"""What the author of a model publishes: a section for the model card, and results that machines read.

The manifest has versions, revisions, hashes, seeds and the command; the schema is that of the Every Eval Ever
project (evaleval/every_eval_ever, 0.3.0).
"""

from __future__ import annotations

import json
import math
import re
import shlex
import time
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from uuid import NAMESPACE_URL, uuid5

import yaml

from medtasks_ext.errors import MedtasksError
from medtasks_ext.process import SEED
from medtasks_ext.prompts.documents import document_key
from medtasks_ext.registry.strategies import reasons, shots_of, strategy_order, strategy_title
from medtasks_ext.report.groups import group_scores, groups_of, order
from medtasks_ext.report.submissions import final_answer, why_unchecked
from medtasks_ext.results.conditions import shown
from medtasks_ext.results.reading import choice_of
from medtasks_ext.runs.records import parsed_of
from medtasks_ext.stats.bootstrap import RESAMPLES
from medtasks_ext.stats.intervals import LEVEL, METHODS
from medtasks_ext.strict import read_mapping
from medtasks_ext.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from huggingface_hub import EvalResult, ModelCardData

    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Registry
    from medtasks_ext.results.experiments import Entry, Experiment
    from medtasks_ext.runs.manifest import Choice

#: In command lines: where the places of chosen documents would lie.
SAMPLES_FILE = "samples.json"
#: The file of details beside the section, which is the run's page on the hub.
DETAILS = "medical-evaluation.md"


def group_rows(entry: Entry, tasks: Registry) -> list[Json]:
    """Rows of the frame `groups` with a score: suites by strategy, each followed by its main axes."""
    asked = sorted({item.strategy for item in entry.experiments.values()} | {"zero_shot"}, key=strategy_order)
    rows = []
    for suite in tasks.suites.values():
        axes = ("suite", *suite.main_axes)
        groups = [one for one in groups_of(tasks) if one.suite == suite.id and one.axis in axes]
        groups.sort(key=lambda one: (axes.index(one.axis), order(one.axis, one.value)))
        shown = tuple(one for one in groups if not one.derived)
        rows += [row for strategy in asked for row in group_scores(entry, strategy, shown)]
    return [row for row in rows if row["score"] is not None]


def complete_tasks(entry: Entry) -> tuple[Entry, dict[str, str]]:
    """The entry without tasks whose score stands on a part, and what is missing of these, in words."""
    scores = {name: item for name, item in entry.experiments.items() if item.score is not None}
    parts = {name: item.in_part for name, item in scores.items() if item.in_part}
    kept = {name: item for name, item in entry.experiments.items() if name not in parts}
    if scores and len(parts) == len(scores):
        name, words = next(iter(parts.items()))
        raise MedtasksError(
            f"no score stands on all rows and judgements ({name}: {words})",
            remedy="run and judge the rest; or write the card with --parts, which names what is missing",
        )
    return replace(entry, experiments=kept), parts


def scored(entry: Entry) -> list[Experiment]:
    experiments = [item for item in entry.experiments.values() if item.score is not None]
    return sorted(experiments, key=lambda item: (item.dataset.id, strategy_order(item.strategy)))


def hub_dataset(experiment: Experiment) -> tuple[str, str] | None:
    """(repository, revision) of the hub dataset that the rows were downloaded from; None elsewhere."""
    download = experiment.dataset.blocks["rows"].get("download") or {}
    is_there = experiment.loaded.get("origin") == "hub" and download.get("repo")
    return (download["repo"], str(download["revision"])) if is_there else None


def command(manifest: Mapping[str, Any]) -> str:
    """The command lines that make the same run, one for each choice of documents; empty if unknown."""
    identity = manifest.get("identity") or {}
    model, settings, names = identity.get("model"), identity.get("settings"), manifest.get("requested")
    if not model or not settings or not names:
        return ""
    calls: dict[tuple[str, ...], list[str]] = {}
    for task in manifest.get("tasks") or names:
        choice = choice_of(manifest, task)
        limit = () if choice.limit is None else ("--limit", f"{choice.limit:.15g}")
        flags = limit if choice.samples is None else ("--samples", SAMPLES_FILE)
        calls.setdefault(flags, []).append(task)
    if len(calls) == 1:
        calls = dict.fromkeys(calls, names)
    return "\n".join(
        shlex.join(["medtasks", "run", "--tasks", ",".join(some), *_flags(model, settings), *flags])
        for flags, some in calls.items()
    )


def _flags(model: Mapping[str, Any], settings: Mapping[str, Any]) -> list[str]:
    turns, seed = settings.get("fewshot_as_multiturn"), settings.get("seed")
    template = settings.get("apply_chat_template")
    words = ["--model", model["model"], *_pairs("--model_args", model["model_args"])]
    words += ["--apply_chat_template"] * bool(template) + [template] * isinstance(template, str)
    for flag, value in {
        **{name: settings.get(name) for name in ("num_fewshot", "system_instruction", "data")},
        "fewshot_as_multiturn": None if turns is None else str(turns).lower(),
        "seed": None if seed is None else f"0,1234,1234,{seed}",
    }.items():
        words += [] if value is None else [f"--{flag}", str(value)]
    return [*words, *_pairs("--gen_kwargs", settings.get("gen_kwargs") or {})]


def _pairs(flag: str, values: Mapping[str, Any]) -> list[str]:
    return [flag, ",".join(f"{key}={value}" for key, value in values.items())] if values else []


SCHEMA_VERSION = "0.3.0"
#: lm-eval models that load the weights themselves
_OWN_ENGINES = ("vllm", "hf", "sglang")


def every_eval_ever(entry: Entry, tasks: Registry) -> dict[str, str]:
    """Path -> content as the project stores them: the record, and the final answers to open data."""
    now, versions = str(int(time.time())), entry.manifest.get("versions") or {}
    evaluation, backend = f"medtasks/{entry.model}/{now}", entry.words.get("backend", "unknown")
    developer, _, name = entry.model.strip("/").rpartition("/")
    parts = [re.sub(r"[^\w.-]+", "_", part) or "unknown" for part in (developer, name)]
    results = [_every_eval_ever_result(item) for item in scored(entry)]
    identity = uuid5(NAMESPACE_URL, json.dumps([entry.model, entry.manifest.get("started"), results]))
    place, sidecar = f"every_eval_ever/data/medtasks/{'/'.join(parts)}", f"{identity}_samples.jsonl"
    shared = {"schema_version": SCHEMA_VERSION, "evaluation_id": evaluation}
    rows = [
        {**shared, "model_id": entry.model, **row}
        for item in scored(entry)
        for row in _instances(item, tasks)
    ]
    answers = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    record = {
        **shared,
        "evaluation_timestamp": str(entry.manifest.get("started") or ""),
        "retrieved_timestamp": now,
        "source_metadata": {
            **{"source_name": "medtasks", "source_type": "evaluation_run"},
            "source_organization_name": "the evaluator of this run",
            "evaluator_relationship": "other",
        },
        "eval_library": {
            **{"name": "lm_eval", "version": str(versions.get("lm_eval") or "unknown")},
            "additional_details": {"task_pack": f"medtasks {versions.get('medtasks') or 'unknown'}"},
        },
        "model_info": {
            **{"name": entry.model, "id": entry.model, "inference_engine": {"name": backend}},
            "additional_details": {
                **_strings(entry.words),
                "deployment_type": "self_deployed" if backend in _OWN_ENGINES else "unknown",
                "model_availability": "unknown",
            },
        },
        "evaluation_results": results,
    }
    files = {}
    if rows:
        files[f"{place}/{sidecar}"] = answers
        record["detailed_evaluation_results"] = {
            **{"format": "jsonl", "file_path": sidecar, "total_rows": len(rows)},
            **{"hash_algorithm": "sha256", "checksum": sha256(answers.encode()).hexdigest()},
        }
    return {f"{place}/{identity}.json": json.dumps(record, ensure_ascii=False, indent=1) + "\n", **files}


def _instances(item: Experiment, tasks: Registry) -> Iterator[Json]:
    """Final answers to open data with their scores; rows and golds stay where the data is."""
    if why_unchecked(item.task, tasks) or tasks.is_own(item.dataset) or not item.read_samples:
        return
    found = item.read_documents() if item.read_documents else None
    scores = {} if found is None else dict(zip(found.documents, found.scores.tolist(), strict=True))
    for sample in item.read_samples():
        key, answers = document_key(sample["doc"]), [final_answer(str(text)) for text in sample["resps"][0]]
        if (score := scores.get(key)) is None or math.isnan(score):
            continue
        read = {"source": "output.raw", "extraction_method": "medtasks", "is_terminal": True, "turn_idx": 0}
        yield {
            **{"evaluation_name": item.task, "evaluation_result_id": item.task},
            **{"sample_id": key, "interaction_type": "single_turn"},
            "input": {"raw": f"document {key} of the source", "reference": []},
            "output": {"raw": answers},
            "answer_attribution": [{**read, "extracted_value": str(parsed_of(sample).get("answer"))}],
            "evaluation": {"score": score, "is_correct": score == 1},
        }


def _every_eval_ever_result(item: Experiment) -> Json:
    record, interval, hub = item.dataset.metadata, item.intervals.get("score"), hub_dataset(item)
    generation = item.config.get("generation_kwargs") or {}
    uncertainty: Json = {"num_samples": item.n}
    if interval:
        ends = {"lower": interval.low, "upper": interval.high}
        uncertainty["confidence_interval"] = {**ends, "confidence_level": LEVEL, "method": METHODS}
    source: Json = {"dataset_name": record.name, "source_type": "hf_dataset" if hub else "other"}
    if hub:
        source |= {"hf_repo": hub[0], "hf_split": "test", "samples_number": item.n}
    return {
        **{"evaluation_name": item.task, "evaluation_result_id": item.task},
        "source_data": {
            **source,
            "additional_details": {**_strings(item.words), **({"revision": hub[1]} if hub else {})},
        },
        "metric_config": {
            "metric_id": record.primary_metric,
            "metric_name": record.primary_metric.replace("_", " "),
            "evaluation_description": f"{record.declared.title} {record.name}: {record.primary_metric}",
            **{"lower_is_better": False, "score_type": "continuous", "min_score": 0, "max_score": 1},
        },
        "score_details": {
            "score": item.score,
            "details": _strings({**item.metrics, "strategy": item.strategy, "version": item.version}),
            "uncertainty": uncertainty,
        },
        "generation_config": {
            "generation_args": {
                "temperature": generation.get("temperature"),
                "max_tokens": int(generation.get("max_gen_toks", 1)),
                "reasoning": reasons(item.strategy),
            },
            "additional_details": _strings({"generation_kwargs": generation}),
        },
    }


def _strings(values: Mapping[str, Any]) -> dict[str, str]:
    """The schema takes texts alone."""
    return {
        key: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for key, value in values.items()
    }


def manifest(entry: Entry) -> Json:
    """Paths of this machine are left out."""
    made = entry.manifest
    identity = made.get("identity") or {}
    arguments = (identity.get("model") or {}).get("model_args", {})
    return {
        "schema": 1,
        "model": entry.model,
        "model_arguments": arguments,
        "model_revision": arguments.get("revision", "not pinned"),
        "started": made.get("started"),
        "versions": made.get("versions", {}),
        "settings": identity.get("settings", {}),
        "settings_in_words": entry.words,
        "command": command(made),
        "intervals": {"method": METHODS, "resamples": RESAMPLES, "seed": SEED},
        "sample_data": entry.sample,
        "notes": list(entry.notes),
        "tasks": {
            name: _task(item, choice_of(made, name)) for name, item in sorted(entry.experiments.items())
        },
        "not_scored": {
            name: {key: state[key] for key in ("state", "error") if key in state}
            for name, state in made.get("tasks", {}).items()
            if name not in entry.experiments
        },
    }


def _task(item: Experiment, choice: Choice) -> Json:
    apart = ("task",) if item.loaded.get("origin") == "hub" else ("task", "where")
    return {
        "version": item.version,
        "documents": item.n,
        "conditions": {name: value for name, value in shown(item.facts).items() if value is not None},
        "chosen": "all" if choice.whole else choice.model_dump(mode="json", exclude_none=True),
        "loaded": {key: value for key, value in item.loaded.items() if key not in apart},
        **{name: item.config.get(name) for name in ("num_fewshot", "generation_kwargs")},
        "metrics": item.metrics,
        "intervals": {name: [interval.low, interval.high] for name, interval in item.intervals.items()},
        **{"cut": item.cut, "tokens": item.tokens},
    }


DIGITS = 4


def model_index(entry: Entry, tasks: Registry) -> str:
    """The front matter of a model card, YAML between `---`: the means of suites.

    The hub shows a metric's name and value, and no arguments: a mean over a part of the tasks says so in its
    name.
    """
    from huggingface_hub import ModelCardData

    data = ModelCardData(model_name=entry.model, eval_results=[*_suites(entry, tasks)])
    return f"---\n{data.to_yaml(line_break=chr(10)).strip()}\n---\n"


def _suites(entry: Entry, tasks: Registry) -> Iterator[EvalResult]:
    from huggingface_hub import EvalResult

    for row in (row for row in group_rows(entry, tasks) if row["axis"] == "suite"):
        words, suite = strategy_title(row["strategy"]), tasks.suites[row["suite"]]
        of = f"{row['tasks_scored']} of {row['tasks']}"
        arguments: Json = {"tasks": of}
        items = [item for item in scored(entry) if item.dataset.suite is suite]
        asked = (item.words.get("asked_with") for item in items if item.strategy == row["strategy"])
        if added := " or ".join(filter(None, dict.fromkeys(asked))):
            arguments["asked_with"] = added
        if row["interval_low"] is not None:
            arguments["interval_95"] = [round(row[f"interval_{end}"], DIGITS) for end in ("low", "high")]
        yield EvalResult(
            task_type="text-generation",
            dataset_type=suite.id,
            dataset_name=suite.title,
            metric_type="mean_score",
            metric_name=f"mean score ({words}{f', {of} tasks' if row['partial'] else ''})",
            metric_value=round(row["score"], DIGITS),
            metric_args=arguments,
            source_name=f"medtasks {__version__}" if _page(entry) else None,
            source_url=_page(entry),
        )


def _page(entry: Entry) -> str | None:
    """Where the run's page is on the hub; None for a model that is not there by its name."""
    on_hub = re.fullmatch(r"[\w.-]+/[\w.-]+", entry.model)
    return f"https://huggingface.co/{entry.model}/blob/main/{DETAILS}" if on_hub else None


def eval_results(
    entry: Entry, tasks: Registry, ids_of: Callable[[str], Sequence[str]] | None = None
) -> dict[str, str]:
    """Path -> YAML: results in `.eval_results/`, one for each task whose rows come from a dataset on the hub.

    A result names a task of its dataset's `eval.yaml`. `ids_of` gives the ids there: without them ours are
    named, and the `eval.yaml` that says so is written, for the owners of the dataset; a result whose dataset
    has no task for it is left out.
    """
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    files = {}
    started = str(entry.manifest.get("started") or "")[:10]
    for item in scored(entry):
        if (hub := hub_dataset(item)) is None:
            continue
        named = item.dataset.id
        if ids_of is None:
            files[f"benchmarks/{hub[0]}/eval.yaml"] = _benchmark(hub[0], tasks)
        elif named not in (known := ids_of(hub[0])):
            if len(known) != 1:
                continue
            (named,) = known
        shots = shots_of(item.strategy)
        said = ["no-tools", "chain-of-thought" if reasons(item.strategy) else f"{shots}-shot"]
        said += [f"{shots}-shot"] if shots and reasons(item.strategy) else []
        result = EvalResultEntry(
            dataset_id=hub[0],
            task_id=named,
            value=round(item.score or 0.0, DIGITS),
            dataset_revision=hub[1],
            date=started if re.fullmatch(r"\d{4}-\d\d-\d\d", started) else None,
            source_url=_page(entry),
            source_name=f"medtasks {__version__}" if _page(entry) else None,
            notes=", ".join([*said, f"{item.conditions.wording or 'unknown'} prompts"]),
        )
        files[f".eval_results/{item.task}.yaml"] = _yaml(eval_result_entries_to_yaml([result]))
    return files


def _benchmark(repo: str, tasks: Registry) -> str:
    """`eval.yaml` of a dataset on the hub: each of our tasks on its rows."""
    of_it = [
        item
        for item in tasks.datasets.values()
        if (item.blocks["rows"].get("download") or {}).get("repo") == repo
    ]
    listed = [{"id": item.id, "config": "default", "split": "test"} for item in of_it]
    about = {"name": of_it[0].metadata.name, "description": of_it[0].metadata.summary}
    return _yaml({**about, "evaluation_framework": "medtasks", "tasks": listed})


def _yaml(content: Any) -> str:
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True)


def push(entry: Entry, tasks: Registry, repo: str, files: Mapping[str, str]) -> tuple[str, list[str]]:
    """Open a pull request on a model's repository: its address, and the files that are in it.

    The card there keeps all that is not ours: our section and our results are replaced, or added.
    """
    from huggingface_hub import CommitOperationAdd, HfApi, ModelCard, hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError

    @lru_cache
    def ids_of(dataset: str) -> list[str]:
        try:
            path = hf_hub_download(dataset, "eval.yaml", repo_type="dataset")
        except EntryNotFoundError:
            return []
        return [str(task["id"]) for task in read_mapping(Path(path)).get("tasks") or ()]

    try:
        try:
            card = ModelCard.load(repo, ignore_metadata_errors=True)
        except EntryNotFoundError:
            card = ModelCard("")
        ours, data = ModelCard(files["README.md"]), cast("ModelCardData", card.data)
        theirs = [item for item in data.eval_results or () if not _is_ours(item)]
        data.eval_results = [*theirs, *_suites(entry, tasks)]
        data.model_name = data.model_name or entry.model
        body = _SECTION.sub("", card.text).rstrip()
        card.text = f"{body}\n\n{ours.text.strip()}\n"
        sent = {name: text for name, text in files.items() if name == DETAILS or name.endswith(".svg")}
        sent |= {"README.md": str(card), **eval_results(entry, tasks, ids_of)}
        added = [CommitOperationAdd(name, text.encode()) for name, text in sent.items()]
        message = f"Medical evaluation by medtasks {__version__}"
        made = HfApi().create_commit(repo, added, commit_message=message, create_pr=True)
    except Exception as error:  # also those of its library of HTTP
        what = f"no pull request was opened: {str(error).partition(chr(10))[0]}"
        remedy = "name a model of the hub, and log in with `hf auth login`; the files are written here"
        raise MedtasksError(what, where=f"--push {repo}", remedy=remedy) from None
    return str(made.pr_url), [*sent]


_SECTION = re.compile(r"^## Medical evaluation \(.*?(?=^##? |\Z)", re.DOTALL | re.MULTILINE)


def _is_ours(result: EvalResult) -> bool:
    return result.metric_type == "mean_score" and str(result.source_name or "medtasks").startswith("medtasks")
