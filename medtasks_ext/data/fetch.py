"""Downloading open datasets once, to read them without a network afterwards.

The files go where the loader looks for them anyway: into the caches, or below `DIR/fetched` to be carried
to another machine, where DIR is the data folder.
"""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from medtasks_ext.atomic import atomic_file, cannot_write
from medtasks_ext.errors import MedtasksError
from medtasks_ext.rows.places import FETCHED, data_folder
from medtasks_ext.rows.remote import RemoteFile, drop, remote_files
from medtasks_ext.rows.sources import source_of

if TYPE_CHECKING:
    from medtasks_ext.registry import Dataset

_ELSEWHERE = "name another folder: --to DIR"


class Fetched(NamedTuple):
    n_files: int
    n_new: int  # files that were not here, or not as they are pinned or were at first use
    n_bytes: int  # of all its files
    n_test: int  # rows that can be evaluated
    n_unpinned: int  # files whose content was not known before; their hash holds from now on
    exclusions: str | None  # which rows of the source are left out, and why


def fetch(dataset: Dataset, to: Path | None) -> Fetched:
    """Get the files of an open dataset, and see that rows can be read from them.

    `to`: folder to carry; None leaves files in the caches.
    """
    from medtasks_ext.prompts.load import check_rows  # what it imports takes long

    files = remote_files(source_of(dataset))
    new = [file for file in files if not _is_here(file, to)]
    with ExitStack() as within:
        if to:
            try:
                to.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise cannot_write(to, error, _ELSEWHERE) from None
            within.enter_context(data_folder(to))
        row_check = check_rows(dataset, "hub")
    if row_check.faults:
        raise row_check.faults[0]
    for file in new if to else []:
        with atomic_file(_place(file, to), remedy=_ELSEWHERE) as out, file.get().open("rb") as source:
            shutil.copyfileobj(source, out)
    n_bytes = sum(_place(file, to).stat().st_size for file in files)
    exclusions = row_check.test[0].loaded.exclusions if row_check.test else None
    n_unpinned = sum(not file.is_pinned for file in files)
    return Fetched(len(files), len(new), n_bytes, len(row_check.test), n_unpinned, exclusions)


def _place(file: RemoteFile, to: Path | None) -> Path:
    return to / FETCHED / file.carried if to else file.get()


def _is_here(file: RemoteFile, to: Path | None) -> bool:
    """Whether a file needs no download; what is damaged is removed, and fetched once more."""
    for path in filter(None, (_place(file, to) if to else None, file.here())):
        if path.is_file() and not file.is_as_before(path):
            drop(path)
    there = _place(file, to) if to else file.here()
    if there and there.is_file():
        return True
    file.get()
    return False


def damaged_files(folder: Path, datasets: Iterable[Dataset]) -> tuple[int, list[str]]:
    """How many fetched files a data folder holds, and those that are not as they were fetched."""
    files = {file.carried: file for dataset in datasets for file in remote_files(source_of(dataset))}
    here = {name: file for name, file in files.items() if (folder / FETCHED / name).is_file()}
    damaged = [name for name, file in here.items() if not file.is_as_before(folder / FETCHED / name)]
    return len(here), [f"{FETCHED}/{name}" for name in damaged]


#: Folder below that of `data fetch --to`: what NLTK_DATA has to name.
CARRIED = "nltk_data"
_NAME = "punkt_tab"
PUNKT_REMEDY = "`medtasks data fetch TASK`"
_REVISION = "550b6625bcef1f2abff2ff770a5a0d272c9c6b2a"
#: NLTK's own loader refuses proxies. This SHA-256 is stated alike by ten public projects; the file itself was
#: not seen when it was written here.
PUNKT = RemoteFile(
    f"https://raw.githubusercontent.com/nltk/nltk_data/{_REVISION}/packages/tokenizers/{_NAME}.zip",
    _REVISION,
    digest="sha256:e57f64187974277726a3417ca6f181ec5403676c717672eef6a748a7b20e0106",
    mirrors=(f"https://cdn.jsdelivr.net/gh/nltk/nltk_data@{_REVISION}/packages/tokenizers/{_NAME}.zip",),
)


def needs_punkt(dataset: Dataset) -> bool:
    """Whether a metric of the dataset divides texts into sentences."""
    by_characters = dataset.metadata.language in ("zh", "ja")
    return not by_characters and any(metric["metric"] == "bleu_4" for metric in dataset.metric_list)


def fetch_punkt(to: Path | None) -> Path:
    """The folder in which NLTK finds the data, fetched unless it is there: `to`, or NLTK's own."""
    from nltk.data import find
    from nltk.downloader import Downloader

    folder = to / CARRIED if to else None
    try:
        found = find(f"tokenizers/{_NAME}/english/", [str(folder)] if folder else None)
    except LookupError:
        pass
    else:
        return folder or Path(found).parents[2]
    folder = folder or Path(Downloader().default_download_dir())
    try:
        packed = PUNKT.get()
    except MedtasksError as error:
        what = f"NLTK's Punkt data could not be fetched ({error.what})"
        remedy = "the same command asks again; without it some metrics are left out"
        raise MedtasksError(what, where=error.where, remedy=remedy) from None
    target = folder / "tokenizers" / _NAME
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as half, zipfile.ZipFile(packed) as archive:
            archive.extractall(half)
            shutil.rmtree(target, ignore_errors=True)  # what an earlier call left, without its end
            (Path(half) / _NAME).replace(target)
    except OSError as error:
        raise cannot_write(target, error, "name another folder: --to DIR") from None
    return folder
