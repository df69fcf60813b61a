"""The outcomes of a run's folder by task and document, and the one process that writes there."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from medtasks_ext.atomic import check_all_regular, checked, folder_for_files
from medtasks_ext.engines.records import Fault
from medtasks_ext.errors import MedtasksError
from medtasks_ext.run.lock import DEAD
from medtasks_ext.run.store import Answers, Row, Unsettled, outcome_of
from medtasks_ext.runs.sums import hashed


class Asked(NamedTuple):
    """What a document was asked last."""

    key: str
    cut: str  # of its prompt, as `AskedPrompt.cut`


class Outcomes(Answers):
    """Answers that know whose they are.

    Attributes:
        asked: task -> document -> its last question that was answered, or went into a file of a batch.
        faults: key of a request without an answer -> its last fault.
        out: key of a request that went into a file of a batch, and did not come back -> the file.
        unsettled: what calls that were killed may have spent.
    """

    def __init__(self, folder: Path, *, write: bool = True, command: str = "another process") -> None:
        self.asked: dict[str, dict[str, Asked]] = {}
        self.faults: dict[str, Fault] = {}
        self.out: dict[str, str] = {}
        self.unsettled = Unsettled()
        super().__init__(folder, write=write, command=command, see=self._take_note)

    def _take_note(self, row: Row) -> None:
        key, kind = row["key"], row["outcome"]
        if kind in ("answer", "question"):
            self.asked.setdefault(row["task"], {})[row["document"]] = Asked(key, row.get("cut", ""))
        if kind in ("answer", "fault"):
            self.out.pop(key, None)
        elif row.get("out"):
            self.out[key] = row["out"]
        if kind == "answer":
            self.faults.pop(key, None)
        elif kind == "fault":
            fault = outcome_of(row)
            assert isinstance(fault, Fault)
            self.faults[key] = fault
        self.unsettled.see(row)

    def answered(self, task: str) -> dict[str, Asked]:
        """The documents of a task that have an answer, and what they were asked."""
        return {document: item for document, item in self.asked.get(task, {}).items() if item.key in self}


@contextmanager
def working_in(folder: Path, command: str, *, private: bool = False) -> Iterator[Outcomes]:
    """Within it, this process alone writes to a run's folder; at its end the hashes are written.

    A process that has lost the folder writes nothing more.

    Args:
        command: for the message that others get.
        private: the folder is made its owner's alone, since it gets text that is not open.
    """
    check_all_regular(folder)
    with folder_for_files(folder, private=private):
        answers = Outcomes(folder, command=command)
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
