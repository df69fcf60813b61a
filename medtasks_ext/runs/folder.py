"""Where things lie in a run's folder, and what each file there held when the last call ended.

A call takes `RUN/sha256sums.txt` away when it begins and writes it when it ends: a folder without it is
interrupted. What somebody changed before a call, and the call did not write anew, keeps the hash that it had.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks_ext.atomic import atomic_file, check_all_regular, remove
from medtasks_ext.errors import MedtasksError, some
from medtasks_ext.jsonfile import read_json
from medtasks_ext.rows.remote import sha256_of
from medtasks_ext.runs.manifest import FILE
from medtasks_ext.runs.records import names_in, read_results, record_of, samples_beside

if TYPE_CHECKING:
    from medtasks_ext.runs.records import TaskRecord


class RunFolder:
    """Where things lie in a run's folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        #: whose responses the folder holds, and the state of every task; what makes it a run's folder
        self.manifest = path / FILE
        self.answers = path / "answers.jsonl"  # outcomes; those of other machines stand beside it
        self.judgements = path / "judgements"
        self.tasks = path / "tasks"  # what results of tasks stand on, in a form that is read at once

    def resampled_file(self, task: str) -> Path:
        """A task's score on each bootstrap resample."""
        return self.tasks / f"{task}.npy"

    def scores_file(self, task: str) -> Path:
        """What each document contributed to a task's score."""
        return self.tasks / f"{task}.parquet"

    @cached_property
    def results_file(self) -> Path:
        """All finished tasks and their groups, as lm-eval names and writes it; a folder has one."""
        content = read_json(self.manifest)
        started = content.get("started") if isinstance(content, dict) else None
        date = re.sub(r"[^\dT.-]", "-", str(started))
        return self.path / f"results_{date}.json"

    def samples_file(self, task: str) -> Path:
        return samples_beside(self.results_file, task)

    def judged_file(self, task: str) -> Path:
        """Scores that judges gave the documents of a task."""
        return self.judgements / f"{task}.json"

    def read_tasks(self) -> dict[str, TaskRecord]:
        """The results of the finished tasks; MedtasksError where the file is damaged."""
        content = read_results(self.results_file) if self.results_file.is_file() else {}
        return {name: record_of(content, name) for name in names_in(content)} if content else {}


SUMS = "sha256sums.txt"
#: What to do about files that were changed.
RESTORE = "bring them back from a copy; `medtasks rescore RUN` writes anew what follows from the answers"


def changed_in(folder: Path) -> list[str] | None:
    """Files, below a run's folder, that are others, gone or new since its last call; None: it did not end."""
    check_all_regular(folder)
    if (stated := _stated(folder)) is None:
        return None
    there = _there(folder)
    return [name for name in sorted({**stated, **there}) if stated.get(name) != there.get(name)]


def mark_of(changed: Sequence[str] | None) -> str:
    """What whoever reads the folder must know; empty where it is as a call left it."""
    if changed is None:
        return "interrupted: a call is under way, or was cut off"
    return f"changed since the run ended: {some(changed)}" if changed else ""


def refuse_changed(folder: Path) -> None:
    """Refuse to publish what a run did not write, or did not finish; what is no run's folder passes."""
    if (folder / FILE).is_file() and (mark := mark_of(changed := changed_in(folder))):
        raise MedtasksError(mark, where=folder, remedy=RESTORE if changed else "call the same command again")


@contextmanager
def hashed(folder: Path) -> Iterator[None]:
    """Within it, a run's folder changes; at its end the hashes are written."""
    stated = _stated(folder)
    before = {} if stated is None else _there(folder)
    remove(folder / SUMS)
    try:
        yield
    finally:
        if (folder / FILE).is_file():
            sums, stated = _there(folder), stated or {}
            for name in {**stated, **before}:
                if before.get(name) == sums.get(name):  # this call did not write it
                    sums[name] = stated.get(name, "")
            lines = (f"{of}  {name}\n" for name, of in sorted(sums.items()) if of and name != SUMS)
            # what ended the call says more than a fault here; the folder is interrupted
            with suppress(MedtasksError), atomic_file(folder / SUMS) as file:
                file.writelines(map(os.fsencode, lines))


def _stated(folder: Path) -> dict[str, str] | None:
    """File -> its hash when the last call ended; None where it did not end."""
    try:
        lines = (folder / SUMS).read_bytes().splitlines()
    except FileNotFoundError:
        return None
    found = dict[str, str]()
    for line in map(os.fsdecode, lines):
        digest, _, name = line.partition("  ")
        found[name if name and name not in found else SUMS] = digest  # else the file itself was changed
    return found


def _there(folder: Path) -> dict[str, str]:
    """File -> its hash now, empty where it cannot be read; without those that a dot hides, and the hashes."""
    found = dict[str, str]()
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if name != SUMS and "/." not in f"/{name}" and path.is_file():
            try:
                found[name] = sha256_of(path)
            except (OSError, MedtasksError):
                found[name] = ""
    return found
