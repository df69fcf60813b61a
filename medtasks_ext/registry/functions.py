"""The functions that YAML files may name, and the families of metrics that name them.

A file of `medtasks_ext/metrics/families` says how answers of one kind are scored: the kinds that it is for,
the function that scores a document, and the metrics.

A file of a stranger can name what the catalogue has: functions of this package, and those that families of
installed packages name. No module beside the file is imported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml

from medtasks_ext.errors import MedtasksError
from medtasks_ext.hooks import METRICS, Hook, leave_out, results
from medtasks_ext.strict import Config, read_yaml

FOLDER = Path(__file__).resolve().parents[1] / "metrics" / "families"
#: What every task reports besides its family's metrics.
_SHARED = (("valid", True), ("unclosed_reasoning", False), ("scored", True), ("SAMPLE_DATA", False))


@dataclass(frozen=True)
class Family:
    name: str  # of its file
    answers: tuple[str, ...]  # kinds of answers
    process_results: str  # dotted name of the function that scores a document
    metric_list: tuple[Config, ...]  # as lm-eval takes it; functions are `!function NAME`
    judge: str = ""  # `axes`, `points` or `penalties` where judges score with these
    runs: bool = False  # whether rows belong to several runs, whose mean is the score
    closed: bool = False  # whether the answers to a question can be listed
    any_language: bool = False  # whether its kinds are no paper's, and are read in the dataset's language
    primary: str = ""  # the metric that `score` repeats; empty where it differs from dataset to dataset


@lru_cache(maxsize=1)
def families() -> tuple[Family, ...]:
    by_name = {path.stem: _read(path) for path in sorted(FOLDER.glob("*.yaml"))}
    for hook, folder in results(METRICS, Hook.folder):
        for path in sorted(folder.glob("*.yaml")):
            try:
                if path.stem in by_name:
                    raise MedtasksError("there is a family of this name")
                by_name[path.stem] = _read(path)
            except (MedtasksError, KeyError, TypeError, AttributeError) as error:
                leave_out(hook.fault(f"has a family of metrics, {path.name}, that cannot be read: {error}"))
    return tuple(by_name.values())


def _read(path: Path) -> Family:
    said = read_yaml(path)
    shared = [{"metric": name, "aggregation": "mean", "higher_is_better": better} for name, better in _SHARED]
    metrics = (*said.pop("metric_list"), *shared)
    return Family(path.stem, tuple(said.pop("answers")), metric_list=metrics, **said)


def family_of(config: Mapping[str, Any], *, where: object) -> Family:
    """By the kind of a task's answers, its judge, and whether its rows have runs."""
    kind = _mapping(config.get("answer")).get("kind")
    judge = _mapping(config.get("judge"))
    judged = "points" if judge.get("points") else "axes" if judge else ""
    judged = "penalties" if judge.get("penalties") else judged
    runs = bool(_mapping(config.get("rows")).get("runs"))
    for family in families():
        if kind in family.answers and (family.judge, family.runs) == (judged, runs):
            return family
    check_kind(kind, where=where)
    said = [*([f"that judges score by {judged}"] if judged else []), *(["over several runs"] if runs else [])]
    what = f"answers of kind {kind!r} have no metrics {' and '.join(said) or 'of their own'}"
    remedy = "leave `judge:` or `rows.runs` out, or state `process_results` and `metric_list`"
    raise MedtasksError(what, where=where, remedy=remedy)


def check_metrics(config: Mapping[str, Any], *, where: object) -> None:
    """Refuse metrics that do not belong to the answers, as a task has that changes the answers of another."""
    if config.get("process_results"):
        return  # which metrics documents get is known to that function alone
    family, kind = family_of(config, where=where), _mapping(config.get("answer")).get("kind")
    metrics = [str(metric["metric"]) for metric in family.metric_list]
    if stated := config.get("metric_list"):
        listed = [metric.get("metric") for metric in stated if isinstance(metric, dict)]
        if lacking := [name for name in metrics if name not in listed]:
            what = f"metric_list: lacks {', '.join(lacking)}, which answers of kind {kind!r} get"
            remedy = "leave `metric_list` out, or state `process_results`, too"
            raise MedtasksError(what, where=where, remedy=remedy)
    about = _mapping(config.get("about"))
    place = "about." if about.get("primary_metric") else ""
    primary = {**config, **about}.get("primary_metric")
    # what judges score has the name that the paper gives to it
    if primary and family.primary and not family.judge and primary not in metrics:
        what = f"{place}primary_metric: {primary!r} is no metric of answers of kind {kind!r}"
        raise MedtasksError(what, where=where, remedy=f"leave it out: the score is then {family.primary}")


def answer_kinds() -> list[str]:
    return sorted({name for family in families() for name in family.answers})


def kinds_of_any_language() -> frozenset[str]:
    """The kinds that belong to no paper: they are read with the words of the dataset's language."""
    return frozenset(name for family in families() if family.any_language for name in family.answers)


def check_kind(kind: object, *, where: object) -> None:
    if kind not in (known := answer_kinds()):
        raise MedtasksError(f"answer.kind is {kind!r}", where=where, remedy=f"use one of: {', '.join(known)}")


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


#: What the key `class` of a task file names.
TASK_CLASS = "medtasks_ext.task.MedicalTask"
#: How YAML names a function; a file of a suite leaves the mark out.
MARK = "!function "
#: Keys whose texts lm-eval renders without a sandbox, as it renders each document.
_RENDERED = (
    "description", "doc_to_text", "doc_to_target", "doc_to_choice", "doc_to_image", "doc_to_audio",
    "gen_prefix", "doc_to_decontamination_query", "fewshot_config", "target_delimiter",
)  # fmt: skip
_JINJA = ("{{", "{%", "{#")
_FILE = Path(__file__).with_name("functions.yaml")


@lru_cache(maxsize=1)
def catalogue() -> frozenset[str]:
    """The package's own functions that a YAML file may name, as `package.module.name`."""
    listed: list[str] = yaml.safe_load(_FILE.read_text(encoding="utf-8"))
    named = [[family.process_results, *map(dict, family.metric_list)] for family in families()]
    return frozenset([*listed, *(name.removeprefix(MARK) for name in functions_of(named)), TASK_CLASS])


def check_function(reference: str, *, where: object = None) -> str:
    """The name behind `!function package.module.name`, if a YAML file may name it. Imports nothing."""
    name = reference.removeprefix(MARK)
    if name in catalogue():
        return name
    what = f"`{MARK}{name[:100]}` is not in the catalogue of functions"
    remedy = "name one that a family of metrics uses, of ours or of an installed package"
    raise MedtasksError(what, where=where, remedy=f"{remedy} (docs/add_a_dataset.md)")


def unsafe_keys(config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Keys of a task file by which lm-eval would run what the file says, each with its remedy."""
    for key in _RENDERED:
        if any(mark in str(config.get(key)) for mark in _JINJA):
            what = f"{key}: lm-eval would render this Jinja without a sandbox"
            yield what, "write templates under `prompt` and `rows`"
    if config.get("use_prompt") is not None:
        what = "use_prompt: lm-eval would read another file with templates"
        yield what, "write templates under `prompt`"


def functions_of(config: Any) -> Iterator[str]:
    if isinstance(config, str):
        if config.startswith(MARK):
            yield config
    elif isinstance(config, Mapping | list):
        for part in config.values() if isinstance(config, Mapping) else config:
            yield from functions_of(part)


def function_named(reference: str, *, where: object = None) -> Any:
    name = check_function(reference, where=where)
    module, _, attribute = name.rpartition(".")
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        what = f"`{MARK}{name}` cannot be imported ({error})"
        raise MedtasksError(what, where=where, remedy="correct the name") from None
