"""The one process that writes to a run's folder."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from medtasks_ext.atomic import check_all_regular, checked, folder_for_files
from medtasks_ext.errors import MedtasksError
from medtasks_ext.run.lock import DEAD
from medtasks_ext.run.store import Answers
from medtasks_ext.runs.sums import hashed


@contextmanager
def working_in(folder: Path, command: str, *, private: bool = False) -> Iterator[Answers]:
    """Within it, this process alone writes to a run's folder; at its end the hashes are written.

    A process that has lost the folder writes nothing more.

    `command`: for the message that others get. `private`: the folder is made its owner's alone, since it gets
    text that is not open.
    """
    check_all_regular(folder)
    with folder_for_files(folder, private=private):
        answers = Answers(folder, command=command)
        try:
            with checked(folder, answers.held.check):
                _remove_parts(folder)
                with hashed(folder):
                    try:
                        yield answers
                    finally:
                        with suppress(MedtasksError):  # what ended the call says it
                            answers.flush()
        finally:
            answers.close()


def _remove_parts(folder: Path) -> None:
    """Remove what killed processes left half written; what somebody may be writing stays."""
    with suppress(OSError):
        for path in folder.rglob(".*.part"):
            if time.time() - path.stat().st_mtime > DEAD:
                path.unlink()
