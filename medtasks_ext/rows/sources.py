"""Where a dataset's rows and database come from: local files, a pinned download, or the bundled samples."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, get_args

from medtasks_ext.atomic import atomic_file, check_regular
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import Dataset, registry
from medtasks_ext.registry.folders import cache_dir
from medtasks_ext.rows.files import read_rows
from medtasks_ext.rows.originals.build import original_rows
from medtasks_ext.rows.originals.readers import files_below, records
from medtasks_ext.rows.places import CACHE_REMEDY, authors_of, data_dir, dataset_folder, row_file
from medtasks_ext.rows.remote import are_accepted, database_file, remote_file, remote_files
from medtasks_ext.rows.row import Origin, Row, Rows
from medtasks_ext.rows.spec import Source, dataset_spec

if TYPE_CHECKING:
    from medtasks_ext.rows.places import AuthorsFiles
    from medtasks_ext.rows.spec import Database, Download

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
        split: dict[Any, list[Row]] = {"test": [], "fewshot": []}
        for row in read_rows(dataset.sample_file):
            split.setdefault(row.pop(SPLIT_KEY, None), []).append(row)
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
    assert source.download is not None  # find_origin said so
    return _downloaded(dataset, source, source.download)


def _instruction(file: Path) -> str:
    check_regular(file)
    try:
        return file.read_text(encoding="utf-8-sig").strip()
    except (OSError, UnicodeDecodeError) as error:
        what = f"cannot be read ({getattr(error, 'strerror', None) or 'not UTF-8 text'})"
        raise MedtasksError(what, where=file, remedy="save it as UTF-8") from None


def original_folder(dataset: Dataset, source: Source) -> Path | None:
    root = data_dir()
    if root is None or not source.original:
        return None
    folder = root / dataset.metadata.suite / dataset.folder.name / "original"
    return folder if folder.is_dir() and any(folder.iterdir()) else None


def _downloaded(dataset: Dataset, source: Source, download: Download) -> Rows:
    first = remote_file(source, download.test[0])
    where = f"{download.repo}@{download.revision}" if download.repo else first.source
    if source.original:
        names = [*download.test, *download.fewshot]
        places = [remote_file(source, name).get() for name in names]
        called = names if download.repo else [place.name for place in places]
        return original_rows("hub", dataset, source, places, where, names=called, revision=download.revision)
    test, fewshot = (
        [row for name in names for row in _download(source, download, name)]
        for names in (download.test, download.fewshot)
    )
    if download.test_ids:
        ids = set(map(str, json.loads(remote_file(source, download.test_ids).get().read_bytes())))
        fewshot = [row for row in test if str(row["id"]) not in ids]
        test = [row for row in test if str(row["id"]) in ids]
    return Rows("hub", test, fewshot, where, revision=download.revision)


def _download(source: Source, download: Download, name: str) -> list[Row]:
    file, _, member = name.partition("!")
    place = remote_file(source, file).get()
    if download.reader is None:
        return [{**row, "_file": name} for row in read_rows(place, member or None)]
    found = [
        {**item.fields, "_file": name}
        for item in records(download.reader, files_below([place]), [member or "*"])
    ]
    if not found:
        raise MedtasksError(f"holds no rows of {name}", where=place, remedy="delete it, to fetch it again")
    return found


def origin_of(dataset: Dataset, forced: Origin | None) -> Origin | None:
    return find_origin(dataset, source_of(dataset), forced)


def source_of(dataset: Dataset) -> Source:
    return dataset_spec(dataset).rows


def where_it_goes(dataset: Dataset) -> str:
    """One line: who grants access, and where the files go."""
    metadata, source, folder = dataset.metadata, source_of(dataset), dataset_folder(dataset)
    authors = authors_of(dataset, source)
    files = [*([authors.paths[0][0]] if authors else []), f"{folder}/test.jsonl"]
    files += [f"{folder}/original/ (as the source distributes them)"] if source.original else []
    click = f"; or accept its terms: medtasks data fetch --accept {dataset.id}" if source.download else ""
    return f"{dataset.id} ({metadata.access}): from {metadata.url}; files go to {' or '.join(files)}{click}"


def missing_data(dataset: Dataset, forced: Origin | None) -> MedtasksError:
    """The error for one dataset that is not at hand; it names the suite's others, since lm-eval stops."""
    suite, known = dataset.metadata.suite, registry().datasets.values()
    siblings = [item for item in known if item.metadata.suite == suite and item != dataset]
    others = [item.id for item in siblings if origin_of(item, forced) is None]
    mode = f" as {forced}" if forced else ""
    rest = f"\n  {len(others)} further datasets of {suite} are missing: {', '.join(others)}" if others else ""
    return MedtasksError(
        f"{dataset.id} is not at hand{mode}, below {data_dir() or '$MEDTASKS_DATA_DIR, which is not set'}"
        f"\n  {where_it_goes(dataset)}{rest}",
        remedy="lm_eval stops here; `medtasks run` with the same --tasks runs what is there"
        f"\n  → `medtasks data status {dataset.id}` says how to get the data"
        "\n  → try all tasks on synthetic rows: add --metadata data=sample",
    )


@dataclass(frozen=True)
class DatabaseFile:
    path: Path
    digest: str
    schema: str


def find_database(dataset: Dataset, database: Database, origin: Origin) -> DatabaseFile:
    """The database of a dataset: beside the local rows, else the pinned download; its own for sample rows."""
    root, place = data_dir(), f"{dataset.metadata.suite}/{dataset.folder.name}/{database.file}"
    if origin == "sample":
        path = _built(dataset.folder / database.sample)
    elif root and (root / place).is_file():
        path = root / place
    else:
        remote, here = database_file(database), f"{root or '$MEDTASKS_DATA_DIR'}/{place}"
        try:
            path = remote.get()
        except MedtasksError as error:
            what = f"{dataset.id} needs this database: {error.what}"
            remedy = f"run once with internet, HF_HUB_OFFLINE unset, or put it at {here}"
            raise MedtasksError(what, where=remote.name, remedy=remedy) from None
    return DatabaseFile(path, sha256(path.read_bytes()).hexdigest()[:12], _schema(path))


def _built(script: Path) -> Path:
    """The sample database, built once from its SQL text."""
    check_regular(script)
    text = script.read_text(encoding="utf-8")
    target = cache_dir() / "databases" / f"{sha256(text.encode()).hexdigest()[:16]}.sqlite"
    if target.is_file():
        return target
    with TemporaryDirectory() as folder:  # SQLite opens files by name alone
        made = Path(folder) / target.name
        try:
            with closing(sqlite3.connect(made)) as connection:
                connection.executescript(text)
        except sqlite3.Error as error:
            what, remedy = f"cannot be run ({error})", "mend the statement there"
            raise MedtasksError(what, where=script, remedy=remedy) from None
        with atomic_file(target, remedy=CACHE_REMEDY) as file:
            file.write(made.read_bytes())
    return target


def _schema(path: Path) -> str:
    """The CREATE TABLE statements, in the order in which the tables were made."""
    address = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(address, uri=True)) as connection:
            wanted = "SELECT sql FROM sqlite_master WHERE type = 'table' ORDER BY rowid"
            return "\n\n".join(f"{sql.strip()};" for (sql,) in connection.execute(wanted))
    except sqlite3.Error as error:
        what = f"is not an SQLite database ({error})"
        raise MedtasksError(what, where=path, remedy="put the complete file there") from None
