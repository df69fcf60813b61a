"""Conditions as words and as former versions wrote them -> the record (`runs.conditions`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from medtasks_ext.runs.conditions import (
    SCHEMA,
    Asked,
    Conditions,
    Judge,
    Jury,
    Observed,
    Rows,
    RunConditions,
    Shots,
    read_conditions,
    task_conditions,
)

if TYPE_CHECKING:
    from medtasks_ext.registry.tasks import Dataset
    from medtasks_ext.runs.conditions import Source

_DECIDES = " decides"
_OFFICIAL = " in official words,"


def stored_conditions(
    stored: Mapping[str, Any],
    run: RunConditions,
    dataset: Dataset,
    strategy: str,
    documents: str,
    where: object,
) -> Conditions:
    """The record of a stored result, of this schema or an older one.

    Args:
        stored: `tasks/TASK.json`, or what a store or lm-eval has of it: `version`, `n`, `loaded`, `config`,
            `metrics`; perhaps `cut`, `conditions` and `jury`.
    """
    recorded = stored.get("conditions") or {}
    metrics, cut = stored["metrics"], stored.get("cut") or {}
    if not is_older(stored):
        return read_conditions(recorded, where).on(documents, stored["n"])
    jury = stored.get("jury")
    source: Source | None = "synthetic" if "SAMPLE_DATA" in metrics else None
    stated = (recorded.get("rows") or {}).get("n_of_suite", dataset.n_documents)
    versions, served = recorded.get("versions"), recorded.get("served")
    return task_conditions(
        Asked(
            suite=dataset.metadata.suite,
            dataset=dataset.id,
            strategy=strategy,
            version=str(stored["version"]),
            rows=Rows(source=source, n_of_suite=stated, documents=documents),
            shots=Shots(hash=(recorded.get("shots") or {}).get("hash")),
            budget=recorded.get("budget"),
            context=recorded.get("context"),
            seed=recorded.get("seed"),
            # a judged score whose judges nobody recorded is no score that nobody judged
            jury=read_jury(jury) if jury else Jury(()) if "judged" in metrics else None,
        ),
        Observed(
            n=stored["n"],
            judged=metrics.get("judged"),
            served=None if served is None else tuple(served),
            versions=(versions,) if versions else (),
        ).counted(cut),
        run,
        stored["loaded"],
        stored["config"],
    )


def is_older(stored: Mapping[str, Any]) -> bool:
    recorded = stored.get("conditions") or {}
    return recorded.get("schema") != SCHEMA or "asked" not in recorded


def stated_rows(stored: Mapping[str, Any]) -> int:
    """0 where nobody recorded it."""
    recorded = stored.get("conditions") or {}
    rows = recorded.get("asked", recorded).get("rows") or {}
    return int(rows.get("n_of_suite") or 0)


def read_jury(text: str) -> Jury:
    """Who judged, from words (`results.condition_words.jury_words`)."""
    names, _, protocol = text.partition("; ")
    if names == "unknown":
        return Jury(())
    adjudicator = None
    if names.endswith(_DECIDES):
        names, _, last = names.rpartition(", ")
        adjudicator = _judge(last.removesuffix(_DECIDES))
    judges = tuple(map(_judge, names.split(" + ")))
    if not protocol:
        return Jury(judges, adjudicator)
    head, _, digest = protocol.rpartition(" ")
    if not head:
        return Jury(judges, adjudicator, protocol)
    official = head.endswith(_OFFICIAL)
    return Jury(judges, adjudicator, head.removesuffix(_OFFICIAL), "official" if official else "own", digest)


def _judge(text: str) -> Judge:
    other = re.fullmatch(r"(.+) \((.+)\)", text)
    return Judge(other[1], other[2]) if other else Judge(text)


def read_decoding(text: str) -> dict[str, Any]:
    """Generation settings from words: `greedy`, `sampled`, or some by name."""
    if text == "greedy":
        return {"do_sample": False}
    found: dict[str, Any] = {"do_sample": True}
    for part in re.split(r", (?=\w+=)", text):
        name, sign, value = part.partition("=")
        if sign:
            found[name] = _number(value)
    return found


def _number(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
