"""A results file, `results_DATE.json`: of a run and of plain `lm_eval`, in lm-eval's layout.

A run adds one key, `medtasks`: what it knows of each task besides (`tasks`), conditions of tasks that are
asked and not yet scored among it, and the scores of groups whose mean lm-eval does not know (`groups`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import Json, read_json
from medtasks_ext.registry.build import group_config

if TYPE_CHECKING:
    from medtasks_ext.harness import Group
    from medtasks_ext.registry import Registry
    from medtasks_ext.runs.manifest import Manifest
    from medtasks_ext.runs.records import TaskRecord

_OWN = "medtasks"
#: Of a record, what lm-eval's own keys hold.
_THEIRS = ("task", "version", "n", "metrics", "config", "loaded")
_DOCUMENTS = 1 << 31  # of a task at most; more is a number that somebody made up


def read_results(path: Path) -> Json:
    """MedtasksError where it is damaged, or no results file."""
    remedy = "medtasks rescore RUN, where a run wrote it; else name a `results_….json` of `lm_eval`"
    try:
        content = read_json(path)
    except MedtasksError as error:
        raise MedtasksError(error.what, where=path, remedy=remedy) from None
    keys = ("results", "configs")
    if not (isinstance(content, dict) and all(isinstance(content.get(key), dict) for key in keys)):
        raise MedtasksError("is not a results file of lm-eval", where=path, remedy=remedy)
    return content


def names_in(content: Json) -> list[str]:
    return [name for name in content["configs"] if name in content["results"]]


def records_of(content: Json) -> dict[str, TaskRecord]:
    return {name: record_of(content, name) for name in names_in(content)}


def record_of(content: Json, name: str) -> TaskRecord:
    """The result of a task; MedtasksError where it is none."""
    found, config = content["results"][name], content["configs"][name]
    n = ((content.get("n-samples") or {}).get(name) or {}).get("effective", 0)
    own = ((content.get(_OWN) or {}).get("tasks") or {}).get(name) or {}
    if not (all(isinstance(item, dict) for item in (found, config, own)) and isinstance(n, int)):
        raise MedtasksError(f"{name} is no result of a task", remedy="medtasks rescore RUN")
    if not 0 <= n <= _DOCUMENTS:
        raise MedtasksError(f"{name} is said to have {n} documents", remedy="medtasks rescore RUN")
    metrics = {
        key.partition(",")[0]: value
        for key, value in found.items()
        if key.endswith(",answer") and "_stderr" not in key
    }
    loaded = ((config.get("metadata") or {}).get(_OWN) or {}).get("loaded") or {}
    version = str((content.get("versions") or {}).get(name, ""))
    record = {"task": name, "version": version, "n": n, "metrics": metrics, "config": config}
    return cast("TaskRecord", {**record, "loaded": loaded, **own})


def results_content(
    records: Mapping[str, TaskRecord],
    asked: Mapping[str, Json],
    manifest: Manifest,
    groups: Mapping[str, Group] | None = None,
    scores: Mapping[str, Json] | None = None,
) -> Json:
    """What a results file holds. `asked`: task -> its conditions; `scores`: group -> its own score."""
    from medtasks_ext.harness import EvalAcc, aggregate_groups

    found = EvalAcc(groups=dict(groups or {}))
    for name, record in records.items():
        config, n = record["config"], record["n"]
        values = {f"{key},answer": value for key, value in record["metrics"].items()}
        no_stderr = {f"{key}_stderr,answer": "N/A" for key in record["metrics"]}
        about = {"name": name, "alias": config.get("task_alias", name), "sample_len": n}
        found.metrics[name] = {**about, **values, **no_stderr}
        found.configs[name] = config
        found.versions[name] = record["version"]
        found.num_fewshot[name] = config.get("num_fewshot") or 0
        found.higher_is_better[name] = {
            item["metric"]: item["higher_is_better"] for item in config.get("metric_list") or ()
        }
        found.n_samples[name] = {"original": record["loaded"].get("n_test", n), "effective": n}
    own: dict[str, Any] = {name: {"conditions": conditions} for name, conditions in asked.items()}
    for name, record in records.items():
        own[name] = {key: value for key, value in record.items() if key not in _THEIRS}
    return {
        **aggregate_groups(found)._to_eval_results(),
        **_of_the_call(manifest),
        _OWN: {"tasks": own, "groups": dict(scores or {})},
    }


def _of_the_call(manifest: Manifest) -> Json:
    """What lm-eval writes of a call; the model's arguments are without secrets here."""
    identity, settings = manifest.identity, manifest.identity.settings
    return {
        "config": {**identity.model, **{name: settings.get(name) for name in ("gen_kwargs", "seed")}},
        "date": time.mktime(time.strptime(manifest.started, "%Y-%m-%dT%H:%M:%S")),
        "lm_eval_version": manifest.versions.get("lm_eval"),
        "transformers_version": manifest.versions.get("transformers"),
        "system_instruction": settings.get("system_instruction"),
        "fewshot_as_multiturn": settings.get("fewshot_as_multiturn"),
        "model_source": identity.model["model"],
        "model_name": identity.model_name,
    }


def groups_of(registry: Registry, names: Iterable[str]) -> dict[str, Group]:
    """lm-eval's groups of these names and those below them, as the built files have them.

    Tasks stand in them by name alone, as lm-eval counts them: whoever counts has their metrics.
    """
    from medtasks_ext.harness import Group

    class Named(Group):  # type: ignore[misc]
        def get_all_tasks(self, recursive: bool = True) -> list[Any]:
            below = (item.get_all_tasks() if isinstance(item, Group) else [item] for item in self)
            return [*chain.from_iterable(below)]

    made: dict[str, Group] = {}

    def group_of(name: str) -> Group:
        if name not in made:
            config = group_config(registry, name)
            made[name] = group = Named.from_config(config)
            for member in config["task"]:
                group.add(SimpleNamespace(task_name=member) if registry.asked(member) else group_of(member))
        return made[name]

    for name in names:
        group_of(name)
    return made


@contextmanager
def quiet_groups() -> Iterator[None]:
    """Without lm-eval's warnings of tasks that have no score: the end of a run says it in its own words."""
    log = logging.getLogger("lm_eval.api.group")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)
