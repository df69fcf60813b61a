"""Frames beside the scores: what answers cost, how far judges agree, and how sure models are of answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Literal

import numpy as np

from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import Json, read_json
from medtasks_ext.metrics.likelihood import risks
from medtasks_ext.registry import Registry, suites
from medtasks_ext.registry.columns import grouped_tasks
from medtasks_ext.registry.strategies import by_likelihood, strategy_title
from medtasks_ext.registry.suites import function
from medtasks_ext.results.experiments import Entry, Experiment, Fault, is_open
from medtasks_ext.results.frames import table_of
from medtasks_ext.results.prices import Price, prices
from medtasks_ext.runs.folder import RunFolder
from medtasks_ext.runs.manifest import TaskState

if TYPE_CHECKING:
    import pyarrow as pa

    from medtasks_ext.registry.tasks import Dataset


def cost_frame(entries: Sequence[Entry]) -> pa.Table:
    """Counted tokens times a price of model_configs, or a published total."""
    known = prices()
    rows = [
        {
            **{"entry": entry.label, "model": entry.model, "kind": entry.kind},
            **{"tasks": len(entry.experiments), "counted": 0, **_NOTHING},
            **_cost(entry, known.get(entry.model)),
        }
        for entry in entries
    ]
    return table_of("costs", rows)


_NOTHING = dict.fromkeys(("input_tokens", "output_tokens", "usd", "usd_batch", "jury"))


def _cost(entry: Entry, price: Price | None) -> Json:
    if entry.kind == "published":
        return _published(entry)
    jury = {"jury": jury_cost(entry.folders, entry.experiments.values())}
    counted = [item for item in entry.experiments.values() if item.tokens]
    if not counted:
        return {"price": "tokens were not counted", **jury}
    tokens = [sum(item.tokens[side] for item in counted if item.tokens) for side in ("input", "output")]
    costs = {"counted": len(counted), "input_tokens": tokens[0], "output_tokens": tokens[1], **jury}
    some = f"tokens counted in {len(counted)} of {len(entry.experiments)} tasks"
    if price is None:
        return {**costs, "price": f"{some}; no price in model_configs"}
    rule = (
        f"{some} × {price.input:g} USD per million input and {price.output:g} per million output tokens "
        "(model_configs); judges not included"
    )
    usd = price.of(tokens[0], tokens[1])
    return {**costs, "price": rule, "usd": usd, "usd_batch": price.in_batch(usd)}


def _published(entry: Entry) -> Json:
    suite = suites().get(entry.paper)
    if suite and suite.published and suite.published.costs:
        usd, rule = function(suite, suite.published.costs)(suite).get(entry.model, (None, ""))
        if usd is not None:
            return {"usd": usd, "price": rule}
    return {"price": "no cost is published"}


#: Figures of what judging cost that are added up.
_COUNTS = ("unsure", "replies", "unpriced", "estimated")


def jury_cost(folders: Iterable[Path], experiments: Iterable[Experiment]) -> Json | None:
    """None where no model judged one; of each task the first folder that knows it counts."""
    places, costs = [RunFolder(path) for path in folders], list[Json]()
    for item in experiments:
        paths = [place.judged_file(item.task) for place in places] if "judged" in item.metrics else []
        if path := next((path for path in paths if path.is_file()), None):
            with suppress(MedtasksError, KeyError, TypeError):  # `judgement_frame` names a damaged file
                cost = read_json(path)["cost"]
                costs.append({key: cost[key] for key in ("usd", *_COUNTS)})
    if not costs:
        return None
    usd = [cost["usd"] for cost in costs if cost["usd"] is not None]
    return {"usd": sum(usd) if usd else None, **{key: sum(cost[key] for cost in costs) for key in _COUNTS}}


#: Metrics of a judged task that say how far it was judged, and how far two assessors agree.
MEASURES = ("judged", "assessor_agreement", "assessor_kappa", "disputed")


def judgement_frame(entries: Sequence[Entry], faults: list[Fault]) -> pa.Table:
    """Files that cannot be read become faults."""
    found: list[Json] = []
    places = [(entry, path) for entry in entries for path in entry.folders]
    for entry, folder in places:
        if not RunFolder(folder).judgements.is_dir():
            continue
        try:
            found += [*_figures(entry, folder)]
        except (MedtasksError, KeyError, TypeError) as error:
            what = error.what if isinstance(error, MedtasksError) else f"damaged ({error!r})"
            where = str(getattr(error, "where", None) or RunFolder(folder).judgements)
            faults.append(Fault(where, f"{what}: no agreement of judges", "medtasks judge RUN --jury NAME"))
    return table_of("judgements", found)


def _figures(entry: Entry, folder: Path) -> Iterator[Json]:
    from medtasks_ext.judge.report import COMPOSITE, POOLED, read_figures

    figures = read_figures(folder)
    for name, item in entry.experiments.items():
        snapshot = RunFolder(folder).judged_file(name)
        if "judged" not in item.metrics or not snapshot.is_file():
            continue
        judges = [str(judge["name"]) for judge in read_json(snapshot)["judges"]]
        shared = {
            **{"entry": entry.label, "suite": item.dataset.metadata.suite, "dataset": item.dataset.id},
            **{"task": name, "strategy": item.strategy},
            "missing": int(item.metrics.get("judgements_missing", 0)),
        }
        for measure in MEASURES:
            if measure in item.metrics:
                yield {**shared, "judges": judges, "measure": measure, "value": item.metrics[measure]}
        for figure in figures:
            if (figure.table, figure.task) == ("judges", name) and figure.item in (COMPOSITE, POOLED):
                pair = figure.between.split(" + ")
                yield {**shared, "judges": pair, "measure": figure.measure, "value": figure.value}


#: Points of a risk-coverage curve: 5 %, 10 % … of the documents.
POINTS = 20

#: Metrics that the frame has.
METRICS = ("acc", "acc_norm", "brier_score", "calibration_error", "risk_coverage")


def calibration(entries: Sequence[Entry], faults: list[Fault]) -> pa.Table:
    """The frame `calibration`; documents that cannot be read become faults."""
    found: list[Json] = []
    for entry in entries:
        for item in entry.experiments.values():
            if not by_likelihood(item.strategy) or item.score is None or item.read_documents is None:
                continue
            try:
                documents = item.read_documents()
            except MedtasksError as error:
                faults.append(Fault(f"{entry.label}, {item.task}", error.what, error.remedy or ""))
                continue
            kept = documents.scored & ~np.isnan(documents.confidence)
            sure, right = documents.confidence[kept], documents.scores[kept]
            if not len(sure):
                continue
            places = np.ceil(np.arange(1, POINTS + 1) / POINTS * len(sure)).astype(int) - 1
            found.append(
                {
                    "entry": entry.label,
                    "suite": item.dataset.suite.id,
                    "dataset": item.dataset.id,
                    "task": item.task,
                    "strategy": item.strategy,
                    "documents": len(sure),
                    **{name: item.metrics.get(name) for name in METRICS},
                    "risks": risks(sure, right)[places].tolist(),
                }
            )
    return table_of("calibration", found)


def calibration_words(found: pa.Table, tasks: Registry) -> list[str]:
    """A line for each entry, suite and strategy: means over its tasks."""

    def place(row: Json) -> tuple[str, str, str]:
        return row["entry"], row["suite"], row["strategy"]

    lines = []
    for (entry, suite, strategy), group in groupby(sorted(found.to_pylist(), key=place), key=place):
        some = list(group)
        mean = {name: fmean(row[name] for row in some) for name in METRICS}
        half = fmean(row["risks"][POINTS // 2 - 1] for row in some)
        line = (
            f"{entry}, {tasks.suites[suite].title if suite in tasks.suites else suite}, "
            f"{strategy_title(strategy)}: calibration error {mean['calibration_error']:.3f}, Brier score "
            f"{mean['brier_score']:.3f}, risk-coverage {mean['risk_coverage']:.3f}; "
            f"errors {1 - mean['acc']:.1%}, of the surer half {half:.1%}"
        )
        if differ := sum(row["acc_norm"] != row["acc"] for row in some):
            line += (
                f"; acc {mean['acc']:.4f}, acc_norm {mean['acc_norm']:.4f} ({differ} of {len(some)} differ)"
            )
        lines.append(line)
    return lines


State = Literal["missing", "failed", "waiting", "not asked", "without gold", "not judged", "not computed"]

_LENGTH = 200
_NOT_ASKED: tuple[State, str] = ("not asked", "was not among the tasks of the run")


def gap_frame(entries: Sequence[Entry], tasks: Registry, strategies: Sequence[str]) -> pa.Table:
    """The frame `gaps`, each entry's in the registry's order; controls and drafts belong to no suite."""
    found = []
    for entry in entries:
        asked = {str(item.config.get("task", item.task)) for item in entry.experiments.values()}
        for dataset, suite, strategy, name in grouped_tasks(tasks, strategies):
            item = entry.experiments.get(name)
            if item is None or item.score is None:
                if item:
                    state, reason = _without_score(item)
                elif name in asked:  # with another number of examples, which is another strategy
                    state, reason = _NOT_ASKED
                else:
                    state, reason = _without_result(entry, dataset, name)
                of = {"suite": suite, "dataset": dataset.id, "task": name}
                found.append(
                    {"entry": entry.label, **of, "strategy": strategy, "state": state, "reason": reason}
                )
    return table_of("gaps", found)


def _without_score(item: Experiment) -> tuple[State, str]:
    if item.dataset.blocks.get("judge"):
        return "not judged", "its answers wait for `medtasks judge`"
    if item.loaded.get("n_without_gold") == item.loaded.get("n_test", item.n):
        return "without gold", "its rows have no gold answers"
    return "not computed", (
        "NLTK's Punkt data was not on the machine that scored: python -m nltk.downloader punkt_tab, "
        "then medtasks rescore RUN"
    )


def _without_result(entry: Entry, dataset: Dataset, name: str) -> tuple[State, str]:
    task = (entry.manifest.get("tasks") or {}).get(name) or {}
    state, error = task.get("state"), str(task.get("error") or "")
    if state in (TaskState.MISSING, TaskState.FAILED):
        # what an error says of rows that are not open may quote them; where they go does not
        shown = is_open(dataset, sample=entry.sample) or error.startswith(f"{dataset.id} (")
        first = (error.strip().splitlines() or ["no message"])[0][:_LENGTH]
        return state, first if shown else f"{state}; run.json of the run has the message"
    if state in (TaskState.WAITING, TaskState.INCOMPLETE, TaskState.ANSWERED):
        return "waiting", "the run was interrupted before; the same command goes on"
    if state == TaskState.DONE:
        return "failed", "its results are damaged, see the faults"
    return _NOT_ASKED
