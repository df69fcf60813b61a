"""The pages of the documentation that follow from code and data: commands, keys, metrics, columns, rooms.

python tools/docs.py            writes them into docs
python tools/docs.py --check    writes nothing; exit code 1 where one is stale

`tools/pages` has a template for each page, with all words that stand still.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from graphlib import TopologicalSorter
from importlib import import_module
from math import prod
from pathlib import Path
from typing import Any

import typer
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from medtasks_ext import registry as registry_room
from medtasks_ext.answers.formats import any_format
from medtasks_ext.cli.commands import panels
from medtasks_ext.cli.main import app
from medtasks_ext.judge.jury import Adjudicator, Judge
from medtasks_ext.metrics import meanings, rules
from medtasks_ext.registry import Registry, Suite
from medtasks_ext.registry.datalock import DataLock, LockedDatabase, LockedFile, LockedPart, LockedRows, Seen
from medtasks_ext.registry.folders import tasks_folder
from medtasks_ext.registry.functions import function_named
from medtasks_ext.registry.metadata import Card, TaskFacts
from medtasks_ext.results.conditions import HARMLESS, NOT_OF_A_PAPER, RULES
from medtasks_ext.results.frames import DECLARED, FRAMES, names_of
from medtasks_ext.rows.expressions import FILTERS
from medtasks_ext.rows.spec import DatasetSpec, dataset_spec
from medtasks_ext.runs.settings import LISTS, Effect, Setting
from medtasks_ext.strict import read_yaml
from medtasks_ext.tables import cell, table

Facts = dict[str, Any]
ROOT = Path(__file__).parents[1]
EXIT_CODES = {
    0: "done",
    1: "something failed, is missing or is not valid; what else was asked for is done",
    2: "bad input: one message says what, where and how to mend it",
    130: "interrupted; `run`, `judge` and `study contamination` go on with the same command",
}
#: Variables of the environment that commands read -> what they say.
VARIABLES = {
    "MEDTASKS_DATA_DIR": "folder with your own rows and carried downloads; else `./medtasks_data`",
    "MEDTASKS_DATA": "one origin of rows: local, hub, release or sample (`--data`)",
    "MEDTASKS_CACHE": "folder of downloads and of what checks found, in place of `~/.cache/medtasks`",
    "MEDTASKS_TASKS": "folders with tasks and suites of your own, with `:` between them",
    "MEDTASKS_TRUSTED_HOSTS": "hosts and networks that may receive text that is not open",
    "MEDTASKS_KEYS": "which keys may go to which hosts: `VARIABLE@host`, with commas between",
    "MEDTASKS_SHOW_TEXT": "1: messages quote rows",
    "MEDTASKS_BERTSCORE": "1: BERTScore is computed; needs the extra `bertscore`",
}
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
    Effect.ROUNDS: "only rounding",
    Effect.MODEL: "names another model",
    Effect.DRAWS: "moves a score where answers are drawn",
    Effect.MOVES: "moves a score",
}
_WITH_US = "installed with medtasks"
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
_MODELS = {"suite": Suite, "judge": Judge, "adjudicator": Adjudicator}


def _columns(frame: str) -> list[str]:
    def listed(said: str) -> str:
        return ", ".join(f"`{name.partition(':')[0]}`" for name in names_of(said))

    return [f"| {listed(said)} | {meaning} |" for said, meaning in FRAMES[frame]]


def pages(tasks: Registry) -> dict[Path, str]:
    """File -> content."""
    made = {
        "commands": _commands(),
        "conditions": _conditions(tasks),
        "columns": {"frames": [(name, DECLARED[name]["row"], _columns(name)) for name in FRAMES]},
        "glossary": {"words": [(f"**{word}**", said) for word, said in sorted(_said("terms").items())]},
        "models": _models(ROOT / "model_configs"),
        "architecture": _architecture(ROOT),
        "keys": _keys(tasks),
        "metric_names": {"metrics": meanings(), "rules": map(cell, rules())},
    }
    folder = tasks.root.parent / "docs"
    return {folder / f"{name}.md": _rendered(name, facts) for name, facts in made.items()}


def _rendered(name: str, facts: Mapping[str, Any]) -> str:
    templates = Environment(
        loader=FileSystemLoader(ROOT / "tools" / "pages"), undefined=StrictUndefined, trim_blocks=True
    )
    templates.globals |= {"table": lambda head, rows: "\n".join(table(head, rows)), "coded": _coded}
    text = templates.get_template(f"{name}.jinja").render(facts)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def _coded(meaning: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(f"`{name}`", said) for name, said in meaning.items()]


def _said(name: str) -> dict[str, str]:
    said: dict[str, str] = read_yaml(Path(registry_room.__file__).with_name(f"{name}.yaml"))
    return said


def _own(tasks: Registry) -> dict[str, Any]:
    """The datasets of the repository, by name."""
    every = sorted(tasks.datasets.items())
    return {name: dataset for name, dataset in every if dataset.folder.is_relative_to(tasks.root)}


# ---------------------------------------------------------------------- commands


def _commands() -> Facts:
    commands, of = [_command(*item) for item in leaf_commands()], {}
    for panel, names in panels().items():
        rows = [item for item in commands if item["name"].split()[1] in names]
        of[panel] = [
            (f"[`{item['name']}`](#{item['name'].replace(' ', '-')})", item["words"][0]) for item in rows
        ]
    return {"exit_codes": EXIT_CODES, "variables": VARIABLES, "panels": of, "commands": commands}


def leaf_commands(command: Any = None, name: str = "medtasks") -> Iterator[tuple[str, Any]]:
    """The commands that do something, with their full names."""
    command = command or typer.main.get_command(app)
    if hasattr(command, "commands"):
        for part in command.commands:
            yield from leaf_commands(command.get_command(None, part), f"{name} {part}")
    else:
        yield name, command


def passes_flags_on(command: Any) -> bool:
    """Whether it takes lm-eval's own flags, which are not declared here."""
    return bool(command.context_settings.get("ignore_unknown_options"))


def own_help(command: Any) -> str:
    """What a command that takes lm-eval's flags says of itself and of its own flags."""
    function = command.callback
    said: str = getattr(import_module(function.__module__), f"_{function.__name__.upper()}")
    return said


def _command(name: str, command: Any) -> Facts:
    texts = [" ".join(part.split()) for part in (command.help or "").split("\n\n") if part.strip()]
    examples, codes = (
        [text for text in texts if text.startswith(mark)] for mark in ("Example:", "Exit code")
    )
    lm_eval = passes_flags_on(command)
    return {
        "name": name,
        "words": [text for text in texts if text not in (*examples, *codes)],
        "examples": [text.removeprefix("Example:").strip() for text in examples],
        "codes": codes,
        "lm_eval": lm_eval,
        "form": own_help(command).rstrip() if lm_eval else _synopsis(name, command.params),
        "parameters": [] if lm_eval else map(_parameter, command.params),
    }


def _synopsis(name: str, parameters: Iterable[Any]) -> str:
    words, options = [name], [item for item in parameters if item.param_type_name == "option"]
    for item in parameters:
        if item in options and item.required:
            words.append(f"{item.opts[-1]} {_shown(item)}")
        elif item not in options:
            words.append(_shown(item) if item.required else f"[{_shown(item)}]")
    return " ".join([*words, *(["[OPTIONS]"] if any(not item.required for item in options) else [])])


def _parameter(item: Any) -> str:
    name, notes = _shown(item), []
    if item.param_type_name == "option":
        name = ", ".join(item.opts) + ("" if item.is_flag else f" {name}")
        notes = ["required"] * item.required + ["may be repeated"] * item.multiple
    if item.default not in (None, False, (), []):
        notes.append(f"default: {item.default}")
    # several spaces stand before a default that is written by hand
    return f"`{name}`: {' '.join((item.help or '').split())}" + (f" ({'; '.join(notes)})" if notes else "")


def _shown(item: Any) -> str:
    """How a value is written: as declared, or by the parameter's name."""
    several = "..." if item.param_type_name == "argument" and item.nargs == -1 else ""
    return item.metavar or f"{item.name.upper()}{several}"


# ---------------------------------------------------------------------- conditions, ready files


def _conditions(tasks: Registry) -> Facts:
    clusters = {name: dataset.blocks["rows"].get("cluster") for name, dataset in _own(tasks).items()}
    return {
        "rules": [
            (
                title + (" (papers have none)" if field in NOT_OF_A_PAPER else ""),
                f"`{field}`",
                "no" if field in HARMLESS else "yes",
                why,
            )
            for field, (title, why) in RULES.items()
        ],
        "settings": {_PLACES[place]: map(_setting, lines) for place, lines in LISTS.items()},
        "clusters": [(f"`{name}`", f"`{cluster}`") for name, cluster in clusters.items() if cluster],
        "files": [
            (suite.title, f"`{item.file}`", item.revision, item.package or item.url or _WITH_US)
            for suite in tasks.suites.values()
            if suite.official and suite.file.is_relative_to(tasks.root)
            for item in suite.official.artefacts.values()
        ],
    }


def _setting(line: Setting) -> tuple[str, ...]:
    names = ", ".join(f"`{name}`" for name in line.names)
    values = ", ".join(f"`{value!r}`" for value in line.values) if line.effect is not Effect.HARMLESS else ""
    return names, _EFFECTS[line.effect], line.why, values


def _models(folder: Path) -> Facts:
    keys, parts = _said("ready_files").items(), {"Open models": "open", "APIs": "api"}
    files = {
        title: sorted((folder / part).glob("*.yaml"), key=lambda path: path.stem.lower())
        for title, part in parts.items()
    }
    return {
        "keys": [(", ".join(f"`{part}`" for part in name.split(", ")), said) for name, said in keys],
        "parts": {title: map(_model, paths) for title, paths in files.items()},
    }


def _model(path: Path) -> list[str]:
    said: Mapping[str, Any] = read_yaml(path)
    arguments, about = said["model_args"], said.get("metadata", {})
    served = re.findall(r"(?:tensor|pipeline|data)-parallel-size (\d+)", about.get("serve", ""))
    gpus = prod(map(int, [arguments.get("tensor_parallel_size", 1), *served]))
    return [
        f"`{path.stem}`",
        str(arguments.get("pretrained") or arguments.get("model")),
        {True: "yes", False: "no"}.get(about.get("thinking"), "–"),
        str(about.get("decoding", "–")),
        str(arguments.get("max_model_len") or arguments.get("max_length") or "–"),
        str(gpus) if path.parent.name == "open" else "–",
    ]


# ---------------------------------------------------------------------- what packages and modules say


def _architecture(folder: Path) -> Facts:
    inits = sorted((folder / "medtasks_ext").glob("*/__init__.py"))
    imports = {path.parent.name: _rooms_imported(path.parent) for path in inits}
    imports = {room: own & imports.keys() for room, own in imports.items()}
    order = TopologicalSorter({room: sorted(own) for room, own in imports.items()}).static_order()
    rows = []
    for room in reversed([*order]):
        holds = _docstring(folder / "medtasks_ext" / room / "__init__.py").split("\n\n")[0]
        rows.append((f"`{room}`", holds, ", ".join(f"`{name}`" for name in sorted(imports[room]))))
    return {"about": _docstring(folder / "medtasks_ext" / "__init__.py"), "rooms": rows}


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
    modules = []
    for package in sorted((folder / "medtasks_ext").rglob("__init__.py")):
        others = sorted(path for path in package.parent.glob("*.py") if path != package)
        for file, path, level in [(package, package.parent, "##"), *((it, it, "###") for it in others)]:
            said = _docstring(file)
            if said and (file == package or "\n\n" in said):
                # columns of a text, or lines of code, stay as they stand
                laid = r"^ {2,}\S|\S {3,}\S"
                parts = [
                    (re.search(laid, part, flags=re.MULTILINE) and "\n- " not in part, part)
                    for part in said.split("\n\n")
                ]
                modules.append((level, ".".join(path.relative_to(folder).with_suffix("").parts), parts))
    return _rendered("internals", {"modules": modules})


# ---------------------------------------------------------------------- keys


def _keys(tasks: Registry) -> Facts:
    # what `official` says besides, where suites have code for their words
    codes = {suite.official.adapters.code for suite in tasks.suites.values()
             if suite.official and suite.official.adapters}  # fmt: skip
    blocks = [function_named(code).Block for code in sorted(codes)]
    answers = any_format().json_schema()
    schemas = [answers, *(model.model_json_schema() for model in (DatasetSpec, Card, *blocks))]
    models = {name: part for made in schemas for name, part in made.get("$defs", {}).items()}
    models |= {schema["title"]: schema for schema in schemas if "title" in schema}
    models["Database"]["required"].remove("revision")  # the lock has it
    mapping = answers["discriminator"]["mapping"]
    kinds = {kind: models[place.rpartition("/")[2]] for kind, place in sorted(mapping.items())}
    own = [suite for suite in tasks.suites.values() if suite.file.is_relative_to(tasks.root)]
    suites = {kind: ", ".join(suite.title for suite in own if kind in suite.answers) for kind in kinds}
    of = {name: model.model_json_schema() for name, model in _MODELS.items()}
    lock = (DataLock, LockedFile, LockedDatabase, LockedRows, LockedPart, Seen)
    filters = {name: (made.__doc__ or "").partition("Args:")[0] for name, made in FILTERS.items()}
    return {
        **of,
        "facts": TaskFacts.model_json_schema(),
        "card": Card.model_json_schema(),
        "models": models,
        "lock": [{**model.model_json_schema(), "title": model.__name__} for model in lock],
        "blocks": _BLOCKS,
        "kinds": kinds,
        "answers": [
            (f"`{kind}`", suites[kind] or "–", model["description"].partition("\n\n")[0])
            for kind, model in kinds.items()
        ],
        "filters": _coded({name: text.partition("Raises:")[0] for name, text in filters.items()}),
        "sources": list(_sources(tasks)),
        "keys_of": _keys_of,
    }


def _keys_of(model: Mapping[str, Any], skip: Iterable[str]) -> list[tuple[str, str, str]]:
    """Of a model's schema: key, what it says, its default."""
    rows = []
    for key, part in model.get("properties", {}).items():
        if key not in skip:
            name = f"**`{key}`**" if key in model.get("required", ()) else f"`{key}`"
            rows.append((name, part.get("description", ""), _default(part.get("default"))))
    return rows


def _default(default: Any) -> str:
    plain = isinstance(default, str | int | float) and default != ""
    shown = str(default).lower() if isinstance(default, bool) else str(default).replace("\t", "\\t")
    return f"`{shown}`" if plain else ""


def _sources(tasks: Registry) -> Iterator[tuple[str, ...]]:
    for name, dataset in _own(tasks).items():
        if layouts := dataset_spec(dataset).rows.original:
            files = " or ".join(", ".join(f"`{file}`" for file in layout.patterns) for layout in layouts)
            pinned = "yes" if dataset.blocks["rows"].get("download") else "no"
            yield name, files, _SPLITS[layouts[0].split], pinned


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
