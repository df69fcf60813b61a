"""Pages of facts that the code holds: columns, terms, ready files, rooms, modules.

Each page is made of the data, or of the docstrings, that it shows.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

from medtasks_ext import registry
from medtasks_ext.markdown import table
from medtasks_ext.registry import Registry
from medtasks_ext.registry.yamlfile import read_yaml
from medtasks_ext.results.conditions import NOT_OF_A_PAPER, RULES
from medtasks_ext.results.frames import FRAMES, ROW_OF, documented
from medtasks_ext.runs.settings import LISTS, Effect, Setting

_HEAD = "<!-- written by `medtasks dev build` from {source} -->"
#: Columns of the page of ready files: its title, and where the facts stand in a file.
_MODEL_COLUMNS = ("`--config`", "model", "reasons", "decoding", "context", "GPUs of 80 GB")


def pages(tasks: Registry) -> dict[str, str]:
    """File below the documentation -> its text."""
    folder = tasks.root.parent
    made = {
        "conditions.md": _conditions(tasks),
        "columns.md": _columns(),
        "glossary.md": _glossary(),
        "models.md": _models(folder / "model_configs"),
        "architecture.md": _architecture(Path(__file__).parents[2]),
    }
    return {name: "\n".join(lines) + "\n" for name, lines in made.items()}


def _columns() -> Iterator[str]:
    yield from (
        _HEAD.format(source="the schemas of the frames"),
        "# Columns",
        "",
        "Every table that medtasks writes or prints has the columns of one of these frames. In Python,",
        "`medtasks_ext.results.frames.schema(NAME)` gives each as an Arrow schema. In CSV and Parquet,",
        "several values are joined by `;`, and empty is unknown.",
    )
    for frame in FRAMES:
        yield from ("", f"## `{frame}`", "", ROW_OF[frame], "", "| columns | meaning |", "| --- | --- |")
        yield from documented(frame)


#: Place of a setting -> how readers know it.
_PLACES = {
    "generation": "Settings of generation (`--gen_kwargs`)",
    "model": "Arguments of models and engines (`--model_args`)",
    "flag": "Flags of lm-eval",
    "template": "What a chat template is given (`chat_template_args`)",
}
_EFFECTS = {
    Effect.HARMLESS: "nothing",
    Effect.SAID: "recorded as a condition of its own",
    Effect.CLOSE: "rounding: close",
    Effect.MODEL: "names another model: close",
    Effect.DRAWS: "moves a score where answers are drawn",
    Effect.MOVES: "moves a score: other",
}


def _conditions(tasks: Registry) -> Iterator[str]:
    yield from (
        _HEAD.format(source="the rules of conditions and the list of settings"),
        "# Conditions and settings",
        "",
        "[Compare](compare.md) says what follows. A condition that nobody recorded makes results *close*. A",
        "setting that no line below names makes them *other*, whatever it does; only one whose name is that",
        "of a login (`header`, `api_key`, `auth_token`) is recorded nowhere.",
        "",
        "## Conditions",
        "",
    )
    rules = (
        (
            rule.title + (" (papers have none)" if rule.field in NOT_OF_A_PAPER else ""),
            f"`{rule.field}`",
            "other" if rule.moves else "close",
            rule.why,
        )
        for rule in RULES
    )
    yield from table(["condition", "field", "a difference makes", "why"], rules)
    for place, lines in LISTS.items():
        yield from ("", f"## {_PLACES[place]}", "")
        yield from table(["setting", "it can do", "why", "harmless values"], map(_setting, lines))
    yield from (
        "",
        "## Questions that share a text",
        "",
        "Rows of one cluster are drawn together for intervals and tests.",
        "",
    )
    yield from table(["dataset", "cluster"], _clusters(tasks))
    yield from (
        "",
        "## Released files of official words",
        "",
        "`medtasks prompts fetch` gets them and compares their hashes. A text of a paper is made by you.",
        "",
    )
    files = (
        (suite.title, f"`{item.file}`", item.revision, item.package or item.url or item.how or _WITH_US)
        for suite in tasks.suites.values()
        if suite.official and suite.file.is_relative_to(tasks.root)
        for item in suite.official.artefacts.values()
    )
    yield from table(["suite", "file", "version", "from"], files)


_WITH_US = "installed with medtasks"


def _clusters(tasks: Registry) -> Iterator[tuple[str, str]]:
    for name, dataset in sorted(tasks.datasets.items()):
        if dataset.folder.is_relative_to(tasks.root) and (cluster := dataset.blocks["rows"].get("cluster")):
            yield f"`{name}`", f"`{cluster}`"


def _setting(line: Setting) -> tuple[str, ...]:
    names = ", ".join(f"`{name}`" for name in line.names)
    values = ", ".join(f"`{value!r}`" for value in line.values) if line.effect is not Effect.HARMLESS else ""
    return names, _EFFECTS[line.effect], line.why, values


def _glossary() -> Iterator[str]:
    yield from (
        _HEAD.format(source="medtasks_ext/registry/terms.yaml"),
        "# Glossary",
        "",
        "Words that medtasks uses in a meaning of its own.",
        "",
    )
    terms = read_yaml(Path(registry.__file__).with_name("terms.yaml"))
    yield from table(
        ["word", "meaning"], ((f"**{word}**", meaning) for word, meaning in sorted(terms.items()))
    )


# ---------------------------------------------------------------------- ready files


def _models(folder: Path) -> Iterator[str]:
    yield from (
        _HEAD.format(source="the files in model_configs"),
        "# Ready files of models",
        "",
        "`medtasks run --config NAME` takes one by its name, `lm_eval --config` by its path.",
        "[model_configs](../model_configs/README.md) says how a file is changed.",
        "",
        "## Keys",
        "",
    )
    said = read_yaml(Path(registry.__file__).with_name("ready_files.yaml"))
    keys = {", ".join(f"`{part}`" for part in name.split(", ")): meaning for name, meaning in said.items()}
    yield from table(["key", "what the files hold"], keys.items())
    for title, part in (("Open models", "open"), ("APIs", "api")):
        files = sorted((folder / part).glob("*.yaml"), key=lambda path: path.stem.lower())
        yield from ("", f"## {title}", "", *table(_MODEL_COLUMNS, map(_model, files)))


def _model(path: Path) -> list[str]:
    said: Mapping[str, Any] = read_yaml(path)
    arguments, about = said["model_args"], said.get("metadata", {})
    served = re.findall(r"(?:tensor|pipeline|data)-parallel-size (\d+)", about.get("serve", ""))
    gpus = int(arguments.get("tensor_parallel_size", 1))
    for number in served:
        gpus *= int(number)
    context = arguments.get("max_model_len") or arguments.get("max_length") or "–"
    return [
        f"`{path.stem}`",
        str(arguments.get("pretrained") or arguments.get("model")),
        {True: "yes", False: "no"}.get(about.get("thinking"), "–"),
        str(about.get("decoding", "–")),
        str(context),
        str(gpus) if path.parent.name == "open" else "–",
    ]


# ---------------------------------------------------------------------- what packages and modules say


def _architecture(folder: Path) -> Iterator[str]:
    yield from (_HEAD.format(source="the package's docstrings and imports"), "# Architecture", "")
    yield _docstring(folder / "medtasks_ext" / "__init__.py")
    inits = sorted((folder / "medtasks_ext").glob("*/__init__.py"))
    imports = {path.parent.name: _rooms_imported(path.parent) for path in inits}
    order = TopologicalSorter({room: sorted(own & imports.keys()) for room, own in imports.items()})
    yield from ("", "## Rooms", "", "Each room comes before all that it imports.", "")
    rows = []
    for room in reversed([*order.static_order()]):
        holds = _docstring(folder / "medtasks_ext" / room / "__init__.py").split("\n\n")[0]
        names = ", ".join(f"`{name}`" for name in sorted(imports[room] & imports.keys()))
        rows.append((f"`{room}`", holds, names))
    yield from table(["room", "holds", "imports"], rows)


def _rooms_imported(room: Path) -> set[str]:
    """Names below the package of `room` that its modules import, also inside functions and for types."""
    package, own = room.parent.name, room.name
    dotted = [
        name
        for path in room.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (module := node.module or "").split(".")[0] == package
        for name in ([f"{module}.{alias.name}" for alias in node.names] if module == package else [module])
    ]
    return {name.split(".")[1] for name in dotted} - {own}


def _docstring(file: Path) -> str:
    return ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""


def internals(folder: Path) -> str:
    """What packages and modules of the checkout in `folder` say of themselves, as a page of the site."""
    return "\n".join(_internals(folder)) + "\n"


def _internals(folder: Path) -> Iterator[str]:
    yield from (
        "# How it works",
        "",
        "What packages and modules say of themselves: rules of readers and metrics with their sources,",
        "statistics, what a run's folder holds. A module stands here if it says more than its first line.",
    )
    for package in sorted((folder / "medtasks_ext").rglob("__init__.py")):
        modules = sorted(path for path in package.parent.glob("*.py") if path != package)
        yield from _said(package, _dotted(folder, package.parent), "##", always=True)
        for module in modules:
            yield from _said(module, _dotted(folder, module.with_suffix("")), "###", always=False)


def _dotted(folder: Path, path: Path) -> str:
    return ".".join(path.relative_to(folder).parts)


def _said(file: Path, name: str, level: str, *, always: bool) -> Iterator[str]:
    said = _docstring(file)
    paragraphs = said.split("\n\n")
    if not said or (len(paragraphs) == 1 and not always):
        return
    yield from ("", f"{level} {name}")
    for paragraph in paragraphs:
        # columns of a text, or lines of code: as they stand
        laid_out = re.search(r"^ {2,}\S|\S {3,}\S", paragraph, flags=re.MULTILINE) and "\n- " not in paragraph
        yield from ("", *(("```", paragraph, "```") if laid_out else (paragraph,)))
