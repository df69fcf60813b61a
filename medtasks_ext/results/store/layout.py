"""Where things lie in a store, and what tells its runs apart.

DIR/medtasks-store.json                                      the layout's number, and the version that made it
DIR/runs/RUN.json                                            a run: its manifest, and what is stored of it
DIR/results/suite=S/model=M/strategy=T/RUN.parquet           a row per task and metric
DIR/documents/suite=S/model=M/strategy=T/RUN.parquet         a row per task and document
DIR/responses/suite=S/model=M/strategy=T/RUN.parquet         texts, only where they were asked for
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from hashlib import blake2b, sha256
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import read_json

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from medtasks_ext.results.experiments import Entry

#: layout that this version writes, and the newest that it reads
SCHEMA = 1
INFO, RUNS = "medtasks-store.json", "runs"
RESULTS, DOCUMENTS, RESPONSES = "results", "documents", "responses"
JOURNAL, STAGING = "_journal.json", "_staging"
INGEST_LOCK, COMMIT_LOCK = "_ingest.lock", "_commit.lock"
#: what a first ingest that was killed may leave
_TRACES = {JOURNAL, STAGING, INGEST_LOCK, COMMIT_LOCK}
#: characters of a partition's value; folders may have 255 bytes, and paths are short on some systems
LONGEST = 120


@dataclass(frozen=True)
class Rows:
    """Where the documents of a task lie in their file.

    Attributes:
        first: place of the first row.
        n: rows.
        width: numbers in `counts`; 0 where they follow from `score`.
        statistic: name of the one that makes the score of them.
        plain: whether every document takes part in the score, each a unit of its own.
    """

    first: int
    n: int
    width: int
    statistic: str
    plain: bool


@dataclass(frozen=True)
class Part:
    """A run's tasks of one suite and strategy, which share their files.

    Attributes:
        path: of the files below `results/`, `documents/` and `responses/`.
        documents: task -> where its documents lie; tasks without documents are left out.
        responses: whether texts are stored.
    """

    path: str
    documents: dict[str, Rows]
    responses: bool = False

    def files(self) -> list[str]:
        """Paths below the store."""
        tables = [RESULTS] + [DOCUMENTS] * bool(self.documents) + [RESPONSES] * self.responses
        return [f"{table}/{self.path}" for table in tables]


@dataclass(frozen=True)
class StoredRun:
    """`runs/RUN.json`.

    Attributes:
        run: its id.
        fingerprint: of the files that it was read from, and of whether texts were asked for.
        kind: where it comes from.
        model: as its user names it.
        folder: where it lay when it was stored.
        text: whether texts were asked for.
        notes: what is known to have gone wrong in it.
        manifest: of the run; reasons of failures without text of rows.
        parts: what is stored of it.
    """

    run: str
    fingerprint: str
    kind: str
    model: str
    folder: str
    text: bool
    notes: list[str]
    manifest: dict[str, Any]
    parts: list[Part] = field(default_factory=list)

    def content(self) -> dict[str, Any]:
        """As it is written."""
        return {"schema": SCHEMA, **vars(self), "parts": [asdict(part) for part in self.parts]}

    def file(self) -> str:
        """Its own path below the store."""
        return f"{RUNS}/{self.run}.json"

    def files(self) -> list[str]:
        """All paths of it below the store."""
        return [path for part in self.parts for path in part.files()]


def is_store(folder: Path) -> bool:
    """Whether a folder is a store, or becomes one as soon as it is opened."""
    return (folder / INFO).is_file() or (folder / JOURNAL).is_file()


def check_folder(folder: Path) -> None:
    """Refuse a place that neither is a store nor can become one.

    Raises:
        MedtasksError: it is a file, holds something else, or a store of a newer version.
    """
    remedy = "name another folder; a new one is made"
    if folder.exists() and not folder.is_dir():
        raise MedtasksError("is a file, not the folder of a store", where=folder, remedy=remedy)
    if is_store(folder):
        check_schema(folder)
    elif folder.exists() and (others := {item.name for item in folder.iterdir()} - _TRACES):
        raise MedtasksError(
            f"holds something else (such as {min(others)}) and no store", where=folder, remedy=remedy
        )


def check_schema(folder: Path) -> None:
    """Refuse a store of a newer version.

    Raises:
        MedtasksError: it is of a newer version, or `medtasks-store.json` is damaged.
    """
    for file in (folder / INFO, folder / JOURNAL):
        if not file.is_file():
            continue
        schema = _number(read_json(file))
        if schema is None:
            raise MedtasksError(
                "damaged: it does not say which layout the store has",
                where=file,
                remedy="ingest the runs into a new store",
            )
        if schema > SCHEMA:
            raise MedtasksError(
                f"was written by a newer version (schema {schema}, known: {SCHEMA})",
                where=file,
                remedy="pip install --upgrade medtasks",
            )


def _number(content: Any) -> int | None:
    schema = content.get("schema") if isinstance(content, dict) else None
    return schema if isinstance(schema, int) else None


def stored_runs(folder: Path) -> dict[str, StoredRun]:
    """Id -> run, in the order of ids.

    Raises:
        MedtasksError: a file is damaged.
    """
    runs = {}
    for file in sorted((folder / RUNS).glob("*.json")):
        content = read_json(file)
        try:
            parts = [
                Part(
                    part["path"],
                    {task: Rows(**rows) for task, rows in part["documents"].items()},
                    part["responses"],
                )
                for part in content.pop("parts")
            ]
            content.pop("schema")
            runs[file.stem] = StoredRun(**content, parts=parts)
        except (AttributeError, KeyError, TypeError):
            raise MedtasksError(
                "damaged: not a run as a store records it", where=file, remedy="delete it and ingest again"
            ) from None
    return runs


# ---------------------------------------------------------------------- names


def partition(suite: str, model: str, strategy: str) -> str:
    """The folders of one suite, model and strategy."""
    return f"suite={encoded(suite)}/model={encoded(model)}/strategy={encoded(strategy)}"


def encoded(value: str) -> str:
    """A value as folders of a partition carry it: percent-encoded, which pyarrow, DuckDB and Polars undo.

    Only letters, digits and `-_.~%` remain, in no order that Windows refuses. What is too long for the
    name of a folder is cut and ends with `~` and a hash.
    """
    whole = quote(value, safe="")
    if len(whole) > LONGEST:
        digest, kept = sha256(value.encode()).hexdigest()[:8], ""
        for character in value:  # whole characters: half of one cannot be decoded
            more = kept + quote(character, safe="")
            if len(more) > LONGEST - len(digest) - 1:
                break
            kept = more
        whole = f"{kept}~{digest}"
    return f"{whole[:-1]}%2E" if whole.endswith(".") else whole


def run_id(entry: Entry) -> str:
    """What tells a run from all others, and stays when it goes on or is scored again.

    It follows from model, settings, the moment of its start and the first name that was asked for.
    """
    manifest = entry.manifest
    facts = [
        entry.kind,
        entry.model,
        manifest["identity"],
        manifest.get("started"),
        manifest.get("requested", [])[:1],
    ]
    return sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()[:12]


def fingerprint(files: Iterable[Path], tasks: Iterable[str], *, text: bool) -> str:
    """Changes when anything changes that is stored of a run.

    Args:
        files: that it is read from; which of them exist counts, too.
        tasks: that are stored.
        text: whether texts are.
    """
    found = blake2b(json.dumps([SCHEMA, sorted(tasks), text]).encode(), digest_size=16)
    for file in files:
        content = file.read_bytes() if file.is_file() else b""
        found.update(blake2b(content, digest_size=16).digest())
    return found.hexdigest()
