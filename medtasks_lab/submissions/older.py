"""Submissions of schema 1, whose conditions are words, in the form of today."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from medtasks_ext.registry import registry
from medtasks_ext.results.older_conditions import read_decoding, read_jury
from medtasks_ext.runs.conditions import (
    Asked,
    Conditions,
    Layout,
    Observed,
    Rows,
    RunConditions,
    Shots,
    Wording,
)

#: The conditions of schema 1, all in words.
_FLAT = frozenset(
    {"strategy", "version", "wording", "artefact", "prompt", "examples", "examples_cut", "source", "revision"}
    | {"rows", "documents", "n", "n_of_suite", "held_out", "budget", "answers_cut", "context", "inputs_cut"}
    | {"decoding", "seed", "template", "system", "turns", "jury", "protocol", "judged", "engine", "versions"}
)


def submission_of_today(content: Mapping[str, Any]) -> dict[str, Any]:
    """A submission of schema 1 in the form of today.

    Raises:
        ValueError: it does not hold what a submission of schema 1 holds; KeyError, TypeError and
            AttributeError as well.
    """
    kept = {key: value for key, value in content.items() if key not in ("settings", "tasks")}
    tasks = {name: _task_of_today(name, item) for name, item in content["tasks"].items()}
    return {**kept, "schema": 2, "run": read_run(content["settings"]), "tasks": tasks}


def _task_of_today(name: str, item: Mapping[str, Any]) -> dict[str, Any]:
    if unknown := item["asked"].keys() - _FLAT:
        raise ValueError(f"tasks.{name}.asked.{min(unknown)}: unexpected keyword argument")
    if item["asked"].get("version") not in (None, item["version"].partition("-")[0]):
        raise ValueError(f"tasks.{name}.asked.version: is not that of {item['version']}")
    kept = {
        key: value for key, value in item.items() if key not in ("asked", "rows", "cut", "judged", "version")
    }
    return {
        **kept,
        "conditions": _of_submission(name, item, item["asked"], item["rows"], item.get("cut") or {}),
    }


def _of_submission(
    name: str,
    item: Mapping[str, Any],
    asked: Mapping[str, Any],
    rows: Mapping[str, Any],
    cut: Mapping[str, int],
) -> Conditions:
    said, version = asked.get, item["version"]
    jury = "; ".join(filter(None, (said("jury"), said("protocol")))) if said("jury") else None
    artefact, _, revision = (said("artefact") or "").rpartition(" ")
    flags = {"shots_dropped": "examples_cut", "inputs_cut": "inputs_cut", "answers_cut": "answers_cut"}
    packages = said("versions")
    return Conditions(
        Asked(
            dataset=known[0].id if (known := registry().tasks.get(name)) else None,
            strategy=asked["strategy"],
            version=version,
            rows=Rows(
                source=said("source") or ("rebuilt" if rows["rebuilt"] else None),
                origin=rows["origin"],
                revision=said("revision"),
                hash=said("rows"),
                n_of_suite=rows["of_suite"],
                documents=said("documents"),
            ),
            wording=Wording(
                said("wording"), artefact or revision or None, revision if artefact else None, said("prompt")
            ),
            shots=Shots(hash=said("examples")),
            layout=_layout(said("template"), said("system"), said("turns")),
            budget=said("budget"),
            context=said("context"),
            decoding=read_decoding(str(said("decoding"))) if said("decoding") else None,
            seed=said("seed"),
            jury=read_jury(jury) if jury else None,
            engine=said("engine"),
        ),
        Observed(
            n=item["n"],
            n_here=rows["here"],
            n_held_out=rows.get("held_out") or said("held_out"),
            n_dropped=rows.get("dropped"),
            judged=item.get("judged", 1.0) if jury else None,
            versions=(dict(part.rsplit(" ", 1) for part in packages.split(", ")),) if packages else (),
        ).counted({**{kind: int(asked[flag]) for kind, flag in flags.items() if flag in asked}, **cut}),
    )


def _layout(template: str | None, system: str | None, turns: str | None) -> Layout:
    """The layout from words."""
    turn, _, instruction = (system or "").partition(", ")
    return Layout(
        chat_template={"yes": True, "no": False}.get(template, template) if template else None,
        system_role=turn == "system turn" if turn else None,
        system_instruction=None if instruction in ("", "none") else instruction,
        shots_as_turns=turns == "yes" if turns else None,
    )


def read_run(words: Mapping[str, str]) -> RunConditions:
    """What all tasks of a run share, from words (`results.condition_words.run_words`)."""
    known = words.get
    turn, instruction = known("instruction in"), known("system instruction", "none")
    decoding, documents, jury = known("decoding"), known("documents"), known("jury")
    system = f"{turn}, {instruction}" if turn else None
    return RunConditions(
        engine=known("backend"),
        arguments=_settings(words["model arguments"]) if "model arguments" in words else None,
        layout=_layout(known("chat template"), system, known("shots as turns")),
        decoding=None if decoding is None else {} if decoding == "the task's own" else _settings(decoding),
        documents=tuple(documents.removesuffix(", by task").split(" or ")) if documents else None,
        synthetic=known("rows") == "synthetic" if "rows" in words else None,
        juries=tuple(map(read_jury, jury.split(" or "))) if jury else (),
    )


def _settings(text: str) -> dict[str, str]:
    parts = (part.partition("=") for part in re.split(r", (?=\w+=)", text) if part)
    return {name: value for name, _, value in parts}
