"""Pages of the documentation that follow from the code: the commands, the keys of files, the metrics."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import typer

from medtasks_ext.markdown import table
from medtasks_ext.registry import Registry
from medtasks_ext.registry.folders import own_folders

PAGE = "docs/commands.md"
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
    """The pages that stand beside the folder of the tasks.

    Returns:
        File -> content; nothing where the tasks lie in no checkout, or where there are tasks of one's own:
        the pages are the project's, and other axes and suites do not belong there.
    """
    from medtasks_ext.cli import reference_facts, reference_keys

    folder = tasks.root.parent
    if own_folders() or not (folder / PAGE).is_file():
        return {}
    others = {**reference_keys.pages(tasks), **reference_facts.pages(tasks)}
    return {
        folder / PAGE: _page(),
        **{(folder / PAGE).with_name(name): text for name, text in others.items()},
    }


def _page() -> str:
    from medtasks_ext.cli.commands import panels
    from medtasks_ext.cli.main import app

    commands = dict(leaf_commands(typer.main.get_command(app), "medtasks"))
    lines = [
        "<!-- written by `medtasks dev build` from the commands' own help -->",
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
        lines += ["", *_section(name, item)]
    return "\n".join(lines) + "\n"


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


def _section(name: str, command: Any) -> list[str]:
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
