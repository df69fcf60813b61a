"""`medtasks dev`: checks of task files, and what is built of them."""

from __future__ import annotations

import logging
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from medtasks_ext.atomic import write_text
from medtasks_ext.cli.commands import out_option
from medtasks_ext.cli.tables import write
from medtasks_ext.cli.words import counted, say, say_next
from medtasks_ext.errors import MedtasksError
from medtasks_ext.process import collector_paused
from medtasks_ext.registry import Dataset, Registry, registry
from medtasks_ext.registry.build import build as build_folder
from medtasks_ext.registry.build import check_names
from medtasks_ext.registry.folders import CHECKOUT, INSTALLED, built_folder, is_checkout, tasks_folder
from medtasks_ext.registry.suites import SUITE_FILE
from medtasks_ext.registry.tasks import TASK_FILE

if TYPE_CHECKING:
    from medtasks_ext.data.declared import Check


def validate(
    names: Annotated[
        list[str] | None, Argument(help="Dataset ids or folders, or suites; by default all.")
    ] = None,
    static: Annotated[
        bool, Option("--static", help="Only read the files: import and render nothing that they name.")
    ] = False,
) -> int:
    """Check dataset folders.

    Schema, functions, prompts and sample rows; rows that are changed, to see that no prompt tells the gold
    answer; an oracle, other rows' answers, garbage; and the files of their suites.

    Example: medtasks dev validate medhelm_hospice_referral

    Example: medtasks dev validate --static downloads/their_dataset

    Exit code 1: a folder has problems.
    """
    from medtasks_ext.data.declared import DeclaredFolder, suite_faults
    from medtasks_ext.results.frames import axis_faults

    tasks = registry()
    suites = {file.parent.name: reason for file, reason in tasks.suite_faults.items()}
    for name, suite in tasks.suites.items():
        if faults := [*suite_faults(suite), *map(str, axis_faults(suite))]:
            suites[name] = "\n".join(faults)
    suites = {name: reason for name, reason in suites.items() if not names or name in names}
    for reason in suites.values():
        _say(f"✗ {reason}", "bold red")
    chosen = [*tasks.datasets.values(), *map(Dataset, tasks.broken)]
    if names:
        chosen = _chosen([name for name in names if name not in suites])
    folder, failed = DeclaredFolder, 0
    if not static:
        os.environ.setdefault("TQDM_DISABLE", "1")
        from medtasks_ext.runner.validate import RunFolder as folder  # noqa: N813

        logging.getLogger("lm_eval").setLevel(logging.ERROR)
    for dataset in chosen:
        checks = folder(tasks, dataset).checks()
        wrong = any(check.problems for check in checks)
        failed += wrong
        _print(dataset, checks, every=wrong or len(chosen) == 1)
    _say(f"{len(chosen) + len(suites)} checked, {failed + len(suites)} with problems")
    if len(chosen) == 1 and not failed and not suites:
        name = chosen[0].id
        say_next(f"medtasks dev validate {name}" if static else f"medtasks preview {name} --data sample")
    return 1 if failed or suites else 0


def _print(dataset: Dataset, checks: list[Check], *, every: bool) -> None:
    wrong = sum(len(check.problems) for check in checks)
    if wrong:
        suite, folder = dataset.folder.parent, dataset.folder
        name = f"{suite.name}_{folder.name}" if (suite / SUITE_FILE).is_file() else folder.name
        _say(f"✗ {name}: {counted(wrong, 'thing')} to mend in {folder}", "bold red")
    else:
        _say(f"✓ {dataset.id}", "green")
        if draft := dataset.metadata.draft:
            _say(f"  draft, in no group: {draft}", "yellow")
    for check in checks if every else ():
        if check.done:
            _say(f"  {'✗' if check.problems else '✓'} {check.what}", "red" if check.problems else "green")
        for problem in check.problems:
            _say(f"      {problem}")
    if waiting := sum(not check.done for check in checks):
        _say(f"  – {waiting} more points are looked at when this is mended", "dim")


def _chosen(names: list[str]) -> list[Dataset]:
    tasks, chosen = registry(), list[Dataset]()
    for name in names:
        folder, broken = Path(name), [item for item in map(Dataset, tasks.broken) if name in item.called]
        if (folder / TASK_FILE).is_file():
            chosen.append(Dataset(folder.resolve()))
        elif name in tasks.datasets:
            chosen += [tasks.datasets[name], *broken]  # a copy of its folder, with its name
        elif folder.is_dir():
            raise MedtasksError(f"no {TASK_FILE} in this folder", where=folder, remedy="see CONTRIBUTING.md")
        else:
            chosen += broken or [tasks.tasks[leaf][0] for leaf in tasks.leaves_of([name])]
    return list(dict.fromkeys(chosen))


def lock(
    names: Annotated[list[str], Argument(metavar="[NAME]...", help="Tasks or groups; all by default.")] = [],  # noqa: B006
    check: Annotated[bool, Option("--check", help="Write nothing; exit 1 if a version must rise.")] = False,
    data: Annotated[
        bool, Option("--data", help="Write each dataset's data.lock: what its public files hold.")
    ] = False,
) -> int:
    """Write tasks.lock: what scores follow from.

    Where prompts, readings or scores of sample rows changed and the version's number did not, nothing is
    written, and the task is named.

    With --data, files that are not here are fetched and read, and `data.lock` says what they hold: the commit
    of a branch, digests, sizes and hosts, numbers of rows, and a hash of open rows. Other content is refused
    from then on.

    Example: medtasks dev lock --check

    Example: medtasks dev lock --data medhelm_live_sct_bench

    Exit code 1: a task changed without a new version.
    """
    from medtasks_ext.runner.proof import LOCK_FILE, broken, lock_of, lock_text, read_lock

    if data:
        return _pin(names)
    tasks = Registry(tasks_folder())  # tasks of one's own have no lock
    own = is_checkout() and tasks.root == CHECKOUT / "tasks"
    path = (CHECKOUT if own else tasks.root) / LOCK_FILE
    old = read_lock(path)
    chosen = set(tasks.leaves_of(names) if names else tasks.tasks)
    datasets = {tasks.tasks[name][0].id: tasks.tasks[name][0] for name in chosen}
    new = {name: lock_of(tasks, dataset, old.get(name)) for name, dataset in sorted(datasets.items())}
    faults = [(name, what) for name in new.keys() & old.keys() for what in broken(old[name], new[name])]
    for name, what in sorted(faults):
        later = f"{old[name].number + 1}-A"
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
    write_text(path, lock_text(kept | new))
    typer.echo(f"{path}: {len(new)} datasets")
    say_next("make lint")
    return 0


def _pin(names: list[str]) -> int:
    from medtasks_ext.data.rowlock import pin
    from medtasks_ext.registry.datalock import LOCK_FILE as DATA_LOCK

    if not names:
        raise MedtasksError("no dataset is named", where="--data", remedy="name datasets or groups")
    known = registry()
    for dataset in dict.fromkeys(known.known(name)[0] for name in known.leaves_of(names)):
        typer.echo(f"{dataset.folder / DATA_LOCK}: {'written' if pin(dataset) else 'nothing new'}")
    say_next("medtasks data fetch TASK")
    return 0


_say = partial(write, whole=True)


def build(
    check: Annotated[bool, Option("--check", help="Read all task files and write nothing.")] = False,
) -> int:
    """Build the tasks for lm_eval, and print their folder.

    Variants and groups. The folder is for --include_path.

    Example: lm_eval --include_path "$(medtasks dev build)" --tasks bridge_mie --model vllm --model_args
    pretrained=ORG/MODEL --batch_size auto
    """
    tasks = registry()
    check_names(tasks)
    if check:
        return 0
    folder = built_folder()
    typer.echo(folder)
    if folder == INSTALLED:  # built when the package was made
        return 0
    changed = build_folder(tasks, folder)
    n_groups = len(list(folder.glob("groups/*.yaml")))
    names = f"{len(list(folder.rglob('*.yaml'))) - n_groups} tasks, {n_groups} groups"
    say(f"{names} for lm-eval ({len(changed)} files changed)")
    return 0


def site(
    out: Annotated[str, out_option("Folder to write; one of an earlier site is replaced.")],
    submissions: Annotated[
        str | None,
        Option(
            help="Folder with ORG/MODEL/DATE, for a leaderboard of only these; by default those in "
            "results/submissions, beside models that the suites' papers print."
        ),
    ] = None,
) -> int:
    """Build the static leaderboard.

    Published and submitted models on all suites and axes, a page for each model and dataset. The pages open
    as files, too, and load nothing from elsewhere. Every submission is checked: its answers are scored again.
    What is not proven has no rank.

    Example: medtasks dev site -o build/leaderboard

    Exit code 1: a submission could not be read or does not follow, and is named.
    """
    from medtasks_ext.report.site.boards import gather_site
    from medtasks_ext.report.site.write import write_site

    folder = Path(submissions or "results/submissions")
    if submissions and not folder.is_dir():
        raise MedtasksError("no such folder", where=folder, remedy="name the folder of submissions")
    with collector_paused():
        found = gather_site(registry(), folder if folder.is_dir() else None, published=submissions is None)
        write_site(Path(out), found)
    for fault in found.faults:
        say(f"left out: {fault}")
    own = sum(not line.published for line in found.lines)
    lines = f"{counted(len(found.lines) - own, 'published result')}, {counted(own, 'submission')}"
    typer.echo(f"{lines}, {counted(len(found.models), 'model page')}")
    say_next(f"open {Path(out) / 'index.html'}")
    return 1 if found.faults else 0
