"""`medtasks submit`: a run's submission, verified before it is made and checked before it takes its place."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from pydantic import ValidationError

from medtasks_ext.atomic import cannot_write
from medtasks_ext.errors import MedtasksError
from medtasks_ext.results.reading import read_runs
from medtasks_ext.runner.verify import refuse_changed
from medtasks_ext.runs.folder import RunFolder
from medtasks_ext.strict import faults_of
from medtasks_lab.submissions.check import Checked, check_submission
from medtasks_lab.submissions.documents import write_documents
from medtasks_lab.submissions.make import make_submission
from medtasks_lab.submissions.record import DOCUMENTS, FILES, About, Place, Submission

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry
    from medtasks_ext.results.experiments import Fault


@dataclass(frozen=True)
class Submitted:
    """A written submission."""

    record: Submission
    files: tuple[Path, ...]
    left_out: dict[str, str]  # task -> why it is no part of it
    faults: tuple[Fault, ...]  # of the run


def submit(run: Path, out: Path, tasks: Registry, about: Mapping[str, str]) -> Submitted:
    """Write what may be public of a run.

    Args:
        run: folder of `medtasks run`.
        out: `…/ORG/MODEL/DATE`.
        about: facts of the model (`About`).

    Raises:
        MedtasksError: the place is none or is taken, the run does not verify, or holds nothing to submit.
    """
    place = Place.of(out)
    if out.is_symlink() or (out.exists() and (not out.is_dir() or any(out.iterdir()))):
        raise MedtasksError("is taken", where=out, remedy="name another date, or delete what lies there")
    if not RunFolder(run).manifest.is_file():
        raise MedtasksError(
            "is no folder of `medtasks run`", where=run, remedy="its answers must carry chains"
        )
    refuse_changed(run, tasks)
    faults: list[Fault] = []
    (entry,) = read_runs(run, tasks, faults)
    made = make_submission(entry, tasks, place, _about(about))
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=out.parent, prefix=".submission-") as beside:
            folder = Path(beside, *out.absolute().parts[-3:])
            made.record.write(folder)
            write_documents(folder / DOCUMENTS, made.documents)
            _refuse(check_submission(folder, tasks))
            shutil.move(folder, out)
    except OSError as error:
        raise cannot_write(out, error) from None
    try:
        _refuse(check_submission(out, tasks))  # beside its neighbours
    except MedtasksError:
        shutil.rmtree(out)
        raise
    return Submitted(made.record, tuple(out / name for name in FILES), made.left_out, tuple(faults))


def _about(given: Mapping[str, str]) -> About:
    try:
        return About.model_validate(dict(given))
    except ValidationError as error:
        raise MedtasksError(
            faults_of(error)[0],
            where="--about",
            remedy=f"NAME=VALUE, names: {', '.join(About.model_fields)}",
        ) from None


def _refuse(checked: Checked) -> None:
    if checked.findings:
        first = checked.findings[0]
        raise MedtasksError(f"{first.key or first.file}: {first.what}", where=first.file, remedy=first.remedy)
