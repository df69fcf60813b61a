"""`medtasks cite`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from medtasks_ext.cli.words import say
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import Dataset, Registry, registry
from medtasks_ext.registry.citations import BESIDE, CITATIONS_FILE, cited_by, entries_of
from medtasks_ext.registry.rights import restrictions
from medtasks_ext.runs.manifest import Manifest


def cite(
    names: Annotated[
        list[str], typer.Argument(metavar="NAME...", help="Tasks, groups, tags, or folders of runs.")
    ],
) -> int:
    """Print the BibTeX of what was used.

    The sources of the datasets, their suites, lm-eval and medtasks.

    Example: medtasks cite runs/MODEL > references.bib
    """
    tasks = registry()
    datasets = _datasets(names, tasks)
    suites = [tasks.suites[name] for name in names if name in tasks.suites]
    entries, used = entries_of(datasets, suites), cited_by(datasets, suites)
    for key, of in used.items():
        if key not in entries:
            raise MedtasksError(
                f"no BibTeX entry {key!r}, the source of {of[0]}",
                where=CITATIONS_FILE,
                remedy=f"add the entry there or to {BESIDE} beside the task, or correct `citation` there",
            )
    typer.echo("\n\n".join(f"% {', '.join(of)}\n{entries[key].text}" for key, of in used.items()))
    if terms := restrictions((item.id, item.metadata.licence) for item in datasets):
        say(terms)
    doubtful = [key for key in used if entries[key].unverified]
    say(f"{len(used)} entries" + (f"; check before use: {', '.join(doubtful)}" if doubtful else ""))
    return 0


def _datasets(names: list[str], tasks: Registry) -> list[Dataset]:
    """The datasets behind names; the folder of a run stands for its tasks."""
    wanted: dict[str, None] = {}
    for name in names:
        path = Path(name)
        is_run = path.is_dir() or len(path.parts) > 1
        found = list(Manifest.read(path).tasks) if is_run else [name]
        for leaves in tasks.resolve(found).values():
            wanted.update(dict.fromkeys(leaves))
    return list({tasks.tasks[leaf][0].id: tasks.tasks[leaf][0] for leaf in wanted}.values())
