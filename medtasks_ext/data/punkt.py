"""NLTK's Punkt data, which English BLEU and French ROUGE need."""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks_ext.atomic import cannot_write
from medtasks_ext.errors import MedtasksError
from medtasks_ext.rows.remote import RemoteFile

if TYPE_CHECKING:
    from medtasks_ext.registry import Dataset

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
