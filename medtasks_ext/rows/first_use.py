"""The first use of files that nobody has pinned: they stay only if their rows are right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from medtasks_ext.errors import MedtasksError
from medtasks_ext.rows.transfer import OTHERWISE

if TYPE_CHECKING:
    from medtasks_ext.rows.remote import RemoteFile

_Read = TypeVar("_Read")


class NoUseError(MedtasksError):
    """Files that nobody has pinned, and that cannot be used: they are here no longer."""


def first_use(
    files: Sequence[RemoteFile],
    read: Callable[[], _Read],
    fault_of: Callable[[_Read], MedtasksError | None],
) -> _Read:
    """What is read of public files; NoUseError where no place sends files that can be used.

    Files on trial are recorded once their rows were read without a fault. Otherwise they are removed, and the
    next place is asked; the next call begins anew.
    """
    trial = [file for file in files if file.is_on_trial]
    if not trial:
        return read()
    faults: list[MedtasksError] = []
    try:
        while True:
            for file in files:
                file.get()
            try:
                content = read()
                fault = fault_of(content)
            except MedtasksError as error:
                fault = error
            if fault is None:
                for file in trial:
                    file.keep()
                return content
            faults.append(fault)
            rejected = [file.reject() for file in trial]
            if not any(rejected):
                raise _of_no_use(trial, faults)
    finally:
        for file in trial:
            file.ask_all()


def _of_no_use(trial: Sequence[RemoteFile], faults: Sequence[MedtasksError]) -> NoUseError:
    why = "; ".join(dict.fromkeys(fault.what for fault in faults))
    others = f" ({len(faults)} places were asked)" if len(faults) > 1 else ""
    return NoUseError(
        f"sends what cannot be used, and nothing of it was kept: {why}{others}",
        where=", ".join(file.source for file in trial),
        remedy=f"the same command asks again, later perhaps with success; or {OTHERWISE}",
    )
