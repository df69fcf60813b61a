"""The pages of the documentation that follow from code and data: commands, keys, metrics, columns, rooms.

python tools/docs.py            writes them into docs
python tools/docs.py --check    writes nothing; exit code 1 where one is stale
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path
from typing import Any

import typer

from medtasks_ext import registry as registry_room
from medtasks_ext.answers.formats import any_format
from medtasks_ext.cli.commands import panels
from medtasks_ext.cli.main import app
from medtasks_ext.judge.jury import Adjudicator, Judge
from medtasks_ext.markdown import cell, table
from medtasks_ext.metrics.glossary import meanings, rules
from medtasks_ext.registry import Registry, Suite
from medtasks_ext.registry.datalock import DataLock, LockedDatabase, LockedFile, LockedPart, LockedRows, Seen
from medtasks_ext.registry.folders import tasks_folder
from medtasks_ext.registry.metadata import TaskFacts
from medtasks_ext.registry.yamlfile import read_yaml
from medtasks_ext.results.conditions import NOT_OF_A_PAPER, RULES
from medtasks_ext.results.frames import FRAMES, ROW_OF, documented
from medtasks_ext.rows.expressions import FILTERS
from medtasks_ext.rows.json_schema import card_schema, described, task_schema
from medtasks_ext.rows.spec import dataset_spec
from medtasks_ext.runs.settings import LISTS, Effect, Setting

ROOT = Path(__file__).parents[1]
EXIT_CODES = {
    0: "done",
    1: "something failed, is missing or is not valid; what else was asked for is done",
    2: "bad input: one message says what, where and how to mend it",
    130: "interrupted; `run`, `judge` and `study contamination` go on with the same command",
}
#: Variables of the environment that commands read -> what they say.
VARIABLES = {
    "MEDTASKS_DATA_DIR": "folder with your own rows and carried downloads",
    "MEDTASKS_DATA": "one origin of rows: local, hub, release or sample (`--data`)",
    "MEDTASKS_CACHE": "folder of downloads and of what checks found, in place of `~/.cache/medtasks`",
    "MEDTASKS_TASKS": "folders with tasks and suites of your own, with `:` between them (`--tasks-dir`)",
    "MEDTASKS_PROMPTS": "the prompt wording: auto, official or own (`--prompts`)",
    "MEDTASKS_TRUSTED_HOSTS": "hosts and networks that may receive text that is not open",
    "MEDTASKS_KEYS": "which keys may go to which hosts: `VARIABLE@host`, with commas between",
    "MEDTASKS_TRUSTED_PACKAGES": "installed packages whose functions task files may name",
    "MEDTASKS_SHOW_TEXT": "1: messages quote rows",
    "MEDTASKS_BERTSCORE": "1: BERTScore is computed; needs the extra `bertscore`",
    "HF_HUB_OFFLINE": "1: nothing is downloaded",
}


def pages(tasks: Registry) -> dict[Path, str]:
    """File -> content."""
    folder = tasks.root.parent / "docs"
    made: dict[str, Iterable[str]] = {
        "commands.md": _commands(),
        "conditions.md": _conditions(tasks),
        "columns.md": _columns(),
        "glossary.md": _glossary(),
        "models.md": _models(ROOT / "model_configs"),
        "architecture.md": _architecture(ROOT),
        "keys.md": _keys(tasks),
        "metric_names.md": _metrics(),
    }
    return {folder / name: "\n".join(lines) + "\n" for name, lines in made.items()}


def _commands() -> list[str]:
    commands = dict(leaf_commands(typer.main.get_command(app), "medtasks"))
    lines = [
        "<!-- written by `python tools/docs.py` from the commands' own help -->",
        "# Commands",
        "",
        "`medtasks COMMAND --help` says the same. Results go to standard output, remarks and errors to",
        "standard error, so that output can be piped.",
        "",
        *table(["exit code", "meaning"], EXIT_CODES.items()),
        "",
        *table(["variable", "says"], ((f"`{name}`", meaning) for name, meaning in VARIABLES.items())),
    ]
    for panel, names in panels().items():
        listed = [
            (f"[`{name}`](#{_anchor(name)})", _paragraphs(item)[0])
            for name, item in commands.items()
            if name.split()[1] in names
        ]
        lines += ["", f"**{panel}**", "", *table(["command", "what it does"], listed)]
    for name, item in commands.items():
        lines += ["", *_command(name, item)]
    return lines


def leaf_commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """The commands that do something, with their full names."""
    if hasattr(command, "commands"):
        for part, item in command.commands.items():
            yield from leaf_commands(item, f"{name} {part}")
    else:
        yield name, command


def passes_flags_on(command: Any) -> bool:
    """Whether it takes lm-eval's own flags, which are not declared here."""
    return bool(command.context_settings.get("ignore_unknown_options"))


def _command(name: str, command: Any) -> list[str]:
    first, *others = _paragraphs(command)
    examples = [text for text in others if text.startswith("Example:")]
    codes = [text for text in others if text.startswith("Exit code")]
    plain = [text for text in others if text not in (*examples, *codes)]
    lines = [f"## {name}", "", " ".join([first, *plain]), ""]
    if passes_flags_on(command):
        lines += ["```", *own_help(command).rstrip().splitlines(), "```", ""]
        lines += [f"`{name} --help` lists lm-eval's flags besides.", ""]
    else:
        lines += ["```", _synopsis(name, command), "```", ""]
        lines += [f"- {_parameter(item)}" for item in command.params]
        lines += [""] if command.params else []
    for text in examples:
        lines += ["Example:", "", "```", text.removeprefix("Example:").strip(), "```", ""]
    lines += [f"{text}\n" for text in codes]
    return "\n".join(lines).rstrip("\n").splitlines()


def own_help(command: Any) -> str:
    """What a command that takes lm-eval's flags says of itself and of its own flags."""
    module = import_module(command.callback.__module__)
    said: str = module._DESCRIPTION
    return said


def _paragraphs(command: Any) -> list[str]:
    return [" ".join(part.split()) for part in (command.help or "").split("\n\n") if part.strip()]


def _synopsis(name: str, command: Any) -> str:
    words = [name]
    for item in command.params:
        if item.param_type_name == "argument":
            words.append(_shown(item) if item.required else f"[{_shown(item)}]")
        elif item.required:
            words.append(f"{item.opts[-1]} {_shown(item)}")
    optional = any(item.param_type_name == "option" and not item.required for item in command.params)
    return " ".join([*words, *(["[OPTIONS]"] if optional else [])])


def _parameter(item: Any) -> str:
    name = _shown(item)
    if item.param_type_name == "option":
        name = ", ".join(item.opts) + ("" if item.is_flag else f" {_shown(item)}")
    notes = []
    if item.param_type_name == "option" and item.required:
        notes.append("required")
    if item.param_type_name == "option" and item.multiple:
        notes.append("may be repeated")
    if item.default not in (None, False, (), []):
        notes.append(f"default: {item.default}")
    # several spaces stand before a default that is written by hand
    return f"`{name}`: {' '.join((item.help or '').split())}" + (f" ({'; '.join(notes)})" if notes else "")


def _shown(item: Any) -> str:
    """How a value is written: as declared, or by the parameter's name."""
    several = "..." if item.param_type_name == "argument" and item.nargs == -1 else ""
    return item.metavar or f"{item.name.upper()}{several}"


def _anchor(heading: str) -> str:
    return heading.lower().replace(" ", "-")


_HEAD = "<!-- written by `python tools/docs.py` from {source} -->"
#: Columns of the page of ready files: its title, and where the facts stand in a file.
_MODEL_COLUMNS = ("`--config`", "model", "reasons", "decoding", "context", "GPUs of 80 GB")


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
    terms = read_yaml(Path(registry_room.__file__).with_name("terms.yaml"))
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
    said = read_yaml(Path(registry_room.__file__).with_name("ready_files.yaml"))
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


def _keys(tasks: Registry) -> Iterator[str]:
    task = task_schema()
    models = task["$defs"]
    top = described({"description": TaskFacts.__doc__, "properties": {}})["description"]
    yield from (
        "<!-- written by `python tools/docs.py` from the models that read the files -->",
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
        "<!-- written by `python tools/docs.py` from the glossary of the metrics -->",
        "# Metrics by name",
        "",
        "The modules of [medtasks_ext.metrics](../medtasks_ext/metrics/__init__.py) hold the rules and their",
        "sources.",
        "",
    )
    yield from table(["metric", "meaning"], ((f"`{name}`", text) for name, text in meanings().items()))
    yield from ("", "## How an answer is scored", "")
    yield from (f"- {cell(text)}" for text in rules())


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit code 1 where a page is stale"
    )
    check = parser.parse_args().check
    made = pages(Registry(tasks_folder()))
    stale = [path for path, text in made.items() if not path.is_file() or path.read_text("utf-8") != text]
    for path in stale:
        if check:
            print(f"stale: {path.relative_to(ROOT)}: run `python tools/docs.py`")
        else:
            path.write_text(made[path], encoding="utf-8")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
