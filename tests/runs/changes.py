"""Every kind of change to every file of a run's folder, as a careless or a hostile hand makes them."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from medtasks_ext.runs.folder import SUMS, state_of

FLIPS = 6  # places of a file at which one bit is turned


@dataclass(frozen=True)
class Edit:
    """One change."""

    files: tuple[str, ...]  # below the folder, one of which must be named
    what: str  # was done, in words
    apply: Callable[[Path], None]  # does it to a copy of the folder


def files_of(folder: Path) -> list[str]:
    """All files of a folder but hidden ones."""
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file())
    names = (path.relative_to(folder) for path in paths)
    return [name.as_posix() for name in names if not any(part.startswith(".") for part in name.parts)]


def edits_of(folder: Path, seed: int = 1) -> Iterator[Edit]:
    """All of them."""
    chance, names = random.Random(seed), files_of(folder)
    for name in names:
        content = (folder / name).read_bytes()
        for place in sorted(chance.sample(range(len(content)), min(FLIPS, len(content)))):
            bit = chance.randrange(7)
            yield Edit(
                (name,), f"bit {bit} of byte {place} turned", _put(name, _flipped(content, place, bit))
            )
        lines = content.splitlines(keepends=True)
        yield Edit((name,), "end cut off", _put(name, content[:-9]))
        yield Edit((name,), "last line cut off", _put(name, b"".join(lines[:-1])))
        yield Edit((name,), "emptied", _put(name, b""))
        yield Edit((name,), "taken away", lambda copy, name=name: (copy / name).unlink())
        yield Edit((name,), "a line more", _put(name, content + (lines[-1] if lines else b"{}\n")))
        if name.endswith(".jsonl") and len(lines) > 1 and lines[0] != lines[1]:
            yield Edit((name,), "lines swapped", _put(name, b"".join([lines[1], lines[0], *lines[2:]])))
        if name.endswith(".json"):
            yield Edit((name,), "a number changed", _put(name, _other_number(content)))
        twins = [other for other in names if other != name and Path(other).suffix == Path(name).suffix]
        twins = [] if name == SUMS else [other for other in twins if other != SUMS]
        for other in twins[:1]:
            yield Edit((name, other), f"swapped with {other}", _swap(name, other))
        yield Edit((f"{name}.bak",), "a copy put beside it", _put(f"{name}.bak", content))


def named(folder: Path) -> set[str]:
    """The files that whatever reads the folder names; the hashes, where they are gone."""
    state = state_of(folder)
    return {SUMS} if state.interrupted else set(state.changed)


def all_named(folder: Path, copies: Path) -> Counter[str]:
    """Make every change to a copy; each must be named. Returns how many were made, by file."""
    made: Counter[str] = Counter()
    assert named(folder) == set()
    for edit in edits_of(folder):
        copy = copies / "copy"
        shutil.copytree(folder, copy)
        edit.apply(copy)
        seen = named(copy)
        # of damaged hashes, those files are named whose lines are gone or others
        missed = not seen if edit.files == (SUMS,) else set(edit.files) - seen
        assert not missed, (edit.files, edit.what, missed)
        made[edit.files[0]] += 1
        shutil.rmtree(copy)
    assert set(files_of(folder)) <= made.keys()
    return made


def _put(name: str, content: bytes) -> Callable[[Path], None]:
    return lambda copy: _written(copy / name, content)


def _written(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def _flipped(content: bytes, place: int, bit: int) -> bytes:
    return content[:place] + bytes([content[place] ^ (1 << bit)]) + content[place + 1 :]


def _other_number(content: bytes) -> bytes:
    """The first number of JSON, one higher."""

    def higher(value: object) -> tuple[object, bool]:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return value + 1, True
        pairs = (
            value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        )
        for key, item in pairs:
            changed, done = higher(item)
            if done:
                value[key] = changed  # type: ignore[index]
                return value, True
        return value, False

    return json.dumps(higher(json.loads(content))[0], indent=1).encode()


def _swap(name: str, other: str) -> Callable[[Path], None]:
    def swap(copy: Path) -> None:
        one, two = (copy / name).read_bytes(), (copy / other).read_bytes()
        (copy / name).write_bytes(two)
        (copy / other).write_bytes(one)

    return swap
