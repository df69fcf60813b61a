"""What the author of a model publishes: a section for the model card, and results that machines read."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry.strategies import strategy_order, strategy_title
from medtasks_ext.report.axes import order, titles_of
from medtasks_ext.report.groups import group_frame, group_scores, groups_of
from medtasks_ext.results.reading import choice_of

if TYPE_CHECKING:
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
    groups = tuple(
        group
        for suite in tasks.suites.values()
        for group in groups_of(tasks)
        if group.suite == suite.id and not group.derived and group.axis in ("suite", *suite.main_axes)
    )
    titles = titles_of((group.axis, group.value) for group in groups)
    scores = [score for strategy in asked for score in group_scores(entry, strategy, groups)]
    rows = [row for row in group_frame(scores, titles).to_pylist() if row["score"] is not None]
    place = {suite: number for number, suite in enumerate(tasks.suites)}

    def position(row: Json) -> tuple[Any, ...]:
        suite, axis = tasks.suites[row["suite"]], row["axis"]
        number = 0 if axis == "suite" else 1 + suite.main_axes.index(axis)
        return (place[suite.id], strategy_order(row["strategy"]), number, order(axis, row["value"]))

    return sorted(rows, key=position)


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


def asked_with(entry: Entry, suite: str, strategy: str) -> str:
    items = [
        item for item in scored(entry) if item.dataset.metadata.suite == suite and item.strategy == strategy
    ]
    return " or ".join(
        dict.fromkeys(item.words["asked_with"] for item in items if "asked_with" in item.words)
    )


def hub_dataset(experiment: Experiment) -> tuple[str, str] | None:
    """(repository, revision) of the hub dataset that the rows were downloaded from; None elsewhere."""
    if experiment.loaded.get("origin") != "hub":
        return None
    source = experiment.dataset.blocks["rows"]
    download = source.get("download") or {}
    return (download["repo"], str(download["revision"])) if download.get("repo") else None


def setting_words(experiment: Experiment) -> str:
    parts = [strategy_title(experiment.strategy), f"task version {experiment.version}"]
    parts.append(f"prompt {experiment.words['prompt']}")
    parts.append(f"data {experiment.words['data']}")
    if added := experiment.words.get("asked_with"):
        parts.append(added)
    if experiment.rebuilt:
        parts.append("rows rebuilt from the source")
    return ", ".join(parts)


def command(manifest: Mapping[str, Any]) -> str:
    """The command lines that make the same run, one for each choice of documents; empty if unknown."""
    identity = manifest.get("identity") or {}
    model, settings = identity.get("model"), identity.get("settings")
    if not model or not settings or not manifest.get("requested"):
        return ""
    calls: dict[tuple[str, ...], list[str]] = {}
    for task in manifest.get("tasks") or manifest["requested"]:
        calls.setdefault(_choice_flags(choice_of(manifest, task)), []).append(task)
    if len(calls) == 1:
        calls = dict.fromkeys(calls, manifest["requested"])
    return "\n".join(
        shlex.join(["medtasks", "run", "--tasks", ",".join(names), *_flags(model, settings), *choice])
        for choice, names in calls.items()
    )


def _choice_flags(choice: Choice) -> tuple[str, ...]:
    if choice.samples is not None:
        return ("--samples", SAMPLES_FILE)
    return () if choice.limit is None else ("--limit", f"{choice.limit:.15g}")


def _flags(model: Mapping[str, Any], settings: Mapping[str, Any]) -> list[str]:
    words = ["--model", model["model"]]
    if model["model_args"]:
        words += ["--model_args", ",".join(f"{key}={value}" for key, value in model["model_args"].items())]
    if template := settings.get("apply_chat_template"):
        words += ["--apply_chat_template", *([template] if isinstance(template, str) else [])]
    for flag in ("num_fewshot", "system_instruction", "data"):
        if settings.get(flag) is not None:
            words += [f"--{flag}", str(settings[flag])]
    if settings.get("fewshot_as_multiturn") is not None:
        words += ["--fewshot_as_multiturn", str(settings["fewshot_as_multiturn"]).lower()]
    if settings.get("gen_kwargs"):
        words += ["--gen_kwargs", ",".join(f"{key}={value}" for key, value in settings["gen_kwargs"].items())]
    if settings.get("seed") is not None:
        words += ["--seed", f"0,1234,1234,{settings['seed']}"]
    return words
