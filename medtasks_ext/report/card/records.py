"""What machines read of a card: enough to repeat the run, and results in a common schema.

The manifest has versions, revisions, hashes, seeds and the command; the schema is that of the Every Eval Ever
project (evaleval/every_eval_ever, 0.3.0).
"""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING, Any

import yaml

from medtasks_ext.errors import MedtasksError
from medtasks_ext.process import SEED
from medtasks_ext.registry.strategies import reasons, strategy_title
from medtasks_ext.report.card import URL, asked_with, command, group_rows, hub_dataset, scored, setting_words
from medtasks_ext.results.condition_words import shown_record
from medtasks_ext.results.reading import choice_of
from medtasks_ext.stats.bootstrap import RESAMPLES
from medtasks_ext.stats.intervals import LEVEL, METHODS
from medtasks_ext.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from huggingface_hub import EvalResult

    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Registry
    from medtasks_ext.results.experiments import Entry, Experiment
    from medtasks_ext.runs.manifest import Choice

SCHEMA_VERSION = "0.3.0"
#: lm-eval models that load the weights themselves
_OWN_ENGINES = ("vllm", "hf", "sglang")


def every_eval_ever(entry: Entry) -> Json:
    now = str(int(time.time()))
    versions = entry.manifest.get("versions") or {}
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"medtasks/{entry.model}/{now}",
        "evaluation_timestamp": str(entry.manifest.get("started") or ""),
        "retrieved_timestamp": now,
        "source_metadata": {
            "source_name": "medtasks",
            "source_type": "evaluation_run",
            "source_organization_name": "the evaluator of this run",
            "evaluator_relationship": "other",
        },
        "eval_library": {
            "name": "lm_eval",
            "version": str(versions.get("lm_eval") or "unknown"),
            "additional_details": {"task_pack": f"medtasks {versions.get('medtasks') or 'unknown'}"},
        },
        "model_info": {
            "name": entry.model,
            "id": entry.model,
            "inference_engine": {"name": entry.words.get("backend", "unknown")},
            "additional_details": {
                **_strings(entry.words),
                "deployment_type": "self_deployed"
                if entry.words.get("backend") in _OWN_ENGINES
                else "unknown",
                "model_availability": "unknown",
            },
        },
        "evaluation_results": [_every_eval_ever_result(item) for item in scored(entry)],
    }


def _every_eval_ever_result(item: Experiment) -> Json:
    record, interval = item.dataset.metadata, item.intervals.get("score")
    generation = item.config.get("generation_kwargs") or {}
    uncertainty: Json = {"num_samples": item.n}
    if interval:
        uncertainty["confidence_interval"] = {
            "lower": interval.low,
            "upper": interval.high,
            "confidence_level": LEVEL,
            "method": METHODS,
        }
    return {
        "evaluation_name": item.task,
        "source_data": _source(item),
        "metric_config": {
            "evaluation_description": (f"{record.declared.title} {record.name}: {record.primary_metric}"),
            "lower_is_better": False,
            "score_type": "continuous",
            "min_score": 0,
            "max_score": 1,
        },
        "score_details": {
            "score": item.score,
            "details": _strings({**item.metrics, "settings": setting_words(item)}),
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


def _source(item: Experiment) -> Json:
    record = item.dataset.metadata
    details = _strings(item.words)
    if hub := hub_dataset(item):
        return {
            "dataset_name": record.name,
            "source_type": "hf_dataset",
            "hf_repo": hub[0],
            "hf_split": "test",
            "samples_number": item.n,
            "additional_details": {**details, "revision": hub[1]},
        }
    return {"dataset_name": record.name, "source_type": "other", "additional_details": details}


def _strings(values: Mapping[str, Any]) -> dict[str, str]:
    """The schema takes texts alone."""
    return {
        key: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for key, value in values.items()
    }


# ---------------------------------------------------------------------- the manifest

SCHEMA = 1


def manifest(entry: Entry) -> Json:
    """Paths of this machine are left out."""
    made = entry.manifest
    identity = made.get("identity") or {}
    return {
        "schema": SCHEMA,
        "model": entry.model,
        "model_arguments": (identity.get("model") or {}).get("model_args", {}),
        "model_revision": (identity.get("model") or {}).get("model_args", {}).get("revision", "not pinned"),
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
    loaded = {key: value for key, value in item.loaded.items() if key not in ("task", "where")}
    if item.loaded.get("origin") == "hub":
        loaded["where"] = item.loaded.get("where")
    return {
        "version": item.version,
        "documents": item.n,
        "conditions": shown_record(item.facts),
        "chosen": "all" if choice.whole else choice.model_dump(mode="json", exclude_none=True),
        "loaded": loaded,
        "num_fewshot": item.config.get("num_fewshot"),
        "generation_kwargs": item.config.get("generation_kwargs"),
        "metrics": item.metrics,
        "intervals": {name: [interval.low, interval.high] for name, interval in item.intervals.items()},
        "cut": item.cut,
        "tokens": item.tokens,
    }


DIGITS = 4


def model_index(entry: Entry, tasks: Registry) -> str:
    """The front matter of a model card, YAML between `---`: the means of suites.

    The hub shows a metric's name and value, and no arguments: a mean over a part of the tasks says so in its
    name.
    """
    from huggingface_hub import ModelCard

    results = [*_suites(entry, tasks)]
    text = f"---\n{_index(entry, results).strip()}\n---\n"
    _same_results(getattr(ModelCard(text).data, "eval_results", None) or [], results)  # as the hub reads it
    return text


def tasks_index(entry: Entry) -> str:
    """A `model-index` of every task, YAML.

    Arguments of the metric are what decides whether a result can be compared.
    """
    return _index(entry, [_result(item) for item in scored(entry)])


def _index(entry: Entry, results: list[EvalResult]) -> str:
    from huggingface_hub import ModelCardData
    from huggingface_hub.repocard_data import model_index_to_eval_results

    try:
        data = ModelCardData(model_name=entry.model, eval_results=results)
        text: str = data.to_yaml(line_break="\n")
        _, read = model_index_to_eval_results(yaml.safe_load(text)["model-index"])
    except (ValueError, KeyError, TypeError) as error:
        raise MedtasksError(
            f"huggingface_hub refuses the model-index ({error})", remedy="update huggingface_hub"
        ) from None
    _same_results(read, results)
    return text


def _same_results(read: list[EvalResult], results: list[EvalResult]) -> None:
    if sorted(map(_identity, read)) != sorted(map(_identity, results)):
        raise MedtasksError("huggingface_hub reads other results back", remedy="update huggingface_hub")


def _suites(entry: Entry, tasks: Registry) -> Iterator[EvalResult]:
    from huggingface_hub import EvalResult

    for row in group_rows(entry, tasks):
        if row["axis"] != "suite":
            continue
        words, suite = strategy_title(row["strategy"]), tasks.suites[row["suite"]]
        of = f"{row['tasks_scored']} of {row['tasks']}"
        arguments: Json = {"tasks": of}
        if added := asked_with(entry, suite.id, row["strategy"]):
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
            source_name=f"medtasks {__version__}",
            source_url=URL,
        )


def _identity(result: EvalResult) -> tuple[str, ...]:
    return (
        result.dataset_type,
        result.dataset_name,
        str(result.metric_name),
        str(result.metric_value),
        str(result.metric_args),
    )


def _result(item: Experiment) -> EvalResult:
    from huggingface_hub import EvalResult

    record, hub = item.dataset.metadata, hub_dataset(item)
    interval = item.intervals.get("score")
    arguments: Json = {"task": item.task, **item.words, "documents": item.n}
    if interval:
        arguments["interval_95"] = [round(interval.low, DIGITS), round(interval.high, DIGITS)]
    return EvalResult(
        task_type="text-generation",
        task_name=record.declared.title,
        dataset_type=hub[0] if hub else item.dataset.id,
        dataset_name=f"{record.declared.title} {record.name}",
        dataset_split="test",
        dataset_revision=hub[1] if hub else None,
        metric_type=record.primary_metric,
        metric_name=f"{record.primary_metric} ({strategy_title(item.strategy)})",
        metric_value=round(item.score or 0.0, DIGITS),
        metric_args=arguments,
        source_name=f"medtasks {__version__}",
        source_url=record.url,
    )


def eval_results(entry: Entry) -> dict[str, str]:
    """File name -> YAML for `.eval_results/`: one file per task whose rows come from a dataset on the hub."""
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml, parse_eval_result_entries

    files = {}
    started = str(entry.manifest.get("started") or "")[:10]
    for item in scored(entry):
        if (hub := hub_dataset(item)) is None:
            continue
        result = EvalResultEntry(
            dataset_id=hub[0],
            task_id=item.dataset.id,
            value=round(item.score or 0.0, DIGITS),
            dataset_revision=hub[1],
            date=started if re.fullmatch(r"\d{4}-\d\d-\d\d", started) else None,
            source_url=URL,
            source_name=f"medtasks {__version__}",
            notes=setting_words(item),
        )
        content = eval_result_entries_to_yaml([result])
        assert parse_eval_result_entries(content) == [result]
        files[f"{item.task}.yaml"] = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
    return files
