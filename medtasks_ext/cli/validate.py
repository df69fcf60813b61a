"""`medtasks dev validate`."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from medtasks_ext.cli.tables import console
from medtasks_ext.cli.words import say_next
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import Dataset, registry
from medtasks_ext.registry.suites import SUITE_FILE
from medtasks_ext.registry.tasks import TASK_FILE

if TYPE_CHECKING:
    from medtasks_ext.data.declared import Check, DeclaredFolder


def validate(
    names: Annotated[list[str] | None, typer.Argument(help="Dataset ids or folders; all by default.")] = None,
    static: Annotated[
        bool, typer.Option("--static", help="Only read the files: import and render nothing that they name.")
    ] = False,
    official: Annotated[
        bool, typer.Option("--official", help="Prove that official prompts equal the suite's own, by hash.")
    ] = False,
) -> int:
    """Check dataset folders.

    Schema, functions, prompts and sample rows; rows that are changed, to see that no prompt tells the gold
    answer; an oracle, other rows' answers, garbage; and the files of their suites.

    With --official, of suites: the sample rows are rendered, and hashes of whole message lists, budgets and
    stop sequences are compared with the suite's own.

    Example: medtasks dev validate medhelm_hospice_referral

    Example: medtasks dev validate --static downloads/their_dataset

    Exit code 1: a folder has problems.
    """
    if official:
        from medtasks_ext.cli.official import prove_official

        return prove_official(names or [])
    from medtasks_ext.data.declared import DeclaredFolder, suite_faults
    from medtasks_ext.results.frames import axis_faults

    tasks = registry()
    suites = {file.parent.name: reason for file, reason in tasks.suite_faults.items()}
    suites = {name: reason for name, reason in suites.items() if not names or name in names}
    for name, suite in tasks.suites.items():
        if (not names or name in names) and (faults := [*suite_faults(suite), *map(str, axis_faults(suite))]):
            suites[name] = "\n".join(faults)
    for reason in suites.values():
        _say(f"✗ {reason}", "bold red")
    named = [name for name in names or [] if name not in suites]
    chosen = _chosen(named) if names else [*tasks.datasets.values(), *map(Dataset, tasks.broken)]
    folder, failed = DeclaredFolder if static else _running(), 0
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


def _running() -> type[DeclaredFolder]:
    os.environ.setdefault("TQDM_DISABLE", "1")
    from medtasks_ext.runner.validate import RunFolder

    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    return RunFolder


def _print(dataset: Dataset, checks: list[Check], *, every: bool) -> None:
    wrong = sum(len(check.problems) for check in checks)
    if not wrong:
        _say(f"✓ {dataset.id}", "green")
        if draft := dataset.metadata.draft:
            _say(f"  draft, in no group: {draft}", "yellow")
    else:
        name = _name(dataset.folder)
        _say(f"✗ {name}: {wrong} thing{'s' if wrong > 1 else ''} to mend in {dataset.folder}", "bold red")
    for check in checks if every else ():
        if check.done:
            _say(f"  {'✗' if check.problems else '✓'} {check.what}", "red" if check.problems else "green")
        for problem in check.problems:
            _say(f"      {problem}")
    if waiting := sum(not check.done for check in checks):
        _say(f"  – {waiting} more points are looked at when this is mended", "dim")


def _say(line: str, style: str = "") -> None:
    console().print(Text(line, style), soft_wrap=True)


def _chosen(names: list[str]) -> list[Dataset]:
    tasks = registry()
    chosen = []
    for name in names:
        folder = Path(name)
        if (folder / TASK_FILE).is_file():
            chosen.append(Dataset(folder.resolve()))
        elif name in tasks.datasets:
            chosen += [tasks.datasets[name], *_broken(name)]  # a copy of its folder, with its name
        elif folder.is_dir():
            raise MedtasksError(f"no {TASK_FILE} in this folder", where=folder, remedy="see CONTRIBUTING.md")
        else:
            chosen.extend(_broken(name) or [tasks.tasks[leaf][0] for leaf in _leaves(name)])
    return list(dict.fromkeys(chosen))


def _broken(name: str) -> list[Dataset]:
    """The dataset of that name, if its file cannot be read: then only its folder is known."""
    return [item for item in map(Dataset, registry().broken) if name in item.called]


def _name(folder: Path) -> str:
    in_suite = (folder.parent / SUITE_FILE).is_file()
    return f"{folder.parent.name}_{folder.name}" if in_suite else folder.name


def _leaves(name: str) -> list[str]:
    return registry().leaves_of([name])
