"""The JSON Schemas by which editors complete and check a `task.yaml` and a `card.yaml`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any

from pydantic import TypeAdapter

from medtasks_ext.answers.formats import any_format
from medtasks_ext.jsonfile import Json
from medtasks_ext.registry import Registry, Suite, registry
from medtasks_ext.registry.functions import function_named
from medtasks_ext.registry.metadata import AXIS, Card, TaskFacts
from medtasks_ext.registry.tasks import MAPPING, TASK_KEYS, TEXT
from medtasks_ext.rows.spec import DatasetSpec

#: Comparability version `N-X`.
VERSION = "^[0-9]+-[A-Z]$"
_ANSWER = {"$ref": "#/$defs/Answer"}
_DRAFT = "http://json-schema.org/draft-07/schema#"


def task_schema() -> Json:
    """The schema of a hand-written task file (JSON Schema, draft 7), from the models that read it.

    A `!function NAME` counts as a string. What only running a task can show (that prompts render, that gold
    answers can be read) is left to `medtasks dev validate`.
    """
    return _schemas(registry())[0]


def card_schema() -> Json:
    """The schema of a card, likewise."""
    return _schemas(registry())[1]


@lru_cache(maxsize=2)
def _schemas(tasks: Registry) -> tuple[Json, Json]:
    parts = (TypeAdapter(DatasetSpec), TypeAdapter(TaskFacts), TypeAdapter(Card))
    known = list(tasks.suites.values())
    models: tuple[TypeAdapter[Any], ...] = (*parts, any_format(), *_official_blocks(known))
    named = [(str(place), "validation", model) for place, model in enumerate(models)]
    schemas, shared = TypeAdapter.json_schemas(named)  # type: ignore[arg-type]
    plain = partial(_plain, titles=tasks.titles)
    definitions = {name: plain(part) for name, part in shared["$defs"].items()}
    definitions["Answer"] = plain(schemas[("3", "validation")])
    definitions["DatasetSpec"]["properties"]["answer"] = _ANSWER
    definitions["Database"]["required"].remove("revision")  # the lock has it
    for name, part in definitions["RowSchema"]["properties"].items():
        definitions["Source"]["properties"][name]["description"] = part["description"]
    blocks = [plain(schemas[(str(place), "validation")]) for place in range(len(parts) + 1, len(models))]
    definitions["DatasetSpec"]["properties"]["official"]["anyOf"] += blocks
    _say_what_suites_say(definitions, known)
    needed, top = definitions["DatasetSpec"]["required"], definitions.pop("TaskFacts")
    card = {**definitions["Card"], "$schema": _DRAFT, "title": "medtasks: card.yaml of a dataset"}
    card["$defs"] = {name: definitions[name] for name in ("SourceTerms", "Licence", "Evidence")}
    definitions["About"] = {
        **definitions["Card"],
        "description": "All facts in the task file, in place of a card and of facts at the top level.",
        "properties": {**top["properties"], **definitions["Card"]["properties"]},
        "required": [*top["required"], *definitions.pop("Card")["required"]],
    }
    task = {
        "$schema": _DRAFT,
        "title": "medtasks: task.yaml of a dataset",
        "type": "object",
        "additionalProperties": False,
        "required": ["task"],
        "if": {"required": ["include"]},  # what the other file says is not known here
        "else": {
            "required": ["class", "dataset", *needed, "metadata"],
            "anyOf": [{"required": top["required"]}, {"required": ["about"]}],
            **_rows_unless_given_out(known),
        },
        "properties": {
            **TASK_KEYS,
            **top["properties"],
            **definitions.pop("DatasetSpec")["properties"],
            "about": {"$ref": "#/$defs/About"},
            "metadata": _closed(
                {
                    "version": {
                        **TEXT,
                        "pattern": VERSION,
                        "description": "N-X; scores of different N are not comparable.",
                    },
                }
            ),
        },
        "allOf": [*map(_axes_needed, filter(lambda suite: suite.axes, known))],
        "$defs": definitions,
    }
    return task, card


def _official_blocks(known: list[Suite]) -> list[TypeAdapter[Any]]:
    """What `official` of a task's file may say besides, where suites have code for their words."""
    adapters = {official.adapters.code: suite.file for suite in known
                if (official := suite.official) and official.adapters}  # fmt: skip
    return [TypeAdapter(function_named(code, where=file).Block) for code, file in sorted(adapters.items())]


def _rows_unless_given_out(known: list[Suite]) -> Json:
    """`rows` may be left out in the suites whose authors give out a file for each dataset."""
    names = "|".join(re.escape(suite.id) for suite in known if suite.files)
    of_them = {"properties": {"dataset": {"pattern": f"^({names})/"}}}
    return {"allOf": [{"if": of_them, "else": {"required": ["rows"]}} if names else {"required": ["rows"]}]}


def _axes_needed(suite: Suite) -> Json:
    """The datasets of a suite that has axes of its own say their places on all of them."""
    places = {"properties": {"axes": _axes_of(suite)}, "required": ["axes"]}
    return {
        "if": {"properties": {"dataset": {"pattern": f"^{re.escape(suite.id)}/"}}, "required": ["dataset"]},
        "then": {"properties": {"about": places}},
    }


def _say_what_suites_say(definitions: Json, known: list[Suite]) -> None:
    """Offer the axes and words of the suites; which of them a file may use depends on its folder."""
    definitions["DatasetSpec"]["required"].remove("rows")
    card, words = definitions["Card"], definitions["SourceTerms"]
    card["properties"]["axes"] = {
        "description": card["properties"]["axes"]["description"],
        "anyOf": [_axes_of(suite) for suite in known] or [MAPPING],
    }
    words["properties"]["access"]["enum"] = [*dict.fromkeys(word for suite in known for word in suite.access)]


def _axes_of(suite: Suite) -> Json:
    rules = [
        {
            "if": {"properties": {axis.within: {"const": outer}}, "required": [axis.within]},
            "then": {"properties": {name: {"enum": list(parts)}}},
        }
        for name, axis in suite.axes.items()
        for outer, parts in axis.parts.items()
    ]
    properties = {
        name: {"enum": list(axis.titles), "enumDescriptions": list(axis.titles.values())}
        for name, axis in suite.axes.items()
    }
    return {**_closed(properties), "description": suite.title, **({"allOf": rules} if rules else {})}


def schema_text(schema: Json) -> str:
    """A schema as text, the same with every version of pydantic."""
    return json.dumps(schema, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def known_keys() -> set[str]:
    """Every key that a task file or a card may have somewhere."""
    parts = [task_schema(), *task_schema()["$defs"].values()]
    return {"version"}.union(*(part.get("properties", ()) for part in parts))


def _closed(properties: Json) -> Json:
    return {
        **MAPPING,
        "additionalProperties": False,
        "required": list(properties),
        "properties": properties,
    }


def _plain(part: Any, titles: Mapping[str, Mapping[str, str]]) -> Any:
    """A schema with the values of axes, without what editors need not see and pydantic's versions write
    differently."""
    if isinstance(part, list):
        return [_plain(item, titles) for item in part]
    if not isinstance(part, dict):
        return part
    if axis := part.get(AXIS):
        listed = {"enum": list(titles[axis]), "enumDescriptions": list(titles[axis].values())}
        own = {"anyOf": [listed, {"pattern": "^[a-z]{3}$"}]} if axis == "language" else listed
        return {**{key: value for key, value in part.items() if key not in (AXIS, "title")}, **own}
    if len(part.get("allOf", ())) == 1 and "$ref" in part["allOf"][0]:
        part = {**{key: value for key, value in part.items() if key != "allOf"}, **part["allOf"][0]}
    plain = {}
    for key, value in part.items():
        if key == "properties":
            plain[key] = {name: _plain(item, titles) for name, item in value.items()}
        elif not (
            key in ("title", "discriminator")
            or (key == "enum" and "const" in part)
            or (key == "additionalProperties" and value is True)
        ):
            plain[key] = _plain(value, titles)
    return plain
