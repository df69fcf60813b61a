"""Downloading open datasets once, to read them without a network afterwards.

The files go where the loader looks for them anyway: into the caches, or below `DIR/fetched` to be carried
to another machine, where DIR is the data folder. `fetched.json` records what was fetched.
"""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from medtasks_ext.atomic import atomic_file, cannot_write
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import read_json, write_json
from medtasks_ext.registry.folders import cache_dir
from medtasks_ext.rows.places import FETCHED, data_folder
from medtasks_ext.rows.remote import RemoteFile, drop, remote_files, sha256_of
from medtasks_ext.rows.sources import source_of

if TYPE_CHECKING:
    from typing_extensions import NotRequired

    from medtasks_ext.registry import Dataset

MANIFEST = "fetched.json"
_ELSEWHERE = "name another folder: --to DIR"
SCHEMA = 1


@dataclass(frozen=True)
class Fetched:
    dataset: str
    n_files: int
    n_new: int  # files that were not here, or not as recorded
    n_bytes: int  # of all its files
    n_test: int  # rows that can be evaluated
    n_unpinned: int  # files whose content was not known before; their hash holds from now on
    exclusions: str | None = None  # which rows of the source are left out, and why


class FetchedFile(TypedDict):
    source: str
    bytes: int
    sha256: str
    path: NotRequired[str]  # below the folder that is carried


class FetchedDataset(TypedDict):
    revision: str
    files: list[FetchedFile]


class Store:
    """Fetched files and their manifest; `to`: folder to carry, None leaves files in the caches."""

    def __init__(self, to: Path | None) -> None:
        self.to = to
        self.folder = to / FETCHED if to else cache_dir()
        self.manifest_file = self.folder / MANIFEST
        self.datasets: dict[str, FetchedDataset] = {}
        if self.manifest_file.is_file():
            self.datasets = read_json(self.manifest_file)["datasets"]

    def recorded(self, file: RemoteFile) -> str | None:
        entries = (entry for item in self.datasets.values() for entry in item["files"])
        return next((entry["sha256"] for entry in entries if entry["source"] == file.source), None)

    def place(self, file: RemoteFile) -> Path | None:
        path = self.folder / file.carried if self.to else file.here()
        return path if path and path.is_file() else None

    def fetch(self, dataset: Dataset) -> Fetched:
        """Get the files of an open dataset, record them, and see that rows can be read from them."""
        from medtasks_ext.prompts.load import check_rows  # what it imports takes long

        files = remote_files(source_of(dataset))
        new = [file for file in files if self._get(file)]
        with ExitStack() as within:
            if self.to:
                try:
                    self.to.mkdir(parents=True, exist_ok=True)
                except OSError as error:
                    raise cannot_write(self.to, error, _ELSEWHERE) from None
                within.enter_context(data_folder(self.to))
            row_check = check_rows(dataset, "hub")
        for fault in row_check.faults:
            if all(file.is_pinned for file in files):
                what = f"is here, but cannot be read: {fault.what}"
                raise MedtasksError(what, where=fault.where, remedy=fault.remedy)
            raise fault
        for file in new if self.to else []:
            target = self.folder / file.carried
            with atomic_file(target, remedy=_ELSEWHERE) as out, file.get().open("rb") as source:
                shutil.copyfileobj(source, out)
        entries = [self._entry(file) for file in files]
        self.datasets[dataset.id] = {"revision": files[0].revision, "files": entries}
        write_json(self.manifest_file, {"schema": SCHEMA, "datasets": self.datasets})
        n_bytes = sum(entry["bytes"] for entry in entries)
        exclusions = row_check.test[0].loaded.exclusions if row_check.test else None
        n_unpinned = sum(not file.is_pinned for file in files)
        return Fetched(dataset.id, len(files), len(new), n_bytes, len(row_check.test), n_unpinned, exclusions)

    def _get(self, file: RemoteFile) -> bool:
        known, place = self.recorded(file), self.place(file)
        if place and known and sha256_of(place) == known:
            return False
        if place and known:
            drop(place)
        _whole(file, known)
        return True

    def _entry(self, file: RemoteFile) -> FetchedFile:
        path = self.place(file)
        assert path is not None  # _get has seen to it
        entry = FetchedFile(source=file.source, bytes=path.stat().st_size, sha256=sha256_of(path))
        if self.to:
            entry["path"] = file.carried
        return entry


def damaged_files(folder: Path) -> tuple[int, list[str]]:
    """Number of files recorded below a data folder, and those that are not as they were fetched."""
    store = Store(folder)
    entries = {entry["path"]: entry for item in store.datasets.values() for entry in item["files"]}
    damaged = [
        f"{FETCHED}/{path}"
        for path, entry in entries.items()
        if not (store.folder / path).is_file() or sha256_of(store.folder / path) != entry["sha256"]
    ]
    return len(entries), damaged


def _whole(file: RemoteFile, known: str | None) -> Path:
    """The file in its cache, whole; what is damaged there is fetched once more."""
    for _ in range(2):
        path = file.get()
        if file.is_right(path) and (file.digest or known in (None, sha256_of(path))):
            return path
        drop(path)
    if known:
        what = "has other content than was recorded for it"
        remedy = f"remove its entry from {MANIFEST} if the new content is right"
        raise MedtasksError(what, where=file.source, remedy=remedy)
    raise MedtasksError("arrives damaged", where=file.source, remedy="try again later")


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
    size=4_319_076,
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
