"""Checking a folder of local files: every row, what the rows are like, and names nobody looks for."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from medtasks_ext.data.content import ContentCheck, Fault, Oracle, errors_of, oracle_of
from medtasks_ext.data.fetch import damaged_files
from medtasks_ext.data.rowlock import are_locked
from medtasks_ext.errors import MedtasksError, RowError, some
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

    from medtasks_ext.jsonfile import Json
    from medtasks_ext.prompts.documents import Documents
    from medtasks_ext.registry import Dataset
    from medtasks_ext.rows.row import Origin

#: Told which dataset, and which of its rows, is looked at.
Watch = Callable[[str, str], None]
SHOTS = 5
#: What a message says of one row alone: which it is, how long its text is.
_OF_ONE_ROW = re.compile(
    r"\b(?:test|few-shot) row \d+(?:, item \d+)?(?: \(id [^)]*\))?| of \d+(?: characters?)?(?=>)"
)


@dataclass(frozen=True)
class Cause:
    where: str  # the file
    what: str  # what is wrong, without the row
    faults: list[MedtasksError]  # one or more

    @property
    def rows(self) -> list[str]:
        return list(dict.fromkeys(item.row for item in self.faults if isinstance(item, RowError)))

    def record(self) -> Json:
        first = _record(self.faults[0])
        kept = {"file": self.where, "column": first["column"], "cause": self.what, "n": len(self.faults)}
        return {**kept, "rows": self.rows, "remedy": first["remedy"]}


def causes_of(faults: Iterable[MedtasksError]) -> list[Cause]:
    """Faults by what is wrong, the most frequent first."""
    causes: dict[tuple[str, str], Cause] = {}
    for fault in faults:
        what, where = fault.what, str(fault.where)
        if isinstance(fault, RowError):
            what = fault.cause or _OF_ONE_ROW.sub("", what).strip(" :,")
        causes.setdefault((where, what), Cause(where, what, [])).faults.append(fault)
    return sorted(causes.values(), key=lambda cause: -len(cause.faults))


def _record(error: MedtasksError) -> Json:
    row, column = (error.row, error.column) if isinstance(error, RowError) else (None, None)
    of_row = {"row": row, "column": column, "fault": error.what, "remedy": error.remedy}
    return {"file": str(error.where), **of_row}


@dataclass(frozen=True)
class Checked:
    dataset: str
    files: list[str]  # those that are read, below the data folder
    n_test: int  # rows that can be evaluated
    n_fewshot: int  # rows of the few-shot pool
    faults: list[MedtasksError]  # what is wrong; rows with faults are not counted above
    notes: list[str]  # what is right but worth knowing
    oracle: Oracle | None = None  # what the gold answers score; None where judges do, or no row can be used
    n_usable: int = 0  # test documents that `--drop-faulty` leaves; 0 where a fault is of the whole file

    @property
    def causes(self) -> list[Cause]:
        return causes_of(self.faults)

    def record(self) -> Json:
        return {
            "id": self.dataset,
            **{name: getattr(self, name) for name in ("files", "n_test", "n_fewshot", "n_usable")},
            "valid": not self.faults,
            "causes": [item.record() for item in self.causes],
            "faults": [_record(item) for item in self.faults],
            "notes": self.notes,
            "oracle": self.oracle.score if self.oracle else None,
        }


@dataclass
class FolderReport:
    folder: Path
    checked: list[Checked] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    strays: list[Stray] = field(default_factory=list)
    n_fetched: int = 0  # files that `medtasks data fetch --to` recorded here
    damaged: list[str] = field(default_factory=list)  # those of them that have other content

    @property
    def valid(self) -> bool:
        """Whether something is there and all of it can be used: no fault, and no name that looks mistyped."""
        wrong = self.damaged or any(item.faults for item in self.checked) or any(s.meant for s in self.strays)
        return bool(self.checked or self.n_fetched) and not wrong

    def record(self) -> Json:
        return {
            "folder": str(self.folder),
            "valid": self.valid,
            "datasets": [item.record() for item in self.checked],
            "not_there": self.absent,
            "not_read": [stray._asdict() for stray in self.strays],
            "fetched": {"files": self.n_fetched, "damaged": self.damaged},
        }


def check_folder(folder: Path, registry: Registry, watch: Watch | None = None) -> FolderReport:
    """Read all local files as a run would; `watch` is told the dataset and row now and then."""
    if not folder.is_dir():
        what = "expected a folder, got a file" if folder.is_file() else "no such folder"
        above = data_folder_above(folder, registry)
        remedy = f"medtasks data check {above}" if above and above.is_dir() else "name your data folder"
        if folder.name in registry.datasets and folder.parent == Path():
            dataset = registry.datasets[folder.name]
            what = "expected a folder, got the name of a dataset"
            remedy = f"name the data folder, which holds {dataset.metadata.suite}/{dataset.folder.name}/"
        raise MedtasksError(what, where=folder, remedy=remedy)
    report, read = FolderReport(folder), set[str]()
    with data_folder(folder):
        for dataset in registry.datasets.values():
            if files := _files(dataset, folder):
                read.update(files)
                report.checked.append(_checked(dataset, folder, files, watch))
            else:
                report.absent.append(dataset.id)
    report.strays = list(find_strays(folder, registry, read))
    if (folder / FETCHED).is_dir():
        report.n_fetched, report.damaged = damaged_files(folder, registry.datasets.values())
    return report


def data_folder_above(path: Path, registry: Registry) -> Path | None:
    """The data folder, where the path is a suite's folder in it, a dataset's, or a file of one."""
    suites = {dataset.metadata.suite for dataset in registry.datasets.values()}
    return next((place.parent for place in (path, *path.parents[:2]) if place.name in suites), None)


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
    if rows and not checked.n_test:
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


def _checked(dataset: Dataset, folder: Path, files: list[str], watch: Watch | None = None) -> Checked:
    if watch:
        watch(dataset.id, "reading its files")
    content, paths = ContentCheck(dataset), [folder / file for file in files]
    found = check_rows(dataset, "local", partial(watch, dataset.id) if watch else None, content.look)
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
        notes += [f"{cause.what}: {rows(len(cause.faults))}" for cause in causes_of(wrong)]
    else:
        faults += wrong
    if not faults and 0 < n_fewshot < SHOTS:
        notes.append(f"{n_fewshot} few-shot rows: the 5-shot task needs {SHOTS}")
    if not faults and not n_fewshot and n_test <= SHOTS:
        notes.append(
            f"no few-shot rows, and too few test rows to hold {SHOTS} out: the 5-shot task cannot run"
        )
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
    notes += _of_rows(dataset, found.test, oracle) if n_test else []
    if oracle and not oracle.is_enough(pinned=is_pinned):
        what = f"the gold answers score {oracle.score:.4f} where {oracle.highest:.4f} is the highest score"
        remedy = "look how they are read: medtasks preview TASK --data local --response TEXT"
        faults.append(MedtasksError(what, where=where, remedy=remedy))
    faulty = {item.row if isinstance(item, RowError) else None for item in faults}
    usable = 0 if None in faulty else sum(item.row not in faulty for item in found.test)
    return Checked(dataset.id, files, n_test, n_fewshot, faults, notes, oracle, usable)


def _of_rows(dataset: Dataset, documents: Documents, oracle: Oracle | None) -> Iterator[str]:
    n, n_paper = len({str(item.get("item", item["id"])) for item in documents}), dataset.n_part
    if n_paper and n != n_paper:  # a dataset of no suite has no other test part
        yield f"{n:,} test rows; the suite's own test part has {n_paper:,}"
    if oracle and oracle.n_lost and oracle.highest is not None:
        answers = "1 gold answer" if oracle.n_lost == 1 else f"{oracle.n_lost:,} gold answers"
        yield (
            f"the suite's own reading loses a part of {answers}: perfect answers score {oracle.score:.4f},"
            f" and should {oracle.highest:.4f}"
        )


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
