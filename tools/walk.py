"""How often a command changes rooms, by pair of rooms.

A room is a folder of `medtasks_ext`; single modules beside the folders are none. The count
says how far one document, or one report, walks through the house; it is not a time.

    python tools/walk.py run --tasks medhelm_medqa --model oracle --data sample --limit 1 --out FOLDER
    python tools/walk.py report FOLDER

The docstring of `medtasks_ext` has the counts, with what was asked.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
import threading
from collections import Counter
from pathlib import Path
from types import FrameType

PACKAGES = ("medtasks_ext",)


class Walk:
    """Counts changes of room between one call and the next, in each thread.

    Attributes:
        changes: pair of rooms, in alphabetical order -> changes in either direction.
        modules: files that were entered.
        functions: functions that were entered, as file and line.
    """

    def __init__(self) -> None:
        self.changes: Counter[tuple[str, str]] = Counter()
        self.modules: set[str] = set()
        self.functions: set[tuple[str, int]] = set()
        specs = [importlib.util.find_spec(name) for name in PACKAGES]
        self._roots = [Path(spec.origin).parent for spec in specs if spec and spec.origin]
        self._rooms: dict[str, str | None] = {}
        self._last = threading.local()

    def room(self, file: str) -> str | None:
        """The room of a file; None where it is in none: a single module, or another's."""
        if file not in self._rooms:
            root = next((root for root in self._roots if root in Path(file).parents), None)
            parts = Path(file).relative_to(root).parts if root else ()
            self._rooms[file] = parts[0] if len(parts) > 1 else None
        return self._rooms[file]

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        """Note a call, as `sys.setprofile` reports it."""
        code = frame.f_code
        is_function = code.co_flags & inspect.CO_OPTIMIZED  # else the body of a module or class: loading
        if event != "call" or not is_function or (room := self.room(code.co_filename)) is None:
            return
        self.modules.add(code.co_filename)
        self.functions.add((code.co_filename, code.co_firstlineno))
        before = getattr(self._last, "room", room)
        if before != room:
            self.changes[min(before, room), max(before, room)] += 1
        self._last.room = room

    def shown(self) -> str:
        """The counts as lines, the largest first."""
        rooms = {room for file in self.modules if (room := self.room(file))}
        lines = [
            f"{sum(self.changes.values()):,} changes of room; {len(rooms)} rooms, "
            f"{len(self.modules)} modules, {len(self.functions):,} functions"
        ]
        lines += [f"{count:7,}  {one} <-> {other}" for (one, other), count in self.changes.most_common()]
        return "\n".join(lines)


def main() -> None:
    """Run a command of `medtasks` and print its walk."""
    from medtasks_ext.cli.main import main as medtasks

    walk = Walk()
    sys.argv = ["medtasks", *sys.argv[1:]]
    threading.setprofile(walk)
    sys.setprofile(walk)
    try:
        medtasks()
    except SystemExit as end:
        if end.code:
            print(f"the command ended with {end.code}", file=sys.stderr)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]  # None ends it, says the manual
    print(walk.shown())


if __name__ == "__main__":
    main()
