"""`docs/keys.md` and `docs/metric_names.md`: what files of users may say, and what metrics mean.

Both follow from what the code says of itself: the docstrings of the models that read these files, the
glossary of metrics, and the task files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from medtasks_ext.answers.formats import any_format
from medtasks_ext.judge.jury import Adjudicator, Judge
from medtasks_ext.markdown import cell, table
from medtasks_ext.metrics.glossary import meanings, rules
from medtasks_ext.registry import Registry, Suite
from medtasks_ext.registry.datalock import DataLock, LockedDatabase, LockedFile, LockedPart, LockedRows, Seen
from medtasks_ext.registry.metadata import TaskFacts
from medtasks_ext.rows.expressions import FILTERS
from medtasks_ext.rows.json_schema import card_schema, described, task_schema
from medtasks_ext.rows.spec import dataset_spec

_SPLITS = {"official": "the source's", "drawn": "drawn"}
#: heading -> models of `task.yaml` whose keys stand below it
_BLOCKS = {
    "rows": ("Source", "RowSchema", "Column", "Download", "Terms", "Exclusion", "Database"),
    "rows.original": ("Original", "Join", "RowsReader", "TableReader", "LinesReader", "TokensReader",
                      "BratReader", "CasReader", "InlineReader", "XmlReader", "SourceReader"),
    "prompt": ("Prompt", "TurnTemplate", "OwnLines"),
    "judge": ("Judging", "OfficialJury"),
    "official": ("OfficialPassage", "Passage", "OfficialAdapter", "OfficialEnvironment", "TextLocation"),
}  # fmt: skip


def pages(tasks: Registry) -> dict[str, str]:
    """File below the documentation -> its text."""
    return {"keys.md": _text(_keys(tasks)), "metric_names.md": _text(_metrics())}


def _text(lines: Iterator[str]) -> str:
    return "\n".join(lines) + "\n"


def _keys(tasks: Registry) -> Iterator[str]:
    task = task_schema()
    models = task["$defs"]
    top = described({"description": TaskFacts.__doc__, "properties": {}})["description"]
    yield from (
        "<!-- written by `medtasks dev build` from the models that read the files -->",
        "# Keys of the files that you write",
        "",
        "[Add a dataset](add_a_dataset.md) shows a task file and a suite,",
        "[judges](judges.md#a-jury-of-models) a jury. A key in **bold** is required.",
    )
    facts = {key: task["properties"][key] for key in TaskFacts.model_fields}
    required = TaskFacts.model_json_schema()["required"]
    yield from ("", "## Facts at the top of a task file")
    yield from _section({"description": top, "properties": facts, "required": required}, "")
    yield from (
        "",
        "## `card.yaml`",
        *_section(card_schema(), ""),
        *_section(models["SourceTerms"], "`SourceTerms`"),
    )
    yield from ("", "## `data.lock`", *_section(described(DataLock.model_json_schema()), ""))
    for model in (LockedFile, LockedDatabase, LockedRows, LockedPart, Seen):
        yield from _section(described(model.model_json_schema()), f"`{model.__name__}`")
    for block, names in _BLOCKS.items():
        yield from ("", f"## `{block}` of a task file")
        for name in [name for name in names if name in models]:  # some stand in the code of a suite
            yield from _section(models[name], f"`{name}`" if name != names[0] else "")
    yield from ("", "## `answer` of a task file", "")
    kinds = any_format().json_schema()["discriminator"]["mapping"]
    kinds = {kind: models[place.rpartition("/")[2]] for kind, place in sorted(kinds.items())}
    own = [suite for suite in tasks.suites.values() if suite.file.is_relative_to(tasks.root)]
    suites = {kind: ", ".join(suite.title for suite in own if kind in suite.answers) for kind in kinds}
    rows = (
        (f"`{kind}`", suites[kind] or "–", model["description"].partition(chr(10) * 2)[0])
        for kind, model in kinds.items()
    )
    yield from table(["kind", "suites", "an answer"], rows)
    for kind, model in kinds.items():
        yield from _section(model, f"`{kind}`", skip=("kind",))
    yield from ("", "## `suite.yaml`", *_section(described(Suite.model_json_schema()), ""))
    yield from ("", "## A jury file", *_section(described(Judge.model_json_schema()), "An entry of `judges`"))
    own_keys = set(Judge.model_fields)
    yield from _section(
        described(Adjudicator.model_json_schema()), "`adjudicator`: besides", skip=tuple(own_keys)
    )
    yield from ("", "## Filters of fields and templates", "")
    said = {f"`{name}`": (made.__doc__ or "").partition("Args:")[0] for name, made in FILTERS.items()}
    yield from table(
        ["filter", "makes"], ((name, text.partition("Raises:")[0]) for name, text in said.items())
    )
    yield from ("", "## Sources of which rows are made", *_sources(tasks))


def _section(model: Mapping[str, Any], title: str, *, skip: tuple[str, ...] = ()) -> Iterator[str]:
    """What a model says of itself, and a table of its keys."""
    yield from ("", f"### {title}") if title else ()
    yield from ("", model["description"])
    properties = {key: part for key, part in model.get("properties", {}).items() if key not in skip}
    if not properties:
        return
    names = {key: f"**`{key}`**" if key in model.get("required", ()) else f"`{key}`" for key in properties}
    rows = ((names[key], part.get("description", ""), _default(part)) for key, part in properties.items())
    yield from ("", *table(["key", "meaning", "default"], rows))


def _default(part: Mapping[str, Any]) -> str:
    default = part.get("default")
    plain = isinstance(default, str | int | float) and default != ""
    shown = str(default).lower() if isinstance(default, bool) else str(default).replace("\t", "\\t")
    return f"`{shown}`" if plain else ""


def _sources(tasks: Registry) -> Iterator[str]:
    rows = []
    for name, dataset in sorted(tasks.datasets.items()):
        if not dataset.folder.is_relative_to(tasks.root):
            continue
        layouts = dataset_spec(dataset).rows.original
        if layouts:
            files = " or ".join(", ".join(f"`{file}`" for file in layout.patterns) for layout in layouts)
            pinned = "yes" if dataset.blocks["rows"].get("download") else "no"
            rows.append((name, files, _SPLITS[layouts[0].split], pinned))
    yield from ("", *table(["task", "files", "test part", "pinned download"], rows))


def _metrics() -> Iterator[str]:
    yield from (
        "<!-- written by `medtasks dev build` from the glossary of the metrics -->",
        "# Metrics by name",
        "",
        "The modules of [medtasks_ext.metrics](../medtasks_ext/metrics/__init__.py) hold the rules and their",
        "sources.",
        "",
    )
    yield from table(["metric", "meaning"], ((f"`{name}`", text) for name, text in meanings().items()))
    yield from ("", "## How an answer is scored", "")
    yield from (f"- {cell(text)}" for text in rules())
