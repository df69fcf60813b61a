"""Where things lie in a run's folder, and what each file there held when the last call ended.

A call takes `RUN/sha256sums.txt` away when it begins and writes it when it ends: a folder without it is
interrupted. What somebody changed before a call, and the call did not write anew, keeps the hash that it had.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
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

_NO_DATE = re.compile(r"[^\dT.-]")


@dataclass(frozen=True)
class RunFolder:
    path: Path

    @property
    def manifest(self) -> Path:
        """Whose responses the folder holds, and the state of every task; what makes it a run's folder."""
        return self.path / FILE

    @property
    def answers(self) -> Path:
        """Outcomes; those of other machines stand beside it."""
        return self.path / "answers.jsonl"

    @property
    def judgements(self) -> Path:
        return self.path / "judgements"

    @cached_property
    def tasks(self) -> Path:
        """What results of tasks stand on, in a form that is read at once."""
        return self.path / "tasks"

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
        return self.path / f"results_{_NO_DATE.sub('-', str(started))}.json"

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


@dataclass(frozen=True, slots=True)
class FolderState:
    """How a run's folder stands against its hashes."""

    interrupted: bool = False  # whether a call is under way, or was cut off
    changed: tuple[str, ...] = ()  # files, below the folder, that are others, gone or new since the last call

    @property
    def mark(self) -> str:
        """What whoever reads the folder must know; empty where it is as a call left it."""
        if self.changed:
            return f"changed since the run ended: {some(self.changed)}"
        return "interrupted: a call is under way, or was cut off" if self.interrupted else ""


def state_of(folder: Path) -> FolderState:
    """Hold a run's folder against its hashes. Every file is read."""
    check_all_regular(folder)
    if (stated := _stated(folder)) is None:
        return FolderState(interrupted=True)
    there = _there(folder)
    names = sorted(stated.keys() | there.keys())
    return FolderState(changed=tuple(name for name in names if stated.get(name) != there.get(name)))


def refuse_changed(folder: Path) -> None:
    """Refuse to publish what a run did not write, or did not finish; what is no run's folder passes."""
    if (folder / FILE).is_file() and (state := state_of(folder)).mark:
        remedy = "call the same command again" if state.interrupted else RESTORE
        raise MedtasksError(state.mark, where=folder, remedy=remedy)


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
            sums = _there(folder)
            if stated is not None:
                for name in (stated.keys() | before.keys()) - {SUMS}:
                    if before.get(name) == sums.get(name):  # this call did not write it
                        sums[name] = stated.get(name, "")
            lines = (f"{of}  {name}\n" for name, of in sorted(sums.items()) if of and "\n" not in name)
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
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name[0] != "."]
        for path in (Path(place, name) for name in names if name[0] != "."):
            try:
                found[path.relative_to(folder).as_posix()] = sha256_of(path)
            except FileNotFoundError:  # gone meanwhile
                continue
            except (OSError, MedtasksError):
                found[path.relative_to(folder).as_posix()] = ""
    found.pop(SUMS, None)
    return found
