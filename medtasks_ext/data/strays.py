"""What lies in a data folder and is not read: mistyped names, and files behind others that come first."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from medtasks_ext.registry import Registry
from medtasks_ext.rows.authors import authors_of
from medtasks_ext.rows.files import SUFFIXES
from medtasks_ext.rows.folders import FETCHED
from medtasks_ext.rows.missing import source_of
from medtasks_ext.rows.places import BESIDE, dataset_folder, letters, row_file, row_files

_ASIDE = ("readme", "licence", "license", "thumbs")


@dataclass(frozen=True)
class Stray:
    path: str  # below the data folder
    why: str = "unknown name"
    meant: str | None = None  # the name that may be meant
    remedy: str = ""  # what else to call it


def find_strays(folder: Path, registry: Registry, read: set[str]) -> list[Stray]:
    """What lies in a data folder and is not `read`; hidden files and readmes aside."""
    return list(_strays(folder, PurePosixPath(), _Names(registry), read))


class _Names:
    """The paths below a data folder that have a meaning."""

    def __init__(self, registry: Registry) -> None:
        self.inside: dict[str, set[str]] = {}  # folder of a dataset -> names in it
        self.databases: set[str] = set()
        self.made: set[str] = set()  # folders of datasets whose rows are made from a source
        official = set[str]()
        for dataset in registry.datasets.values():
            source, folder = source_of(dataset), dataset_folder(dataset)
            self.inside[folder] = {*BESIDE, *row_files("test"), *row_files("fewshot"), "original"}
            if source.original:
                self.made.add(folder)
            if source.database:
                self.databases.add(f"{folder}/{source.database.file}")
            if authors := authors_of(dataset, source):
                official.update(path for paths in authors.paths for path in paths)
        self.suites = {path.partition("/")[0] for path in self.inside}
        self.official = {_key(path): path for path in sorted(official)}
        self.outer = sorted({*self.suites, *self.inside, *official})
        self._endings = {f".{ending}" for path in official for ending in path.rsplit(".", 2)[1:]}

    def has_meaning(self, place: str) -> bool:
        """Whether the loader looks for it; it takes official names in any case and punctuation."""
        parent, _, name = place.rpartition("/")
        return (
            name.lower() in self.inside.get(parent, ())
            or place in self.databases
            or _key(place) in self.official
        )

    def nearest(self, place: str) -> str | None:
        parent, _, name = place.rpartition("/")
        if parent in self.inside:
            close = difflib.get_close_matches(name, self.inside[parent], n=1, cutoff=0.75)
            return f"{parent}/{close[0]}" if close else None
        same = [known for known in self.outer if self._plain(known) == self._plain(place)]
        whole = [known for known in self.inside if letters(known) == letters(name)]  # medhelm_clear
        close = difflib.get_close_matches(place, self.outer, n=1, cutoff=0.8)
        return next(iter([*same, *whole, *close]), None)

    def _plain(self, place: str) -> str:
        """The last part of a path without suffixes, case and punctuation."""
        path = PurePosixPath(place)
        while path.suffix in (".jsonl", *self._endings):
            path = path.with_suffix("")
        return letters(path.name)


def _strays(root: Path, below: PurePosixPath, names: _Names, read: set[str]) -> Iterator[Stray]:
    for entry in sorted((root / below).iterdir()):
        place = (below / entry.name).as_posix()
        aside = entry.name.startswith(".") or entry.stem.lower() in _ASIDE
        if aside or place in read or place == FETCHED:
            continue
        if entry.is_dir() and (place in names.inside or place.removesuffix("/example") in names.suites):
            yield from _strays(root, below / entry.name, names, read)
        elif not names.has_meaning(place):
            meant = names.nearest(place)
            of_rows = below.as_posix() in names.inside and entry.suffix.lower() in SUFFIXES
            remedy = f"call rows to ask test{entry.suffix.lower()}" if of_rows and not meant else ""
            yield Stray(place, meant=meant, remedy=remedy)
        elif entry.name in BESIDE or place in names.databases:
            continue
        elif any(entry.iterdir()) if entry.is_dir() else entry.stat().st_size:
            yield Stray(place, _why_not(entry, place, names))


def _why_not(entry: Path, place: str, names: _Names) -> str:
    """Why a name that is looked for is not read."""
    parent = place.rpartition("/")[0]
    if entry.name == "original" and parent not in names.made:
        return f"no rows are made from a source here; they go to {parent}/test.jsonl"
    is_official = parent.endswith("/example")
    is_shots = entry.stem.lower() == "fewshot"
    if is_official or (is_shots and row_file(entry.parent, "test") is None):
        return "there are no test rows for these few-shot rows"
    return "other files of the dataset come first"


def _key(place: str) -> str:
    """An official path without case and punctuation in its name; its two suffixes stay."""
    parent, _, name = place.rpartition("/")
    stem, *endings = name.rsplit(".", 2)
    return f"{parent}/{letters(stem)}.{'.'.join(endings)}"
