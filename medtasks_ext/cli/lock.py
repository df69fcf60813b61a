"""`medtasks dev lock`: did what scores follow from change without a new version?"""

from __future__ import annotations

from typing import Annotated

import typer

from medtasks_ext.atomic import atomic_file
from medtasks_ext.cli.words import say, say_next
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import Registry
from medtasks_ext.registry.folders import CHECKOUT, is_checkout, tasks_folder
from medtasks_ext.runner.lock import LOCK_FILE, broken, lock_of, lock_text, merged, read_lock


def lock(
    names: Annotated[
        list[str], typer.Argument(metavar="[NAME]...", help="Tasks or groups; all by default.")
    ] = [],  # noqa: B006
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit 1 if a version must rise.")
    ] = False,
    data: Annotated[
        bool, typer.Option("--data", help="Write each dataset's data.lock: what its public files hold.")
    ] = False,
) -> int:
    """Write tasks.lock: what scores follow from.

    Where prompts, readings or scores of sample rows changed and the version's number did not, nothing is
    written, and the task is named. Of two lines of a dataset, as a merge leaves them, the newest is kept.

    With --data, files that are not here are fetched and read, and `data.lock` says what they hold: the commit
    of a branch, digests, sizes and hosts, and numbers of rows; for open data the hash of each document stands
    in `documents.lock`. Other content is refused from then on.

    Example: medtasks dev lock --check

    Example: medtasks dev lock --data medhelm_live_sct_bench

    Exit code 1: a task changed without a new version.
    """
    if data:
        return _pin(names)
    tasks = Registry(tasks_folder())  # tasks of one's own have no lock
    own = is_checkout() and tasks.root == CHECKOUT / "tasks"
    path = (CHECKOUT if own else tasks.root) / LOCK_FILE
    old = read_lock(path, newest=not check)
    chosen = set(tasks.leaves_of(names) if names else tasks.tasks)
    datasets = {tasks.tasks[name][0].id: tasks.tasks[name][0] for name in chosen}
    new = {name: lock_of(tasks, dataset) for name, dataset in sorted(datasets.items())}
    faults = [
        (name, what) for name, locked in new.items() if name in old for what in broken(old[name], locked)
    ]
    for name, what in faults:
        later = f"{int(old[name].number) + 1}-A"
        say(
            f"{name}: {what} changed, and the version is still {new[name].version} → undo the change, or"
            f" write `version: {later}` in task.yaml, name it in CHANGELOG.md, and run `medtasks dev lock`"
        )
    if faults:
        return 1
    if check:
        typer.echo(f"{len(new)} datasets agree with {path.name}")
        return 0
    kept = {name: locked for name, locked in old.items() if name in tasks.datasets}
    text = lock_text(kept | {name: merged(old.get(name), locked) for name, locked in new.items()})
    with atomic_file(path) as file:
        file.write(text.encode())
    typer.echo(f"{path}: {len(new)} datasets")
    say_next("make lint")
    return 0


def _pin(names: list[str]) -> int:
    from medtasks_ext.data.pins import pin
    from medtasks_ext.registry import registry
    from medtasks_ext.registry.datalock import LOCK_FILE as DATA_LOCK

    if not names:
        raise MedtasksError("no dataset is named", where="--data", remedy="name datasets or groups")
    known = registry()
    for dataset in dict.fromkeys(known.known(name)[0] for name in known.leaves_of(names)):
        new = pin(dataset)
        typer.echo(f"{dataset.folder / DATA_LOCK}: " + ("; ".join(new) or "nothing new"))
    say_next("medtasks data fetch TASK")
    return 0
