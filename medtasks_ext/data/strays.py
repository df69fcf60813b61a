"""What lies in a data folder and is not read: mistyped names, and files behind others that come first."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

from medtasks_ext.registry import Registry
from medtasks_ext.rows.authors import authors_of
from medtasks_ext.rows.folders import FETCHED
from medtasks_ext.rows.missing import source_of
from medtasks_ext.rows.places import BESIDE, dataset_folder, letters, row_files

_ROWS = (*row_files("test"), *row_files("fewshot"))
_ASIDE = ("readme", "licence", "license", "thumbs")


class Stray(NamedTuple):
    path: str  # below the data folder
    why: str
    meant: str | None = None  # the name that may be meant


def find_strays(folder: Path, registry: Registry, read: set[str]) -> Iterator[Stray]:
    """What lies in a data folder and is not `read`; hidden and empty files and readmes aside."""
    beside, inside, official = {FETCHED}, set[str](), set[str]()
    for dataset in registry.datasets.values():
        source, place = source_of(dataset), dataset_folder(dataset)
        inside.add(place)
        beside |= {f"{place}/{name}" for name in BESIDE}
        beside |= {f"{place}/original"} if source.original else set()
        beside |= {f"{place}/{source.database.file}"} if source.database else set()
        if authors := authors_of(dataset, source):
            official |= {path for paths in authors.paths for path in paths}
    walked = {*inside, *(path.rpartition("/")[0] for path in (*inside, *official))}
    named = sorted({*walked, *official})
    known = {letters(said): place for place in named for said in (place.rpartition("/")[2], place)}
    in_official = {*map(letters, official)}  # the loader takes these in any case and punctuation
    for place in _entries(folder, "", walked):
        parent, _, name = place.rpartition("/")
        aside = name.startswith(".") or Path(name).stem.lower() in _ASIDE
        if aside or place in read or place in beside:
            continue
        if (parent in inside and name.lower() in _ROWS) or letters(place) in in_official:
            yield Stray(place, "other files come first, or the test rows are missing")
        elif parent in inside:
            close = get_close_matches(name, _ROWS, n=1, cutoff=0.75)
            yield Stray(place, "rows are called test or fewshot", f"{parent}/{close[0]}" if close else None)
        else:
            near = (get_close_matches(letters(said), known, n=1, cutoff=0.8) for said in (name, place))
            yield Stray(place, "unknown name", next((known[close[0]] for close in near if close), None))


def _entries(folder: Path, below: str, walked: set[str]) -> Iterator[str]:
    for entry in sorted((folder / below).iterdir()):
        place = entry.relative_to(folder).as_posix()
        if entry.is_dir() and place in walked:
            yield from _entries(folder, place, walked)
        elif entry.is_dir() or entry.lstat().st_size:
            yield place
