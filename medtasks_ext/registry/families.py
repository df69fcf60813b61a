"""Families: how answers of one kind are scored. `medtasks_ext/metrics/families` has a file for each.

A file names the kinds of answers that it is for, the function that scores a document, and the metrics. Reads
YAML without importing lm-eval.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from medtasks_ext.errors import MedtasksError
from medtasks_ext.hooks import METRICS, folders, leave_out
from medtasks_ext.registry.yamlfile import Config, read_yaml

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
    for hook, folder in folders(METRICS):
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
