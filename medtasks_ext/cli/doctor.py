"""`medtasks doctor`: is the installation sound?"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
from collections import Counter
from pathlib import Path

import typer

from medtasks_ext.cli.surroundings import Check, surroundings
from medtasks_ext.cli.surroundings import bad as _bad
from medtasks_ext.cli.words import counted, say_next
from medtasks_ext.errors import MedtasksError, some
from medtasks_ext.registry import Registry, registry
from medtasks_ext.registry.build import built_files, check_names, stale
from medtasks_ext.registry.folders import FROM_INSTALLED, is_checkout, tasks_folder
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
        return [_bad("lm-eval is not installed", "pip install 'lm-eval>=0.4.13,<0.5'")]
    parts = tuple(int(part) for part in installed.split(".")[:3] if part.isdigit())
    supported = SUPPORTED[0] <= parts < SUPPORTED[1]
    checks: list[Check] = [(supported, f"lm-eval {installed} (supported: 0.4.13 up to, not including, 0.5)")]
    if _editable("lm-eval"):
        checks.append(
            _bad(
                "lm-eval is installed editable: `lm_eval --tasks …` does not find medtasks",
                'add --include_path "$(medtasks dev path)", or use `medtasks run`',
            )
        )
    spec = importlib.util.find_spec("lm_eval")
    if spec is None or spec.origin is None:
        checks.append(
            _bad(
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
        return _bad(
            "lm-eval lies in another layer of this environment, where its scan does not find the tasks",
            f"install lm-eval into this environment, too, or {include}",
        )
    if copy is None:
        return _bad("lm-eval's scan finds no tasks of medtasks", f"pip install medtasks, or {include}")
    try:
        expected = built_files(Registry(tasks_folder()), tasks=None if is_checkout() else FROM_INSTALLED)
    except MedtasksError:  # of a folder of one's own, too: cards are read with its words
        return _bad(
            "whether the copy inside lm-eval is stale cannot be told", "mend first what is named below"
        )
    if old := stale(expected, copy):
        return _bad(f"the copy inside lm-eval is stale ({some(old, 3)})", f"pip install again, or {include}")
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
