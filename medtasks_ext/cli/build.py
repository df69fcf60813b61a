"""`medtasks build` and `medtasks path`: files that follow from what people write."""

from __future__ import annotations

from pathlib import Path

import typer

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry
from medtasks_ext.registry.build import build
from medtasks_ext.registry.folders import INSTALLED, built_folder

#: Beside the folder of the tasks that lm-eval indexes.
SCHEMA, CATALOGUE = "schema.json", "catalogue"


def build_command(*, check: bool) -> int:
    """Bring what follows from task files up to date; returns the exit code.

    Args:
        check: only say whether the page of the commands, which is kept in git, is stale.
    """
    from medtasks_ext.cli import reference
    from medtasks_ext.registry import catalogue
    from medtasks_ext.rows.json_schema import schema_text

    tasks = registry()
    page = reference.page(tasks.root)
    stale = [path for path, text in page.items() if path.read_text(encoding="utf-8") != text]
    if check:
        for path in stale:
            typer.echo(f"stale: {path}: run `medtasks build`")
        return int(bool(stale))
    folder = built_folder()
    if folder == INSTALLED:
        raise MedtasksError(
            "an installed package was built already", where=folder, remedy="build in a checkout, or own tasks"
        )
    changed = build(tasks, folder)
    files = {folder.with_name(SCHEMA): schema_text()}
    files |= {folder.with_name(CATALOGUE) / name: text for name, text in catalogue.pages(tasks).items()}
    for path, text in {**files, **page}.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    n_groups = len(list(folder.glob("groups/*.yaml")))
    names = f"{len(list(folder.rglob('*.yaml'))) - n_groups} tasks, {n_groups} groups"
    typer.echo(f"{folder}: {names} for lm-eval ({len(changed)} files changed)")
    typer.echo(f"{folder.with_name(SCHEMA)}: for editors")
    typer.echo(f"{folder.with_name(CATALOGUE) / 'README.md'}: every dataset with its facts")
    return 0


def path_command(task: str = "") -> Path:
    """The folder that lm-eval can index, brought up to date; of one task, the file that a person wrote.

    Raises:
        MedtasksError: there is no such task.
    """
    tasks = registry()
    if task:
        (name,) = tasks.resolve([task])
        if name not in tasks.tasks:
            raise MedtasksError(f"{name!r} is a group", remedy="name one task")
        return tasks.tasks[name][0].file
    folder = built_folder()
    if folder != INSTALLED:
        build(tasks, folder)
    return folder
