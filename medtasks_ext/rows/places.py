"""Where the local files of a dataset may lie, and which page tells how to get them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks_ext.registry.folders import CHECKOUT, PACKAGE
from medtasks_ext.rows.authors import authors_of
from medtasks_ext.rows.files import SUFFIXES

if TYPE_CHECKING:
    from medtasks_ext.registry import Dataset
    from medtasks_ext.rows.spec import Source

#: Files of `medtasks data template` and the owner's own wording, which stand beside row files.
BESIDE = ("README.md", "example.jsonl", "example.csv", "example.xlsx", "instruction.txt")


@dataclass(frozen=True)
class RowLayout:
    #: `official` (the authors' own files), `rows` (in one of several formats), `original` (the source's)
    kind: str
    needed: list[str]  # paths below the data folder; for `original` patterns below its folder
    optional: list[str]  # paths that may be there besides: few-shot rows
    folder: str  # of the dataset, below the data folder

    @property
    def short(self) -> str:
        original = self.kind == "original"
        return f"{self.folder}/ (as the source distributes them)" if original else self.needed[0]


def letters(name: str) -> str:
    """A name without case, blanks and punctuation."""
    return "".join(char for char in name.lower() if char.isalnum())


def dataset_folder(dataset: Dataset) -> str:
    return f"{dataset.metadata.suite}/{dataset.folder.name}"


def places(dataset: Dataset, source: Source) -> list[RowLayout]:
    """The layouts that the loader looks for, the first that is there is used."""
    folder = dataset_folder(dataset)
    layouts = []
    if authors := authors_of(dataset, source):
        test, fewshot = authors.paths[0]
        layouts.append(RowLayout("official", [test], [fewshot], folder))
    layouts.append(RowLayout("rows", [f"{folder}/test.jsonl"], [f"{folder}/fewshot.jsonl"], folder))
    layouts += [
        RowLayout("original", layout.patterns, [], f"{folder}/original") for layout in source.original
    ]
    return layouts


def row_files(split: str) -> list[str]:
    return [f"{split}{suffix}" for suffix in SUFFIXES]


def row_file(folder: Path, split: str) -> Path | None:
    """The file of rows of a split, whatever the case of its name; an empty one where there is no other."""
    wanted = row_files(split)
    here = [path for path in folder.iterdir() if path.name.lower() in wanted] if folder.is_dir() else []
    files = sorted(
        (path for path in here if path.is_file()),
        key=lambda path: (wanted.index(path.name.lower()), path.name),
    )
    return next((path for path in files if path.stat().st_size), next(iter(files), None))


def source_page(dataset: Dataset) -> Path | None:
    """The page of docs/sources that tells how the dataset's files are requested, if it is not open."""
    if dataset.metadata.access == "open":
        return None
    folders = (PACKAGE / "docs" / "sources", CHECKOUT / "docs" / "sources")
    pages = (folder / f"{_holder(dataset)}.md" for folder in folders)
    return next((page for page in pages if page.is_file()), None)


def _holder(dataset: Dataset) -> str:
    url, licence = dataset.metadata.url, dataset.metadata.licence.spdx
    if "physionet" in (url + licence).lower():
        return "physionet"
    if "redivis.com" in url or "medalign.stanford.edu" in url:
        return "redivis"
    if "portal.dbmi.hms.harvard.edu" in url:
        return "n2c2"
    return "README"
