"""What machines read of a card: enough to repeat the run, and results in a common schema.

The manifest has versions, revisions, hashes, seeds and the command; the schema is that of the Every Eval Ever
project (evaleval/every_eval_ever, 0.3.0).
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from medtasks_ext.process import SEED
from medtasks_ext.registry.strategies import reasons
from medtasks_ext.report.card.facts import command, hub_dataset, scored, setting_words
from medtasks_ext.results.condition_words import shown_record
from medtasks_ext.results.reading import choice_of
from medtasks_ext.stats.bootstrap import RESAMPLES
from medtasks_ext.stats.intervals import LEVEL, METHODS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from medtasks_ext.jsonfile import Json
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
            "additional_details": {
                "task_pack": f"medtasks {versions.get('medtasks') or 'unknown'}",
            },
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
        "evaluation_results": [_result(item) for item in scored(entry)],
    }


def _result(item: Experiment) -> Json:
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
