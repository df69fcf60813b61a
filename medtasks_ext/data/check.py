"""Checking a folder of local files: every row, what the rows are like, and names nobody looks for."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from medtasks_ext.data.content import ContentCheck, Fault, errors_of
from medtasks_ext.data.fetch import MANIFEST, damaged_files
from medtasks_ext.data.oracle import Oracle, oracle_of
from medtasks_ext.data.rowlock import compare_rows
from medtasks_ext.data.strays import Stray, find_strays
from medtasks_ext.errors import MedtasksError, RowError, some
from medtasks_ext.prompts.load import check_rows
from medtasks_ext.rows.digests import has_digest, sha256_of
from medtasks_ext.rows.folders import FETCHED, data_dir, data_folder
from medtasks_ext.rows.missing import source_of
from medtasks_ext.rows.remote import remote_files
from medtasks_ext.rows.sources import find_origin, local_files, original_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from medtasks_ext.data.rowlock import RowsCompared
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.prompts.documents import Documents
    from medtasks_ext.registry import Dataset, Registry
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
        first = self.faults[0]
        return {
            "file": self.where,
            "column": first.column if isinstance(first, RowError) else None,
            "cause": self.what,
            "n": len(self.faults),
            "rows": self.rows,
            "remedy": first.remedy,
        }


def _cause(fault: MedtasksError) -> str:
    if not isinstance(fault, RowError):
        return fault.what
    return fault.cause or _OF_ONE_ROW.sub("", fault.what).strip(" :,")


def causes_of(faults: Iterable[MedtasksError]) -> list[Cause]:
    """Faults by what is wrong, the most frequent first."""
    by_cause: dict[tuple[str, str], list[MedtasksError]] = {}
    for fault in faults:
        by_cause.setdefault((str(fault.where), _cause(fault)), []).append(fault)
    causes = [Cause(where, what, faults) for (where, what), faults in by_cause.items()]
    return sorted(causes, key=lambda cause: -len(cause.faults))


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
            "files": self.files,
            "n_test": self.n_test,
            "n_fewshot": self.n_fewshot,
            "n_usable": self.n_usable,
            "valid": not self.faults,
            "causes": [item.record() for item in self.causes],
            "faults": [_fault(item) for item in self.faults],
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
    damaged: list[str] = field(default_factory=list)  # those of them that are missing or have other content

    @property
    def valid(self) -> bool:
        """Whether something is there and all of it can be used: no fault, and no name that looks mistyped."""
        n_rows = self.checked or self.n_fetched
        faulty = self.damaged or any(item.faults for item in self.checked)
        return bool(n_rows) and not faulty and not any(stray.meant for stray in self.strays)

    def record(self) -> Json:
        return {
            "folder": str(self.folder),
            "valid": self.valid,
            "datasets": [item.record() for item in self.checked],
            "not_there": self.absent,
            "not_read": [
                {"path": stray.path, "why": stray.why, "meant": stray.meant} for stray in self.strays
            ],
            "fetched": {"files": self.n_fetched, "damaged": self.damaged},
        }


def check_folder(folder: Path, registry: Registry, watch: Watch | None = None) -> FolderReport:
    """Read all local files as a run would; `watch` is told the dataset and row now and then."""
    if not folder.is_dir():
        raise _no_folder(folder, registry)
    report = FolderReport(folder)
    read: set[str] = set()
    with data_folder(folder):
        for dataset in registry.datasets.values():
            files = _files(dataset, folder)
            read.update(files)
            if files:
                report.checked.append(_checked(dataset, folder, files, watch))
            else:
                report.absent.append(dataset.id)
    report.strays = find_strays(folder, registry, read)
    if (folder / FETCHED / MANIFEST).is_file():
        report.n_fetched, report.damaged = damaged_files(folder)
    return report


def data_folder_above(path: Path, registry: Registry) -> Path | None:
    """The data folder, where the path is a suite's folder in it, a dataset's, or a file of one."""
    suites = {dataset.metadata.suite for dataset in registry.datasets.values()}
    return next((place.parent for place in (path, *path.parents[:2]) if place.name in suites), None)


def _no_folder(path: Path, registry: Registry) -> MedtasksError:
    if path.name in registry.datasets and path.parent == Path():
        dataset = registry.datasets[path.name]
        below = f"{dataset.metadata.suite}/{dataset.folder.name}"
        return MedtasksError(
            "a dataset, and no folder", where=path, remedy=f"name the data folder, which holds {below}/"
        )
    what = "a file, and no folder" if path.is_file() else "no such folder"
    above = data_folder_above(path, registry)
    named = f"medtasks data check {above}" if above and above.is_dir() else "name your data folder"
    return MedtasksError(what, where=path, remedy=named)


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
    checked = _checked(dataset, folder, _files(dataset, folder))
    if whole := [item for item in checked.faults if not isinstance(item, RowError)]:
        raise whole[0]
    rows = list(dict.fromkeys(item.row for item in checked.faults if isinstance(item, RowError)))
    if rows and not checked.n_test:
        raise checked.faults[0]
    return rows


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
    content = ContentCheck(dataset)
    row_check = check_rows(dataset, "local", partial(watch, dataset.id) if watch else None, content.look)
    n_test, n_fewshot = len(row_check.test), len(row_check.fewshot)
    wrong = content.faults()
    locked, remarks = (
        locked_faults(dataset, row_check.test) if row_check.test and not row_check.faults else ([], [])
    )
    wrong += [error for fault in locked for error in errors_of(fault, content.where)]
    known = known_content(dataset, [folder / file for file in files])
    faults = list(row_check.faults) if known.is_pinned else row_check.faults + wrong
    notes = [f"column {name} holds nothing in {rows(n)}" for name, n in row_check.blanks.items()]
    notes += (
        [f"{rows(n)} {what}" for what, n in row_check.notes.items()] + known.notes + content.notes + remarks
    )
    if known.is_pinned:  # nobody can mend a public file
        notes += [f"{cause.what}: {rows(len(cause.faults))}" for cause in causes_of(wrong)]
    if not faults and 0 < n_fewshot < SHOTS:
        notes.append(f"{n_fewshot} few-shot rows: the 5-shot task needs {SHOTS}")
    if not faults and not n_fewshot and n_test <= SHOTS:
        notes.append(
            f"no few-shot rows, and too few test rows to hold {SHOTS} out: the 5-shot task cannot run"
        )
    notes += filter(None, [content.form.unknown_language()])
    blind = row_check.test[0].loaded.record["n_without_gold"] if n_test else 0
    if 0 < blind < n_test and not known.is_pinned:
        faults = [*faults, *_without_gold(row_check.test)]
    elif blind:
        notes.append(f"{blind} rows without gold: predicted, not scored")
    if dataset.metadata.access != "open" and (
        shared := [file for file in files if _is_shared(folder / file)]
    ):
        notes.append(f"others on this machine may read {some(shared)}: chmod -R go= {folder}")
    oracle = oracle_of(dataset, [item for item in row_check.test if item["gold"] is not None])
    notes += _of_rows(dataset, row_check.test, oracle) if n_test else []
    if oracle and not oracle.is_enough(pinned=known.is_pinned):
        faults = [*faults, _not_highest(oracle, row_check.test[0].loaded.record["where"])]
    usable = _usable(row_check.test, faults)
    return Checked(dataset.id, files, n_test, n_fewshot, faults, notes, oracle, usable)


def _of_rows(dataset: Dataset, documents: Documents, oracle: Oracle | None) -> Iterator[str]:
    n, n_paper = len({str(item.get("item", item["id"])) for item in documents}), dataset.n_part
    if n != n_paper:
        yield f"{n:,} test rows; the suite's own test part has {n_paper:,}"
    if oracle and oracle.n_lost and oracle.highest is not None:
        answers = "1 gold answer" if oracle.n_lost == 1 else f"{oracle.n_lost:,} gold answers"
        yield (
            f"the suite's own reading loses a part of {answers}: perfect answers score {oracle.score:.4f},"
            f" and should {oracle.highest:.4f}"
        )


def _without_gold(documents: Documents) -> list[MedtasksError]:
    """A fault of each row without a gold answer, where others have one."""
    lacking = [item.row for item in documents if item["gold"] is None and "points" not in item]
    remedy = "fill it in, or take the row out: a run predicts it, and scores the others alone"
    fault = Fault("has no gold answer, and other rows have one", remedy, lacking)
    return errors_of(fault, documents[0].loaded.record["where"])


def _usable(documents: Documents, faults: list[MedtasksError]) -> int:
    """How many documents are of rows without faults; 0 where a fault is of the whole file."""
    if not all(isinstance(item, RowError) for item in faults):
        return 0
    faulty = {item.row for item in faults if isinstance(item, RowError)}
    return sum(item.row not in faulty for item in documents)


def _not_highest(oracle: Oracle, where: str) -> MedtasksError:
    return MedtasksError(
        f"the gold answers score {oracle.score:.4f} where {oracle.highest:.4f} is the highest score",
        where=where,
        remedy="look how they are read: medtasks preview TASK --data local --response TEXT",
    )


def rows(n: int) -> str:
    return f"{n:,} row{'' if n == 1 else 's'}"


def _fault(error: MedtasksError) -> Json:
    return {
        "file": str(error.where),
        "row": error.row if isinstance(error, RowError) else None,
        "column": error.column if isinstance(error, RowError) else None,
        "fault": error.what,
        "remedy": error.remedy,
    }


# ---------------------------------------------------------------------- files that the task's file pins


_HEX = 12  # digits of a hash that a note shows


class KnownContent(NamedTuple):
    notes: list[str]  # one for each file whose content, or whose name alone, is that of a pinned file
    is_pinned: bool  # whether each of them has the content of a pinned file


def known_content(dataset: Dataset, files: Sequence[Path]) -> KnownContent:
    """Whether files are those that the task's file pins.

    A file is compared with every pinned file of the dataset, then with the one that has its name.
    """
    pinned = {
        PurePosixPath(file.name).name: (file.digest, file.members)
        for file in remote_files(source_of(dataset))
        if file.digest
    }
    notes, n_pinned, members = [], 0, [item for file in files for item in _members(file)] if pinned else []
    for path in members:
        same = next((name for name, (digest, read) in pinned.items() if has_digest(path, digest, read)), None)
        if same:
            n_pinned += 1
            notes.append(f"{path.name} is the pinned {same} ({_short(pinned[same][0])})")
        elif path.name in pinned:
            here, there = _short(f"sha256:{sha256_of(path)}"), _short(pinned[path.name][0])
            notes.append(f"{path.name} is not the pinned file of this name: {here} here, {there} pinned")
    return KnownContent(notes, 0 < n_pinned == len(members))


def _members(file: Path) -> list[Path]:
    return sorted(item for item in file.rglob("*") if item.is_file()) if file.is_dir() else [file]


def _short(digest: str) -> str:
    kind, _, value = digest.partition(":")
    return f"{kind}:{value[:_HEX]}…"


# ---------------------------------------------------------------------- rows of the public file


_PUBLIC = "`medtasks data fetch` brings the public file; rows of your own are a dataset of their own"


def locked_faults(dataset: Dataset, documents: Documents) -> tuple[list[Fault], list[str]]:
    """Faults and notes of test rows, compared with the lock of the dataset; none where it knows no rows."""
    compared = compare_rows(dataset, dataset.lock, documents)
    if compared is None:
        return [], []
    if not compared.is_current:
        return [], ["rows cannot be compared with data.lock, which is of another version of this task"]
    if compared.is_equal:
        return [], ["the rows are those of the public file, to the letter"]
    return list(_of_documents(compared)) if compared.has_documents else [], []


def _of_documents(compared: RowsCompared) -> Iterator[Fault]:
    total = f"of the {compared.lock.n:,} rows of the public file"
    if compared.other_gold:
        yield Fault("has another gold answer than the public file", _PUBLIC, compared.other_gold)
    if compared.other_text:
        yield Fault("has another text or other options than the public file", _PUBLIC, compared.other_text)
    if compared.unknown:
        yield Fault("is no row of the public file", _PUBLIC, compared.unknown)
    if compared.n_missing and compared.n_missing < compared.lock.n:
        yield Fault(f"{compared.n_missing:,} {total} are missing", _PUBLIC, [])
    faulty = len(compared.other_gold) + len(compared.other_text) + len(compared.unknown)
    if not faulty and compared.n > compared.lock.n:
        yield Fault(f"{compared.n:,} rows where the public file has {compared.lock.n:,}", _PUBLIC, [])
