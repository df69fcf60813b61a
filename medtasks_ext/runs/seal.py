"""The seal of a run's folder: `RUN/seal.jsonl`, from which one hash follows over every file, the root.

Whoever writes to the folder notes here, before a file takes its place, what the file will hold; a crash in
between leaves the content of the note or the one before. Appended files, whose lines are chained, are noted
by their size and their last chain. When a call ends, a line with a *root* closes the notes: the SHA-256 of
everything in `seal.jsonl` up to there and of `run.json` without its seals. `run.json` keeps the last root and
the former ones. A folder whose last line is no root is *open*: a call is under way, or was cut off.

What nobody noted is not taken into a seal: a file that was changed, added or taken away shows ever after.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, TypeAlias

from medtasks_ext.atomic import cannot_write, check_all_regular, keeper_of, kept, sync_folder
from medtasks_ext.errors import MedtasksError, some
from medtasks_ext.jsonfile import Json, json_bytes, read_json, write_json
from medtasks_ext.runs.chain import ChainedFile, head_of, holds_head
from medtasks_ext.runs.lease import Borrowed, Lease
from medtasks_ext.runs.manifest import FILE as MANIFEST
from medtasks_ext.runs.manifest import FolderSeal, Manifest

FILE = "seal.jsonl"
#: Why a folder has a root: what the call did that ended with it.
State: TypeAlias = Literal["written", "resumed", "extended", "judged", "rated", "rescored", "found"]
#: What of `run.json` says itself which root the folder has.
_SEALS = ("seal", "roots")
#: Folders of appended files.
_APPENDED = ("responses/*.jsonl", "judgements/*.jsonl")
_SHORT = 12
_CHANGED = "was changed after it was written"


@dataclass(frozen=True, slots=True)
class Content:
    bytes: int
    digest: str  # SHA-256 in hexadecimal; of a chained file the chain of its last line
    chained: bool = False


@dataclass(frozen=True, slots=True)
class Root:
    root: str  # SHA-256 in hexadecimal
    state: State
    at: str  # local time
    manifest: str  # SHA-256 of `run.json` without its seals

    @property
    def words(self) -> str:
        return f"{self.root[:_SHORT]} ({self.state} {self.at})"

    def record(self) -> FolderSeal:
        return FolderSeal(made=self.at, digest=self.root, why=self.state)


@dataclass(frozen=True)
class Change:
    file: str  # below the run's folder
    what: str  # is wrong with it


@dataclass
class Notes:
    files: dict[str, Content] = field(default_factory=dict)  # that are there
    #: file -> what it held before the last note, in an open folder: a crash may have left that
    before: dict[str, Content | None] = field(default_factory=dict)
    roots: list[Root] = field(default_factory=list)
    #: root -> files of which it was made
    trees: dict[str, dict[str, Content]] = field(default_factory=dict)
    is_open: bool = True  # whether something was noted since the last root
    end: int = 0  # bytes of whole lines
    changes: list[Change] = field(default_factory=list)  # what does not hold in the file itself

    @property
    def root(self) -> Root | None:
        return self.roots[-1] if self.roots else None


def read_notes(folder: Path, *, trees: bool = False) -> Notes | None:
    """None where there is no `seal.jsonl`; a last line that a crash cut short is left out."""
    path = folder / FILE
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    notes, digest = Notes(end=content.rfind(b"\n") + 1), sha256()
    for number, line in enumerate(content[: notes.end].splitlines(keepends=True), start=1):
        try:
            record = json.loads(line)
            if "root" in record:
                root = Root(**record)
                if root.root != _root(digest, root):
                    notes.changes.append(Change(FILE, f"line {number}: not the root of the lines before it"))
                notes.roots.append(root)
                notes.before, notes.is_open = {}, False
                if trees:
                    notes.trees[root.root] = dict(notes.files)
            else:
                _note(notes, record)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise MedtasksError(f"line {number} is damaged", where=path, remedy=_RESTORE) from None
        digest.update(line)
    return notes


_LOST = "is missing, and run.json says that it was there"
_RESTORE = (
    "bring the file back from a copy; or take it, and `seal` and `roots` in run.json, away: the folder then "
    "counts as found and not as written"
)


def _note(notes: Notes, record: Mapping[str, Any]) -> None:
    name = str(record["file"])
    notes.before[name] = notes.files.get(name)
    if record.get("gone"):
        notes.files.pop(name, None)
    else:
        chained = "head" in record
        digest = str(record["head" if chained else "sha256"])
        notes.files[name] = Content(int(record["bytes"]), digest, chained)
    notes.is_open = True


def _root(before: Any, root: Root) -> str:
    """Follows from the hash over the lines before it."""
    digest = before.copy()
    digest.update("\n".join((root.state, root.at, root.manifest)).encode())
    return str(digest.hexdigest())


def _manifest(folder: Path) -> Json:
    Manifest.read(folder)  # says what is wrong with it
    content: Json = read_json(folder / MANIFEST)
    return content


def _manifest_digest(content: Json) -> str:
    """Of `run.json`, whatever it says of seals."""
    kept_keys = {key: value for key, value in content.items() if key not in _SEALS}
    return sha256(json.dumps(kept_keys, sort_keys=True).encode()).hexdigest()


def sha256_of(path: Path) -> str:
    digest = sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


class Journal:
    """The notes as a process writes them: the keeper of a run's folder; its first root says what it is."""

    def __init__(self, folder: Path, check: Callable[[], None], state: State = "written") -> None:
        self._folder, self._check, self.state = folder.resolve(), check, state
        self._path = self._folder / FILE
        self._file: int | None = None
        self._appended: dict[str, Callable[[], tuple[int, str]]] = {}

    # what the keeper of a folder hears

    def writing(self) -> None:
        self._check()

    def taking(self, path: Path, size: int, digest: str) -> None:
        self._check()
        if (name := self._name(path)) is not None:
            self._add({"file": name, "bytes": size, "sha256": digest})

    def removing(self, path: Path) -> None:
        self._check()
        if (name := self._name(path)) is not None:
            self._add({"file": name, "gone": True})

    def appending(self, path: Path, state: Callable[[], tuple[int, str]]) -> None:
        """Remember a chained file, whose end stands in the next root."""
        if (name := self._name(path)) is not None:
            self._appended[name] = state

    def chained(self, path: Path, size: int, head: str) -> None:
        """Note the end of a chained file that this process has read to its end or is about to put there."""
        if (name := self._name(path)) is not None:
            self._add({"file": name, "bytes": size, "head": head})

    def _name(self, path: Path) -> str | None:
        """None for what is not sealed."""
        inside = path.parent.resolve().joinpath(path.name).relative_to(self._folder)
        name = inside.as_posix()
        return None if name in (MANIFEST, FILE) or any(part[0] == "." for part in inside.parts) else name

    def _add(self, record: Json) -> None:
        """Append a line in one write, so that the process that scores beside the run may do so as well."""
        try:
            if self._file is None:
                self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
                sync_folder(self._folder)
            os.write(self._file, json_bytes(record) + b"\n")
            os.fsync(self._file)
        except OSError as error:
            raise cannot_write(self._path, error) from None

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    # beginning and end of a call

    def begin(self) -> None:
        """Take up a folder as an earlier call left it.

        A folder of an older version is noted as it is found. After a call that was cut off, it is seen which
        of its last notes came true.
        """
        notes = read_notes(self._folder)
        if notes is None:
            if (self._folder / MANIFEST).is_file():
                if Manifest.read(self._folder).roots:
                    raise MedtasksError(_LOST, where=self._path, remedy=_RESTORE)
                self._find()
            return
        with suppress(OSError):
            if self._path.stat().st_size > notes.end:
                os.truncate(self._path, notes.end)
        if notes.is_open:
            self._settle(notes)

    def _find(self) -> None:
        for path in sorted(_files(self._folder)):
            if (name := self._name(path)) is None:
                continue
            end = head_of(path) if _is_appended(name) else None
            if end is not None:
                self.chained(path, *end)
            else:
                self._add({"file": name, "bytes": path.stat().st_size, "sha256": sha256_of(path)})
        self._close_with("found")

    def _settle(self, notes: Notes) -> None:
        for name, before in notes.before.items():
            noted = notes.files.get(name)
            if noted is not None and noted.chained:
                continue
            there = _content(self._folder / name)
            if there != noted and there == before:
                self._add({"file": name, "gone": True} if before is None else _record(name, before))
        for pattern in _APPENDED:
            for path in sorted(self._folder.glob(pattern)):
                self._settle_appended(path, notes)

    def _settle_appended(self, path: Path, notes: Notes) -> None:
        """Lines that a call appended which was cut off, if they are as they were written."""
        noted = notes.files.get(self._name(path) or "")
        chained = noted is not None and noted.chained  # else of an older version, whose lines carry no chain
        if noted is not None and chained and head_of(path) == (noted.bytes, noted.digest):
            return
        file = ChainedFile(path)
        try:
            for _ in file.read():
                pass
        except MedtasksError:  # said when the file's turn comes
            return
        if not file.seal.lines:  # not of such a file, or empty
            return
        grown = noted is not None and file.seal.bytes >= noted.bytes
        if noted is None or not chained or (grown and holds_head(path, noted.bytes, noted.digest)):
            self.chained(path, file.seal.bytes, file.seal.head)

    def seal(self) -> str | None:
        """Close the notes with a root, and write it into `run.json`; returns the root.

        None where the folder holds no run. Nothing is written where nothing has changed.
        """
        if not (self._folder / MANIFEST).is_file():
            return None
        notes = read_notes(self._folder) or Notes()
        for name, state in self._appended.items():
            size, head = state()
            if size and notes.files.get(name) != Content(size, head, chained=True):
                self._add({"file": name, "bytes": size, "head": head})
        return self._close_with(self.state)

    def _close_with(self, state: State) -> str:
        content = _manifest(self._folder)
        notes, digest = read_notes(self._folder) or Notes(), _manifest_digest(content)
        if notes.is_open or notes.root is None or notes.root.manifest != digest:
            done: State = "resumed" if state == "written" and notes.roots else state
            bare = Root("", done, time.strftime("%Y-%m-%dT%H:%M:%S"), digest)
            before = self._path.read_bytes() if self._path.is_file() else b""
            root = replace(bare, root=_root(sha256(before), bare))
            self._add({name: getattr(root, name) for name in ("state", "at", "manifest", "root")})
            notes.roots.append(root)
        roots = [root.record().model_dump(mode="json") for root in notes.roots]
        last = notes.roots[-1]
        if content.get("roots") != roots or content.get("seal") != roots[-1]:
            self._check()
            write_json(self._folder / MANIFEST, {**content, "seal": roots[-1], "roots": roots})
        return last.root


def _record(name: str, content: Content) -> Json:
    return {"file": name, "bytes": content.bytes, "head" if content.chained else "sha256": content.digest}


def _content(path: Path) -> Content | None:
    """None where there is no file that is written whole."""
    try:
        return Content(path.stat().st_size, sha256_of(path))
    except OSError:
        return None


def _is_appended(name: str) -> bool:
    return any(Path(name).match(pattern) for pattern in _APPENDED)


def _files(folder: Path) -> Iterator[Path]:
    """All files below a folder but those whose names begin with a dot, which nobody reads."""
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name[0] != "."]
        yield from (Path(place, name) for name in names if name[0] != ".")


class RunLease:
    """Held while a command writes to a run's folder: its lease, its notes, and at the end its root."""

    def __init__(self, folder: Path, what: str, state: State = "written", *, private: bool = False) -> None:
        self._folder, self._state = folder, state
        self._lease = Lease(folder, what, private=private)
        self._held = ExitStack()

    def __enter__(self) -> Journal:
        check_all_regular(self._folder)
        with ExitStack() as stack:
            stack.enter_context(self._lease)
            journal = stack.enter_context(journal_of(self._folder, self._lease.check, self._state))
            self._held = stack.pop_all()
        return journal

    def __exit__(self, *error: Any) -> None:
        self._held.__exit__(*error)

    @property
    def token(self) -> str:
        return self._lease.token


@contextmanager
def journal_of(folder: Path, check: Callable[[], None], state: State) -> Iterator[Journal]:
    """Within it, what this process writes below the folder is noted; at its end the folder gets its root.

    A process that has lost the folder writes no root.
    """
    journal = Journal(folder, check, state)
    try:
        journal.begin()
        with kept(folder, journal):
            try:
                yield journal
            finally:
                with suppress(MedtasksError):  # what ended the call says more; the next call seals
                    check()
                    journal.seal()
    finally:
        journal.close()


@contextmanager
def journal_for_another(folder: Path) -> Iterator[None]:
    """Within it, what this process writes below the folder is noted for the process that started it."""
    lease = Borrowed(folder)
    if not (folder / FILE).is_file() and lease.token is None:  # nobody keeps notes
        yield
        return
    journal = Journal(folder, lease.check)
    try:
        with kept(folder, journal):
            yield
    finally:
        journal.close()


def sealed_now(folder: Path) -> str | None:
    """Made now where this process writes to the folder; None where it has none."""
    keeper = keeper_of(folder / MANIFEST)
    if isinstance(keeper, Journal):
        return keeper.seal()
    notes = read_notes(folder)
    return notes.root.root if notes is not None and notes.root is not None else None


@dataclass
class Sealed:
    root: Root | None = None  # None where it has none
    is_open: bool = False  # whether a call is under way, or was cut off
    roots: tuple[Root, ...] = ()  # all of them, in order
    changes: list[Change] = field(default_factory=list)

    @property
    def words(self) -> str:
        if self.root is None:
            return "open: no call has ended" if self.is_open else "not sealed"
        return ("open since " if self.is_open else "") + self.root.words

    @property
    def mark(self) -> str:
        """What whoever reads the folder must know; empty where it is as a call left it."""
        if self.changes:
            return f"changed after it was written: {some(list(dict.fromkeys(c.file for c in self.changes)))}"
        if self.is_open:
            return "not sealed: a call is under way, or was cut off"
        return "" if self.root else "not sealed: an older version wrote it"


def look(folder: Path, *, whole: bool = False) -> Sealed:
    """Hold a folder against its seal.

    Args:
        whole: read every file; else results and scores are read, and of answers, samples and prompts only
            sizes and last lines.
    """
    content = _manifest(folder)
    stated = content.get("roots") or []
    try:
        notes = read_notes(folder)
    except MedtasksError as error:
        return Sealed(changes=[Change(FILE, error.what)])
    if notes is None:
        lost = [Change(FILE, _LOST)] if stated else []
        return Sealed(changes=lost)
    sealed = Sealed(notes.root, notes.is_open, tuple(notes.roots), list(notes.changes))
    known = [root.record().model_dump(mode="json") for root in notes.roots]
    last = stated[-1] if stated else None
    if stated != known[: len(stated)] or content.get("seal") not in (None, last):
        sealed.changes.append(Change(MANIFEST, f"names other roots than {FILE}"))
        if len(stated) > len(known):
            sealed.changes.append(Change(FILE, "lacks roots that run.json names"))
    if notes.root is not None and not notes.is_open and notes.root.manifest != _manifest_digest(content):
        sealed.changes.append(Change(MANIFEST, _CHANGED))
    sealed.changes += _changes(folder, notes, whole)
    return sealed


def _changes(folder: Path, notes: Notes, whole: bool) -> Iterator[Change]:
    there = {path.relative_to(folder).as_posix(): path for path in _files(folder)}
    for name in (MANIFEST, FILE):
        there.pop(name, None)
    homes = {content.digest: name for name, content in notes.files.items()}
    for name, noted in sorted(notes.files.items()):
        path = there.pop(name, None)
        if path is None:
            if not (notes.is_open and name in notes.before and notes.before[name] is None):
                yield Change(name, "is missing")
            continue
        if noted.chained:
            what = _of_appended(path, noted, notes.is_open)
        else:
            options = [item for item in (noted, notes.before.get(name)) if item is not None]
            read = whole or name.startswith(("tasks/", "judgements/"))
            what = _of_whole(path, options, homes, name, read=read)
        if what:
            yield Change(name, what)
    for name in sorted(there):
        gone = notes.is_open and name in notes.before and notes.before[name] is not None
        of_open = notes.is_open and _is_appended(name)
        if not gone and not of_open:
            yield Change(name, "was added: no command wrote it here")


def _of_appended(path: Path, noted: Content, is_open: bool) -> str:
    if not holds_head(path, noted.bytes, noted.digest):
        return "does not hold the lines that were sealed"
    more = path.stat().st_size - noted.bytes
    return f"has {more:,} bytes more than were sealed" if more and not is_open else ""


def _of_whole(path: Path, options: list[Content], homes: Mapping[str, str], name: str, *, read: bool) -> str:
    if not read and path.stat().st_size in [option.bytes for option in options]:
        return ""
    digest = sha256_of(path)
    if digest in [option.digest for option in options]:
        return ""
    home = homes.get(digest)
    return _CHANGED if home in (None, name) else f"holds what belongs into {home}"


@dataclass(frozen=True)
class Against:
    root: Root | None  # the state of the folder that had it; None where no state had it
    later: tuple[Root, ...] = ()  # states that followed
    changes: tuple[Change, ...] = ()  # answers and judgements of that state which are not there any more


def against(folder: Path, root: str) -> Against:
    """Hold a folder against a root that was kept: the last one, or an earlier one of the same run.

    Later states may have appended answers and judgements and computed scores anew; what had been appended
    must be there.

    Args:
        root: or its beginning, of 12 digits at least.
    """
    notes = read_notes(folder, trees=True)
    if notes is None:
        raise MedtasksError("no such file", where=folder / FILE, remedy=_RESTORE)
    wanted = root.strip().lower()
    if len(wanted) < _SHORT:
        raise MedtasksError(
            f"{root!r} is too short", where="--root", remedy=f"give {_SHORT} digits of it or more"
        )
    place = next((i for i, item in enumerate(notes.roots) if item.root.startswith(wanted)), None)
    if place is None or notes.changes:
        return Against(None)
    same_root = notes.roots[place]
    lost = tuple(
        Change(name, f"does not hold the lines that it had when the root was {same_root.root[:_SHORT]}")
        for name, noted in notes.trees[same_root.root].items()
        if noted.chained and not holds_head(folder / name, noted.bytes, noted.digest)
    )
    return Against(same_root, tuple(notes.roots[place + 1 :]), lost)
