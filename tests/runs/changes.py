"""Every kind of change to every file of a run's folder, as a careless or a hostile hand makes them."""

from __future__ import annotations

import random
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from medtasks_ext.runs.folder import SUMS, state_of

FLIPS = 6  # places of a file at which one bit is turned


def files_of(folder: Path) -> list[str]:
    """All files of a folder but hidden ones."""
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file())
    names = (path.relative_to(folder) for path in paths)
    return [name.as_posix() for name in names if not any(part.startswith(".") for part in name.parts)]


def changed_contents(name: str, content: bytes, chance: random.Random) -> Iterator[tuple[str, bytes | None]]:
    """What was done to a file, in words, and what it holds then; None where it is gone."""
    for place in sorted(chance.sample(range(len(content)), min(FLIPS, len(content)))):
        flipped = content[place] ^ (1 << chance.randrange(7))
        yield f"a bit of byte {place} turned", content[:place] + bytes([flipped]) + content[place + 1 :]
    lines = content.splitlines(keepends=True)
    yield "end cut off", content[:-9]
    yield "last line cut off", b"".join(lines[:-1])
    yield "emptied", b""
    yield "taken away", None
    yield "a line more", content + (lines[-1] if lines else b"{}\n")
    if name.endswith(".jsonl") and len(lines) > 1 and lines[0] != lines[1]:
        yield "lines swapped", b"".join([lines[1], lines[0], *lines[2:]])
    if name.endswith(".json"):
        yield "a number changed", re.sub(rb"\d", lambda found: b"%d" % (9 - int(found[0])), content, count=1)


def named(folder: Path) -> set[str]:
    """The files that whatever reads the folder names; the hashes, where they are gone."""
    state = state_of(folder)
    return {SUMS} if state.interrupted else set(state.changed)


def all_named(folder: Path, copies: Path) -> Counter[str]:
    """Make every change to a copy; each must be named. Returns how many were made, by file."""
    made: Counter[str] = Counter()
    chance, copy = random.Random(1), copies / "copy"
    assert named(folder) == set()
    for name in files_of(folder):
        for what, changed in changed_contents(name, (folder / name).read_bytes(), chance):
            shutil.copytree(folder, copy)
            if changed is None:
                (copy / name).unlink()
            else:
                (copy / name).write_bytes(changed)
            # of damaged hashes, those files are named whose lines are gone or others
            seen = named(copy)
            assert seen if name == SUMS else name in seen, (name, what)
            made[name] += 1
            shutil.rmtree(copy)
    shutil.copytree(folder, copy)
    (copy / "more.bak").write_bytes(b"")
    assert "more.bak" in named(copy)
    shutil.rmtree(copy)
    return made
