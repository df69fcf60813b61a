"""`medtasks dev path`."""

from __future__ import annotations

from typing import Annotated

import typer

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry
from medtasks_ext.registry.build import build
from medtasks_ext.registry.folders import INSTALLED, built_folder


def path(
    task: Annotated[str, typer.Argument(metavar="[TASK]", help="Print the file of this task.")] = "",
) -> None:
    """Print the folder of the tasks for lm-eval's --include_path.

    With a task's name: the file that a person wrote, for `include:` in a file of your own.

    Example: lm_eval --include_path "$(medtasks dev path)" --tasks bridge_mie --model vllm --model_args
    pretrained=ORG/MODEL --batch_size auto
    """
    tasks = registry()
    if task:
        (name,) = tasks.resolve([task])
        if name not in tasks.tasks:
            raise MedtasksError(f"{name!r} is a group", remedy="name one task")
        typer.echo(tasks.tasks[name][0].file)
        return
    folder = built_folder()
    if folder != INSTALLED:
        build(tasks, folder)
    typer.echo(folder)
