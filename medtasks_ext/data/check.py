"""Checking a folder of local files: every row, what the rows are like, and names nobody looks for."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from medtasks_ext.data.content import TOLERANCE, ContentCheck, Fault, errors_of, oracle_of
from medtasks_ext.data.fetch import damaged_files
from medtasks_ext.data.rowlock import are_locked
from medtasks_ext.errors import MedtasksError, RowError, some
from medtasks_ext.jsonfile import Json
from medtasks_ext.prompts.load import check_rows
from medtasks_ext.registry import Registry
from medtasks_ext.rows.places import (
    BESIDE,
    FETCHED,
    authors_of,
    data_dir,
    data_folder,
    dataset_folder,
    letters,
    row_files,
)
from medtasks_ext.rows.remote import has_digest, remote_files
from medtasks_ext.rows.sources import find_origin, local_files, original_folder, source_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from medtasks_ext.registry import Dataset
    from medtasks_ext.rows.row import Origin
    from medtasks_ext.rows.spec import Source

SHOTS = 5
#: What a message says of one row alone: which it is, how long its text is.
_OF_ONE_ROW = re.compile(
    r"\b(?:test|few-shot) row \d+(?:, item \d+)?(?: \(id [^)]*\))?| of \d+(?: characters?)?(?=>)"
)


def causes_of(faults: Iterable[MedtasksError]) -> list[Json]:
    """What is wrong, the most frequent first: in which file and column, in how many and which rows."""
    causes: dict[tuple[str, str], list[MedtasksError]] = {}
    for fault in faults:
        what = fault.what
        if isinstance(fault, RowError):
            what = fault.cause or _OF_ONE_ROW.sub("", what).strip(" :,")
        causes.setdefault((str(fault.where), what), []).append(fault)
    return [
        {
            "file": where,
            "column": getattr(found[0], "column", None),
            "cause": what if len(found) > 1 else found[0].what,
            "n": len(found),
            "rows": list(dict.fromkeys(item.row for item in found if isinstance(item, RowError))),
            "remedy": found[0].remedy,
        }
        for (where, what), found in sorted(causes.items(), key=lambda item: -len(item[1]))
    ]


class Checked(NamedTuple):
    faults: list[MedtasksError]  # what is wrong; rows with faults are not counted
    #: its files below the data folder, rows of the test part and of the pool, test rows that `--drop-faulty`
    #: leaves (none where a fault is of the whole file), causes, notes, what the gold answers score and should
    record: Json


def check_folder(folder: Path, registry: Registry, watch: Callable[[str], None]) -> Json:
    """Read all local files as a run would; `watch` is told which dataset is read.

    What is said of it is valid where something is there and all of it can be used: no fault, and no name that
    looks mistyped.
    """
    if not folder.is_dir():
        what = "expected a folder, got a file" if folder.is_file() else "no such folder"
        raise MedtasksError(
            what, where=folder, remedy="name your data folder, which holds bridge/, medhelm/, …"
        )
    checked, absent, read = list[Json](), list[str](), set[str]()
    with data_folder(folder):
        for dataset in registry.datasets.values():
            if files := _files(dataset, folder):
                read.update(files)
                watch(dataset.id)
                checked.append(_checked(dataset, folder, files).record)
            else:
                absent.append(dataset.id)
    strays = list(find_strays(folder, registry, read))
    n_fetched, damaged = 0, list[str]()
    if (folder / FETCHED).is_dir():
        n_fetched, damaged = damaged_files(folder, registry.datasets.values())
    right = all(item["valid"] for item in checked) and not any(stray["meant"] for stray in strays)
    return {
        "folder": str(folder),
        "valid": bool(checked or n_fetched) and right and not damaged,
        "datasets": checked,
        "not_there": absent,
        "not_read": strays,
        "fetched": {"files": n_fetched, "damaged": damaged},
    }


def check_dataset(dataset: Dataset, folder: Path) -> Checked:
    """Read the local files of one dataset, which has some, as a run would."""
    with data_folder(folder):
        return _checked(dataset, folder, _files(dataset, folder))


def faulty_rows(dataset: Dataset, origin: Origin | None = None) -> list[str]:
    """The local rows with faults, which may be left out (`--drop-faulty`); `[]` of rows that are not local.

    Raises MedtasksError: what is wrong is no fault of single rows, or all of them have one.
    """
    folder = data_dir()
    if folder is None or find_origin(dataset, source_of(dataset), origin) != "local":
        return []
    checked, rows = _checked(dataset, folder, _files(dataset, folder)), []
    for fault in checked.faults:
        if not isinstance(fault, RowError):
            raise fault
        rows.append(fault.row)
    if rows and not checked.record["n_test"]:
        raise checked.faults[0]
    return list(dict.fromkeys(rows))


def _is_shared(path: Path) -> bool:
    try:
        modes = [path.stat().st_mode, path.parent.stat().st_mode]
    except OSError:
        return False
    return os.name == "posix" and all(mode & 0o055 for mode in modes)


def _files(dataset: Dataset, folder: Path) -> list[str]:
    source = source_of(dataset)
    if files := local_files(dataset, source):
        paths = [files.test, files.fewshot, files.instruction]
    else:
        paths = [original_folder(dataset, source)]
    return [path.relative_to(folder).as_posix() for path in paths if path]


def _checked(dataset: Dataset, folder: Path, files: list[str]) -> Checked:
    content, paths = ContentCheck(dataset), [folder / file for file in files]
    found = check_rows(dataset, "local", content.look)
    n_test, n_fewshot = len(found.test), len(found.fewshot)
    wrong, remarks = content.faults(), list[str]()
    if found.test and not found.faults and (equal := are_locked(dataset, found.test)) is not None:
        remarks = [f"the rows are {'' if equal else 'not '}those of the public file, to the letter"]
    is_pinned = are_pinned(dataset, paths)
    notes = [f"column {name} holds nothing in {rows(n)}" for name, n in found.blanks.items()]
    notes += [f"{rows(n)} {what}" for what, n in found.notes.items()]
    notes += content.notes + remarks
    faults = list(found.faults)
    if is_pinned:  # nobody can mend a public file
        notes += [f"{cause['cause']}: {rows(cause['n'])}" for cause in causes_of(wrong)]
    else:
        faults += wrong
    if not faults and n_fewshot < SHOTS and (n_fewshot or n_test <= SHOTS):
        notes.append(f"{n_fewshot} few-shot rows: the 5-shot task needs {SHOTS}, or more test rows")
    notes += filter(None, [content.form.unknown_language()])
    blind, where = 0, ""
    if n_test:
        record = found.test[0].loaded.record
        blind, where = record["n_without_gold"], record["where"]
    if 0 < blind < n_test and not is_pinned:
        lacking = [item.row for item in found.test if item["gold"] is None and "points" not in item]
        remedy = "fill it in, or take the row out: a run predicts it, and scores only the others"
        faults += errors_of(Fault("has no gold answer, and other rows have one", remedy, lacking), where)
    elif blind:
        notes.append(f"{blind} rows without gold: predicted, not scored")
    shared = [file for file, path in zip(files, paths, strict=True) if _is_shared(path)]
    if dataset.metadata.access != "open" and shared:
        notes.append(f"others on this machine may read {some(shared)}: chmod -R go= {folder}")
    oracle = oracle_of(dataset, [item for item in found.test if item["gold"] is not None])
    score, highest, n_lost = oracle or (0.0, None, 0)
    n_asked, n_paper = len({str(item.get("item", item["id"])) for item in found.test}), dataset.n_part
    if n_test and n_paper and n_asked != n_paper:  # a dataset of no suite has no other test part
        notes.append(f"{n_asked:,} test rows; the suite's own test part has {n_paper:,}")
    if n_lost:
        answers = "1 gold answer" if n_lost == 1 else f"{n_lost:,} gold answers"
        loss = f"perfect answers score {score:.4f}, and should {highest:.4f}"
        notes.append(f"the suite's own reading loses a part of {answers}: {loss}")
    if highest is not None and not is_pinned and highest - score > dataset.metadata.gold_loss + TOLERANCE:
        what = f"the gold answers score {score:.4f} where {highest:.4f} is the highest score"
        remedy = "look how they are read: medtasks preview TASK --data local --response TEXT"
        faults.append(MedtasksError(what, where=where, remedy=remedy))
    faulty = {item.row if isinstance(item, RowError) else None for item in faults}
    said: Json = {
        "id": dataset.id,
        "files": files,
        "n_test": n_test,
        "n_fewshot": n_fewshot,
        "n_usable": 0 if None in faulty else sum(item.row not in faulty for item in found.test),
        "valid": not faults,
        "causes": causes_of(faults),
        "notes": notes,
        "oracle": score if oracle else None,
        "highest": highest,
    }
    return Checked(faults, said)


def rows(n: int) -> str:
    return f"{n:,} row{'' if n == 1 else 's'}"


def are_pinned(dataset: Dataset, files: Iterable[Path]) -> bool:
    """Whether each of the files, and of those in folders, is one that the task's lock pins."""
    pins = [(file.digest, file.members) for file in remote_files(source_of(dataset)) if file.digest]
    if not pins:
        return False
    members = [path for place in files for path in (place.rglob("*") if place.is_dir() else [place])]
    return all(any(has_digest(path, *pin) for pin in pins) for path in members if path.is_file())


# ---------------------------------------------------------------------- names nobody looks for


_ROWS = (*row_files("test"), *row_files("fewshot"))
_ASIDE = ("readme", "licence", "license", "thumbs")


def find_strays(folder: Path, registry: Registry, read: set[str]) -> Iterator[Json]:
    """What lies in a data folder and is not `read`, why, and the name that may be meant.

    Hidden and empty files and readmes are no strays.
    """
    beside, inside, official = {FETCHED}, set[str](), set[str]()
    for dataset in registry.datasets.values():
        source, place = source_of(dataset), dataset_folder(dataset)
        inside.add(place)
        names = [*BESIDE, *(["original"] if source.original else [])]
        names += [source.database.file] if source.database else []
        beside |= {f"{place}/{name}" for name in names}
        if authors := authors_of(dataset, source):
            official |= {path for paths in authors.paths for path in paths}
    walked = {*inside, *(path.rpartition("/")[0] for path in (*inside, *official))}
    named = sorted({*walked, *official})
    known = {letters(said): place for place in named for said in (place.rpartition("/")[2], place)}
    in_official = {*map(letters, official)}  # the loader takes these in any case and punctuation
    for place in _entries(folder, "", walked):
        parent, _, name = place.rpartition("/")
        meant, why = None, "unknown name"
        if name.startswith(".") or Path(name).stem.lower() in _ASIDE or place in read or place in beside:
            continue
        if (parent in inside and name.lower() in _ROWS) or letters(place) in in_official:
            why = "other files come first, or the test rows are missing"
        elif parent in inside:
            close, why = get_close_matches(name, _ROWS, n=1, cutoff=0.75), "rows are called test or fewshot"
            meant = f"{parent}/{close[0]}" if close else None
        else:
            near = (get_close_matches(letters(said), known, n=1, cutoff=0.8) for said in (name, place))
            meant = next((known[close[0]] for close in near if close), None)
        yield {"path": place, "why": why, "meant": meant}


def _entries(folder: Path, below: str, walked: set[str]) -> Iterator[str]:
    for entry in sorted((folder / below).iterdir()):
        place = entry.relative_to(folder).as_posix()
        if entry.is_dir() and place in walked:
            yield from _entries(folder, place, walked)
        elif entry.is_dir() or entry.lstat().st_size:
            yield place


# ---------------------------------------------------------------------- what is at hand


def status_of(dataset: Dataset, forced: Origin | None) -> Json:
    """Where rows would be read from, and, where that needs no network, what a look at them all found.

    `pinned` is False where a download's content was not known before its first use. No text of a row.
    """
    source = source_of(dataset)
    origin = find_origin(dataset, source, forced)
    where, revision, is_here = _place(dataset, source, origin)
    found = check_rows(dataset, origin) if is_here else None
    faults = [str(fault) for fault in found.faults] if found else []
    return {
        "id": dataset.id,
        "access": dataset.metadata.access,
        "origin": origin,
        "where": where,
        "revision": revision,
        "pinned": origin != "hub" or all(file.is_pinned for file in remote_files(source)),
        "here": is_here,
        "n_test": found and len(found.test),
        "n_questions": found and len({item.get("item", item["id"]) for item in found.test}),
        "n_fewshot": found and len(found.fewshot),
        "n_paper": dataset.n_part,
        "checks": None if found is None else "failed" if faults else "passed",
        "faults": faults,
        "exclusions": found.test[0].loaded.exclusions if found and found.test else None,
    }


def _place(dataset: Dataset, source: Source, origin: Origin | None) -> tuple[str | None, str | None, bool]:
    """File, folder or download; its revision; whether rows can be read without the network."""
    if origin == "sample":
        return str(dataset.sample_file), None, True
    if origin == "local":
        files = local_files(dataset, source)
        return str(files.test if files else original_folder(dataset, source)), None, True
    if origin == "release" and (authors := authors_of(dataset, source)):
        return authors.repo, None, True
    if origin == "hub" and source.download:
        remote = remote_files(source)
        return remote[0].source, source.download.revision, all(file.here() for file in remote)
    return None, None, False
