"""`medtasks doctor`: is the installation sound?"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import shutil
import stat
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import typer

from medtasks_ext.cli.words import counted, say_next
from medtasks_ext.errors import MedtasksError, some
from medtasks_ext.registry import Registry, registry
from medtasks_ext.registry.build import built_files, check_names, stale
from medtasks_ext.registry.folders import FROM_INSTALLED, cache_dir, is_checkout, tasks_folder
from medtasks_ext.registry.groups import check_suites
from medtasks_ext.registry.suites import NO_SUITE
from medtasks_ext.rows.folders import data_dir

SUPPORTED = ((0, 4, 13), (0, 5))
MARKS = {True: "✓", False: "✗", None: "·"}


def doctor() -> int:
    """Check the installation.

    lm-eval, copies of the tasks, names, data folder, engines, Punkt data, BERTScore, disk, permissions.

    Example: medtasks doctor

    Exit code 1: something needs attention.
    """
    checks = [*_lm_eval(), _copy(), *_tasks(), *_data()]
    for sound, text in checks:
        typer.echo(f"{MARKS[sound]} {text}")
    wrong = any(sound is False for sound, _ in checks)
    say_next("mend what ✗ names, and call medtasks doctor again" if wrong else "medtasks plan ORG/MODEL")
    return int(wrong)


def _lm_eval() -> list[Check]:
    try:
        installed = importlib.metadata.version("lm-eval")
    except importlib.metadata.PackageNotFoundError:
        return [bad("lm-eval is not installed", "pip install 'lm-eval>=0.4.13,<0.5'")]
    parts = tuple(int(part) for part in installed.split(".")[:3] if part.isdigit())
    supported = SUPPORTED[0] <= parts < SUPPORTED[1]
    checks: list[Check] = [(supported, f"lm-eval {installed} (supported: 0.4.13 up to, not including, 0.5)")]
    if _editable("lm-eval"):
        checks.append(
            bad(
                "lm-eval is installed editable: `lm_eval --tasks …` does not find medtasks",
                'add --include_path "$(medtasks dev path)", or use `medtasks run`',
            )
        )
    spec = importlib.util.find_spec("lm_eval")
    if spec is None or spec.origin is None:
        checks.append(
            bad(
                "lm_eval is shadowed by a folder without code",
                "reinstall lm-eval in an environment of its own",
            )
        )
    return checks


def _editable(distribution: str) -> bool:
    text = importlib.metadata.distribution(distribution).read_text("direct_url.json")
    return bool(text and json.loads(text).get("dir_info", {}).get("editable"))


def installed_copy() -> Path | None:
    """The copy of the tasks that lm-eval's own scan finds, or None."""
    spec = importlib.util.find_spec("lm_eval")
    for root in (spec.submodule_search_locations or []) if spec else []:
        folder = Path(root) / "tasks" / "medtasks"
        if folder.is_dir():
            return folder
    return None


def _layered() -> bool:
    """Whether the copy was installed, but beside another folder than the one lm-eval is imported from."""
    try:
        files = importlib.metadata.files("medtasks") or []
    except importlib.metadata.PackageNotFoundError:  # imported from a folder, not installed
        return False
    copies = (path.locate() for path in files if path.parts[:3] == ("lm_eval", "tasks", "medtasks"))
    return any(Path(copy).exists() for copy in copies)


def _copy() -> Check:
    copy = installed_copy()
    include = 'add --include_path "$(medtasks dev path)"'
    if copy is None and _layered():
        return bad(
            "lm-eval lies in another layer of this environment, where its scan does not find the tasks",
            f"install lm-eval into this environment, too, or {include}",
        )
    if copy is None:
        return bad("lm-eval's scan finds no tasks of medtasks", f"pip install medtasks, or {include}")
    try:
        expected = built_files(Registry(tasks_folder()), tasks=None if is_checkout() else FROM_INSTALLED)
    except MedtasksError:  # of a folder of one's own, too: cards are read with its words
        return bad(
            "whether the copy inside lm-eval is stale cannot be told", "mend first what is named below"
        )
    if old := stale(expected, copy):
        return bad(f"the copy inside lm-eval is stale ({some(old, 3)})", f"pip install again, or {include}")
    return True, f"`lm_eval --tasks …` finds the tasks in {copy}"


def _tasks() -> list[Check]:
    checks: list[Check] = []
    try:
        tasks = registry()
        if not (checks := _broken(tasks)):
            check_suites(tasks)
            check_names(tasks)
    except MedtasksError as error:
        return [*checks, (False, str(error))]
    n_own = sum(map(tasks.is_own, tasks.datasets.values()))
    counts = f"{len(tasks.datasets) - n_own} datasets in {tasks.root}"
    return [
        *checks,
        (True, f"{counts}; {len(tasks.tasks)} tasks and {len(tasks.groups)} groups in all"),
        *((True, _own(tasks, folder)) for folder in tasks.own),
    ]


def _broken(tasks: Registry) -> list[Check]:
    """Task files that cannot be read; a fault of a suite's file is said once."""
    reasons = (
        reason if str(folder.parent) in reason else f"{folder}: {reason}"
        for folder, reason in tasks.broken.items()
    )
    return [(False, reason) for reason in dict.fromkeys(reasons)]


def _own(tasks: Registry, folder: Path) -> str:
    """What there is in a folder of one's own, and how lm-eval is told."""
    suites = Counter(
        item.suite.id for item in tasks.datasets.values() if folder in (item.folder, *item.folder.parents)
    )
    held = [
        f"{counted(n, 'dataset')} of {'no suite' if suite == NO_SUITE else f'the suite {suite}'}"
        for suite, n in suites.items()
    ]
    held += [
        f"the suite {suite.id} with {counted(len(suite.of_others), 'dataset')} of others"
        for suite in tasks.suites.values()
        if suite.of_others and folder in suite.file.parents
    ]
    return (
        f"tasks of your own in {folder}: {', '.join(held) or 'none that can be read'}; plain lm-eval finds"
        ' them with --include_path "$(medtasks dev path)"'
    )


def _data() -> list[Check]:
    try:
        folder = data_dir()
    except MedtasksError as error:
        return [(False, str(error)), *surroundings(None)]
    named = f"data folder: {folder}" if folder else "MEDTASKS_DATA_DIR is not set: public downloads only"
    return [(True, named), *surroundings(folder)]


# ---------------------------------------------------------------------- the machine around


#: sound?, or None for what may well be so; what was found
Check: TypeAlias = "tuple[bool | None, str]"

LEAST_FREE = 2 * 2**30  # bytes: responses of a run, and a small download


def bad(text: str, remedy: str) -> Check:
    """What needs attention, and what to do."""
    return False, f"{text} → {remedy}"


def surroundings(data: Path | None) -> Iterator[Check]:
    """Look at what is outside the package.

    Args:
        data: the user's data folder.
    """
    yield _engines()
    yield _punkt()
    yield _bertscore()
    yield from _disk()
    if data:
        yield _permissions(data)


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _engines() -> Check:
    found = [f"{name} {version}" for name in ("vllm", "transformers") if (version := _version(name))]
    # what lm-eval's extra `api` adds
    if _version("tenacity") and importlib.util.find_spec("tiktoken"):
        found.append("OpenAI-compatible servers")
    if not found:
        return None, "no engine for models → pip install 'medtasks[vllm]', [hf] or [api]"
    return True, f"engines: {', '.join(found)}"


def _punkt() -> Check:
    from nltk.data import find

    missing = []
    for language in ("english", "french"):
        try:
            find(f"tokenizers/punkt_tab/{language}/")
        except LookupError:
            missing.append(language)
    if not missing:
        return True, "NLTK's Punkt data is here"
    return None, (
        f"NLTK's Punkt data is missing ({', '.join(missing)}): English BLEU and French ROUGE are left out"
        " → python -m nltk.downloader punkt_tab"
    )


def _bertscore() -> Check:
    installed = bool(importlib.util.find_spec("bert_score"))
    if os.environ.get("MEDTASKS_BERTSCORE") == "1":
        if not installed:
            return bad("BERTScore is switched on but not installed", "pip install 'medtasks[bertscore]'")
        return True, "BERTScore is switched on"
    state = "installed and switched off" if installed else "not installed"
    return None, f"BERTScore is {state}; no score needs it"


def _disk() -> Iterator[Check]:
    places = {"this folder": Path.cwd(), "the cache": cache_dir()}
    for name, folder in places.items():
        existing = next(path for path in (folder, *folder.parents) if path.is_dir())
        if not os.access(existing, os.W_OK):
            yield bad(f"{name} cannot be written: {folder}", _remedy(name))
            continue
        free = shutil.disk_usage(existing).free
        if free < LEAST_FREE:
            yield bad(f"{free / 2**30:.1f} GB are free in {name}: {folder}", _remedy(name))
    yield True, f"{shutil.disk_usage(Path.cwd()).free / 2**30:,.0f} GB are free here"


def _remedy(name: str) -> str:
    return "set MEDTASKS_CACHE to another folder" if name == "the cache" else "work in another folder"


def _permissions(data: Path) -> Check:
    if os.name == "posix" and data.stat().st_mode & (stat.S_IROTH | stat.S_IXOTH):
        return None, (
            f"every user of this machine can read {data}; if it holds data that is not open"
            f" → chmod -R o-rwx {data}"
        )
    return True, "other users of this machine cannot read the data folder"
