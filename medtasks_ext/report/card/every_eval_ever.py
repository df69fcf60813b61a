"""Results in the common schema of the Every Eval Ever project (evaleval/every_eval_ever, schema 0.3.0)."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from medtasks_ext.jsonfile import Json
from medtasks_ext.registry.strategies import reasons
from medtasks_ext.report.card.facts import hub_dataset, scored, setting_words
from medtasks_ext.results.experiments import Entry, Experiment
from medtasks_ext.stats.intervals import LEVEL, METHODS

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
