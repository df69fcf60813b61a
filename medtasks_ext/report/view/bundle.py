"""The answers as files: a page for each dataset and one that lists them, which ask no server.

A bundle holds what everyone may see, unless more is allowed; then the folder is its owner's alone.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks_ext.atomic import atomic_file, cannot_write, make_private, private_files
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import write_json
from medtasks_ext.report.view.dataset_page import DatasetPage, view_record
from medtasks_ext.report.view.page import render

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.report.view.viewer import Viewer

MARK = "medtasks-view.json"
#: Documents of a dataset that a page holds unless told otherwise.
DOCUMENTS = 500


def write_bundle(
    folder: Path, viewer: Viewer, *, documents: int = DOCUMENTS, private: bool = False
) -> list[Path]:
    """Write the pages, and return the files, the one to open first.

    Args:
        documents: of a dataset at most; figures are of all of them.
        private: it holds what not everyone may see.

    Raises:
        MedtasksError: the folder holds other things, or cannot be written.
    """
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir()) and not (folder / MARK).is_file()):
        what = "is a file" if folder.is_file() else "holds something that no `medtasks view` wrote"
        raise MedtasksError(what, where=folder, remedy="give another folder to -o")
    with private_files(private):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for stale in folder.glob("*.html"):  # of datasets that are left out this time
                stale.unlink()
        except OSError as error:
            raise cannot_write(folder, error, "give another folder to -o") from None
        if private:
            make_private(folder)
        write_json(folder / MARK, {"schema": 1, "private": private, "datasets": viewer.datasets})
        overview = _overview(viewer)
        files = [_write(folder / "index.html", {"overview": overview, "pages": viewer.datasets}, "Answers")]
        for name in viewer.datasets:
            page = viewer.page(name)
            page.read()
            title = f"{page.dataset.metadata.name} · answers"
            files.append(_write(folder / f"{name}.html", _dataset(viewer, page, documents), title))
    return files


def _overview(viewer: Viewer) -> Json:
    """The overview without the folders of the machine that it was made on."""
    found = viewer.overview()
    runs = [{**run, "place": Path(run["place"]).name, "going_on": False} for run in found["runs"]]
    faults = [{**fault, "where": Path(fault["where"]).name} for fault in found["faults"]]
    return {**found, "live": False, "runs": runs, "faults": faults}


def _dataset(viewer: Viewer, page: DatasetPage, documents: int) -> Json:
    held = range(min(documents, len(page.keys)))
    return {
        "overview": {**_overview(viewer), "datasets": []},
        "pages": viewer.datasets,
        "dataset": page.head(),
        "errors": page.errors(),
        "confusion": [matrix and asdict(matrix) for matrix in page.confusion()],
        "rows": [page.row(place) for place in held],
        "views": [view_record(page.document(place)) for place in held],
    }


def _write(file: Path, data: Json, title: str) -> Path:
    with atomic_file(file) as opened:
        opened.write(render({"live": False, **data}, title).encode(errors="replace"))
    return file
