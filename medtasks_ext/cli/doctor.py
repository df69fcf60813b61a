"""`medtasks doctor`: is the installation sound?"""

from __future__ import annotations

import filecmp
import importlib.metadata
import importlib.util
import json
from pathlib import Path

import typer

from medtasks_ext.data.sources import data_dir
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry
from medtasks_ext.registry.sync import changes, check_names

SUPPORTED = ((0, 4, 13), (0, 5))


def doctor_command() -> int:
    """Print what was checked; returns 1 if anything needs attention."""
    checks = [*_lm_eval(), *_copy(), *_tasks(), *_data()]
    for good, text in checks:
        typer.echo(f"{'✓' if good else '✗'} {text}")
    return 0 if all(good for good, _ in checks) else 1


def _lm_eval() -> list[tuple[bool, str]]:
    try:
        installed = importlib.metadata.version("lm-eval")
    except importlib.metadata.PackageNotFoundError:
        return [(False, "lm-eval is not installed → pip install 'lm-eval>=0.4.13,<0.5'")]
    parts = tuple(int(part) for part in installed.split(".")[:3] if part.isdigit())
    checks = [
        (SUPPORTED[0] <= parts < SUPPORTED[1], f"lm-eval {installed} (supported: 0.4.13 up to, not including, 0.5)")
    ]
    if _editable("lm-eval"):
        checks.append(
            (False, "lm-eval is installed editable: `lm_eval --tasks …` does not find medtasks → "
             "add --include_path \"$(medtasks path)\", or use `medtasks run`")
        )
    spec = importlib.util.find_spec("lm_eval")
    if spec is None or spec.origin is None:
        checks.append(
            (False, "lm_eval is shadowed by a folder without its code → reinstall lm-eval in an environment of its own")
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


def _copy() -> list[tuple[bool, str]]:
    copy, own = installed_copy(), registry().root
    if copy is None:
        return [
            (False, f"lm-eval's scan finds no tasks of medtasks → pip install medtasks, or add --include_path {own}")
        ]
    if stale := [str(path.relative_to(own)) for path in _files(own) if not _same(path, copy / path.relative_to(own))]:
        more = f" and {len(stale) - 3} more" if len(stale) > 3 else ""
        return [
            (False, f"the copy inside lm-eval is stale ({', '.join(stale[:3])}{more}) → pip install again, "
             f"or add --include_path {own}")
        ]
    return [(True, f"`lm_eval --tasks …` finds the tasks in {copy}")]


def _files(root: Path) -> list[Path]:
    return [path for path in sorted(root.rglob("*")) if path.suffix in (".yaml", ".jsonl")]


def _same(one: Path, other: Path) -> bool:
    return other.is_file() and filecmp.cmp(one, other, shallow=False)


def _tasks() -> list[tuple[bool, str]]:
    tasks = registry()
    checks = [(False, f"{folder}: {reason}") for folder, reason in tasks.broken.items()]
    try:
        check_names(tasks)
        pending = changes(tasks)
    except MedtasksError as error:
        return [*checks, (False, str(error))]
    if pending:
        checks.append((False, f"{len(pending)} derived files are stale → medtasks sync"))
    return [*checks, (True, f"{len(tasks.datasets)} datasets, {len(tasks.tasks)} tasks, {len(tasks.groups)} groups in {tasks.root}")]


def _data() -> list[tuple[bool, str]]:
    try:
        folder = data_dir()
    except MedtasksError as error:
        return [(False, str(error))]
    return [(True, f"data folder: {folder}" if folder else "MEDTASKS_DATA_DIR is not set: public downloads only")]
