"""`medtasks validate`."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import typer

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import Dataset, registry


def validate_command(names: list[str]) -> int:
    """Validate datasets given by id or folder (all by default); returns the exit code."""
    os.environ.setdefault("TQDM_DISABLE", "1")
    from medtasks_ext.runner.validate import validate_dataset

    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    tasks = registry()
    chosen = _chosen(names) if names else list(tasks.datasets.values())
    failed = 0
    for folder, reason in tasks.broken.items():
        if not names:
            failed += 1
            typer.echo(f"✗ {folder.name}\n    {reason}")
    for dataset in chosen:
        problems = validate_dataset(tasks, dataset)
        failed += bool(problems)
        name = dataset.folder.name if problems else dataset.id
        typer.echo(f"{'✗' if problems else '✓'} {name}" + "".join(f"\n    {line}" for line in problems))
    typer.echo(f"{len(chosen)} checked, {failed} with problems")
    return 1 if failed else 0


def _chosen(names: list[str]) -> list[Dataset]:
    tasks = registry()
    chosen = []
    for name in names:
        folder = Path(name)
        if (folder / "zero_shot.yaml").is_file():
            chosen.append(Dataset(folder.resolve()))
        elif name in tasks.datasets:
            chosen.append(tasks.datasets[name])
        elif folder.is_dir():
            raise MedtasksError(
                "no zero_shot.yaml in this folder", where=folder, remedy="see CONTRIBUTING.md"
            )
        else:
            tasks.resolve([name])  # names what is near
            chosen.extend(tasks.tasks[leaf][0] for leaf in tasks.leaves(name))
    return list(dict.fromkeys(chosen))
