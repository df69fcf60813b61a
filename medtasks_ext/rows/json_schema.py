"""The JSON Schema of a task file, by which editors complete and check a `task.yaml`."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

from pydantic import TypeAdapter

from medtasks_ext.answers.formats import any_format
from medtasks_ext.jsonfile import Json
from medtasks_ext.registry import Metadata, Registry, Suite, registry
from medtasks_ext.registry.functions import TASK_CLASS
from medtasks_ext.rows.spec import DatasetSpec

_TEXT, _LIST, _MAPPING = {"type": "string"}, {"type": "array"}, {"type": "object"}
#: What a task file may say at its top level: `include`, keys of lm-eval's `TaskConfig` and of the class.
TASK_KEYS: dict[str, Json] = {
    "include": {"type": ["string", "array"], "description": "Another task file, whose keys are taken over."},
    "task": {**_TEXT, "pattern": "^[a-z0-9]+(_[a-z0-9]+)+$", "description": "SUITE_DATASET"},
    "task_alias": _TEXT,
    "class": {
        **_TEXT,
        "pattern": f"^(!function )?{re.escape(TASK_CLASS)}$",
        "description": f"The class of all tasks: !function {TASK_CLASS}",
    },
    "dataset": {**_TEXT, "description": "The folder of the dataset: SUITE/DATASET."},
    "strategy": {
        "enum": ["zero_shot"],
        "description": "`medtasks dev build` writes the others.",
    },
    "tag": {"type": ["string", "array"], "description": "Derived from `about`; do not write tags."},
    "training_split": _TEXT,
    "validation_split": _TEXT,
    "test_split": _TEXT,
    "fewshot_split": _TEXT,
    "process_docs": _TEXT,
    "doc_to_text": _TEXT,
    "doc_to_target": _TEXT,
    "doc_to_image": _TEXT,
    "doc_to_audio": _TEXT,
    "doc_to_choice": {"type": ["string", "object", "array"]},
    "unsafe_code": {"type": "boolean"},
    "process_results": {**_TEXT, "description": "Answer and gold to values; `!function` and its name."},
    "use_prompt": _TEXT,
    "description": _TEXT,
    "target_delimiter": _TEXT,
    "fewshot_delimiter": _TEXT,
    "fewshot_config": _MAPPING,
    "num_fewshot": {"type": "integer", "minimum": 0},
    "metric_list": {**_LIST, "description": "Metrics and how each is aggregated."},
    "output_type": _TEXT,
    "generation_kwargs": {**_MAPPING, "description": "Settings of generation, such as max_gen_toks."},
    "repeats": {"type": "integer", "minimum": 1},
    "filter_list": _LIST,
    "should_decontaminate": {"type": "boolean"},
    "doc_to_decontamination_query": _TEXT,
    "gen_prefix": _TEXT,
    "metadata": _MAPPING,
    "rows": _MAPPING,
    "prompt": _MAPPING,
    "answer": _MAPPING,
    "judge": _MAPPING,
    "official": _MAPPING,
    "about": _MAPPING,
}
#: Comparability version `N-X`.
VERSION = "^[0-9]+-[A-Z]$"
_ANSWER = {"$ref": "#/$defs/Answer"}
_DOCUMENTED = re.compile(r"^    (\w+): (.+(?:\n {8}.+)*)", re.MULTILINE)


def task_schema() -> Json:
    """The schema of a hand-written task file (JSON Schema, draft 7), from the models that read it.

    A `!function NAME` counts as a string. What only running a task can show (that prompts render, that gold
    answers can be read) is left to `medtasks dev validate`.
    """
    return _schema(registry())


@lru_cache(maxsize=2)
def _schema(tasks: Registry) -> Json:
    models: tuple[TypeAdapter[Any], ...] = (TypeAdapter(DatasetSpec), TypeAdapter(Metadata), any_format())
    named = [(str(place), "validation", model) for place, model in enumerate(models)]
    schemas, shared = TypeAdapter.json_schemas(named)  # type: ignore[arg-type]
    definitions = {name: described(_plain(part)) for name, part in shared["$defs"].items()}
    _, metadata, answer = (_plain(schemas[(key, kind)]) for key, kind, _ in named)  # type: ignore[index]
    definitions["Answer"] = answer
    definitions["DatasetSpec"]["properties"]["answer"] = _ANSWER
    known = list(tasks.suites.values())
    _say_what_suites_say(definitions, known)
    needed = definitions["DatasetSpec"]["required"]
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "medtasks: task.yaml of a dataset",
        "type": "object",
        "additionalProperties": False,
        "required": ["class", "task", "dataset", *needed, "about", "metadata"],
        "properties": {
            **TASK_KEYS,
            **definitions.pop("DatasetSpec")["properties"],
            "about": metadata,
            "metadata": _closed(
                {
                    "version": {
                        **_TEXT,
                        "pattern": VERSION,
                        "description": "N-X; scores of different N are not comparable.",
                    },
                }
            ),
        },
        "allOf": [_rows_unless_given_out(known), *map(_axes_needed, filter(lambda suite: suite.axes, known))],
        "$defs": definitions,
    }


def _rows_unless_given_out(known: list[Suite]) -> Json:
    """`rows` may be left out in the suites whose authors give out a file for each dataset."""
    names = "|".join(re.escape(suite.id) for suite in known if suite.official_files)
    of_them = {"properties": {"dataset": {"pattern": f"^({names})/"}}}
    return {"if": of_them, "else": {"required": ["rows"]}} if names else {"required": ["rows"]}


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
    record, words = definitions["Metadata"], definitions["SuiteWords"]
    record["properties"]["axes"] = {
        "description": record["properties"]["axes"]["description"],
        "anyOf": [_axes_of(suite) for suite in known] or [_MAPPING],
    }
    words["properties"]["access"]["enum"] = [*dict.fromkeys(word for suite in known for word in suite.access)]


def _axes_of(suite: Suite) -> Json:
    """The axes of one suite."""
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


def schema_text() -> str:
    """The schema as text, the same with every version of pydantic."""
    return json.dumps(task_schema(), ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def known_keys() -> set[str]:
    """Every key that a task file may have somewhere."""
    parts = [task_schema(), *task_schema()["$defs"].values()]
    return {"version"}.union(*(part.get("properties", ()) for part in parts))


def _closed(properties: Json) -> Json:
    return {
        **_MAPPING,
        "additionalProperties": False,
        "required": list(properties),
        "properties": properties,
    }


def _plain(part: Any) -> Any:
    """A schema without what editors need not see and versions of pydantic write differently."""
    if isinstance(part, list):
        return [_plain(item) for item in part]
    if not isinstance(part, dict):
        return part
    if len(part.get("allOf", ())) == 1 and "$ref" in part["allOf"][0]:
        part = {**{key: value for key, value in part.items() if key != "allOf"}, **part["allOf"][0]}
    plain = {}
    for key, value in part.items():
        if key == "properties":
            plain[key] = {name: _plain(item) for name, item in value.items()}
        elif not (
            key in ("title", "discriminator")
            or (key == "enum" and "const" in part)
            or (key == "additionalProperties" and value is True)
        ):
            plain[key] = _plain(value)
    return plain


def described(part: Json) -> Json:
    """A model's schema with the lines under `Attributes:` of its docstring at the keys they describe."""
    text, _, attributes = part.get("description", "").partition("\n\nAttributes:\n")
    properties = {name: dict(value) for name, value in part.get("properties", {}).items()}
    for name, meaning in _DOCUMENTED.findall(attributes):
        if name in properties:
            properties[name]["description"] = " ".join(meaning.split())
    return {**part, **({"description": text} if text else {}), "properties": properties}
