"""The SQLite database on which a task's answers are run."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from medtasks_ext.atomic import atomic_file, check_regular
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry.folders import cache_dir
from medtasks_ext.rows.folders import CACHE_REMEDY, data_dir
from medtasks_ext.rows.remote import database_file

if TYPE_CHECKING:
    from medtasks_ext.registry import Dataset
    from medtasks_ext.rows.row import Origin
    from medtasks_ext.rows.spec import Database


@dataclass(frozen=True)
class DatabaseFile:
    path: Path
    digest: str
    schema: str


def find_database(dataset: Dataset, database: Database, origin: Origin) -> DatabaseFile:
    """The database of a dataset: beside the local rows, else the pinned download; its own for sample rows."""
    if origin == "sample":
        path = _built(dataset.folder / database.sample)
    else:
        path = _local(dataset, database) or _downloaded(dataset, database)
    return DatabaseFile(path, sha256(path.read_bytes()).hexdigest()[:12], _schema(path))


def _local(dataset: Dataset, database: Database) -> Path | None:
    root = data_dir()
    path = root and root / _place(dataset, database)
    return path if path and path.is_file() else None


def _place(dataset: Dataset, database: Database) -> str:
    return f"{dataset.metadata.suite}/{dataset.folder.name}/{database.file}"


def _downloaded(dataset: Dataset, database: Database) -> Path:
    url = database.url.format(revision=database.revision)
    try:
        return database_file(database).get()
    except MedtasksError as error:
        raise MedtasksError(
            f"{dataset.id} needs this database: {error.what}",
            where=url,
            remedy="run once with internet, HF_HUB_OFFLINE unset, or put it at"
            f" {data_dir() or '$MEDTASKS_DATA_DIR'}/{_place(dataset, database)}",
        ) from None


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
            raise MedtasksError(
                f"cannot be run ({error})", where=script, remedy="mend the statement there"
            ) from None
        with atomic_file(target, remedy=CACHE_REMEDY) as file:
            file.write(made.read_bytes())
    return target


def _schema(path: Path) -> str:
    """The CREATE TABLE statements, in the order in which the tables were made."""
    try:
        with closing(
            sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
        ) as connection:
            statements = connection.execute(
                "SELECT sql FROM sqlite_master WHERE type = 'table' ORDER BY rowid"
            )
            return "\n\n".join(f"{sql.strip()};" for (sql,) in statements)
    except sqlite3.Error as error:
        raise MedtasksError(
            f"is not an SQLite database ({error})", where=path, remedy="put the complete file there"
        ) from None
