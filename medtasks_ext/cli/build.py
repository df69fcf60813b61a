"""`medtasks dev build`: files that follow from what people write."""

from __future__ import annotations

from typing import Annotated

import typer

from medtasks_ext.cli.words import say
from medtasks_ext.registry import registry
from medtasks_ext.registry.build import build as build_folder
from medtasks_ext.registry.build import check_names
from medtasks_ext.registry.folders import INSTALLED, built_folder

#: Beside the folder of the tasks that lm-eval indexes.
SCHEMA, CARD_SCHEMA = "schema.json", "card_schema.json"


def build(
    check: Annotated[bool, typer.Option("--check", help="Read all task files and write nothing.")] = False,
) -> int:
    """Build the tasks for lm_eval, and print their folder.

    Variants and groups, and in a checkout the schemas for editors. The folder is for --include_path.

    Example: lm_eval --include_path "$(medtasks dev build)" --tasks bridge_mie --model vllm --model_args
    pretrained=ORG/MODEL --batch_size auto
    """
    from medtasks_ext.rows.json_schema import card_schema, schema_text, task_schema

    tasks = registry()
    check_names(tasks)
    if check:
        return 0
    folder = built_folder()
    typer.echo(folder)
    if folder == INSTALLED:  # built when the package was made
        return 0
    changed = build_folder(tasks, folder)
    files = {
        folder.with_name(SCHEMA): schema_text(task_schema()),
        folder.with_name(CARD_SCHEMA): schema_text(card_schema()),
    }
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    n_groups = len(list(folder.glob("groups/*.yaml")))
    names = f"{len(list(folder.rglob('*.yaml'))) - n_groups} tasks, {n_groups} groups"
    say(f"{names} for lm-eval ({len(changed)} files changed)")
    say(f"{folder.with_name(SCHEMA)}, {CARD_SCHEMA}: for editors")
    return 0
