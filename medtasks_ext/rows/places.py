"""Where the local files of a dataset may lie, those that its authors give out, and which page tells how."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry.folders import CHECKOUT, PACKAGE
from medtasks_ext.registry.functions import function_named
from medtasks_ext.rows.files import SUFFIXES

if TYPE_CHECKING:
    from medtasks_ext.registry import Dataset
    from medtasks_ext.rows.row import Row, Rows
    from medtasks_ext.rows.spec import RowSchema, Source

#: Below the data folder: downloads that were carried there (`medtasks data fetch --to`).
FETCHED = "fetched"
#: What helps where the cache cannot be written.
CACHE_REMEDY = "set MEDTASKS_CACHE to a folder that can be written"
#: The data folder where `MEDTASKS_DATA_DIR` names no other.
DATA_FOLDER = Path("medtasks_data")


def data_dir() -> Path | None:
    """`$MEDTASKS_DATA_DIR`, else `./medtasks_data` where that exists.

    Raises:
        MedtasksError: the variable names a folder that does not exist.
    """
    named = os.environ.get("MEDTASKS_DATA_DIR")
    if not named:
        return DATA_FOLDER if DATA_FOLDER.is_dir() else None
    folder = Path(named).expanduser()
    if not folder.is_dir():
        raise MedtasksError("no such folder", where=f"MEDTASKS_DATA_DIR={named}", remedy="correct the path")
    return folder


@contextmanager
def data_folder(folder: Path) -> Iterator[None]:
    before = os.environ.get("MEDTASKS_DATA_DIR")
    os.environ["MEDTASKS_DATA_DIR"] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ["MEDTASKS_DATA_DIR"]
        else:
            os.environ["MEDTASKS_DATA_DIR"] = before


class ReleasedInstruction(NamedTuple):
    text: str  # the instruction
    artefact: str  # repository and archive
    revision: str  # its commit, called unpinned


class AuthorsFiles(Protocol):
    """The authors' files of one dataset: what the class that `suite.yaml` names under `files` can do.

    `must`: it is an error that their words cannot be had. `fetch`: they may be downloaded otherwise.
    """

    schema: RowSchema  # the columns of their rows
    gold: str  # column of the gold answer. Rows in which it is blank are left out, or predicted if all are
    languages: Mapping[str, str]  # codes of languages besides ISO 639 -> those
    paths: list[tuple[str, str]]  # test and few-shot rows below the data folder, by spelling
    repo: str  # repository of the public release on the hub

    # test rows and few-shot rows below a data folder; None where there are no test rows
    def local(self, root: Path) -> tuple[Path, Path | None] | None: ...

    # rows of a file, or of a member of an archive; gold that was left out is blank
    def read(self, file: Path, member: str | None = None) -> list[Row]: ...

    # archive and member that hold `test` or `fewshot` in the release; None if it has no such dataset
    def released(self, split: str) -> tuple[Path, str] | None: ...

    def released_rows(self) -> Rows: ...

    # inputs of the test rows of a release that is on this machine; nothing is downloaded
    def released_inputs(self) -> list[str]: ...

    def with_released_examples(self, rows: Rows) -> Rows: ...

    def are_examples(self, rows: Rows) -> bool | None: ...

    def released_instruction(self, dataset: str, *, must: bool) -> ReleasedInstruction | None: ...

    def direct(self, instruction: str) -> str: ...

    # with reasoning asked for, if it can be (`line`: ours, for want of theirs); whether in the suite's words
    def reasoned(
        self, instruction: str, line: str, *, must: bool, fetch: bool
    ) -> tuple[str | None, bool]: ...


def authors_of(dataset: Dataset, source: Source) -> AuthorsFiles | None:
    """The authors' files of a dataset; None where they give none out."""
    suite, name = dataset.suite, source.official_name
    if not (name and suite.files):
        return None
    made: AuthorsFiles = function_named(suite.files, where=suite.file)(name, suite)
    return made


#: Files of `medtasks data template` and the owner's own wording, which stand beside row files.
BESIDE = ("README.md", "example.jsonl", "instruction.txt")


def letters(name: str) -> str:
    """A name without case, blanks and punctuation."""
    return "".join(char for char in name.lower() if char.isalnum())


def dataset_folder(dataset: Dataset) -> str:
    return f"{dataset.metadata.suite}/{dataset.folder.name}"


def row_files(split: str) -> list[str]:
    return [f"{split}{suffix}" for suffix in SUFFIXES]


def row_file(folder: Path, split: str) -> Path | None:
    """The file of rows of a split, whatever the case of its name; an empty one where there is no other."""
    wanted = row_files(split)
    here = folder.iterdir() if folder.is_dir() else ()
    files = [path for path in here if path.name.lower() in wanted and path.is_file()]
    files.sort(key=lambda path: (not path.stat().st_size, wanted.index(path.name.lower()), path.name))
    return next(iter(files), None)


def source_page(dataset: Dataset) -> Path | None:
    """The page of docs/sources that tells how the dataset's files are requested, if it is not open."""
    url, licence = dataset.metadata.url, dataset.metadata.licence.spdx
    if dataset.metadata.access == "open":
        return None
    holder = "README"
    if "physionet" in (url + licence).lower():
        holder = "physionet"
    elif "redivis.com" in url or "medalign.stanford.edu" in url:
        holder = "redivis"
    elif "portal.dbmi.hms.harvard.edu" in url:
        holder = "n2c2"
    pages = (folder / "docs" / "sources" / f"{holder}.md" for folder in (PACKAGE, CHECKOUT))
    return next((page for page in pages if page.is_file()), None)
