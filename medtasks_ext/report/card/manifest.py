"""Enough for someone else to repeat a run: versions, revisions, hashes, seeds and the command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from medtasks_ext.report.card.facts import command
from medtasks_ext.results.condition_words import shown_record
from medtasks_ext.results.reading import choice_of
from medtasks_ext.seed import SEED
from medtasks_ext.stats.bootstrap import RESAMPLES
from medtasks_ext.stats.intervals import METHODS

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.results.experiments import Entry, Experiment
    from medtasks_ext.runs.choice import Choice

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
