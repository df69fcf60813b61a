"""Where a dataset's rows come from: local files, a pinned download, or the bundled samples."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from medtasks_ext.atomic import check_regular
from medtasks_ext.errors import MedtasksError
from medtasks_ext.rows.authors import authors_of
from medtasks_ext.rows.files import read_rows
from medtasks_ext.rows.folders import data_dir
from medtasks_ext.rows.originals.rows import original_rows, records_of
from medtasks_ext.rows.places import row_file
from medtasks_ext.rows.remote import remote_file, remote_files
from medtasks_ext.rows.row import Origin, Row, Rows
from medtasks_ext.rows.terms import are_accepted

if TYPE_CHECKING:
    from medtasks_ext.registry import Dataset
    from medtasks_ext.rows.authors import AuthorsFiles
    from medtasks_ext.rows.spec import Download, Source

SPLIT_KEY = "_split"


@dataclass(frozen=True)
class LocalFiles:
    test: Path
    fewshot: Path | None
    instruction: Path | None
    authors: AuthorsFiles | None = None  # where test and few-shot rows are the authors' own files


def forced_origin(option: object = None) -> Origin | None:
    value = option if option is not None else os.environ.get("MEDTASKS_DATA") or None
    if value is not None and value not in get_args(Origin):
        what = f"unknown data origin {value!r}"
        raise MedtasksError(what, where="--data or MEDTASKS_DATA", remedy="use local, hub, release or sample")
    return value  # type: ignore[return-value]


def local_files(dataset: Dataset, source: Source) -> LocalFiles | None:
    """The layout of the suite's authors comes before `SUITE/DATASET/{test,fewshot}.{jsonl,json,csv,…}`."""
    root = data_dir()
    if root is None:
        return None
    folder = root / dataset.metadata.suite / dataset.folder.name
    own = folder / "instruction.txt"
    instruction = own if own.is_file() else None
    authors = authors_of(dataset, source)
    if authors and (theirs := authors.local(root)):
        return LocalFiles(*theirs, instruction, authors)
    files = {split: row_file(folder, split) for split in ("test", "fewshot")}
    return LocalFiles(files["test"], files["fewshot"], instruction) if files["test"] else None


def find_origin(dataset: Dataset, source: Source, forced: Origin | None) -> Origin | None:
    """The origin that would be used now, or None where the data is not at hand. Reads no rows."""
    if forced == "sample":
        return "sample" if dataset.sample_file.is_file() else None
    if forced == "release":
        authors = authors_of(dataset, source)
        return "release" if authors and authors.released("test") else None
    if forced in (None, "local") and (local_files(dataset, source) or original_folder(dataset, source)):
        return "local"
    if forced in (None, "hub") and source.download and is_allowed(source):
        return "hub"
    return None


def is_allowed(source: Source) -> bool:
    """Whether the download may be read: its terms are accepted, or its files were carried here."""
    terms = source.download.terms if source.download else None
    return terms is None or are_accepted(terms) or all(file.here() for file in remote_files(source))


def load_rows(dataset: Dataset, source: Source, origin: Origin) -> Rows:
    if origin == "sample":
        rows = read_rows(dataset.sample_file)
        split = {
            name: [
                {key: value for key, value in row.items() if key != SPLIT_KEY}
                for row in rows
                if row.get(SPLIT_KEY) == name
            ]
            for name in ("test", "fewshot")
        }
        return Rows("sample", split["test"], split["fewshot"], str(dataset.sample_file))
    if origin == "local":
        files = local_files(dataset, source)
        if files is None:
            folder = original_folder(dataset, source)
            assert folder is not None  # find_origin said so
            return original_rows("local", dataset, source, [folder], str(folder))
        return Rows(
            "local",
            files.authors.read(files.test) if files.authors else read_rows(files.test),
            read_rows(files.fewshot) if files.fewshot else [],
            str(files.test),
            instruction=_instruction(files.instruction) if files.instruction else None,
            fewshot_where=str(files.fewshot) if files.fewshot else None,
        )
    if origin == "release":
        authors = authors_of(dataset, source)
        assert authors is not None  # find_origin said so
        return authors.released_rows()
    assert source.download is not None
    if source.original:
        return _downloaded_original(dataset, source, source.download)
    return _downloaded(source, source.download)


def _instruction(file: Path) -> str:
    check_regular(file)
    try:
        text = file.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        what = f"cannot be read ({getattr(error, 'strerror', None) or 'not UTF-8 text'})"
        raise MedtasksError(what, where=file, remedy="save it as UTF-8") from None
    added = ["a byte-order mark"] * text.startswith("\ufeff") + ["CR LF line ends"] * ("\r" in text)
    if added:
        what = f"has {' and '.join(added)}: models would be asked another text than the suite's"
        remedy = "save it as UTF-8 without a byte-order mark, with LF line ends"
        raise MedtasksError(what, where=file, remedy=remedy)
    return text.strip()


def original_folder(dataset: Dataset, source: Source) -> Path | None:
    root = data_dir()
    if root is None or not source.original:
        return None
    folder = root / dataset.metadata.suite / dataset.folder.name / "original"
    return folder if folder.is_dir() and any(folder.iterdir()) else None


def _downloaded_original(dataset: Dataset, source: Source, download: Download) -> Rows:
    names = [*download.test, *download.fewshot]
    places = [remote_file(source, name).get() for name in names]
    called = names if download.repo else [place.name for place in places]
    where = _where(source, download)
    return original_rows("hub", dataset, source, places, where, names=called, revision=download.revision)


def _where(source: Source, download: Download) -> str:
    if download.repo:
        return f"{download.repo}@{download.revision}"
    return remote_file(source, download.test[0]).source


def _downloaded(source: Source, download: Download) -> Rows:
    test, fewshot = (
        [row for name in names for row in _download(source, download, name)]
        for names in (download.test, download.fewshot)
    )
    if download.test_ids:
        ids = set(map(str, json.loads(remote_file(source, download.test_ids).get().read_bytes())))
        fewshot = [row for row in test if str(row["id"]) not in ids]
        test = [row for row in test if str(row["id"]) in ids]
    where = _where(source, download)
    return Rows("hub", test, fewshot, where, revision=download.revision)


def _download(source: Source, download: Download, name: str) -> list[Row]:
    file, _, member = name.partition("!")
    place = remote_file(source, file).get()
    if download.reader is None:
        rows = read_rows(place, member or None)
    else:
        rows = records_of(download.reader, place, member or "*")
        if not rows:
            raise MedtasksError(
                f"holds no rows of {name}", where=place, remedy="delete it, to fetch it again"
            )
    return [{**row, "_file": name} for row in rows]
