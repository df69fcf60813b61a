"""Results in the forms that the Hugging Face hub reads, made and checked by huggingface_hub itself."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import yaml

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry.strategies import strategy_title
from medtasks_ext.report.card.facts import URL, asked_with, group_rows, hub_dataset, scored, setting_words
from medtasks_ext.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator

    from huggingface_hub import EvalResult

    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Registry, Suite
    from medtasks_ext.results.experiments import Entry, Experiment

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
    for row in group_rows(entry, tasks):
        if row["axis"] != "suite":
            continue
        words, suite = strategy_title(row["strategy"]), tasks.suites[row["suite"]]
        part = f", {row['tasks_scored']} of {row['tasks']} tasks" if row["partial"] else ""
        yield _suite_result(suite, words + part, row, asked_with(entry, suite.id, row["strategy"]))


def _suite_result(suite: Suite, words: str, row: Json, added: str) -> EvalResult:
    from huggingface_hub import EvalResult

    arguments: Json = {"tasks": f"{row['tasks_scored']} of {row['tasks']}"}
    if added:
        arguments["asked_with"] = added
    if row["interval_low"] is not None:
        arguments["interval_95"] = [round(row[f"interval_{end}"], DIGITS) for end in ("low", "high")]
    return EvalResult(
        task_type="text-generation",
        dataset_type=suite.id,
        dataset_name=suite.title,
        metric_type="mean_score",
        metric_name=f"mean score ({words})",
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
