"""Run folders as `medtasks run` leaves them, with given scores of documents; no model is asked."""

from __future__ import annotations

import gzip
import json
from base64 import b64decode
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtasks_ext.registry import registry
from medtasks_ext.registry.strategies import asked_strategy
from medtasks_ext.results.conditions import read_jury
from medtasks_ext.results.document_scores import (
    aggregations,
    document_scores,
    save_document_scores,
    save_resampled,
    score_statistic,
)
from medtasks_ext.runs.conditions import run_conditions, task_conditions
from medtasks_ext.runs.folder import RunFolder
from medtasks_ext.runs.manifest import RUN_SCHEMA, Choice
from medtasks_ext.stats.bootstrap import task_intervals
from tests.conftest import hashed_anew
from tests.run_files import write_stored

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from medtasks_ext.runs.conditions import Conditions

SETTINGS = {
    "num_fewshot": None, "apply_chat_template": False, "fewshot_as_multiturn": None,
    "system_instruction": None, "system_role": True, "data": None,
    "gen_kwargs": {}, "seed": 1234,
}  # fmt: skip


def write_run(
    folder: Path,
    model: str,
    scores: Mapping[str, Sequence[float]],
    *,
    sample: bool = False,
    loaded: Mapping[str, Any] | None = None,
    record: Mapping[str, Any] | None = None,
    states: Mapping[str, Mapping[str, str]] | None = None,
    settings: Mapping[str, Any] | None = None,
    arguments: Mapping[str, Any] | None = None,
    notes: Sequence[str] = (),
    text: str = "text",
) -> Path:
    """Write a run.

    `scores` holds the score of each document of tasks whose score is a mean. `loaded` changes what is said of
    the rows of every task, `record` its results (`cut`, `tokens`, `jury`, `conditions` of `_conditions`).
    `states` are of tasks that are not done, `settings` those of the run that are not the usual ones (`limit`
    and `samples` choose documents), `arguments` of the model. Texts and ids begin with `text`.
    """
    (folder / "tasks").mkdir(parents=True)
    given = {**SETTINGS, **({"data": "sample"} if sample else {}), **(settings or {})}
    limit, places = given.pop("limit", None), given.pop("samples", None)
    choices = {task: Choice.of(task, limit, places) for task in scores}
    manifest = {
        "schema": RUN_SCHEMA,
        "identity": {"model": {"model": "vllm", "model_args": {"pretrained": model, **(arguments or {})}},
         "settings": given},
        "versions": {"medtasks": "0.1.0", "lm_eval": "0.4.13"},
        "started": "2026-01-02T03:04:05",
        "requested": list(scores),
        "notes": list(notes),
        "tasks": {
            **{
                task: {"state": "done", "choice": choice.model_dump(exclude_none=True)}
                for task, choice in choices.items()
            },
            **(states or {}),
        },
    }  # fmt: skip
    (folder / "run.json").write_text(json.dumps(manifest))
    records = {}
    for task, values in scores.items():
        said = {**(record or {}), "documents": choices[task].words}
        more = (sample, loaded or {}, said, text, run_conditions(manifest))
        records[task] = _write_task(folder, task, values, *more)
    write_stored(folder, records)
    hashed_anew(folder)
    return folder


def _write_task(
    folder: Path,
    task: str,
    values: Sequence[float],
    sample: bool,
    loaded: Mapping[str, Any],
    more: dict[str, Any],
    text: str,
    run: Conditions,
) -> dict[str, Any]:
    """Write what the result of a task stands on; returns the result."""
    dataset, strategy = registry().tasks[task]
    samples = [_sample(number, value, sample, text) for number, value in enumerate(values)]
    intervals, resampled = task_intervals(samples, aggregations(dataset), dataset.id)
    scores = document_scores(samples, score_statistic(dataset))
    shared = ("valid", "unclosed_reasoning", *(("SAMPLE_DATA",) if sample else ()))
    means = {name: sum(item[name] for item in samples) / len(samples) for name in shared}
    rows = {
        "origin": "sample" if sample else "local", "where": f"/data/{text}/rows.json", "instruction": "own",
        "prompt_hash": "p1", "rows_hash": f"rows of {dataset.id}", "rebuilt": False, "n_test": len(values),
        "n_held_out": 0, "n_without_gold": 0, **loaded,
    }  # fmt: skip
    content = {
        "task": task, "version": "1-A", "metrics": {"score": scores.value, "acc": scores.value, **means},
        "intervals": intervals, "n": len(values), "loaded": rows,
        "cut": {"shots_dropped": 0, "inputs_cut": 0},
        "tokens": None, "config": {"num_fewshot": 5 if task.endswith("_5shot") else 0}, **more,
    }  # fmt: skip
    strategy = asked_strategy(strategy, content["config"].get("num_fewshot") or 0)
    about = {"dataset": dataset.id, "strategy": strategy}
    content["conditions"] = _conditions(about, content, run)
    for name in ("jury", "documents"):
        content.pop(name, None)
    files = RunFolder(folder)
    save_resampled(files.resampled_file(task), resampled)
    save_document_scores(files.scores_file(task), scores)
    lines = "".join(json.dumps(item) + "\n" for item in samples)
    files.samples_file(task).write_text(lines)
    return content


def _conditions(about: Mapping[str, str], content: Mapping[str, Any], run: Conditions) -> dict[str, Any]:
    """The record of a task's conditions as a run writes it.

    The `conditions` of a result say `n_of_suite`, `shots`, `context`, `seed`, `served` and `versions`, its
    `jury` who judged, as words or as the record has it.
    """
    said = {"n_of_suite": content["n"], **content.get("conditions", {})}
    metrics, versions, served = content["metrics"], said.get("versions"), said.get("served")
    jury = read_jury(content["jury"]) if isinstance(content.get("jury"), str) else content.get("jury")
    known = task_conditions(run, content["loaded"], content["config"])
    return replace(
        known,
        **about,
        **content["cut"],
        version=content["version"],
        source="synthetic" if "SAMPLE_DATA" in metrics else known.source,
        n_of_suite=said["n_of_suite"],
        documents=content["documents"],
        examples=said.get("shots"),
        budget=said.get("budget", known.budget),
        context=said.get("context"),
        seed=said.get("seed"),
        jury=jury,
        n=content["n"],
        judged=metrics.get("judged"),
        served=None if served is None else tuple(served),
        versions=(versions,) if versions else (),
    ).record()


def _sample(number: int, score: float, sample: bool, text: str) -> dict[str, Any]:
    """lm-eval's record of a document; a score below 0 stands for an answer that cannot be read."""
    valid = float(score >= 0)
    return {
        "doc_id": number,
        "doc": {
            "id": f"{text}-id-{number}", "system": "", "prompt": f"{text}: note {number}",
            "target": f"{text}: gold", "gold": f"{text}: gold", "data": "sample" if sample else "local",
        },
        "arguments": [[f"{text}: note {number}", {}]],
        "resps": [[f"{text}: response {number}"]],
        "filtered_resps": [{"answer": f"{text}: answer" if valid else None, "valid": bool(valid)}],
        "doc_hash": f"{number:064d}",
        "score": max(score, 0.0), "acc": max(score, 0.0), "valid": valid, "unclosed_reasoning": 0.0,
        **({"SAMPLE_DATA": 1.0} if sample else {}),
    }  # fmt: skip


def data_of(page: Path) -> Any:
    """What the script of a page reads."""
    head = '<script type="application/json" id="data"'
    packed, _, content = page.read_text("utf-8").partition(head)[2].partition("</script>")[0].partition(">")
    return json.loads(gzip.decompress(b64decode(content)) if packed else content)


def held(script: str) -> Any:
    """The data of a file of answers."""
    packed = script.partition(', "')[2].rpartition('")')[0]
    return json.loads(gzip.decompress(b64decode(packed)))


def unpacked(table: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The columns of a table of the page's data, as the page unpacks them."""
    return {name: _values(column) for name, column in table.items()}


def _values(column: Any) -> list[Any]:
    if isinstance(column, list):
        return column
    if "words" in column:
        return [column["words"][place] for place in column["at"]]
    runs = column["runs"]
    return [value for value, times in zip(runs[::2], runs[1::2], strict=True) for _ in range(times)]
